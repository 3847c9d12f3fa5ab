//! The Python stack of a thread: taken while the thread is held, named afterwards.

use abi::python::Fault;
use walk::cpython::{Chain, Step};

use crate::code_object::{CodeLayout, CodeObject, check};
use crate::layout::frames::Words;
use crate::lines::Line;
use crate::strings::StringLayout;
use crate::{Memory, Ready};

/// Frames of a stack at most.
pub const MAX_FRAMES: u32 = 1 << 16;

/// A frame as it was found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RawFrame {
    /// Address of its code object.
    pub code: u64,
    /// What the frame keeps of its instruction.
    pub lasti: u64,
    /// By which the code object is known again, see [`check`].
    pub check: Option<u16>,
}

/// A stack as it was found, innermost frame first.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RawStack {
    /// Address of the thread state.
    pub state: u64,
    /// Its frames.
    pub frames: Vec<RawFrame>,
    /// Why it ends before its outermost frame.
    pub fault: Option<Fault>,
}

/// A frame with its name.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Frame {
    /// `co_qualname`, or `co_name` before 3.11; what is wrong, in brackets, if the code object is not there any more.
    pub name: String,
    /// `co_filename`, as the compiler was given it.
    pub path: String,
    /// The first line of the function.
    pub first_line: i32,
    /// The current line; `None` if the instruction has none.
    pub line: Option<u32>,
}

/// Takes the stack of a thread state.
pub fn take<M: Memory>(ready: &Ready, memory: &M, state: u64) -> RawStack {
    let layout = ready.layout.code_layout(ready.types.code);
    let mut stack = RawStack { state, frames: Vec::new(), fault: None };
    for step in Chain::new(&mut Words(memory), &ready.facts, state, MAX_FRAMES) {
        match step {
            Ok(Step::Python { frame, .. }) => {
                let check = check_of(memory, frame.code, &layout);
                stack.frames.push(RawFrame { code: frame.code, lasti: frame.lasti, check });
            }
            Ok(Step::Shim(_)) => {}
            Err(fault) => stack.fault = Some(fault),
        }
    }
    stack
}

/// Bytes within which a code object has the numbers that tell it from others.
const HEAD: usize = 128;

/// The check value of a code object, by one read.
fn check_of(memory: &impl Memory, code: u64, layout: &CodeLayout) -> Option<u16> {
    let mut head = [0; HEAD];
    memory.read(code, &mut head).ok()?;
    let number = |offset: u64| {
        let at = usize::try_from(offset).ok()?;
        head.get(at..)?.first_chunk::<4>().map(|bytes| u32::from_le_bytes(*bytes))
    };
    Some(check(
        number(layout.co_argcount)?,
        number(layout.co_kwonlyargcount)?,
        number(layout.co_flags)?,
        number(layout.co_firstlineno)?,
    ))
}

/// Names frames, as long as their code objects are there.
pub struct Namer<'a, M> {
    memory: &'a M,
    code: CodeLayout,
    strings: StringLayout,
}

impl<'a, M: Memory> Namer<'a, M> {
    /// A namer for an interpreter.
    pub fn new(ready: &Ready, memory: &'a M) -> Namer<'a, M> {
        let code = ready.layout.code_layout(ready.types.code);
        Namer { memory, code, strings: ready.layout.string_layout(&ready.types) }
    }

    /// Names a frame.
    pub fn name(&self, frame: &RawFrame) -> Frame {
        match CodeObject::read(self.memory, frame.code, &self.code, &self.strings) {
            Ok(code) if frame.check == Some(code.check()) => Frame {
                line: match code.line_of(frame.lasti) {
                    Line::Number(line) => Some(line),
                    Line::Absent | Line::Unknown => None,
                },
                first_line: code.first_line,
                name: code.name.to_string(),
                path: code.path.to_string(),
            },
            Ok(_) => nameless("[python: code object gone]".to_owned()),
            Err(error) => nameless(format!("[python: {error}]")),
        }
    }
}

fn nameless(name: String) -> Frame {
    Frame { name, path: String::new(), first_line: 0, line: None }
}
