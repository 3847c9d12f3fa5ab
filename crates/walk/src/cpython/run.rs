//! The frames of a native eval loop, proved to be its own.
//!
//! An eval loop can be interrupted before it has linked its frame into the thread's chain, or after it has unlinked it.
//! Then the chain begins with frames of an eval loop further out, and taking them would put them in the wrong place. So
//! what links a run to its native frame must lie in that frame: from 3.12 on the shim behind the run, in 3.11 the
//! `_PyCFrame` that the chain starts from. Otherwise the frames are given back, and wait for the next eval loop.
//!
//! In 3.11 and 3.12 there is a moment when the thread's `_PyCFrame` is that of an eval loop which has not filled it.
//! What it holds then can look like a frame. So the first code object is checked to be one; if it is not, the next eval
//! loop's own `_PyCFrame` lies as far below the top of its native frame as this one does.

use abi::python::{Fault, NONE, Python};

use super::{Block, Frame, Kind, Memory, Span, begin, is_code, read_frame};

/// Where a walk is in the thread's chain of Python frames. All bytes 0 is a cursor that has not begun.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Cursor {
    /// The thread's base frame; 0 where there is none.
    base: u64,
    /// The next frame; survives from run to run. 0 = the chain is at its end.
    frame: u64,
    /// The `_PyCFrame` that the chain started from, until a run of it is proved (3.11, 3.12).
    cframe: u64,
    /// Distance of the next eval loop's `_PyCFrame` below the top of its native frame, where the chain is taken up again.
    below: u64,
    /// The native frame of this run: first address and first one above it.
    low: u64,
    high: u64,
    /// The frame that this run began with.
    first: u64,
    /// How many frames of this run were taken.
    taken: u32,
    /// 1: a run of this walk was proved.
    proved: u16,
    /// Code of the [`Fault`] that ended Python in this walk; 0 = none.
    fault: u8,
    /// 1: the frames that were given back last were caught while one was pushed or popped.
    caught: u8,
    /// Where a frame's fields lie.
    span: Span,
    reserved: u32,
}

/// What a turn has found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Turn {
    /// A frame of this eval loop; there may be more: call again.
    Frame(Frame),
    /// The outermost frame of this eval loop: go on with its native caller.
    Last(Frame),
    /// The eval loop has no more frames: go on with its native caller. If none were taken, it is shown as what it is.
    Over,
    /// The frames taken since [`Cursor::enter`] are not this eval loop's: forget them, show it as what it is, and go on with its caller.
    GiveBack,
}

impl Cursor {
    /// Has not begun.
    pub const ZERO: Cursor = Cursor {
        base: 0,
        frame: 0,
        cframe: 0,
        below: 0,
        low: 0,
        high: 0,
        first: 0,
        taken: 0,
        proved: 0,
        fault: 0,
        caught: 0,
        span: Span::ZERO,
        reserved: 0,
    };

    /// Begins where there are no frames, for this reason.
    #[inline(always)]
    pub fn begin_with(&mut self, fault: Fault) {
        *self = Cursor { fault: fault as u8, ..Cursor::ZERO };
    }

    /// There are no frames from here on.
    #[inline(always)]
    pub fn stop(&mut self, fault: Fault) {
        self.fault = fault as u8;
    }

    /// Begins with the frames of the thread state at `state`.
    #[inline(always)]
    pub fn begin<M: Memory>(&mut self, memory: &mut M, python: &Python, state: u64) {
        *self = Cursor::ZERO;
        self.span = Span::of_frame(python);
        match begin(memory, python, state) {
            Ok(begin) => (self.frame, self.cframe, self.base) = (begin.frame, begin.cframe, begin.base),
            Err(fault) => self.fault = fault as u8,
        }
    }

    /// The native walk has come to an eval loop, whose frame lies in `low..high`: from its stack pointer to its CFA.
    #[inline(always)]
    pub fn enter(&mut self, low: u64, high: u64) {
        (self.low, self.high) = (low, high);
        self.first = self.frame;
        self.taken = 0;
    }

    /// The eval loop that was entered has not linked a frame. If the chain begins with its `_PyCFrame` already, nothing is in that
    /// yet: it is taken up at the next eval loop's.
    #[inline(always)]
    pub fn pass(&mut self) {
        if self.cframe != 0 && self.holds(self.cframe) {
            self.below = self.high.wrapping_sub(self.cframe);
        }
    }

    /// How many frames of the eval loop that was entered last were taken.
    #[inline(always)]
    pub fn taken(&self) -> u32 {
        self.taken
    }

    /// Why there are no Python frames any more in this walk.
    #[inline(always)]
    pub fn fault(&self) -> Option<Fault> {
        Fault::from_code(self.fault)
    }

    /// Whether the frames that were given back last were caught while one was pushed or popped; says so once.
    #[inline(always)]
    pub(crate) fn take_caught(&mut self) -> bool {
        let caught = self.caught != 0;
        self.caught = 0;
        caught
    }

    /// Address of the frame that comes next; 0 = none.
    #[inline(always)]
    pub(crate) fn next_frame(&self) -> u64 {
        self.frame
    }

    /// Code of that fault; 0 = none.
    #[inline(always)]
    pub(crate) fn fault_code(&self) -> u8 {
        self.fault
    }

    /// Whether all frames were taken. If not when the native walk has come to its root, frames were misplaced or lost.
    #[inline(always)]
    pub fn is_finished(&self) -> bool {
        self.frame == 0 && self.below == 0
    }

    #[inline(always)]
    fn holds(&self, address: u64) -> bool {
        address >= self.low && address < self.high
    }

    #[inline(always)]
    fn give_back(&mut self) -> Turn {
        self.frame = self.first;
        self.taken = 0;
        Turn::GiveBack
    }

    /// The run is this eval loop's.
    #[inline(always)]
    fn settle(&mut self) {
        (self.cframe, self.below) = (0, 0);
        self.proved = 1;
    }

    #[inline(always)]
    fn fail(&mut self, fault: Fault) -> Turn {
        self.fault = fault as u8;
        self.give_back()
    }

    /// What was read cannot be what it should be.
    #[inline(always)]
    fn distrust(&mut self, fault: Fault) -> Turn {
        // a run that was proved, or a chain that was already taken up again, leaves no other explanation
        if self.cframe == 0 || self.below != 0 {
            self.below = 0;
            return self.fail(fault);
        }
        self.below = self.high.wrapping_sub(self.cframe);
        self.caught = 1;
        self.give_back()
    }
}

/// Takes the next frame of the eval loop that was entered; `block` is memory to work in.
#[inline(always)]
pub fn turn<M: Memory>(memory: &mut M, python: &Python, cursor: &mut Cursor, block: &mut Block) -> Turn {
    if cursor.fault != 0 {
        return Turn::GiveBack;
    }
    if cursor.cframe != 0 && cursor.taken == 0 {
        let own = cursor.high.wrapping_sub(cursor.below);
        if cursor.below != 0 && own != cursor.cframe {
            let Some(frame) = memory.read_u64(own.wrapping_add(python.cframe_current as u64)) else {
                return cursor.fail(Fault::StateUnreadable);
            };
            (cursor.cframe, cursor.frame, cursor.first) = (own, frame, frame);
        }
        if !cursor.holds(cursor.cframe) {
            return cursor.give_back();
        }
    }
    if cursor.frame == 0 {
        return end_of_chain(cursor);
    }
    match read_frame(memory, python, cursor.span, block, cursor.base, cursor.frame) {
        Ok((frame, kind, back)) => take(memory, python, cursor, frame, kind, back),
        Err(fault) => cursor.distrust(fault),
    }
}

/// No chain ends within a run: of a frame that is being unlinked, what leads to its caller may be gone already, and nothing
/// proves then whose the frames are that were taken.
#[inline(always)]
fn end_of_chain(cursor: &mut Cursor) -> Turn {
    if cursor.taken == 0 { Turn::Over } else { cursor.distrust(Fault::BadFrame) }
}

#[inline(always)]
fn take<M: Memory>(memory: &mut M, python: &Python, cursor: &mut Cursor, frame: Frame, kind: Kind, back: u64) -> Turn {
    // a shim of 3.12 has a code object, too
    let has_code = python.cframe_current != NONE || matches!(kind, Kind::Inner | Kind::Outermost);
    if cursor.proved == 0 && cursor.taken == 0 && has_code && !is_code(memory, python, frame.code) {
        return cursor.distrust(Fault::NotCode);
    }
    match kind {
        Kind::Shim if !cursor.holds(frame.address) => {
            if cursor.cframe != 0 {
                cursor.distrust(Fault::BadFrame)
            } else {
                cursor.give_back()
            }
        }
        Kind::Shim => {
            cursor.settle();
            cursor.frame = if back == cursor.base { 0 } else { back };
            Turn::Over
        }
        Kind::Base if cursor.taken != 0 => end_of_chain(cursor),
        Kind::Base => {
            cursor.frame = 0;
            Turn::Over
        }
        Kind::Inner => {
            cursor.taken = cursor.taken.wrapping_add(1);
            cursor.frame = back;
            Turn::Frame(frame)
        }
        Kind::Outermost => {
            cursor.taken = cursor.taken.wrapping_add(1);
            cursor.settle();
            cursor.frame = back;
            Turn::Last(frame)
        }
    }
}
