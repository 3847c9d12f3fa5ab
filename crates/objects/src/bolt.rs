//! Where BOLT has put code together and not its unwind information.
//!
//! BOLT (LLVM's optimiser of linked programs) inlines small functions, and puts a comparison before an indirect tail call,
//! without rows for what that code does to the stack (seen in python-build-standalone's CPython 3.14.6):
//!
//! ```text
//!   pop  %rbp                CFA = rbp+16
//!   cmpq $handler, (table)   CFA = rbp+16    ◀── rbp is the caller's: its frame is left out
//!   jne  out                 CFA = rbp+16    ◀── and here
//!   push %rbp                CFA = rbp+16    ◀── and here
//!
//!   pop  %rbp                CFA = rsp+16
//!   push %rbp                CFA = rsp+8
//!   mov  %rsp, %rbp          CFA = rsp+8     ◀── rsp+16: what rbp was is taken for the return address
//!   push %rbx                CFA = rsp+8     ◀── rbp+16
//! ```
//! So the code of files that BOLT has written is followed from the beginning of each function, whose row is believed. Where
//! what pushes, pops and the like have done contradicts the row, the code is right. Functions in which two ways to a place
//! leave different stacks keep their rows; so does code behind calls if it is not as the row has it, since calls need not
//! come back.

use std::collections::HashMap;

use abi::table::{Rule, bx, cfa, fp, ra};
use iced_x86::{Code, Decoder, DecoderOptions, FlowControl, Instruction, InstructionInfoFactory, OpAccess, Register};

use crate::architecture::Architecture;
use crate::image::Image;

/// So many places are kept.
const MOST_JUMPS: usize = 1 << 20;
/// Longer functions keep their rows.
const MOST_CODE: u64 = 1 << 20;

/// Whether BOLT has written a file: it says so, or keeps what it replaced.
pub(crate) fn has_written(image: &Image) -> bool {
    image.architecture() == Architecture::X86_64
        && image.sections().any(|section| section.name.starts_with(b".bolt.org.") || section.name == b".note.bolt_info")
}

/// What functions before have said of those that begin at a place: with which stack they jump there. The unlikely part of a
/// function is a function of its own to unwind information, whose first row may be as wrong.
#[derive(Default)]
pub(crate) struct Jumps(HashMap<u64, Option<State>>);

impl Jumps {
    /// Two that differ say nothing.
    fn add(&mut self, place: u64, state: State) {
        if self.0.len() < MOST_JUMPS {
            let known = self.0.entry(place).or_insert(Some(state));
            if *known != Some(state) {
                *known = None;
            }
        }
    }
}

/// Corrects the rows of a function whose code begins at `begin`, and notes where else it jumps.
pub(crate) fn correct(code: &[u8], begin: u64, rows: &mut Vec<(u64, Rule)>, jumps: &mut Jumps) {
    if code.len() as u64 > MOST_CODE || rows.first().is_none_or(|first| first.0 != begin) {
        return;
    }
    let told = jumps.0.get(&begin).copied().flatten().filter(|told| told.contradicts(rows[0].1));
    let Some(start) = told.or_else(|| State::of(rows[0].1)) else { return };
    let mut leaves = Vec::new();
    let mut followed =
        Followed { code, begin, rows, states: vec![None; code.len()], info: InstructionInfoFactory::new() };
    if followed.follow(start, &mut leaves).is_none() {
        return;
    }
    leaves.into_iter().for_each(|(place, state)| jumps.add(place, state));
    let corrected = followed.corrected();
    *rows = corrected;
}

/// What rbp is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Rbp {
    /// The caller's.
    Callers,
    /// So many bytes below the CFA.
    Frame(i32),
    Other,
}

/// Before an instruction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct State {
    /// Bytes from rsp to the CFA, if known.
    depth: Option<i32>,
    rbp: Rbp,
    /// Bytes from where the caller's rbp was saved to the CFA, if it was.
    saved: Option<i32>,
}

impl State {
    fn of(rule: Rule) -> Option<State> {
        let saved = (rule.fp == fp::AT_CFA).then_some(-rule.fp_offset);
        match rule.cfa {
            cfa::SP => {
                let rbp = if rule.fp == fp::SAME { Rbp::Callers } else { Rbp::Other };
                Some(State { depth: Some(rule.cfa_offset), rbp, saved })
            }
            cfa::FP => Some(State { depth: None, rbp: Rbp::Frame(rule.cfa_offset), saved }),
            _ => None,
        }
    }

    /// Whether a rule finds another CFA than there is.
    fn contradicts(&self, rule: Rule) -> bool {
        match rule.cfa {
            cfa::SP => self.depth.is_some_and(|depth| depth != rule.cfa_offset),
            cfa::FP => self.rbp != Rbp::Frame(rule.cfa_offset) && (self.depth.is_some() || self.rbp != Rbp::Other),
            _ => false,
        }
    }

    fn rule(&self) -> Rule {
        let (base, offset) = match (self.rbp, self.depth) {
            (Rbp::Frame(offset), _) => (cfa::FP, offset),
            (_, Some(depth)) => (cfa::SP, depth),
            _ => return Rule::NONE,
        };
        let (fp, fp_offset) = match (self.rbp, self.saved) {
            (Rbp::Callers, _) => (fp::SAME, 0),
            (_, Some(saved)) => (fp::AT_CFA, -saved),
            _ => (fp::LOST, 0),
        };
        Rule { cfa: base, cfa_offset: offset, fp, fp_offset, ra: ra::AT_CFA_MINUS_8, bx_offset: bx::LOST, ..Rule::NONE }
    }

    /// `None` where the caller's rbp is restored from where it is not.
    fn apply(&mut self, instruction: &Instruction, info: &mut InstructionInfoFactory) -> Option<()> {
        let register = instruction.op0_register();
        let grown = |depth: Option<i32>, by: i64| depth.and_then(|depth| depth.checked_add(i32::try_from(by).ok()?));
        match instruction.code() {
            Code::Push_r64 => {
                self.depth = grown(self.depth, 8);
                if register == Register::RBP && self.rbp == Rbp::Callers {
                    self.saved = self.depth;
                }
            }
            Code::Pop_r64 if register == Register::RBP => {
                let saved = self.saved?;
                if self.depth.is_some_and(|depth| depth != saved) {
                    return None;
                }
                *self = State { depth: grown(self.saved, -8), rbp: Rbp::Callers, saved: None };
            }
            Code::Leaveq => {
                let Rbp::Frame(frame) = self.rbp else { return None };
                *self = State { depth: grown(Some(frame), -8), rbp: Rbp::Callers, saved: None };
            }
            Code::Mov_r64_rm64 | Code::Mov_rm64_r64
                if register == Register::RBP && instruction.op1_register() == Register::RSP =>
            {
                self.rbp = self.depth.map_or(Rbp::Other, Rbp::Frame);
            }
            Code::Mov_r64_rm64 | Code::Mov_rm64_r64
                if register == Register::RSP && instruction.op1_register() == Register::RBP =>
            {
                self.depth = if let Rbp::Frame(frame) = self.rbp { Some(frame) } else { None };
            }
            Code::Lea_r64_m if register == Register::RSP && instruction.memory_index() == Register::None => {
                let displacement = instruction.memory_displacement64() as i64;
                self.depth = match (instruction.memory_base(), self.rbp) {
                    (Register::RSP, _) => grown(self.depth, -displacement),
                    (Register::RBP, Rbp::Frame(frame)) => grown(Some(frame), -displacement),
                    _ => None,
                };
            }
            Code::Sub_rm64_imm8 | Code::Sub_rm64_imm32 if register == Register::RSP => {
                self.depth = grown(self.depth, instruction.immediate(1) as i64);
            }
            Code::Add_rm64_imm8 | Code::Add_rm64_imm32 if register == Register::RSP => {
                self.depth = grown(self.depth, (instruction.immediate(1) as i64).wrapping_neg());
            }
            _ if matches!(instruction.flow_control(), FlowControl::Call | FlowControl::IndirectCall) => {}
            Code::Enterq_imm16_imm8 => return None,
            _ if instruction.is_stack_instruction() => {
                self.depth = grown(self.depth, -i64::from(instruction.stack_pointer_increment()));
                self.other(instruction, info, Register::RBP);
            }
            _ => {
                self.other(instruction, info, Register::RBP);
                self.other(instruction, info, Register::RSP);
            }
        }
        Some(())
    }

    /// Forgets a register that an instruction writes.
    fn other(&mut self, instruction: &Instruction, info: &mut InstructionInfoFactory, register: Register) {
        // of the instructions that write to one of the two without having it as an operand, `leave` and `enter` are seen to
        if (0..instruction.op_count().min(2)).all(|op| instruction.op_register(op).full_register() != register) {
            return;
        }
        let writes = [OpAccess::Write, OpAccess::ReadWrite, OpAccess::CondWrite, OpAccess::ReadCondWrite];
        let used = info.info(instruction).used_registers();
        if used.iter().any(|used| used.register().full_register() == register && writes.contains(&used.access())) {
            if register == Register::RBP { self.rbp = Rbp::Other } else { self.depth = None }
        }
    }
}

struct Followed<'a> {
    code: &'a [u8],
    begin: u64,
    rows: &'a [(u64, Rule)],
    /// By distance from the beginning: the state, and where the instruction ends.
    states: Vec<Option<(State, u32)>>,
    info: InstructionInfoFactory,
}

impl Followed<'_> {
    fn rule(&self, at: usize) -> Rule {
        let behind = self.rows.partition_point(|row| row.0 <= self.begin + at as u64);
        behind.checked_sub(1).and_then(|index| self.rows.get(index)).map_or(Rule::NONE, |row| row.1)
    }

    /// All ways from the beginning; `None` if they disagree, or with code that is not understood.
    fn follow(&mut self, start: State, leaves: &mut Vec<(u64, State)>) -> Option<()> {
        let mut ways = vec![(0, start)];
        while let Some((mut at, mut state)) = ways.pop() {
            while let Some(known) = self.states.get(at).copied() {
                if let Some((known, _)) = known {
                    if known != state {
                        return None;
                    }
                    break;
                }
                let mut decoder = Decoder::with_ip(64, &self.code[at..], at as u64, DecoderOptions::NONE);
                let instruction = decoder.decode();
                if instruction.is_invalid() {
                    return None;
                }
                let next = instruction.next_ip() as usize;
                self.states[at] = Some((state, next as u32));
                let contradicted = state.contradicts(self.rule(at));
                state.apply(&instruction, &mut self.info)?;
                let target = instruction.near_branch_target() as usize;
                match instruction.flow_control() {
                    FlowControl::Next => {}
                    FlowControl::ConditionalBranch => {
                        if target < self.code.len() {
                            ways.push((target, state));
                        } else {
                            leaves.push((self.begin.wrapping_add(target as u64), state));
                        }
                    }
                    FlowControl::UnconditionalBranch if target < self.code.len() => {
                        at = target;
                        continue;
                    }
                    FlowControl::UnconditionalBranch => {
                        leaves.push((self.begin.wrapping_add(target as u64), state));
                        break;
                    }
                    FlowControl::Call | FlowControl::IndirectCall => {
                        let fits = next < self.code.len() && (contradicted || !state.contradicts(self.rule(next)));
                        if !fits {
                            break;
                        }
                    }
                    _ => break,
                }
                at = next;
            }
        }
        Some(())
    }

    /// The rows as they were, with those of instructions that contradict them.
    fn corrected(&self) -> Vec<(u64, Rule)> {
        let mut rows: Vec<(u64, Rule)> = Vec::with_capacity(self.rows.len());
        let mut add = |at: usize, rule: Rule| {
            if rows.last().is_none_or(|last| last.1 != rule) {
                rows.push((self.begin + at as u64, rule));
            }
        };
        let mut own = self.rows.iter().map(|row| (row.0 - self.begin) as usize).peekable();
        // where the last corrected instruction ends
        let mut behind = 0;
        for (at, known) in self.states.iter().enumerate() {
            let is_row = own.next_if_eq(&at).is_some();
            match known {
                Some((state, end)) if state.contradicts(self.rule(at)) => {
                    add(at, state.rule());
                    behind = *end as usize;
                }
                _ if at == behind || (is_row && at > behind) => add(at, self.rule(at)),
                _ => {}
            }
        }
        rows
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ENTRY: Rule = Rule { cfa: cfa::SP, cfa_offset: 8, ra: ra::AT_CFA_MINUS_8, ..Rule::NONE };
    const PUSHED: Rule = Rule { cfa_offset: 16, fp: fp::AT_CFA, fp_offset: -16, ..ENTRY };
    const FRAME: Rule = Rule { cfa: cfa::FP, ..PUSHED };
    /// `push %rbp; mov %rsp, %rbp; nop; pop %rbp`
    const PROLOGUE: [u8; 6] = [0x55, 0x48, 0x89, 0xe5, 0x90, 0x5d];

    /// Kind and offset of the CFA, and of the caller's rbp, by place.
    fn shown(code: &[u8], rows: &[(u64, Rule)]) -> Vec<(u64, u8, i32, u8)> {
        let mut rows: Vec<_> = rows.iter().map(|row| (row.0 + 0x100, row.1)).collect();
        correct(code, 0x100, &mut rows, &mut Jumps::default());
        rows.iter().map(|(at, rule)| (at - 0x100, rule.cfa, rule.cfa_offset, rule.fp)).collect()
    }

    #[test]
    fn a_compared_tail_call() {
        // cmp %rax,%rbx; jne 13; push %rbp; mov %rsp,%rbp; nop; pop %rbp; jmp *%rcx; nop; jmp *%rdx
        let more = [0x48, 0x39, 0xc3, 0x75, 0x08, 0x55, 0x48, 0x89, 0xe5, 0x90, 0x5d, 0xff, 0xe1, 0xff, 0xe2];
        let code = [&PROLOGUE[..], &more].concat();
        let rows = [(0, ENTRY), (1, PUSHED), (4, FRAME)];
        let (sp, frame) = ((cfa::SP, 8, fp::SAME), (cfa::FP, 16, fp::AT_CFA));
        let expected = [(0, sp), (1, (cfa::SP, 16, fp::AT_CFA)), (4, frame), (6, sp)];
        let expected = expected.into_iter().chain([(12, (cfa::SP, 16, fp::SAME)), (15, frame), (17, sp)]);
        let expected: Vec<_> = expected.map(|(at, (cfa, offset, fp))| (at, cfa, offset, fp)).collect();
        assert_eq!(shown(&code, &rows), expected);
    }

    #[test]
    fn an_inlined_function() {
        // push %rbp; mov %rsp,%rbp; push %rbx; call; pop %rbx; pop %rbp; ret
        let more = [0x55, 0x48, 0x89, 0xe5, 0x53, 0xe8, 0, 0, 0, 0, 0x5b, 0x5d, 0xc3];
        let code = [&PROLOGUE[..], &more].concat();
        let rows = [(0, ENTRY), (1, PUSHED), (4, FRAME), (6, ENTRY)];
        let corrected = shown(&code, &rows);
        let places: Vec<u64> = corrected.iter().map(|row| row.0).collect();
        assert_eq!(places, [0, 1, 4, 6, 7, 10, 18]);
        let expected = [(7, cfa::SP, 16, fp::SAME), (10, cfa::FP, 16, fp::AT_CFA), (18, cfa::SP, 8, fp::SAME)];
        assert_eq!(corrected[4..], expected);
    }

    #[test]
    fn the_unlikely_part_begins_with_the_stack_of_who_jumps_there() {
        // push %rbp; mov %rsp,%rbp; je (to 0x200); pop %rbp; ret
        let code = [0x55, 0x48, 0x89, 0xe5, 0x0f, 0x84, 0xf6, 0, 0, 0, 0x5d, 0xc3];
        let (mut likely, mut unlikely) = (vec![(0x100, ENTRY)], vec![(0x200, ENTRY)]);
        let mut jumps = Jumps::default();
        correct(&code, 0x100, &mut likely, &mut jumps);
        assert_eq!(jumps.0.keys().copied().collect::<Vec<_>>(), [0x200]);
        // nop; pop %rbp; ret
        correct(&[0x90, 0x5d, 0xc3], 0x200, &mut unlikely, &mut jumps);
        let places: Vec<_> = unlikely.iter().map(|row| (row.0, row.1.cfa, row.1.cfa_offset)).collect();
        assert_eq!(places, [(0x200, cfa::FP, 16), (0x202, cfa::SP, 8)]);
        jumps.add(0x200, State::of(ENTRY).unwrap());
        let mut unlikely = vec![(0x200, ENTRY)];
        correct(&[0x90, 0xc3], 0x200, &mut unlikely, &mut jumps);
        assert_eq!(unlikely, [(0x200, ENTRY)], "whose callers differ");
    }

    #[test]
    fn right_rows_stay() {
        let rows = [(0, ENTRY), (1, PUSHED), (4, FRAME), (6, ENTRY)];
        let code = [&PROLOGUE[..], &[0xc3]].concat();
        assert_eq!(shown(&code, &rows), rows.map(|(at, rule)| (at, rule.cfa, rule.cfa_offset, rule.fp)));
    }

    #[test]
    fn where_ways_disagree_all_rows_stay() {
        // je 3; push %rax; ret
        let code = [0x74, 0x01, 0x50, 0xc3];
        assert_eq!(shown(&code, &[(0, ENTRY)]), [(0, cfa::SP, 8, fp::SAME)]);
    }

    #[test]
    fn behind_a_call_that_does_not_come_back_rows_stay() {
        // push %rax; call; (elsewhere) ret
        let code = [0x50, 0xe8, 0, 0, 0, 0, 0xc3];
        let pushed = Rule { cfa_offset: 16, ..ENTRY };
        let rows = [(0, ENTRY), (1, pushed), (6, ENTRY)];
        assert_eq!(shown(&code, &rows), rows.map(|(at, rule)| (at, rule.cfa, rule.cfa_offset, rule.fp)));
    }

    #[test]
    fn any_code_ends() {
        let rows = [(0, ENTRY), (7, FRAME), (40, PUSHED)];
        let mut seed = 1_u64;
        for _ in 0..2000 {
            let mut byte = || {
                seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                (seed >> 56) as u8
            };
            let code: Vec<u8> = (0..64).map(|_| byte()).collect();
            let corrected = shown(&code, &rows);
            assert!(corrected.is_sorted_by(|a, b| a.0 < b.0), "{corrected:?}");
        }
    }
}
