//! The arbiter: what a row of `.eh_frame`, as gimli decodes it, says of a made-up thread, with all registers and all of
//! memory at hand, which neither side has.

use gimli::{CfaRule, EvaluationResult, Expression, Register, RegisterRule, UnwindExpression, UnwindTableRow, Value};

use super::answer::{Answer, Caller};
use super::functions::{Fde, Section};
use super::thread::{RA, RBP, RSP, Thread};

/// A row of a function.
#[derive(Clone, Copy)]
pub(crate) struct Row<'r, 'd> {
    pub(crate) section: &'r Section<'d>,
    pub(crate) fde: &'r Fde<'d>,
    pub(crate) row: &'r UnwindTableRow<usize>,
}

/// What was needed to evaluate a rule.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Needs {
    /// A register other than rip, rsp and rbp.
    pub(crate) other_register: bool,
    /// A word of memory, within an expression.
    pub(crate) memory: bool,
}

impl Row<'_, '_> {
    /// The caller.
    pub(crate) fn caller(&self, thread: &Thread) -> Answer {
        match self.register_rule(RA) {
            Some(RegisterRule::Undefined) => return Answer::Root,
            // gimli has no default for it, and the ABI has none either
            None => return Answer::Unknown,
            Some(_) => {}
        }
        let evaluated = || {
            let (cfa, _) = self.cfa(thread)?;
            let (pc, _) = self.value(RA, cfa, thread)?;
            let sp = match self.register_rule(RSP) {
                None => cfa,
                Some(_) => self.value(RSP, cfa, thread)?.0,
            };
            let fp = match self.register_rule(RBP) {
                Some(RegisterRule::Undefined) => None,
                _ => Some(self.value(RBP, cfa, thread)?.0),
            };
            Some(Caller { pc, sp, fp })
        };
        evaluated().map_or(Answer::Unknown, Answer::Caller)
    }

    /// The rule for a register.
    pub(crate) fn register_rule(&self, number: u16) -> Option<RegisterRule<usize>> {
        self.row.register(Register(number))
    }

    /// Whether functions of this kind are returns of signal handlers.
    pub(crate) fn is_signal_frame(&self) -> bool {
        self.fde.is_signal_trampoline()
    }

    /// Whether the rule depends on the place.
    pub(crate) fn depends_on_place(&self) -> bool {
        matches!(self.row.cfa(), CfaRule::Expression(_))
    }

    /// The CFA.
    pub(crate) fn cfa(&self, thread: &Thread) -> Option<(u64, Needs)> {
        match self.row.cfa() {
            CfaRule::RegisterAndOffset { register, offset } => {
                let needs = Needs { other_register: is_other(*register), ..Needs::default() };
                Some((thread.register(register.0).wrapping_add_signed(*offset), needs))
            }
            CfaRule::Expression(expression) => self.evaluate(*expression, None, thread),
        }
    }

    /// The caller's value of a register.
    pub(crate) fn value(&self, number: u16, cfa: u64, thread: &Thread) -> Option<(u64, Needs)> {
        let plain = |value| Some((value, Needs::default()));
        match self.register_rule(number) {
            None | Some(RegisterRule::SameValue) => plain(thread.register(number)),
            Some(RegisterRule::Offset(offset)) => plain(thread.memory(cfa.wrapping_add_signed(offset))),
            Some(RegisterRule::ValOffset(offset)) => plain(cfa.wrapping_add_signed(offset)),
            Some(RegisterRule::Register(other)) => {
                let needs = Needs { other_register: is_other(other), ..Needs::default() };
                Some((thread.register(other.0), needs))
            }
            Some(RegisterRule::Expression(e)) => {
                let (place, needs) = self.evaluate(e, Some(cfa), thread)?;
                Some((thread.memory(place), needs))
            }
            Some(RegisterRule::ValExpression(e)) => self.evaluate(e, Some(cfa), thread),
            Some(_) => None,
        }
    }

    fn evaluate(&self, e: UnwindExpression<usize>, initial: Option<u64>, thread: &Thread) -> Option<(u64, Needs)> {
        let Expression(code) = e.get(&self.section.eh_frame).ok()?;
        let mut evaluation = Expression(code).evaluation(self.fde.cie().encoding());
        if let Some(initial) = initial {
            evaluation.set_initial_value(initial);
        }
        let mut needs = Needs::default();
        let mut result = evaluation.evaluate().ok()?;
        loop {
            result = match result {
                EvaluationResult::Complete => break,
                EvaluationResult::RequiresRegister { register, .. } => {
                    needs.other_register |= is_other(register);
                    evaluation.resume_with_register(Value::Generic(thread.register(register.0))).ok()?
                }
                EvaluationResult::RequiresMemory { address, size: 8, .. } => {
                    needs.memory = true;
                    evaluation.resume_with_memory(Value::Generic(thread.memory(address))).ok()?
                }
                _ => return None,
            };
        }
        match evaluation.value_result()? {
            Value::Generic(value) => Some((value, needs)),
            _ => None,
        }
    }

    /// The row in words.
    pub(crate) fn describe(&self) -> String {
        let cfa = match self.row.cfa() {
            CfaRule::RegisterAndOffset { register, offset } => format!("CFA={}{offset:+}", name(*register)),
            CfaRule::Expression(e) => format!("CFA by expression {}", self.bytes(*e)),
        };
        let [fp, ra, sp] = [RBP, RA, RSP].map(|number| {
            let saved = name(Register(number));
            match self.register_rule(number) {
                None | Some(RegisterRule::SameValue) => format!("{saved} kept"),
                Some(RegisterRule::Undefined) => format!("{saved} undefined"),
                Some(RegisterRule::Offset(offset)) => format!("{saved} at CFA{offset:+}"),
                Some(RegisterRule::Register(other)) => format!("{saved} in {}", name(other)),
                Some(RegisterRule::Expression(e)) => format!("{saved} at expression {}", self.bytes(e)),
                Some(RegisterRule::ValExpression(e)) => format!("{saved} by expression {}", self.bytes(e)),
                Some(other) => format!("{saved} {other:?}"),
            }
        });
        let sp = if self.register_rule(RSP).is_some() { format!(", {sp}") } else { String::new() };
        format!("{cfa}, {fp}, {ra}{sp}")
    }

    fn bytes(&self, e: UnwindExpression<usize>) -> String {
        let code = e.get(&self.section.eh_frame).map(|Expression(code)| code.slice());
        code.map_or_else(|error| error.to_string(), |code| code.iter().map(|byte| format!("{byte:02x}")).collect())
    }
}

fn is_other(register: Register) -> bool {
    ![RA, RSP, RBP].contains(&register.0)
}

fn name(register: Register) -> String {
    gimli::X86_64::register_name(register).map_or_else(|| format!("register {}", register.0), str::to_owned)
}
