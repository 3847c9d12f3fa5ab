//! The Python stack of a thread.

use std::collections::HashMap;
use std::time::Instant;

use abi::python::Fault;
use walk::cpython::{Chain, Step};

use crate::code_object::{CodeObject, GarbledCode};
use crate::layout::frames::Words;
use crate::snapshot::Snapshot;
use crate::{Memory, Ready};

/// Frames of a stack at most.
pub const MAX_FRAMES: u32 = 1 << 16;
/// So many frames are read between two looks at the clock.
const BETWEEN_LOOKS: usize = 64;

/// A stack as it was taken, innermost frame first, with all that names need: a frame keeps its code object alive, but only as long
/// as the frame is there.
pub struct Taken {
    /// Address of the thread state.
    pub state: u64,
    frames: Vec<RawFrame>,
    codes: HashMap<u64, Result<CodeObject, GarbledCode>>,
    /// Why it ends before its outermost frame.
    pub end: End,
}

/// How a stack ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum End {
    /// With its outermost frame.
    Whole,
    /// It cannot be followed.
    Fault(Fault),
    /// Time was over.
    TooLong,
}

#[derive(Clone, Copy)]
struct RawFrame {
    code: u64,
    lasti: u64,
}

/// A frame with its name.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Frame {
    /// `co_qualname`, or `co_name` before 3.11; what is wrong, in brackets, if the code object cannot be read.
    pub name: String,
    /// `co_filename`, as the compiler was given it.
    pub path: String,
    /// The first line of the function.
    pub first_line: i32,
    /// The current line; `None` if the instruction has none.
    pub line: Option<u32>,
}

impl Taken {
    /// Takes the stack of a thread state. To be right, the thread must not run meanwhile: not after `deadline`.
    pub fn take<M: Memory>(ready: &Ready, memory: &M, state: u64, deadline: Instant) -> Taken {
        let memory = &Snapshot::new(memory);
        let (layout, strings) = (ready.layout.code_layout(ready.types.code), ready.layout.string_layout(&ready.types));
        let mut taken = Taken { state, frames: Vec::new(), codes: HashMap::new(), end: End::Whole };
        for step in Chain::new(&mut Words(memory), &ready.facts, state, MAX_FRAMES) {
            match step {
                Ok(Step::Python { frame, .. }) => {
                    taken.frames.push(RawFrame { code: frame.code, lasti: frame.lasti });
                    let read = || CodeObject::read(memory, frame.code, &layout, &strings);
                    taken.codes.entry(frame.code).or_insert_with(read);
                }
                Ok(Step::Shim(_)) => {}
                Err(fault) => taken.end = End::Fault(fault),
            }
            if taken.frames.len().is_multiple_of(BETWEEN_LOOKS) && Instant::now() >= deadline {
                taken.end = End::TooLong;
                break;
            }
        }
        taken
    }

    /// Its frames, named; without those of no function.
    pub fn frames(&self) -> impl Iterator<Item = Frame> {
        self.frames.iter().filter_map(|frame| match self.codes.get(&frame.code) {
            Some(Ok(code)) if code.is_trampoline() => None,
            Some(Ok(code)) => Some(Frame {
                line: code.line_of(frame.lasti).number(),
                first_line: code.first_line,
                name: code.name.to_string(),
                path: code.path.to_string(),
            }),
            Some(Err(error)) => Some(nameless(format!("[python: {error}]"))),
            None => Some(nameless("[python: code object not read]".to_owned())),
        })
    }
}

fn nameless(name: String) -> Frame {
    Frame { name, path: String::new(), first_line: 0, line: None }
}
