//! Python frames among native ones: a native frame of an eval loop is held back until it is known which Python frames stand for
//! it.
//!
//! A native frame in an eval loop's code is not pushed. When its caller is known, and so its own extent, turns take one Python
//! frame each ([`crate::cpython::turn`]), until the run of this eval loop is over. If the run turns out not to be this eval
//! loop's, its words are taken back and the native frame is shown.

use abi::python::{Entry, FRAMES, Fault, flags, moment, run as ends};
use abi::record::{HEAD, REGISTERS, WORDS};
use abi::stop::Stop;
use abi::word::{self, flag};

use crate::cpython::{self, Block, Cursor, Span, Turn, state_of};
use crate::{Target, Walk};

/// What of an eval loop a native frame is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum EvalLoop {
    /// Nothing.
    No,
    /// Its frame.
    Main,
    /// A function's that works for it, called by the eval loop's function: both are one eval loop.
    Part,
}

/// Where a walk is with its Python frames. All bytes 0: none was met.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Progress {
    /// A set of [`state`] bits.
    pub state: u32,
    /// How many frames were taken, less those that were given back.
    frames: u32,
    /// The native frame that is held back; 0 = none.
    pub(crate) held: u64,
    /// The same of a part of an eval loop, that the held one called.
    part: u64,
    /// The lowest address of the eval loop's native frames.
    low: u64,
    /// Words, frames and hash where the run began.
    begin_total: u32,
    begin_frames: u32,
    /// Where the fields of code objects lie.
    code: Span,
    begin_hash: u64,
    /// What is true where the innermost eval loop is: an [`abi::python::moment`], or 0.
    moment: u32,
    reserved: u32,
    /// Where it is in the chain.
    cursor: Cursor,
    /// What was read last.
    block: Block,
}

/// Bits of [`Progress::state`].
pub mod state {
    /// The chain was begun.
    pub const BEGUN: u32 = 1;
    /// A run is being taken.
    pub const RUN: u32 = 2;
    /// The chain's fault is among the words.
    pub const SAID: u32 = 4;
    /// The eval loop that is held back is the first that was met.
    pub const INNERMOST: u32 = 16;
    /// An eval loop that is not the chain's was shown, and marked.
    pub const MARKED: u32 = 8;
}

impl Progress {
    /// Nothing yet.
    pub const ZERO: Progress = Progress {
        state: 0,
        frames: 0,
        held: 0,
        part: 0,
        low: 0,
        begin_total: 0,
        begin_frames: 0,
        code: Span::ZERO,
        begin_hash: 0,
        moment: 0,
        reserved: 0,
        cursor: Cursor::ZERO,
        block: Block::ZERO,
    };

    /// What is in it before is not looked at as long as these are 0.
    #[inline(always)]
    pub(crate) fn clear(&mut self) {
        self.state = 0;
        self.part = 0;
        self.held = 0;
    }
}

/// Whether a walk has come to an eval loop.
#[inline(always)]
pub fn was_met(walk: &Walk) -> bool {
    walk.python.state & state::BEGUN != 0
}

/// Pushes a native frame, or holds it back. `moment` is what is true where it is, if no eval loop was met before.
#[inline(always)]
pub(crate) fn push_native(walk: &mut Walk, what: EvalLoop, moment: u32, native: u64) {
    match what {
        EvalLoop::No => {
            push_part(walk);
            walk.push(native);
        }
        EvalLoop::Main => {
            if walk.python.part == 0 {
                walk.python.moment = moment;
            }
            walk.python.held = native;
        }
        EvalLoop::Part if walk.python.part == 0 => {
            walk.python.part = native;
            walk.python.low = walk.registers.sp;
            walk.python.moment = moment;
        }
        // parts call each other: the innermost one stands for them
        EvalLoop::Part => {}
    }
}

#[inline(always)]
fn push_part(walk: &mut Walk) {
    if walk.python.part != 0 {
        walk.push(walk.python.part);
        walk.python.part = 0;
    }
}

#[inline(always)]
fn push_held(walk: &mut Walk) {
    push_part(walk);
    walk.push(walk.python.held);
}

/// The caller of the frame that is held back is known: its stack pointer is the end of the frame that began at `low`.
#[inline(always)]
pub(crate) fn enter<T: Target>(target: &mut T, entry: &Entry, walk: &mut Walk, low: u64) {
    let low = if walk.python.part != 0 { walk.python.low } else { low };
    let is_innermost = walk.python.state & state::BEGUN == 0;
    walk.python.state &= !state::INNERMOST;
    if is_innermost {
        walk.python.state |= state::INNERMOST;
        begin(target, entry, walk);
    }
    walk.python.cursor.enter(low, walk.registers.sp);
    walk.python.begin_total = walk.stack.header.total;
    walk.python.begin_hash = walk.stack.header.key.hash;
    walk.python.begin_frames = walk.python.frames;
    if is_innermost && walk.python.moment == moment::UNLINKED {
        walk.python.cursor.pass();
        return pass(walk);
    }
    if is_innermost && walk.python.moment != 0 {
        interrupt(walk);
    }
    walk.python.state |= state::RUN;
}

/// The eval loop has no frame yet, or no more.
#[inline(always)]
fn pass(walk: &mut Walk) {
    say_fault(walk);
    push_held(walk);
    walk.python.held = 0;
}

/// The first frame does not lead to its caller: a register does, unless the registers are those of a signal handler.
#[inline(always)]
fn interrupt(walk: &mut Walk) {
    let register = walk.python.moment & moment::REGISTER;
    let caller = walk.registers.all[register as usize & (REGISTERS - 1)];
    let moment = if walk.signal_frame == 0 { walk.python.moment } else { moment::NO_CALLER };
    walk.python.cursor.interrupted(moment, caller);
}

#[inline(always)]
fn begin<T: Target>(target: &mut T, entry: &Entry, walk: &mut Walk) {
    walk.python.state |= state::BEGUN;
    walk.python.frames = 0;
    walk.python.code = Span::of_code(&entry.code);
    let thread_pointer = target.thread_pointer();
    match state_of(target, &entry.python, thread_pointer) {
        Ok(state) => walk.python.cursor.begin(target, &entry.python, state),
        Err(fault) => walk.python.cursor.begin_with(fault),
    }
}

/// Takes the next Python frame of the run.
#[inline(always)]
pub(crate) fn turn<T: Target>(target: &mut T, entry: &Entry, walk: &mut Walk) {
    match cpython::turn(target, &entry.python, &mut walk.python.cursor, &mut walk.python.block) {
        Turn::Frame(frame) => {
            push_frame(target, entry, walk, frame);
            if walk.python.frames >= FRAMES {
                walk.python.cursor.stop(Fault::TooMany);
                end_of_run(entry, walk);
            }
        }
        Turn::Last(frame) => {
            push_frame(target, entry, walk, frame);
            end_of_run(entry, walk);
        }
        Turn::Over => end_of_run(entry, walk),
        Turn::GiveBack => give_back(walk),
    }
}

#[inline(always)]
fn push_frame<T: Target>(target: &mut T, entry: &Entry, walk: &mut Walk, frame: cpython::Frame) {
    walk.python.frames = walk.python.frames.wrapping_add(1);
    let (span, block) = (walk.python.code, &mut walk.python.block);
    let check = cpython::check_with(target, &entry.code, span, block, frame.code).unwrap_or(0);
    let instruction = instruction(entry.python.flags, frame);
    walk.push(word::python(frame.code));
    walk.push(word::python_at(check, instruction));
}

/// What a word holds of the current instruction: its distance from the code object in units of two bytes, or up to 3.10 its
/// number and 1, so that 0 has not begun.
#[inline(always)]
fn instruction(bits: u16, frame: cpython::Frame) -> u32 {
    let number = if bits & flags::LASTI_IS_INDEX != 0 {
        frame.lasti.wrapping_add(1)
    } else {
        frame.lasti.wrapping_sub(frame.code) >> 1
    };
    if number < word::NO_INSTRUCTION as u64 { number as u32 } else { word::NO_INSTRUCTION }
}

#[inline(always)]
fn end_of_run(entry: &Entry, walk: &mut Walk) {
    walk.python.state &= !state::RUN;
    let lacks = walk.python.cursor.taken() == 0;
    if lacks && entry.python.run == ends::EVERY && walk.python.frames != 0 {
        // one of them had none, and it was not known which
        walk.python.cursor.stop(Fault::Unproven);
    } else if lacks && walk.python.frames != 0 && !walk.python.cursor.is_at_shim() {
        // at its shim, its frame is unlinked, and what dies with it runs Python
        mark(walk);
    }
    say_fault(walk);
    if lacks || entry.keeps_native != 0 {
        push_held(walk);
    }
    walk.python.part = 0;
    walk.python.held = 0;
}

/// The run is not this eval loop's.
#[inline(always)]
fn give_back(walk: &mut Walk) {
    take_back(walk);
    if walk.python.cursor.take_caught() {
        walk.push(word::python_fault(Fault::HalfPushed as u8));
    } else if walk.python.state & state::INNERMOST == 0 || !is_leaf(walk) {
        mark(walk);
    }
    say_fault(walk);
    push_held(walk);
    walk.python.held = 0;
}

/// Whether the eval loop that is held back was interrupted, and does not wait for what it has called.
#[inline(always)]
fn is_leaf(walk: &Walk) -> bool {
    let is_exact = |native: u64| native >> word::TAG_SHIFT & flag::EXACT as u64 != 0;
    is_exact(walk.python.held) || is_exact(walk.python.part)
}

/// Says once of an eval loop that has its frame linked, since it has called something, that it is not this chain's.
#[inline(always)]
fn mark(walk: &mut Walk) {
    if walk.python.state & state::MARKED == 0 && walk.python.cursor.fault_code() == 0 {
        walk.python.state |= state::MARKED;
        walk.push(word::python_fault(Fault::OtherChain as u8));
    }
}

/// Forgets the words of the run.
#[inline(always)]
fn take_back(walk: &mut Walk) {
    walk.python.state &= !state::RUN;
    let (total, begin) = (walk.stack.header.total, walk.python.begin_total);
    // the ring of outermost words may have had others in their place, which are lost
    if total > WORDS as u32 && begin > HEAD as u32 && total != begin {
        walk.python.cursor.stop(Fault::TooMany);
    } else {
        walk.stack.header.total = begin;
        walk.stack.header.key.hash = walk.python.begin_hash;
        walk.python.frames = walk.python.begin_frames;
    }
}

/// Says once why there are no Python frames from here on.
#[inline(always)]
fn say_fault(walk: &mut Walk) {
    let fault = walk.python.cursor.fault_code();
    if fault != 0 && walk.python.state & state::SAID == 0 {
        walk.python.state |= state::SAID;
        walk.push(word::python_fault(fault));
    }
}

/// Before the last word: shows what was held back, and says if frames may stand at the wrong eval loops.
#[inline(always)]
pub(crate) fn finish(entry: &Entry, walk: &mut Walk, end: u64) {
    if walk.python.state & state::RUN != 0 {
        take_back(walk);
    }
    push_part(walk);
    if walk.python.held != 0 {
        walk.push(walk.python.held);
        walk.python.held = 0;
    }
    let has_frames = walk.python.state & state::BEGUN != 0 && walk.python.frames != 0;
    let is_whole = word::stop_of(end) == Stop::Root as u8 && walk.python.cursor.is_finished();
    // nothing but their number ties them
    let is_said = walk.python.cursor.fault_code() == Fault::Unproven as u8;
    if has_frames && entry.python.run == ends::EVERY && !is_whole && !is_said {
        walk.push(word::python_fault(Fault::Unproven as u8));
    }
}

#[cfg(test)]
mod tests;
