//! The frames of a native eval loop, proved to be its own.
//!
//! An eval loop can be interrupted before it has linked its frame into the thread's chain, or after it has unlinked it.
//! Then the chain begins with frames of an eval loop further out, and taking them would put them in the wrong place. So
//! what links a run to its native frame must lie in that frame: from 3.12 on the shim behind the run, in 3.11 the
//! `_PyCFrame` that leads to it, one for each eval loop. Otherwise the frames are given back, and wait for the next eval loop.
//!
//! A frame that is being pushed or popped may not lead to its caller. Where the code says so, the walk is told of it
//! ([`Cursor::interrupted`]); where the frame itself shows it, its eval loop's frames are given back, and in 3.11 and 3.12 the chain
//! is taken up again at the `_PyCFrame` before.

use abi::python::{Fault, NONE, Python, moment, run as ends};

use super::{Block, Frame, Kind, Memory, Span, begin, is_code, read_frame};

const WORD: u64 = 8;

/// Where a walk is in the thread's chain of Python frames. All bytes 0 is a cursor that has not begun.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Cursor {
    /// The thread's base frame; 0 where there is none.
    base: u64,
    /// The next frame; survives from run to run. 0 = the chain is at its end.
    frame: u64,
    /// The `_PyCFrame` that leads to the next run: of each run in 3.11, in 3.12 until one was proved; 0 = none.
    cframe: u64,
    /// The one before, and the frame that this one leads to, which follows the run (3.11).
    previous: u64,
    limit: u64,
    /// Distance of the next eval loop's `_PyCFrame` below the top of its native frame, where the chain is taken up at it.
    below: u64,
    /// The native frame of this run: first address and first one above it.
    low: u64,
    high: u64,
    /// The frame that this run began with.
    first: u64,
    /// The caller of the chain's first frame, as a register has it.
    caller: u64,
    /// How many frames of this run were taken.
    taken: u32,
    /// What is true of the first frame: an [`abi::python::moment`], or 0.
    moment: u32,
    /// 1: a run of this walk was proved.
    proved: u8,
    /// 1: the chain was taken up again.
    resumed: u8,
    /// Code of the [`Fault`] that ended Python in this walk; 0 = none.
    fault: u8,
    /// 1: the frames that were given back last were caught while one was pushed or popped.
    caught: u8,
    /// 1: the chain is at the shim of the eval loop that was entered last.
    at_shim: u32,
    /// Where a frame's fields lie.
    span: Span,
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
        previous: 0,
        limit: 0,
        below: 0,
        low: 0,
        high: 0,
        first: 0,
        caller: 0,
        taken: 0,
        moment: 0,
        proved: 0,
        resumed: 0,
        fault: 0,
        caught: 0,
        at_shim: 0,
        span: Span::ZERO,
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
        self.at_shim = 0;
    }

    /// The thread was interrupted in code where its first frame does not lead to its caller, as this [`abi::python::moment`] says;
    /// `caller` is what the register holds that it names.
    #[inline(always)]
    pub fn interrupted(&mut self, moment: u32, caller: u64) {
        (self.moment, self.caller) = (moment, caller);
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

    /// Whether the eval loop that was entered last is this chain's, though none of its frames may be linked: its shim is.
    #[inline(always)]
    pub(crate) fn is_at_shim(&self) -> bool {
        self.at_shim != 0
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

    /// Whether an address lies in the eval loop's native frame, where that is known.
    #[inline(always)]
    fn is_local(&self, address: u64) -> bool {
        self.high != u64::MAX && self.holds(address)
    }

    #[inline(always)]
    fn give_back(&mut self) -> Turn {
        self.frame = self.first;
        self.taken = 0;
        Turn::GiveBack
    }

    /// The run is this eval loop's, and `next` follows it.
    #[inline(always)]
    fn settle(&mut self, next: u64) {
        // a shim proves all runs behind it, too
        self.cframe = self.previous;
        self.frame = next;
        self.proved = 1;
    }

    #[inline(always)]
    fn fail(&mut self, fault: Fault) -> Turn {
        self.fault = fault as u8;
        self.give_back()
    }
}

/// Takes the next frame of the eval loop that was entered; `block` is memory to work in.
#[inline(always)]
pub fn turn<M: Memory>(memory: &mut M, python: &Python, cursor: &mut Cursor, block: &mut Block) -> Turn {
    if cursor.fault != 0 {
        return Turn::GiveBack;
    }
    if cursor.taken == 0
        && let Some(turn) = begin_run(memory, python, cursor)
    {
        return turn;
    }
    if cursor.frame == 0 {
        return end_of_chain(memory, python, cursor);
    }
    match read_frame(memory, python, cursor.span, block, cursor.base, cursor.frame) {
        // Python frames lie elsewhere; no compiler has to store what makes it a shim before the chain leads to it (Debian's static 3.13.5)
        Ok((frame, Kind::Inner, _)) if python.run == ends::SHIM && cursor.is_local(frame.address) => {
            // one frame is pushed at a time
            cursor.fail(if cursor.resumed == 0 { Fault::HalfPushed } else { Fault::BadFrame })
        }
        Ok((frame, kind, back)) => take(memory, python, cursor, frame, kind, back),
        Err(fault) => distrust(memory, python, cursor, fault),
    }
}

/// Where there is a `_PyCFrame`: it must lie in this eval loop's frame, and says with which frame the run begins and ends.
#[inline(always)]
fn begin_run<M: Memory>(memory: &mut M, python: &Python, cursor: &mut Cursor) -> Option<Turn> {
    let current = python.cframe_current as u64;
    if cursor.below != 0 {
        cursor.cframe = cursor.high.wrapping_sub(cursor.below);
        let Some(frame) = memory.read_u64(cursor.cframe.wrapping_add(current)) else {
            return Some(cursor.fail(Fault::StateUnreadable));
        };
        (cursor.frame, cursor.first) = (frame, frame);
        (cursor.below, cursor.resumed) = (0, 1);
    }
    if cursor.cframe == 0 || cursor.frame == 0 {
        return None;
    }
    if !cursor.holds(cursor.cframe) {
        return Some(cursor.give_back());
    }
    if python.run == ends::ENTRY {
        let Some((previous, limit)) = before(memory, python, cursor.cframe) else {
            return Some(cursor.fail(Fault::StateUnreadable));
        };
        (cursor.previous, cursor.limit) = (previous, limit);
    }
    None
}

/// The `_PyCFrame` before another one, and the frame that it leads to; 0 if there is none.
#[inline(always)]
fn before<M: Memory>(memory: &mut M, python: &Python, cframe: u64) -> Option<(u64, u64)> {
    let current = python.cframe_current as u64;
    let previous = memory.read_u64(cframe.wrapping_add(current).wrapping_add(WORD))?;
    let frame = if previous == 0 { 0 } else { memory.read_u64(previous.wrapping_add(current))? };
    Some((previous, frame))
}

/// What was read cannot be what it should be: the frame is being pushed or popped, if there is a `_PyCFrame` before it to go on with,
/// and no run was proved.
#[inline(always)]
fn distrust<M: Memory>(memory: &mut M, python: &Python, cursor: &mut Cursor, fault: Fault) -> Turn {
    if cursor.cframe == 0 || cursor.proved != 0 || cursor.resumed != 0 {
        return cursor.fail(fault);
    }
    let Some((previous, frame)) = before(memory, python, cursor.cframe) else {
        return cursor.fail(Fault::StateUnreadable);
    };
    (cursor.cframe, cursor.first) = (previous, frame);
    (cursor.resumed, cursor.caught) = (1, 1);
    cursor.give_back()
}

/// No chain ends within a run: of a frame that is being unlinked, what leads to its caller may be gone already, and nothing
/// proves then whose the frames are that were taken.
#[inline(always)]
fn end_of_chain<M: Memory>(memory: &mut M, python: &Python, cursor: &mut Cursor) -> Turn {
    if cursor.taken == 0 { Turn::Over } else { distrust(memory, python, cursor, Fault::BadFrame) }
}

#[inline(always)]
fn take<M: Memory>(memory: &mut M, python: &Python, cursor: &mut Cursor, frame: Frame, kind: Kind, back: u64) -> Turn {
    // a shim of 3.12 has a code object, too
    let has_code = python.cframe_current != NONE || matches!(kind, Kind::Inner | Kind::Outermost);
    if cursor.proved == 0 && cursor.taken == 0 && has_code && !is_code(memory, python, frame.code) {
        return distrust(memory, python, cursor, Fault::NotCode);
    }
    let mut back = back;
    if cursor.moment != 0 {
        let now = cursor.moment;
        cursor.moment = 0;
        if now == moment::NO_CALLER {
            return distrust(memory, python, cursor, Fault::HalfPushed);
        }
        if now & moment::CALLER != 0 || back == 0 {
            back = cursor.caller;
        }
    }
    match kind {
        Kind::Shim if !cursor.holds(frame.address) => {
            if cursor.cframe != 0 {
                distrust(memory, python, cursor, Fault::BadFrame)
            } else {
                cursor.give_back()
            }
        }
        Kind::Shim => {
            cursor.settle(if back == cursor.base { 0 } else { back });
            cursor.at_shim = 1;
            Turn::Over
        }
        Kind::Base if cursor.taken != 0 => end_of_chain(memory, python, cursor),
        Kind::Base => {
            cursor.frame = 0;
            Turn::Over
        }
        // the flag that marks the outermost one is set after the frame is linked; what the `_PyCFrame` before leads to tells, too
        Kind::Inner | Kind::Outermost if python.run == ends::ENTRY && back != cursor.limit => {
            cursor.taken = cursor.taken.wrapping_add(1);
            cursor.frame = back;
            Turn::Frame(frame)
        }
        Kind::Inner if python.run != ends::ENTRY => {
            cursor.taken = cursor.taken.wrapping_add(1);
            cursor.frame = back;
            Turn::Frame(frame)
        }
        Kind::Inner | Kind::Outermost => {
            cursor.taken = cursor.taken.wrapping_add(1);
            cursor.settle(back);
            Turn::Last(frame)
        }
    }
}
