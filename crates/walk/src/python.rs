//! Python frames among native ones: a native frame of an eval loop is held back until it is known which Python frames stand for
//! it.
//!
//! A native frame in an eval loop's code is not pushed. When its caller is known, and so its own extent, turns take one Python
//! frame each ([`crate::cpython::turn`]), until the run of this eval loop is over. If the run turns out not to be this eval
//! loop's, its words are taken back and the native frame is shown.

use abi::python::{Entry, FRAMES, Fault, flags, run as ends};
use abi::record::{HEAD, REGISTERS, WORDS};
use abi::stop::Stop;
use abi::word;

use crate::cpython::{self, Block, Cursor, Span, Turn, state_of};
use crate::{Architecture, Target, Walk};

/// What of an eval loop a native frame is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum EvalLoop {
    /// Nothing.
    No,
    /// Its frame.
    Main,
    /// The same where it has not linked its Python frame yet.
    Linking,
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
    /// Word of the innermost eval loop's frame.
    innermost: u64,
    /// The first frame of the chain.
    first: u64,
    /// Stack pointer of the sample, or how far the search for that frame is.
    leaf: u64,
    /// End of the innermost eval loop's native frame.
    innermost_end: u64,
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
    /// An eval loop lacks its frame, and the innermost one is searched for its own.
    pub const SEARCH: u32 = 8;
    /// That was done.
    pub const SEARCHED: u32 = 16;
    /// The eval loop that is held back has not linked its frame.
    pub const LINKING: u32 = 32;
}

/// Bytes of stack below the end of the innermost eval loop's frame that are searched at most.
const MOST_SEARCHED: u64 = 64 << 10;
/// Words that a turn searches.
const SEARCHED_AT_ONCE: u32 = 8;

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
        innermost: 0,
        first: 0,
        leaf: 0,
        innermost_end: 0,
        cursor: Cursor::ZERO,
        block: Block::ZERO,
    };

    /// What is in it before is not looked at as long as these are 0.
    #[inline(always)]
    pub(crate) fn clear(&mut self, stack_pointer: u64) {
        self.state = 0;
        self.part = 0;
        self.held = 0;
        self.leaf = stack_pointer;
    }
}

/// Whether a walk has come to an eval loop.
#[inline(always)]
pub fn was_met(walk: &Walk) -> bool {
    walk.python.state & state::BEGUN != 0
}

/// Pushes a native frame, or holds it back.
#[inline(always)]
pub(crate) fn push_native(walk: &mut Walk, what: EvalLoop, native: u64) {
    match what {
        EvalLoop::No => {
            push_part(walk);
            walk.push(native);
        }
        EvalLoop::Main => walk.python.held = native,
        EvalLoop::Linking => {
            walk.python.held = native;
            walk.python.state |= state::LINKING;
        }
        EvalLoop::Part if walk.python.part == 0 => {
            walk.python.part = native;
            walk.python.low = walk.registers.sp;
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
    if walk.python.state & state::BEGUN == 0 {
        walk.python.innermost = walk.python.held;
        walk.python.innermost_end = walk.registers.sp;
        begin(target, entry, walk);
        walk.python.first = walk.python.cursor.next_frame();
    }
    walk.python.cursor.enter(low, walk.registers.sp);
    walk.python.begin_total = walk.stack.header.total;
    walk.python.begin_hash = walk.stack.header.key.hash;
    walk.python.begin_frames = walk.python.frames;
    if walk.python.state & state::LINKING != 0 {
        walk.python.state &= !state::LINKING;
        walk.python.cursor.pass();
        return give_back(walk);
    }
    walk.python.state |= state::RUN;
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
pub(crate) fn turn<A: Architecture, T: Target>(target: &mut T, entry: &Entry, walk: &mut Walk) {
    if walk.python.state & state::SEARCH != 0 {
        return search(target, walk);
    }
    match cpython::turn(target, &entry.python, &mut walk.python.cursor, &mut walk.python.block) {
        Turn::Frame(frame) => {
            push_frame(target, entry, walk, frame);
            if walk.python.frames >= FRAMES {
                walk.python.cursor.stop(Fault::TooMany);
                end_of_run::<A>(entry, walk);
            }
        }
        Turn::Last(frame) => {
            push_frame(target, entry, walk, frame);
            end_of_run::<A>(entry, walk);
        }
        Turn::Over => end_of_run::<A>(entry, walk),
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
fn end_of_run<A: Architecture>(entry: &Entry, walk: &mut Walk) {
    walk.python.state &= !state::RUN;
    let lacks = walk.python.cursor.taken() == 0;
    if lacks && entry.python.run == ends::EVERY {
        // what follows is the frame that lacks one
        push_part(walk);
        if walk.python.first != 0 && walk.python.state & state::SEARCHED == 0 {
            return begin_search::<A>(walk);
        }
        walk.push(word::python_lacks(walk.python.innermost));
    }
    say_fault(walk);
    if lacks || entry.keeps_native != 0 {
        push_held(walk);
    }
    walk.python.part = 0;
    walk.python.held = 0;
}

/// Up to 3.10 one eval loop more than frames means that the innermost one has not linked its frame, or has unlinked it, if all
/// eval loops are this chain's. They are not where frames of another chain are further out (greenlets, other interpreters). But an
/// eval loop that has linked its frame needs the address until it is done, and keeps it where calls leave it alone: in a register
/// that callees save, or on the stack. Where it is not found, none is linked.
#[inline(always)]
fn begin_search<A: Architecture>(walk: &mut Walk) {
    walk.python.state |= state::SEARCHED | state::SEARCH;
    let below = walk.python.innermost_end.wrapping_sub(walk.python.leaf);
    let mut found = below > MOST_SEARCHED;
    for register in 0..REGISTERS {
        let is_kept = A::CALLEE_SAVED >> register & 1 != 0;
        found |= is_kept && walk.registers.all[register] == walk.python.first;
    }
    walk.python.leaf &= !7;
    if found {
        end_search(walk, true);
    }
}

#[inline(always)]
fn search<T: Target>(target: &mut T, walk: &mut Walk) {
    let mut at = walk.python.leaf;
    for _ in 0..SEARCHED_AT_ONCE {
        if at >= walk.python.innermost_end {
            return end_search(walk, false);
        }
        if target.read_u64(at) == Some(walk.python.first) {
            return end_search(walk, true);
        }
        at = at.wrapping_add(8);
    }
    walk.python.leaf = at;
}

#[inline(always)]
fn end_search(walk: &mut Walk, found: bool) {
    walk.python.state &= !state::SEARCH;
    if found {
        walk.push(word::python_fault(Fault::Unproven as u8));
    } else {
        walk.push(word::python_lacks(walk.python.innermost));
    }
    push_held(walk);
    walk.python.held = 0;
}

/// The run is not this eval loop's.
#[inline(always)]
fn give_back(walk: &mut Walk) {
    take_back(walk);
    if walk.python.cursor.take_caught() {
        walk.push(word::python_fault(Fault::HalfPushed as u8));
    }
    say_fault(walk);
    push_held(walk);
    walk.python.held = 0;
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
    if has_frames && !is_proven(entry.python.run, &walk.python.cursor, word::stop_of(end) == Stop::Root as u8) {
        walk.push(word::python_fault(Fault::Unproven as u8));
    }
}

/// Whether the frames stand where they belong; whole: the walk came to the outermost native frame.
#[inline(always)]
fn is_proven(run: u16, cursor: &Cursor, is_whole: bool) -> bool {
    match run {
        // as many frames as eval loops, or one less
        ends::EVERY => is_whole && cursor.is_finished(),
        // each run follows from the one before, unless an eval loop was not seen
        ends::ENTRY => !is_whole || cursor.is_finished() || cursor.fault_code() != 0,
        _ => true,
    }
}

#[cfg(test)]
mod tests;
