//! The truth: the calls that have been made and have not returned.

use std::ops::Range;

use rustc_hash::FxHashSet;

/// A frame as a stack should show it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Frame {
    /// Address of an instruction, or a return address.
    pub address: u64,
    /// It is the address of an instruction: interrupted, or the first one of a handler's return trampoline.
    pub exact: bool,
}

/// A call, or an interruption.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Entry {
    Call(Call),
    /// A signal interrupted `pc`; the kernel's frame is at `frame`, on `stack` if that is not the interrupted one.
    Signal {
        pc: u64,
        frame: u64,
        stack: Option<Range<u64>>,
    },
}

/// A call.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Call {
    id: u64,
    return_address: u64,
    /// Where the return address is.
    slot: u64,
    /// The kernel made it: the return address is that of a handler's return trampoline.
    trampoline: bool,
    /// The function has taken the return address off the stack, and will put it back or jump to it (`vfork`; `sigsetjmp`
    /// of musl).
    taken: bool,
}

/// What a return instruction did.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Returned {
    /// It went back to the innermost call, by its slot.
    Call,
    /// It went elsewhere: the landing of an exception.
    Elsewhere,
}

/// The stack of calls.
#[derive(Clone, Default, Debug)]
pub struct Shadow {
    entries: Vec<Entry>,
    signals: usize,
    calls: u64,
    rewritten: FxHashSet<u64>,
}

impl Shadow {
    /// No calls: at the entry point of a process.
    pub fn new() -> Shadow {
        Shadow::default()
    }

    /// How many calls and interruptions there are.
    pub fn depth(&self) -> usize {
        self.entries.len()
    }

    /// How many handlers run.
    pub fn signals(&self) -> usize {
        self.signals
    }

    /// A call instruction left `return_address` at `slot`.
    pub fn call(&mut self, return_address: u64, slot: u64) {
        self.push(return_address, slot, false);
    }

    fn push(&mut self, return_address: u64, slot: u64, trampoline: bool) {
        self.calls += 1;
        self.entries.push(Entry::Call(Call { id: self.calls, return_address, slot, trampoline, taken: false }));
    }

    fn last_call(&mut self) -> Option<&mut Call> {
        match self.entries.last_mut() {
            Some(Entry::Call(call)) => Some(call),
            _ => None,
        }
    }

    /// A return instruction took what was at `slot` and went to `target`.
    pub fn ret(&mut self, slot: u64, target: u64) -> Returned {
        match self.last_call() {
            Some(call) if (call.return_address, call.slot) == (target, slot) => {
                self.entries.pop();
                Returned::Call
            }
            _ => Returned::Elsewhere,
        }
    }

    /// A pop instruction took what is at `slot`. If that was to be the innermost call's return address, the function will
    /// go to what it took.
    pub fn pop(&mut self, slot: u64, mut read: impl FnMut(u64) -> Option<u64>) {
        let Some(call) = self.last_call().filter(|call| call.slot == slot) else { return };
        let Some(value) = read(slot) else { return };
        call.taken = true;
        if call.return_address != value {
            call.return_address = value;
            let id = call.id;
            self.rewritten.insert(id);
        }
    }

    /// A signal interrupted `pc`. The kernel put its frame at `frame`, above the handler's return address `restorer`; on
    /// `stack`, if it switched to that.
    pub fn signal(&mut self, pc: u64, restorer: u64, frame: u64, stack: Option<Range<u64>>) {
        self.entries.push(Entry::Signal { pc, frame, stack });
        self.push(restorer, frame - 8, true);
        self.signals += 1;
    }

    /// `rt_sigreturn` went to `pc`; whether that is what was interrupted.
    pub fn signal_return(&mut self, pc: u64) -> bool {
        let Some(Entry::Signal { pc: interrupted, .. }) = self.entries.last() else { return false };
        let same = *interrupted == pc;
        self.entries.pop();
        self.signals -= 1;
        same
    }

    /// The stack pointer is at `sp` and the next instruction at `pc`: what lies below is no more. How many entries that
    /// were. `read` gives the words of the stack.
    pub fn settle(&mut self, sp: u64, pc: u64, mut read: impl FnMut(u64) -> Option<u64>) -> usize {
        self.settle_taken(sp, pc);
        let before = self.entries.len();
        let left = self.entries.iter().rposition(|entry| match entry {
            Entry::Signal { stack: Some(stack), .. } => !(stack.start..=stack.end).contains(&sp),
            _ => false,
        });
        while self.entries.len() > left.unwrap_or(usize::MAX)
            || self.entries.last().is_some_and(|last| last.lies_below(sp))
        {
            self.leave(&mut read);
        }
        before - self.entries.len()
    }

    /// A return address that was taken is back in its place, or was jumped to.
    fn settle_taken(&mut self, sp: u64, pc: u64) {
        let Some(call) = self.last_call().filter(|call| call.taken) else { return };
        if call.return_address == pc && call.slot + 8 == sp {
            self.entries.pop();
        } else if sp <= call.slot {
            call.taken = false;
        }
    }

    /// The innermost entry is gone without a return.
    fn leave(&mut self, read: &mut impl FnMut(u64) -> Option<u64>) {
        match self.entries.pop() {
            Some(Entry::Call(call)) if !call.taken && read(call.slot) != Some(call.return_address) => {
                self.rewritten.insert(call.id);
            }
            Some(Entry::Signal { .. }) => self.signals -= 1,
            _ => {}
        }
    }

    /// Numbers of the innermost calls, of as many as `entries` calls and interruptions have. No number comes twice.
    pub fn innermost(&self, entries: usize) -> impl Iterator<Item = u64> {
        self.entries.iter().rev().take(entries).filter_map(|entry| match entry {
            Entry::Call(call) => Some(call.id),
            Entry::Signal { .. } => None,
        })
    }

    /// Whether a call has neither returned nor been left.
    pub fn is_open(&self, call: u64) -> bool {
        self.entries.iter().any(|entry| matches!(entry, Entry::Call(open) if open.id == call))
    }

    /// How many calls have ended with another return address in the place of theirs.
    pub fn overwritten(&self) -> usize {
        self.rewritten.len()
    }

    /// Whether a call that is over did not return since the program had overwritten its return address, as libgcc does
    /// with the frames that an exception is about to leave.
    pub fn was_rewritten(&self, call: u64) -> bool {
        self.rewritten.contains(&call)
    }

    /// The whole stack with `pc` as its innermost frame.
    pub fn frames(&self, pc: u64) -> impl Iterator<Item = Frame> {
        let outer = self.entries.iter().rev().map(|entry| match entry {
            Entry::Call(call) => Frame { address: call.return_address, exact: call.trampoline },
            Entry::Signal { pc, .. } => Frame { address: *pc, exact: true },
        });
        std::iter::once(Frame { address: pc, exact: true }).chain(outer)
    }
}

impl Entry {
    fn lies_below(&self, sp: u64) -> bool {
        match self {
            Entry::Call(call) => call.slot + if call.taken { 8 } else { 0 } < sp,
            Entry::Signal { frame, stack: None, .. } => *frame < sp,
            Entry::Signal { stack: Some(_), .. } => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn addresses(shadow: &Shadow, pc: u64) -> Vec<(u64, bool)> {
        shadow.frames(pc).map(|frame| (frame.address, frame.exact)).collect()
    }

    fn settle(shadow: &mut Shadow, sp: u64, pc: u64) -> usize {
        shadow.settle(sp, pc, |_| None)
    }

    #[test]
    fn calls_and_returns() {
        let mut shadow = Shadow::new();
        shadow.call(0x105, 0x7ff8);
        shadow.call(0x205, 0x7fe0);
        assert_eq!(addresses(&shadow, 0x300), [(0x300, true), (0x205, false), (0x105, false)]);
        assert_eq!(shadow.ret(0x7fe0, 0x999), Returned::Elsewhere);
        assert_eq!(shadow.ret(0x7fe8, 0x205), Returned::Elsewhere);
        assert_eq!(shadow.ret(0x7fe0, 0x205), Returned::Call);
        assert_eq!(settle(&mut shadow, 0x7fe8, 0), 0);
        assert_eq!(addresses(&shadow, 0x206), [(0x206, true), (0x105, false)]);
    }

    /// As `sigsetjmp` of musl does: the place of the return address is used for another call meanwhile.
    #[test]
    fn a_return_address_that_is_taken_and_put_back() {
        let mut shadow = Shadow::new();
        shadow.call(0x105, 0x7ff8);
        shadow.pop(0x7ff8, |_| Some(0x105));
        assert_eq!(settle(&mut shadow, 0x8000, 0x201), 0);
        shadow.call(0x210, 0x7ff8);
        assert_eq!(settle(&mut shadow, 0x7ff8, 0x300), 0);
        assert_eq!(addresses(&shadow, 0x300), [(0x300, true), (0x210, false), (0x105, false)]);
        assert_eq!(shadow.ret(0x7ff8, 0x210), Returned::Call);
        assert_eq!(settle(&mut shadow, 0x8000, 0x210), 0);
        assert_eq!(settle(&mut shadow, 0x7ff8, 0x213), 0, "pushed again");
        assert_eq!(shadow.ret(0x7ff8, 0x105), Returned::Call);
        assert_eq!(shadow.depth(), 0);
    }

    #[test]
    fn a_return_address_that_is_taken_and_jumped_to() {
        let mut shadow = Shadow::new();
        shadow.call(0x105, 0x7ff8);
        shadow.pop(0x7ff8, |_| Some(0x105));
        assert_eq!(settle(&mut shadow, 0x8000, 0x201), 0);
        assert_eq!(shadow.depth(), 1);
        assert_eq!(settle(&mut shadow, 0x8000, 0x105), 0);
        assert_eq!(shadow.depth(), 0);
    }

    #[test]
    fn a_landing_that_is_popped_and_jumped_to() {
        let mut shadow = Shadow::new();
        shadow.call(0x105, 0x7ff8);
        shadow.call(0x205, 0x7fe0);
        assert_eq!(settle(&mut shadow, 0x7fe0, 0x400), 0);
        shadow.pop(0x7fe0, |_| Some(0x250));
        assert_eq!(settle(&mut shadow, 0x7fe8, 0x401), 0);
        assert_eq!(addresses(&shadow, 0x401), [(0x401, true), (0x250, false), (0x105, false)]);
        assert_eq!(settle(&mut shadow, 0x7fe8, 0x250), 0);
        assert_eq!(addresses(&shadow, 0x250), [(0x250, true), (0x105, false)]);
        assert!(shadow.was_rewritten(2) && !shadow.was_rewritten(1));
    }

    #[test]
    fn a_jump_over_frames() {
        let mut shadow = Shadow::new();
        (0..5).for_each(|depth| shadow.call(0x100 + depth, 0x7ff8 - 16 * depth));
        assert_eq!(shadow.innermost(2).collect::<Vec<_>>(), [5, 4]);
        assert!(shadow.is_open(5));
        let intact = |slot: u64| Some(if slot == 0x7ff8 - 32 { 7 } else { 0x100 + (0x7ff8 - slot) / 16 });
        assert_eq!(shadow.settle(0x7ff8 - 16, 0, intact), 3);
        assert_eq!(shadow.depth(), 2);
        assert!(shadow.is_open(2) && !shadow.is_open(5));
        assert!(shadow.was_rewritten(3), "its place had been overwritten");
        assert!(![4, 5].into_iter().any(|call| shadow.was_rewritten(call)));
    }

    #[test]
    fn a_signal_on_the_same_stack() {
        let mut shadow = Shadow::new();
        shadow.call(0x105, 0x7ff8);
        shadow.signal(0x120, 0x900, 0x7000, None);
        assert_eq!(settle(&mut shadow, 0x6ff8, 0), 0);
        let in_handler = [(0x500, true), (0x900, true), (0x120, true), (0x105, false)];
        assert_eq!(addresses(&shadow, 0x500), in_handler);
        assert_eq!(shadow.ret(0x6ff8, 0x900), Returned::Call);
        assert_eq!(settle(&mut shadow, 0x7000, 0), 0);
        assert_eq!(addresses(&shadow, 0x907), [(0x907, true), (0x120, true), (0x105, false)]);
        assert!(shadow.signal_return(0x120));
        assert_eq!((shadow.depth(), shadow.signals()), (1, 0));
        assert!(!shadow.signal_return(0x120), "no handler runs");
    }

    /// Whether the other stack lies above or below, its end is that the stack pointer leaves it.
    #[test]
    fn a_jump_out_of_a_handler_on_its_own_stack() {
        for (begin, frame) in [(0x1000_0000, 0x1000_1000), (0x1000, 0x2000)] {
            let mut shadow = Shadow::new();
            shadow.call(0x105, 0x7f_fff8);
            shadow.call(0x205, 0x7f_ff00);
            shadow.signal(0x120, 0x900, frame, Some(begin..begin + 0x4000));
            shadow.call(0x501, frame - 0x40);
            assert_eq!(settle(&mut shadow, frame - 0x40, 0), 0);
            assert_eq!((shadow.depth(), shadow.signals()), (5, 1));
            assert_eq!(settle(&mut shadow, 0x7f_ff80, 0), 4, "handler, trampoline, signal and one call");
            assert_eq!((shadow.depth(), shadow.signals()), (1, 0));
        }
    }
}
