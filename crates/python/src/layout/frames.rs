//! A layout's proof on the frames of a thread that does not run Python at the time: it waits or sleeps.
//!
//! Of a thread that runs, frames may be seen half made; what fails for that reason does not fail again.

use std::collections::HashSet;

use abi::python::Python;
use walk::cpython::{self, Chain, Step};

use super::confirm::Types;
use super::refusal::Reading;
use super::{Lasti, Layout, LayoutRefusal};
use crate::Memory;

/// Characters of a text at most that is checked; longer ones are not.
const LONGEST: u64 = 4096;
/// Bits of a string's state (Include/cpython/unicodeobject.h): 2 bits how it is interned, 3 how wide its characters are,
/// 1 whether they follow the object, 1 whether they are all ASCII.
const KIND_SHIFT: u32 = 2;
const COMPACT: u32 = 1 << 5;
const ASCII: u32 = 1 << 6;

/// What is known of a process.
#[derive(Clone, Copy, Debug)]
pub struct Process<'a, M> {
    /// The layout.
    pub layout: &'a Layout,
    /// What the walker needs of it.
    pub facts: &'a Python,
    /// The addresses of types.
    pub types: &'a Types,
    /// The memory.
    pub memory: &'a M,
}

/// What a chain consists of.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ChainFacts {
    /// Functions' frames.
    pub frames: usize,
    /// Runs, each executed by a native eval loop.
    pub runs: usize,
}

/// Memory as the walker reads it.
pub struct Words<'a, M>(pub &'a M);

impl<M: Memory> cpython::Memory for Words<'_, M> {
    fn read_u64(&mut self, address: u64) -> Option<u64> {
        self.0.u64(address).ok()
    }
}

/// Walks the chain of a thread state, at most `limit` links, and checks each frame.
///
/// # Errors
/// What is not as it must be.
pub fn check_frames<M: Memory>(process: &Process<M>, state: u64, limit: u32) -> Result<ChainFacts, LayoutRefusal> {
    check_alignment(process.facts)?;
    let mut facts = ChainFacts::default();
    let mut codes = HashSet::new();
    let mut texts = 0;
    let mut at_end_of_run = true;
    let mut begun = false;
    for step in Chain::new(&mut Words(process.memory), process.facts, state, limit) {
        match step.map_err(|fault| LayoutRefusal::Chain { frames: facts.frames, fault })? {
            Step::Shim(_) => {
                facts.runs += 1;
                at_end_of_run = true;
            }
            Step::Python { frame, outermost } => {
                if codes.insert(frame.code) {
                    texts += check_code(process, frame.code)?;
                }
                begun |= check_lasti(process, &frame)?;
                facts.frames += 1;
                facts.runs += usize::from(outermost);
                at_end_of_run = outermost;
            }
        }
    }
    if !at_end_of_run {
        return Err(LayoutRefusal::ChainEnd { frames: facts.frames });
    }
    if facts.frames > 1 && !begun {
        let expected = "must be behind the first instruction in one of the callers";
        return Err(LayoutRefusal::Live { field: "frame.lasti", found: 0, expected });
    }
    if facts.frames != 0 && texts == 0 {
        let expected = "must be that of compact ASCII in one of the names and paths";
        return Err(LayoutRefusal::Live { field: "text.state", found: 0, expected });
    }
    Ok(facts)
}

/// Pointers lie at multiples of their size. The walker reads whole words, and would not see it.
fn check_alignment(facts: &Python) -> Result<(), LayoutRefusal> {
    let fields = [("frame.code", facts.code), ("frame.back", facts.back)];
    match fields.into_iter().find(|(_, offset)| !offset.is_multiple_of(8)) {
        Some((field, offset)) => {
            Err(LayoutRefusal::Live { field, found: offset.into(), expected: "must be a multiple of 8" })
        }
        None => Ok(()),
    }
}

/// Checks a code object's names, its path and its line table. How many texts were compact ASCII.
fn check_code<M: Memory>(process: &Process<M>, code: u64) -> Result<usize, LayoutRefusal> {
    let offsets = &process.layout.code;
    let field = |offset: u32| process.memory.u64(code.wrapping_add(offset.into())).of("code object");
    let mut texts = 0;
    let strings = [
        ("code.filename", Some(offsets.filename)),
        ("code.name", Some(offsets.name)),
        ("code.qualname", offsets.qualname),
    ];
    for (name, offset) in strings {
        let Some(offset) = offset else { continue };
        texts += usize::from(check_string(process, name, field(offset)?)?);
    }
    for (name, offset) in [("code.linetable", Some(offsets.linetable)), ("code.bytecode", offsets.bytecode)] {
        let Some(offset) = offset else { continue };
        check_bytes(process, name, field(offset)?)?;
    }
    Ok(texts)
}

/// Checks a string that is a name or a path. Whether it is compact ASCII. Instances of subclasses are not looked at, which
/// paths may be.
fn check_string<M: Memory>(process: &Process<M>, name: &'static str, string: u64) -> Result<bool, LayoutRefusal> {
    let (text, memory) = (&process.layout.text, process.memory);
    if type_of(process, string)? != process.types.unicode {
        return Ok(false);
    }
    let at = |offset: u32| string.wrapping_add(offset.into());
    let length = memory.u64(at(text.length)).of("string")?;
    let state = memory.u32(at(text.state)).of("string")?;
    let width = u64::from(state >> KIND_SHIFT & 7);
    // up to 3.11 there are strings whose characters lie elsewhere, and such that have none but `wchar_t` yet
    let data = match (state & COMPACT != 0, state & ASCII != 0, text.wide) {
        (true, true, _) if width == 1 => at(text.ascii),
        (true, false, _) if matches!(width, 1 | 2 | 4) => at(text.compact),
        (false, _, Some(_)) if matches!(width, 1 | 2 | 4) => memory.u64(at(text.compact)).of("string")?,
        (false, false, Some(wide)) if width == 0 && length == 0 && memory.u64(at(wide)).of("string")? != 0 => {
            return Ok(false);
        }
        _ => {
            return Err(LayoutRefusal::Live {
                field: "text.state",
                found: state.into(),
                expected: "must be a string's",
            });
        }
    };
    if length > LONGEST {
        return Ok(false);
    }
    let mut bytes = vec![0; ((length + 1) * width) as usize];
    memory.read(data, &mut bytes).of("characters of a string")?;
    let units =
        bytes.chunks(width as usize).map(|unit| unit.iter().rev().fold(0, |all, byte| all << 8 | u32::from(*byte)));
    let (mut zeros, mut widest, mut last) = (0, 0, 1);
    for unit in units {
        zeros += u32::from(unit == 0);
        (widest, last) = (unit.max(widest), unit);
    }
    // each string is as wide as it must be for its widest character
    let is_in_range = match (width, state & ASCII != 0) {
        (1, true) => widest < 0x80,
        (1, false) => (0x80..0x100).contains(&widest),
        (2, _) => (0x100..0x1_0000).contains(&widest),
        _ => (0x1_0000..0x11_0000).contains(&widest),
    };
    if zeros == 1 && last == 0 && is_in_range {
        return Ok(state & COMPACT != 0 && state & ASCII != 0);
    }
    Err(LayoutRefusal::Live {
        field: name,
        found: string,
        expected: "must be characters of one width with a 0 behind them",
    })
}

/// Checks the length of a bytes object by the 0 that follows it. It may be of a subclass.
fn check_bytes<M: Memory>(process: &Process<M>, name: &'static str, object: u64) -> Result<(), LayoutRefusal> {
    if type_of(process, object)? != process.types.bytes {
        return Ok(());
    }
    let length = process.memory.u64(object.wrapping_add(process.layout.object.ob_size.into())).of("bytes object")?;
    let end = object.wrapping_add(process.layout.text.bytes.into()).wrapping_add(length);
    match process.memory.u8(end).of("end of a bytes object")? {
        0 => Ok(()),
        found => Err(LayoutRefusal::Live { field: name, found: found.into(), expected: "must end in 0" }),
    }
}

fn type_of<M: Memory>(process: &Process<M>, object: u64) -> Result<u64, LayoutRefusal> {
    process.memory.u64(object.wrapping_add(process.layout.object.ob_type.into())).of("object")
}

/// Checks that a frame's instruction lies in its code. Whether it is behind the first one, as it is where frames have called
/// others; not where a function is traced (`sys.settrace`), or an exception thrown into a generator, before it begins.
fn check_lasti<M: Memory>(process: &Process<M>, frame: &cpython::Frame) -> Result<bool, LayoutRefusal> {
    let length = code_length(process, frame.code)?;
    let begin = frame.code.wrapping_add(process.layout.code.code_adaptive.unwrap_or(0).into());
    let offset = match process.layout.lasti {
        Lasti::ByteOffset => frame.lasti as i64,
        Lasti::UnitIndex => (frame.lasti as i64).saturating_mul(2),
        Lasti::PreviousUnit | Lasti::InstructionPointer => frame.lasti.wrapping_sub(begin) as i64,
    };
    // a frame may have no other in the code of `PyCode_NewEmpty`
    let is_inside = offset < length as i64 && (offset >= -2 || length <= 2) && (offset & 1 == 0 || offset == -1);
    if is_inside {
        return Ok(offset >= 2 || length <= 2);
    }
    let expected = "must be an instruction of the frame's code";
    Err(LayoutRefusal::Live { field: "frame.lasti", found: frame.lasti, expected })
}

/// Bytes of a code object's instructions.
fn code_length<M: Memory>(process: &Process<M>, code: u64) -> Result<u64, LayoutRefusal> {
    const MOST: u64 = 1 << 31;
    let field = |object: u64, offset: u32| process.memory.u64(object.wrapping_add(offset.into())).of("code object");
    let length = match process.layout.code.bytecode {
        Some(offset) => field(field(code, offset)?, process.layout.object.ob_size)?,
        None => field(code, process.layout.object.ob_size)?.saturating_mul(2),
    };
    if length <= MOST {
        return Ok(length);
    }
    Err(LayoutRefusal::Live { field: "object.ob_size", found: length, expected: "must be the length of code" })
}
