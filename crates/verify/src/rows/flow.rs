//! What machine code does to the stack: from a function's first instruction along all jumps, with the distance of the
//! stack pointer from the CFA and the whereabouts of the caller's rbp in front of each instruction.
//!
//! Nothing but the code is read, so this is a judge of files without `.eh_frame`. It gives up a path where the stack
//! pointer is set to what it does not know, and a function in which two paths meet with different stacks.

use iced_x86::{
    Code, Decoder, DecoderOptions, FlowControl, Instruction, InstructionInfoFactory, OpAccess, OpKind, Register,
};
use rustc_hash::FxHashMap;

/// Instructions of one function at most; the longest of Go's compiler has 30,000.
const LONGEST: usize = 1 << 18;

/// What is in rbp.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum FramePointer {
    /// The caller's.
    Callers,
    /// An address so many bytes below the CFA.
    Below(i64),
    /// Something else.
    Other,
}

/// The stack in front of an instruction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Frame {
    /// CFA - rsp.
    pub(crate) depth: i64,
    pub(crate) fp: FramePointer,
    /// CFA - the place where the caller's rbp is saved.
    pub(crate) saved: Option<i64>,
}

impl Frame {
    const ENTERED: Frame = Frame { depth: 8, fp: FramePointer::Callers, saved: None };

    /// What holds on both of two paths; `None` if their stacks differ in depth.
    fn meet(self, other: Frame) -> Option<Frame> {
        (self.depth == other.depth).then_some(Frame {
            depth: self.depth,
            fp: if self.fp == other.fp { self.fp } else { FramePointer::Other },
            saved: self.saved.filter(|saved| other.saved == Some(*saved)),
        })
    }
}

/// An instruction that was reached.
#[derive(Clone, Copy)]
pub(crate) struct Reached {
    /// What holds in front of it.
    pub(crate) frame: Frame,
    /// Address behind it.
    pub(crate) next: u64,
    /// By how much it moves the stack pointer, as far as that is known.
    pub(crate) moves: i64,
    pub(crate) is_call: bool,
}

/// Code at its address.
pub(crate) struct Text<'d> {
    pub(crate) bytes: &'d [u8],
    pub(crate) address: u64,
}

impl Text<'_> {
    fn decode(&self, address: u64) -> Option<Instruction> {
        let bytes = self.bytes.get(usize::try_from(address.checked_sub(self.address)?).ok()?..)?;
        let instruction = Decoder::with_ip(64, bytes, address, DecoderOptions::NONE).decode();
        (!instruction.is_invalid()).then_some(instruction)
    }

    /// Functions that direct calls lead to. Rising.
    pub(crate) fn called(&self) -> Vec<u64> {
        let mut decoder = Decoder::with_ip(64, self.bytes, self.address, DecoderOptions::NONE);
        let calls = decoder.iter().filter(|i| i.flow_control() == FlowControl::Call);
        let mut targets: Vec<u64> = calls.map(|call| call.near_branch_target()).filter(|at| self.begins(*at)).collect();
        targets.sort_unstable();
        targets.dedup();
        targets
    }

    /// Whether a function can begin at an address: at a multiple of 16, behind padding or a return.
    fn begins(&self, address: u64) -> bool {
        const INT3: u8 = 0xcc;
        const RET: u8 = 0xc3;
        let into = address.checked_sub(self.address).and_then(|into| usize::try_from(into).ok());
        let before = into.and_then(|into| self.bytes.get(into.checked_sub(1)?));
        address.is_multiple_of(16) && matches!(before, Some(&(INT3 | RET)))
    }

    /// The function that begins at `entry`, by address of its instructions; `None` if it is given up. Other functions,
    /// to which assembly jumps with any stack, are not followed.
    pub(crate) fn follow(&self, entry: u64) -> Option<FxHashMap<u64, Reached>> {
        let mut follower = Follower { reached: FxHashMap::default(), info: InstructionInfoFactory::new() };
        let mut certain = vec![(entry, Frame::ENTERED)];
        // what follows a call is reached only if the call returns, which not all do: so last, and where no jump leads
        let mut behind_calls = Vec::new();
        while let Some((address, frame)) = certain.pop().or_else(|| {
            let unreached = |(address, _): &(u64, Frame)| !follower.reached.contains_key(address);
            std::iter::from_fn(|| behind_calls.pop()).find(unreached)
        }) {
            if (address != entry && self.begins(address)) || follower.reached.len() > LONGEST {
                continue;
            }
            let Some(instruction) = self.decode(address) else { continue };
            let Some(frame) = follower.arrive(&instruction, frame)? else { continue };
            let next = instruction.next_ip();
            match instruction.flow_control() {
                FlowControl::Next => {
                    let after = follower.after(&instruction, frame);
                    follower.moved(address, frame, after);
                    certain.extend(after.map(|frame| (next, frame)));
                }
                FlowControl::ConditionalBranch => {
                    certain.extend([(next, frame), (instruction.near_branch_target(), frame)]);
                }
                FlowControl::UnconditionalBranch => certain.push((instruction.near_branch_target(), frame)),
                // Go's compiler puts a nop behind a call that does not return
                FlowControl::Call | FlowControl::IndirectCall
                    if self.decode(next).is_some_and(|i| i.code() != Code::Nopd) =>
                {
                    behind_calls.push((next, frame));
                }
                _ => {}
            }
        }
        Some(follower.reached)
    }
}

struct Follower {
    reached: FxHashMap<u64, Reached>,
    info: InstructionInfoFactory,
}

impl Follower {
    /// What holds at an instruction with one more path that leads there. The outer `None`: the function is given up;
    /// the inner one: nothing new.
    #[allow(clippy::option_option, reason = "two different ends")]
    fn arrive(&mut self, i: &Instruction, frame: Frame) -> Option<Option<Frame>> {
        let Some(known) = self.reached.get_mut(&i.ip()) else {
            let is_call = matches!(i.flow_control(), FlowControl::Call | FlowControl::IndirectCall);
            self.reached.insert(i.ip(), Reached { frame, next: i.next_ip(), moves: 0, is_call });
            return Some(Some(frame));
        };
        let met = known.frame.meet(frame)?;
        let news = met != known.frame;
        known.frame = met;
        Some(news.then_some(met))
    }

    fn moved(&mut self, address: u64, frame: Frame, after: Option<Frame>) {
        if let (Some(reached), Some(after)) = (self.reached.get_mut(&address), after) {
            reached.moves = after.depth - frame.depth;
        }
    }

    /// The stack behind an instruction that goes on to the next one; `None` if it is not known.
    fn after(&mut self, i: &Instruction, frame: Frame) -> Option<Frame> {
        let of_rsp = i.op_count() > 0 && i.op0_kind() == OpKind::Register && i.op0_register() == Register::RSP;
        let of_rbp = i.op_count() > 0 && i.op0_kind() == OpKind::Register && i.op0_register() == Register::RBP;
        let below = match frame.fp {
            FramePointer::Below(below) => Some(below),
            _ => None,
        };
        match i.code() {
            Code::Push_r64 | Code::Pushq_imm8 | Code::Pushq_imm32 | Code::Push_rm64 | Code::Pushfq => {
                let depth = frame.depth + 8;
                return Some(Frame { depth, ..stored(frame, depth, of_rbp) });
            }
            Code::Pop_r64 if of_rbp => return Some(popped(frame)),
            Code::Pop_r64 | Code::Popfq if !of_rsp => return Some(Frame { depth: frame.depth - 8, ..frame }),
            Code::Leaveq => return Some(popped(Frame { depth: below?, ..frame })),
            Code::Sub_rm64_imm8 | Code::Sub_rm64_imm32 if of_rsp => {
                return Some(Frame { depth: frame.depth + i.immediate(1).cast_signed(), ..frame });
            }
            Code::Add_rm64_imm8 | Code::Add_rm64_imm32 if of_rsp => {
                return Some(Frame { depth: frame.depth - i.immediate(1).cast_signed(), ..frame });
            }
            Code::Mov_r64_rm64 | Code::Mov_rm64_r64 if i.op1_kind() == OpKind::Register => match i.op1_register() {
                Register::RSP if of_rbp => return Some(Frame { fp: FramePointer::Below(frame.depth), ..frame }),
                Register::RBP if of_rsp => return Some(Frame { depth: below?, ..frame }),
                _ => {}
            },
            Code::Lea_r64_m => match self::place(i, frame) {
                Some(place) if of_rbp => return Some(Frame { fp: FramePointer::Below(place), ..frame }),
                Some(place) if of_rsp => return Some(Frame { depth: place, ..frame }),
                _ => {}
            },
            Code::Mov_rm64_r64 => {
                if let Some(place) = self::place(i, frame) {
                    return Some(stored(frame, place, i.op1_register() == Register::RBP));
                }
            }
            Code::Mov_r64_rm64 if of_rbp => {
                let is_saved = frame.saved.is_some() && self::place(i, frame) == frame.saved;
                return Some(Frame { fp: if is_saved { FramePointer::Callers } else { FramePointer::Other }, ..frame });
            }
            _ => {}
        }
        let fp = if self.writes(i, Register::RBP) { FramePointer::Other } else { frame.fp };
        (!self.writes(i, Register::RSP)).then_some(Frame { fp, ..frame })
    }

    fn writes(&mut self, i: &Instruction, register: Register) -> bool {
        let writes = |access| {
            matches!(access, OpAccess::Write | OpAccess::CondWrite | OpAccess::ReadWrite | OpAccess::ReadCondWrite)
        };
        let used = self.info.info(i).used_registers();
        used.iter().any(|used| used.register().full_register() == register && writes(used.access()))
    }
}

/// CFA - the address of a memory operand by rsp, or by rbp where that is known.
fn place(i: &Instruction, frame: Frame) -> Option<i64> {
    let base = match (i.memory_base(), frame.fp) {
        (Register::RSP, _) => frame.depth,
        (Register::RBP, FramePointer::Below(below)) => below,
        _ => return None,
    };
    let displacement = i.memory_displacement64().cast_signed();
    (i.memory_index() == Register::None).then(|| base - displacement)
}

/// A word was stored at a place.
fn stored(frame: Frame, place: i64, is_rbp: bool) -> Frame {
    let saved = match frame.saved {
        _ if is_rbp && frame.fp == FramePointer::Callers => Some(place),
        Some(saved) if (saved - place).abs() < 8 => None,
        saved => saved,
    };
    Frame { saved, ..frame }
}

/// rbp was popped.
fn popped(frame: Frame) -> Frame {
    let fp = if frame.saved == Some(frame.depth) { FramePointer::Callers } else { FramePointer::Other };
    Frame { depth: frame.depth - 8, fp, ..frame }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frames(bytes: &[u8]) -> Option<Vec<(u64, Frame)>> {
        let reached = Text { bytes, address: 0x1000 }.follow(0x1000)?;
        let mut frames: Vec<_> = reached.iter().map(|(address, reached)| (address - 0x1000, reached.frame)).collect();
        frames.sort_by_key(|(address, _)| *address);
        Some(frames)
    }

    fn frame(depth: i64, fp: FramePointer, saved: Option<i64>) -> Frame {
        Frame { depth, fp, saved }
    }

    use FramePointer::{Below, Callers};

    #[test]
    fn a_function_with_a_frame_pointer() {
        // push %rbp; mov %rsp,%rbp; sub $16,%rsp; call next; add $16,%rsp; pop %rbp; ret
        let code = [0x55, 0x48, 0x89, 0xe5, 0x48, 0x83, 0xec, 16, 0xe8, 0, 0, 0, 0, 0x48, 0x83, 0xc4, 16, 0x5d, 0xc3];
        let expected = [
            (0, frame(8, Callers, None)),
            (1, frame(16, Callers, Some(16))),
            (4, frame(16, Below(16), Some(16))),
            (8, frame(32, Below(16), Some(16))),
            (13, frame(32, Below(16), Some(16))),
            (17, frame(16, Below(16), Some(16))),
            (18, frame(8, Callers, Some(16))),
        ];
        assert_eq!(frames(&code).unwrap(), expected);
    }

    #[test]
    fn what_is_not_known_ends_a_path() {
        // mov %rax,%rsp; ret
        assert_eq!(frames(&[0x48, 0x89, 0xc4, 0xc3]).unwrap().len(), 1);
        // je over the push; push %rax; ret: two depths at the return
        assert!(frames(&[0x74, 1, 0x50, 0xc3]).is_none());
    }

    #[test]
    fn a_saved_register_that_is_overwritten_is_lost() {
        // push %rbp; pop %rbp; push %rax; pop %rax; ret
        let frames = frames(&[0x55, 0x5d, 0x50, 0x58, 0xc3]).unwrap();
        assert_eq!(frames[2].1, frame(8, Callers, Some(16)));
        assert_eq!(frames[3].1, frame(16, Callers, None));
    }
}
