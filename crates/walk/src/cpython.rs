//! CPython frames: from a thread to its state, and from there frame by frame.
//!
//! Like the native walker this does one bounded piece of work a call, over plain data. There are two ways to use it. A
//! [`Chain`] gives all frames of a parked thread, one after the other. A [`Cursor`] that is told of each native eval
//! loop by [`Cursor::enter`] gives the run of frames that this eval loop executes, and proves that they are its own; see
//! [`turn`].
//!
//! Whatever is read may be garbage: of a process that runs meanwhile, or of one that means harm.

mod block;
mod chain;
mod run;

pub use block::{Block, Span, WORDS};
pub use chain::{Chain, Step};
pub use run::{Cursor, Turn, turn};

use abi::python::{CHECKS, CodeFacts, FIRST_SHIM_OWNER, Fault, LAST_OWNER, LOADS, NONE, Python, flags, run as ends};

/// Memory of the process.
pub trait Memory {
    /// The 8 bytes at `address`, if they can be read.
    fn read_u64(&mut self, address: u64) -> Option<u64>;

    /// The words of the object at `object` that have a field, at their places; what lies between may be written, too. False: they
    /// cannot be read. `span` fits.
    #[inline(always)]
    fn read_span(&mut self, object: u64, span: Span, into: &mut [u64; WORDS]) -> bool {
        span.read_by_words(object, into, |address| self.read_u64(address))
    }
}

impl<T: crate::Target> Memory for T {
    #[inline(always)]
    fn read_u64(&mut self, address: u64) -> Option<u64> {
        crate::Target::read_u64(self, address)
    }

    #[inline(always)]
    fn read_span(&mut self, object: u64, span: Span, into: &mut [u64; WORDS]) -> bool {
        crate::Target::read_span(self, object, span, into)
    }
}

/// A Python frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Frame {
    /// Where it lies.
    pub address: u64,
    /// Its code object.
    pub code: u64,
    /// The current instruction as the version notes it: a number counted from the code's begin up to 3.10 (in bytes, in
    /// 3.10 in units of two; -1 = not started), else an address.
    pub lasti: u64,
    /// The byte that tells how a run ends; 0 where there is none.
    pub owner: u8,
}

/// What a frame is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    /// A function's, and its caller is executed by the same eval loop.
    Inner,
    /// A function's, the outermost of its eval loop.
    Outermost,
    /// Not a function's: it lies behind the outermost one of an eval loop.
    Shim,
    /// Behind the last shim: the chain is at its end.
    Base,
}

/// The state of the thread whose thread pointer this is.
///
/// # Errors
/// If there is none, or none that says of itself that it belongs to this thread.
#[inline(always)]
pub fn state_of<M: Memory>(memory: &mut M, python: &Python, thread_pointer: u64) -> Result<u64, Fault> {
    let mut state = thread_pointer;
    for step in 0..LOADS {
        if step < python.slot.loads as usize {
            let at = state.wrapping_add(python.slot.steps[step] as i64 as u64);
            state = memory.read_u64(at).ok_or(Fault::SlotUnreadable)?;
            if state == 0 {
                return Err(Fault::NoState);
            }
        }
    }
    if python.slot.loads == 0 {
        return Err(Fault::NoState);
    }
    let owner = memory.read_u64(state.wrapping_add(python.thread_id as u64)).ok_or(Fault::StateUnreadable)?;
    if owner != thread_pointer.wrapping_add(python.slot.thread_self as i64 as u64) {
        return Err(Fault::OtherThread);
    }
    Ok(state)
}

/// Where the frames of a thread state begin.
struct Begin {
    /// The innermost frame; 0 = none.
    frame: u64,
    /// The `_PyCFrame` that led to it; 0 where there are none.
    cframe: u64,
    /// The base frame, which is the last one; 0 where there is none.
    base: u64,
}

#[inline(always)]
fn begin<M: Memory>(memory: &mut M, python: &Python, state: u64) -> Result<Begin, Fault> {
    let mut word = |at: u64, offset: u16| memory.read_u64(at.wrapping_add(offset as u64)).ok_or(Fault::StateUnreadable);
    let current = word(state, python.current)?;
    let base = if python.base_frame == NONE { 0 } else { word(state, python.base_frame)? };
    if python.cframe_current == NONE {
        return Ok(Begin { frame: current, cframe: 0, base });
    }
    let frame = word(current, python.cframe_current)?;
    Ok(Begin { frame, cframe: current, base })
}

/// Reads the frame at `address`, which is not 0, into `block`: what it is, and its caller's address. `base` is the base frame's,
/// or 0.
#[inline(always)]
fn read_frame<M: Memory>(
    memory: &mut M,
    python: &Python,
    span: Span,
    block: &mut Block,
    base: u64,
    address: u64,
) -> Result<(Frame, Kind, u64), Fault> {
    if address & 7 != 0 {
        return Err(Fault::FrameMisaligned);
    }
    if !block.read(memory, address, span) {
        return Err(Fault::FrameUnreadable);
    }
    let code = block.word(span, python.code) & !(python.tags as u64);
    let back = block.word(span, python.back);
    let lasti = block.from(span, python.lasti);
    let lasti = if python.flags & flags::LASTI_IS_INDEX != 0 { lasti as i32 as i64 as u64 } else { lasti };
    let owner = if python.owner == NONE { 0 } else { block.from(span, python.owner) as u8 };
    if back == address {
        return Err(Fault::Loop);
    }
    let kind = kind_of(python, owner, address == base, back)?;
    Ok((Frame { address, code, lasti, owner }, kind, back))
}

#[inline(always)]
fn kind_of(python: &Python, owner: u8, is_base: bool, back: u64) -> Result<Kind, Fault> {
    match python.run {
        ends::EVERY => Ok(Kind::Outermost),
        ends::ENTRY => match owner {
            0 => Ok(Kind::Inner),
            1 => Ok(Kind::Outermost),
            _ => Err(Fault::BadFrame),
        },
        _ if owner > LAST_OWNER => Err(Fault::BadFrame),
        _ if owner < FIRST_SHIM_OWNER => Ok(Kind::Inner),
        _ if !is_base => Ok(Kind::Shim),
        _ if back != 0 => Err(Fault::BadFrame),
        _ => Ok(Kind::Base),
    }
}

/// The check of a code object: of what never changes while it lives.
#[inline(always)]
pub fn check_of<M: Memory>(memory: &mut M, facts: &CodeFacts, code: u64) -> Option<u32> {
    check_with(memory, facts, Span::of_code(facts), &mut Block::default(), code)
}

/// The same where its span is known; `block` is memory to work in.
#[inline(always)]
pub fn check_with<M: Memory>(
    memory: &mut M,
    facts: &CodeFacts,
    span: Span,
    block: &mut Block,
    code: u64,
) -> Option<u32> {
    if !block.read(memory, code, span) {
        return None;
    }
    let mut check = 0;
    for index in 0..CHECKS {
        if facts.checked[index] != NONE {
            check = crate::mix(check, block.word(span, facts.checked[index]) & facts.masks[index]);
        }
    }
    if facts.text_length != 0 {
        let (name, lines) = (block.word(span, facts.name), block.word(span, facts.lines));
        check = crate::mix(check, content_of(memory, facts, block, name, lines));
    }
    Some((check >> 32) as u32)
}

/// What tells names and line tables apart that come to lie at the same addresses one after the other: how long they are, the
/// name's hash, and how the table begins. 0 for what cannot be read.
#[inline(always)]
fn content_of<M: Memory>(memory: &mut M, facts: &CodeFacts, block: &mut Block, name: u64, lines: u64) -> u64 {
    let mut content = 0;
    let span = Span::of_words(facts.text_length, 2);
    if block.read(memory, name, span) {
        content = crate::mix(block.first(0), block.first(1));
    }
    let span = Span::of_words(facts.bytes_size, 3);
    if block.read(memory, lines, span) {
        let (size, begin) = (block.first(0), block.first(2));
        // what is behind a short table is none of it
        let beyond = if size < 8 { 64 - 8 * size as u32 } else { 0 };
        let begin = if beyond >= 64 { 0 } else { begin << beyond };
        content = crate::mix(crate::mix(content, size), begin);
    }
    content
}

/// Whether an object is a code object.
#[inline(always)]
fn is_code<M: Memory>(memory: &mut M, python: &Python, object: u64) -> bool {
    memory.read_u64(object.wrapping_add(python.object_type as u64)) == Some(python.code_type)
}

#[cfg(test)]
pub(crate) mod tests;
