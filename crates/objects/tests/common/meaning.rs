//! What rules mean: the caller's registers that they give, on made-up registers and memory.
//!
//! Two descriptions of one place are the same if they give the same caller for random registers and memory, whatever
//! their form.

use abi::table::{Rule, cfa, fp, ra};
use gimli::{CfaRule, EvaluationResult, Expression, Reader, RegisterRule, UnwindExpression, UnwindSection, Value};
use objects::Architecture;

pub type Slice<'a> = gimli::EndianSlice<'a, gimli::LittleEndian>;

/// A made-up thread: its pc, and a seed for everything else.
#[derive(Clone, Copy)]
pub struct Thread {
    pub architecture: Architecture,
    pub pc: u64,
    pub seed: u64,
}

/// The caller: CFA, frame pointer (`None` if it is lost), return address.
pub type Caller = (u64, Option<u64>, u64);

impl Thread {
    fn register(&self, number: u64) -> u64 {
        if self.architecture == Architecture::X86_64 && number == 16 {
            return self.pc;
        }
        scramble(self.seed ^ (number + 1)) & !7
    }

    fn memory(&self, address: u64) -> u64 {
        scramble(address.wrapping_add(self.seed << 1))
    }

    /// What a rule of the table gives; `None` where it gives nothing.
    pub fn by_rule(&self, rule: &Rule) -> Option<Caller> {
        let sp = self.register(self.architecture.stack_pointer());
        let old_fp = self.register(self.architecture.frame_pointer());
        let at = |base: u64, offset: i32| base.wrapping_add_signed(i64::from(offset));
        let cfa = match rule.cfa {
            cfa::SP => at(sp, rule.cfa_offset),
            cfa::FP => at(old_fp, rule.cfa_offset),
            cfa::REGISTER => at(self.register(u64::from(rule.register)), rule.cfa_offset),
            cfa::DEREF_FP => at(self.memory(at(old_fp, rule.cfa_offset)), rule.extra),
            cfa::DEREF_SP => at(self.memory(at(sp, rule.cfa_offset)), rule.extra),
            cfa::PLT => sp + 8 + if (self.pc & 15) as i64 >= i64::from(rule.cfa_offset) { 8 } else { 0 },
            cfa::SIGNAL => return Some(self.by_signal_frame(sp)),
            _ => return None,
        };
        let fp = match rule.fp {
            fp::SAME => Some(old_fp),
            fp::AT_CFA => Some(self.memory(at(cfa, rule.fp_offset))),
            fp::AT_FP => Some(self.memory(at(old_fp, rule.fp_offset))),
            fp::AT_SP => Some(self.memory(at(sp, rule.fp_offset))),
            _ => None,
        };
        let ra = match (self.architecture, rule.ra) {
            (Architecture::X86_64, ra::REGISTER) => self.register(rule.extra as u64),
            (Architecture::X86_64, _) => self.memory(cfa.wrapping_sub(8)),
            (_, ra::LINK_REGISTER) => self.register(30),
            _ => self.memory(at(cfa, rule.extra)),
        };
        Some((cfa, fp, ra))
    }

    /// The ucontext of x86_64 at the stack pointer: rsp, rbp, rip.
    fn by_signal_frame(&self, sp: u64) -> Caller {
        let word = |offset| self.memory(sp.wrapping_add(offset));
        (word(160), Some(word(120)), word(168))
    }

    /// What gimli's row gives; `None` if its return address is undefined.
    pub fn by_row<'a, S: UnwindSection<Slice<'a>>>(
        &self,
        section: &S,
        encoding: gimli::Encoding,
        row: &gimli::UnwindTableRow<usize>,
    ) -> Option<Caller> {
        let cfa = match row.cfa() {
            CfaRule::RegisterAndOffset { register, offset } => {
                self.register(u64::from(register.0)).wrapping_add_signed(*offset)
            }
            CfaRule::Expression(expression) => self.evaluate(section, encoding, *expression, None),
        };
        let ra_number = self.architecture.return_address();
        if let Some(RegisterRule::Undefined) = row.register(gimli::Register(ra_number as u16)) {
            return None;
        }
        let value = |number: u64| match row.register(gimli::Register(number as u16)) {
            None | Some(RegisterRule::SameValue) => self.register(number),
            Some(RegisterRule::Offset(offset)) => self.memory(cfa.wrapping_add_signed(offset)),
            Some(RegisterRule::ValOffset(offset)) => cfa.wrapping_add_signed(offset),
            Some(RegisterRule::Register(other)) => self.register(u64::from(other.0)),
            Some(RegisterRule::Expression(e)) => self.memory(self.evaluate(section, encoding, e, Some(cfa))),
            Some(RegisterRule::ValExpression(e)) => self.evaluate(section, encoding, e, Some(cfa)),
            Some(other) => panic!("{other:?}"),
        };
        Some((cfa, Some(value(self.architecture.frame_pointer())), value(ra_number)))
    }

    fn evaluate<'a, S: UnwindSection<Slice<'a>>>(
        &self,
        section: &S,
        encoding: gimli::Encoding,
        expression: UnwindExpression<usize>,
        initial: Option<u64>,
    ) -> u64 {
        let Expression(code): Expression<Slice<'a>> = expression.get(section).unwrap();
        let mut evaluation = Expression(code).evaluation(encoding);
        if let Some(initial) = initial {
            evaluation.set_initial_value(initial);
        }
        let mut result = evaluation.evaluate().unwrap();
        loop {
            result = match result {
                EvaluationResult::Complete => break,
                EvaluationResult::RequiresRegister { register, .. } => {
                    let value = Value::Generic(self.register(u64::from(register.0)));
                    evaluation.resume_with_register(value).unwrap()
                }
                EvaluationResult::RequiresMemory { address, .. } => {
                    evaluation.resume_with_memory(Value::Generic(self.memory(address))).unwrap()
                }
                other => panic!("{other:?} in {:x?}", code.to_slice()),
            };
        }
        match evaluation.value_result() {
            Some(Value::Generic(value)) => value,
            other => panic!("{other:?}"),
        }
    }
}

/// SplitMix64.
fn scramble(seed: u64) -> u64 {
    let mut z = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ z >> 31
}
