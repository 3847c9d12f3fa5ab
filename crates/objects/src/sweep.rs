//! Short stretches of code that no FDE describes: `_init`, `_fini` and the helpers of crtstuff.c, which every program and
//! library has. What they do to the stack is read from their instructions, one after the other.
//!
//! A stretch is believed whole or not at all: each instruction must decode, nothing but pushes, pops and constants may
//! move the stack pointer, every jump within the stretch must arrive with the stack as the code there has it, and each
//! function must return with the stack as it was entered.

use std::collections::HashMap;

use abi::table::{Rule, cfa, fp};
use iced_x86::{
    Code, Decoder, DecoderOptions, FlowControl, Instruction, InstructionInfoFactory, Mnemonic, OpAccess, OpKind,
    Register,
};

use crate::architecture::Architecture;

/// The longest stretch that is looked at, in bytes.
pub(crate) const MAX_SWEEP: usize = 1024;

/// The rules of a stretch of code that begins with a function, by place in it; `None` if it is not believed.
pub(crate) fn rules(architecture: Architecture, code: &[u8]) -> Option<Vec<(usize, Rule)>> {
    let length = code.iter().rposition(|byte| *byte != 0)? + 1;
    if architecture != Architecture::X86_64 || length > MAX_SWEEP {
        return None;
    }
    let mut sweep = Sweep { frame: Frame::ENTERED, arrivals: HashMap::new(), info: InstructionInfoFactory::new() };
    let mut rules: Vec<(usize, Rule)> = Vec::new();
    let mut functions = 0;
    let mut falls_through = false;
    let mut decoder = Decoder::with_ip(64, code, 0, DecoderOptions::NONE);
    while decoder.can_decode() {
        let zeros = code[decoder.position()..].iter().take_while(|byte| **byte == 0).count();
        if zeros > 0 {
            // linkers fill up to the next section with zeros, and no code goes on there
            decoder.set_position(decoder.position() + zeros).ok().filter(|()| !falls_through)?;
            decoder.set_ip(decoder.position() as u64);
            continue;
        }
        let instruction = decoder.decode();
        let at = instruction.ip();
        if instruction.is_invalid() || sweep.arrivals.get(&at).is_some_and(|frame| *frame != sweep.frame) {
            return None;
        }
        sweep.arrivals.insert(at, sweep.frame);
        let rule = sweep.frame.rule();
        if rules.last().is_none_or(|(_, last)| *last != rule) {
            rules.push((at as usize, rule));
        }
        let leaves = [FlowControl::Return, FlowControl::IndirectBranch, FlowControl::UnconditionalBranch];
        let leaves = leaves.contains(&instruction.flow_control());
        functions += usize::from(leaves);
        falls_through = !leaves && (falls_through || instruction.mnemonic() != Mnemonic::Nop);
        sweep.frame = sweep.after(&instruction, code.len() as u64)?;
    }
    // padding alone decodes, too
    (sweep.frame == Frame::ENTERED && functions > 0).then_some(rules)
}

/// Where the first function begins that this code calls and that lies behind the call, if it lies within.
pub(crate) fn first_called(architecture: Architecture, code: &[u8]) -> Option<usize> {
    if architecture != Architecture::X86_64 {
        return None;
    }
    let calls = Decoder::with_ip(64, code, 0, DecoderOptions::NONE);
    let calls = calls.into_iter().filter(|instruction| instruction.code() == Code::Call_rel32_64);
    let targets = calls.filter(|call| call.near_branch_target() >= call.next_ip());
    let first = targets.map(|call| call.near_branch_target()).min()?;
    usize::try_from(first).ok().filter(|first| *first < code.len())
}

/// The stack between two instructions.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Frame {
    /// CFA - rsp.
    depth: i64,
    /// CFA - the place where rbp was saved; 0 = it was not.
    saved_fp: i64,
}

impl Frame {
    const ENTERED: Frame = Frame { depth: 8, saved_fp: 0 };

    fn rule(self) -> Rule {
        let rule = Rule { cfa: cfa::SP, cfa_offset: self.depth as i32, ..Rule::NONE };
        match self.saved_fp {
            0 => rule,
            place => Rule { fp: fp::AT_CFA, fp_offset: -place as i32, ..rule },
        }
    }
}

struct Sweep {
    frame: Frame,
    /// The stack with which each place is reached, as far as that is known.
    arrivals: HashMap<u64, Frame>,
    info: InstructionInfoFactory,
}

impl Sweep {
    /// The stack behind an instruction.
    fn after(&mut self, instruction: &Instruction, end: u64) -> Option<Frame> {
        let frame = self.frame;
        match instruction.flow_control() {
            FlowControl::ConditionalBranch | FlowControl::UnconditionalBranch => {
                self.arrive(instruction.near_branch_target(), end)?;
            }
            _ => {}
        }
        match instruction.flow_control() {
            FlowControl::Next | FlowControl::ConditionalBranch => self.moved(instruction),
            FlowControl::Call | FlowControl::IndirectCall => Some(frame),
            // nothing falls through: what follows is another function, or was jumped to
            FlowControl::Return | FlowControl::UnconditionalBranch | FlowControl::IndirectBranch => {
                let next = self.arrivals.get(&instruction.next_ip()).copied();
                let leaves = frame == Frame::ENTERED || instruction.flow_control() == FlowControl::UnconditionalBranch;
                leaves.then(|| next.unwrap_or(Frame::ENTERED))
            }
            FlowControl::Exception | FlowControl::Interrupt => Some(Frame::ENTERED),
            FlowControl::XbeginXabortXend => None,
        }
    }

    /// A jump: within the stretch its target has this stack, out of it a function is entered.
    fn arrive(&mut self, target: u64, end: u64) -> Option<()> {
        if target >= end {
            return (self.frame == Frame::ENTERED).then_some(());
        }
        let known = *self.arrivals.entry(target).or_insert(self.frame);
        (known == self.frame).then_some(())
    }

    /// The stack behind an instruction that goes on to the next one.
    fn moved(&mut self, instruction: &Instruction) -> Option<Frame> {
        let Frame { depth, saved_fp } = self.frame;
        let is_rsp = instruction.op_count() > 0 && instruction.op0_register() == Register::RSP;
        let constant = || match instruction.op1_kind() {
            OpKind::Immediate8to64 | OpKind::Immediate32to64 => Some(instruction.immediate(1).cast_signed()),
            _ => None,
        };
        let frame = match instruction.code() {
            Code::Push_r64 if instruction.op0_register() == Register::RBP && saved_fp == 0 => {
                Frame { depth: depth + 8, saved_fp: depth + 8 }
            }
            Code::Push_r64 | Code::Pushq_imm8 | Code::Pushq_imm32 => Frame { depth: depth + 8, saved_fp },
            Code::Pop_r64 if instruction.op0_register() == Register::RBP => {
                if saved_fp != depth {
                    return None;
                }
                Frame { depth: depth - 8, saved_fp: 0 }
            }
            Code::Pop_r64 if !is_rsp => Frame { depth: depth - 8, saved_fp },
            Code::Sub_rm64_imm8 | Code::Sub_rm64_imm32 if is_rsp => Frame { depth: depth + constant()?, saved_fp },
            Code::Add_rm64_imm8 | Code::Add_rm64_imm32 if is_rsp => Frame { depth: depth - constant()?, saved_fp },
            _ if self.writes_stack_pointer(instruction) => return None,
            _ => self.frame,
        };
        // below the return address there is no stack of this function
        (8..1 << 30).contains(&frame.depth).then_some(frame).filter(|frame| frame.saved_fp <= frame.depth)
    }

    fn writes_stack_pointer(&mut self, instruction: &Instruction) -> bool {
        let used = self.info.info(instruction).used_registers();
        used.iter().any(|used| {
            used.register().full_register() == Register::RSP
                && !matches!(used.access(), OpAccess::Read | OpAccess::CondRead)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sp(offset: i32) -> Rule {
        Rule { cfa: cfa::SP, cfa_offset: offset, ..Rule::NONE }
    }

    fn of(code: &[u8]) -> Option<Vec<(usize, Rule)>> {
        rules(Architecture::X86_64, code)
    }

    /// `_init` of crti.o and crtn.o: sub $8,%rsp; mov ...,%rax; test; je; call *%rax; add $8,%rsp; ret
    const INIT: [u8; 23] = [
        0x48, 0x83, 0xec, 0x08, 0x48, 0x8b, 0x05, 0xc5, 0x2f, 0, 0, 0x48, 0x85, 0xc0, 0x74, 0x02, 0xff, 0xd0, 0x48,
        0x83, 0xc4, 0x08, 0xc3,
    ];

    #[test]
    fn init() {
        let expected = Some(vec![(0, sp(8)), (4, sp(16)), (22, sp(8))]);
        assert_eq!(of(&INIT), expected);
        assert_eq!(of(&[&INIT[..], &[0; 9]].concat()), expected, "with padding behind");
        let later = Some(vec![(3, sp(8)), (7, sp(16)), (25, sp(8))]);
        assert_eq!(of(&[&[0; 3], &INIT[..]].concat()), later, "with padding before");
        assert_eq!(of(&[0; 9]), None);
    }

    /// `frame_dummy` of crtstuff.c: endbr64; jmp; and a nop of seven bytes, of which the last four are zeros.
    #[test]
    fn instructions_that_end_with_zeros() {
        let code = [0xf3, 0x0f, 0x1e, 0xfa, 0xe9, 0x77, 0xff, 0xff, 0xff, 0x0f, 0x1f, 0x80, 0, 0, 0, 0];
        assert_eq!(of(&code), Some(vec![(0, sp(8))]));
        assert_eq!(of(&[&code[..], &[0; 5]].concat()), Some(vec![(0, sp(8))]));
        assert_eq!(of(&code[..13]), None, "cut off");
    }

    /// `_init` of musl, padding, and `exit`, which does not return: the padding is no part of an instruction.
    #[test]
    fn padding_between_sections() {
        let init = [0x50, 0x58, 0xc3];
        let exit = [0x55, 0x89, 0xfd, 0xe8, 0, 0, 0, 0];
        let returns = [0x55, 0x89, 0xfd, 0x5d, 0xc3];
        assert_eq!(of(&[&init[..], &[0; 13], &exit].concat()), None);
        let framed = Rule { fp: fp::AT_CFA, fp_offset: -16, ..sp(16) };
        let expected = vec![(0, sp(8)), (1, sp(16)), (2, sp(8)), (17, framed), (20, sp(8))];
        assert_eq!(of(&[&init[..], &[0; 13], &returns].concat()), Some(expected));
        assert_eq!(of(&[&init[..2], &[0; 14], &returns].concat()), None, "code that goes on into padding");
    }

    /// `_start` of musl, and the beginning of `_start_c`, which it calls.
    #[test]
    fn the_first_function_that_is_called() {
        let start = [0x31, 0xed, 0x48, 0x89, 0xe7, 0x48, 0x83, 0xe4, 0xf0, 0xe8, 3, 0, 0, 0, 0xf4, 0x90, 0x90, 0x55];
        assert_eq!(first_called(Architecture::X86_64, &start), Some(17));
        assert_eq!(first_called(Architecture::X86_64, &start[..17]), None, "it lies elsewhere");
        assert_eq!(first_called(Architecture::Aarch64, &start), None);
    }

    #[test]
    fn frames_with_a_saved_frame_pointer() {
        // push %rbp; mov %rsp,%rbp; call; pop %rbp; ret; nop; ret
        let code = [0x55, 0x48, 0x89, 0xe5, 0xe8, 0, 0, 0, 0, 0x5d, 0xc3, 0x90, 0xc3];
        let framed = Rule { fp: fp::AT_CFA, fp_offset: -16, ..sp(16) };
        assert_eq!(of(&code), Some(vec![(0, sp(8)), (1, framed), (10, sp(8))]));
    }

    #[test]
    fn what_is_not_certain_is_not_believed() {
        let leave_early = [0x55, 0xc3];
        let computed = [0x48, 0x29, 0xc4, 0xc3]; // sub %rax,%rsp
        let leave = [0x55, 0x48, 0x89, 0xe5, 0xc9, 0xc3];
        let unbalanced_jump = [0x74, 0x01, 0x50, 0x58, 0xc3]; // je over a push
        let cut_off = [0x48, 0x83];
        let falls_out = [0x50];
        let padding = [0xcc; 32];
        let all = [&leave_early[..], &computed, &leave, &unbalanced_jump, &cut_off, &falls_out, &padding, &[0xff; 8]];
        for code in all {
            assert_eq!(of(code), None, "{code:x?}");
        }
    }

    proptest::proptest! {
        #[test]
        fn any_bytes(code in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..200)) {
            if let Some(rules) = of(&code) {
                proptest::prop_assert!(rules.iter().all(|(at, _)| *at < code.len()));
                proptest::prop_assert!(rules.is_sorted_by_key(|(at, _)| *at));
            }
        }
    }
}
