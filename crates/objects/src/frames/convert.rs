//! From what call frame instructions say to the rules of the table.

use abi::table::{Rule, bx, cfa, fp, ra, unsupported};

use crate::architecture::Architecture;
use crate::frames::expression::{self, Value};
use crate::frames::instructions::{Cfa, Saved, State};

/// What the functions of one CIE have in common for the conversion.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Convention {
    pub(crate) architecture: Architecture,
    /// DWARF number of the column of the return address.
    pub(crate) return_register: u64,
    /// Whether these are frames of signal handlers' returns.
    pub(crate) signal: bool,
}

/// The rule for a state.
pub(crate) fn rule(convention: Convention, state: &State<'_>) -> Rule {
    if state.ra == Saved::Undefined {
        return Rule::END;
    }
    let rule = ordinary_rule(convention, state).unwrap_or_else(Rule::unsupported);
    if convention.signal && !is_call_frame(convention.architecture, &rule) {
        return Rule::SIGNAL;
    }
    rule
}

/// Whether a rule of a CIE with augmentation `S` describes an ordinary frame all the same.
///
/// `S` says only that the pc is exact, not where the registers are. On x86_64 the signal frame has no return address at
/// CFA-8, so an ordinary rule there is to be believed. On aarch64 the vDSO's own description leads to the frame record
/// that the kernel adds below the signal frame, and skips the interrupted function.
fn is_call_frame(architecture: Architecture, rule: &Rule) -> bool {
    architecture == Architecture::X86_64 && matches!(rule.cfa, cfa::SP | cfa::FP | cfa::REGISTER)
}

fn ordinary_rule(convention: Convention, state: &State<'_>) -> Result<Rule, u8> {
    let architecture = convention.architecture;
    let rule = cfa_rule(architecture, state.cfa)?;
    if convention.return_register != architecture.return_address() {
        return Err(unsupported::RETURN_ADDRESS);
    }
    // glibc's `__longjmp` describes the frame that it is about to jump into, whose stack pointer is in a register
    if !matches!(state.sp, Saved::Unmentioned | Saved::Same | Saved::Undefined) {
        return Err(unsupported::RETURN_ADDRESS);
    }
    let rule = match architecture {
        Architecture::X86_64 => pushed_return_address(state.ra, rule)?,
        Architecture::Aarch64 => link_register(state.ra, rule)?,
    };
    let rule = frame_pointer(architecture, state.fp, rule)?;
    Ok(match architecture {
        Architecture::X86_64 => Rule { bx_offset: base_register(state.bx), ..rule },
        Architecture::Aarch64 => rule,
    })
}

fn cfa_rule(architecture: Architecture, cfa: Cfa<'_>) -> Result<Rule, u8> {
    let value = match cfa {
        Cfa::Register(register, offset) => Some(Value::Register(register, offset)),
        Cfa::Expression(code) => expression::cfa(architecture, code),
        Cfa::Undefined => None,
    };
    let (kind, register, offset, extra) = match value {
        Some(Value::Register(register, offset)) => based(architecture, register, offset)?,
        Some(Value::Loaded(register, offset, extra)) if register == architecture.frame_pointer() => {
            (cfa::DEREF_FP, 0, offset, extra)
        }
        Some(Value::Loaded(register, offset, extra)) if register == architecture.stack_pointer() => {
            (cfa::DEREF_SP, 0, offset, extra)
        }
        Some(Value::Plt(threshold)) => (cfa::PLT, 0, threshold, 0),
        _ => return Err(unsupported::CFA_EXPRESSION),
    };
    Ok(Rule { cfa: kind, register, cfa_offset: fits(offset)?, extra: fits(extra)?, ..Rule::NONE })
}

fn based(architecture: Architecture, register: u64, offset: i64) -> Result<(u8, u8, i64, i64), u8> {
    if register == architecture.stack_pointer() {
        Ok((cfa::SP, 0, offset, 0))
    } else if register == architecture.frame_pointer() {
        Ok((cfa::FP, 0, offset, 0))
    } else if architecture.is_general(register) {
        let number = u8::try_from(register).map_err(|_| unsupported::CFA_EXPRESSION)?;
        Ok((cfa::REGISTER, number, offset, 0))
    } else {
        Err(unsupported::CFA_EXPRESSION)
    }
}

/// x86_64: a call pushed the return address, just below the CFA; a function may have taken it into a register.
fn pushed_return_address(saved: Saved<'_>, rule: Rule) -> Result<Rule, u8> {
    if let Saved::In(register) = saved
        && Architecture::X86_64.is_general(register)
        && !matches!(rule.cfa, cfa::DEREF_FP | cfa::DEREF_SP)
    {
        return Ok(Rule { ra: ra::REGISTER, extra: register as i32, ..rule });
    }
    match place(Architecture::X86_64, saved) {
        Some(Value::Cfa(-8)) => Ok(rule),
        _ => Err(unsupported::RETURN_ADDRESS),
    }
}

/// aarch64: a call put the return address in x30, and the function may have saved it.
fn link_register(saved: Saved<'_>, rule: Rule) -> Result<Rule, u8> {
    if matches!(saved, Saved::Unmentioned | Saved::Same) {
        return Ok(Rule { ra: ra::LINK_REGISTER, ..rule });
    }
    match place(Architecture::Aarch64, saved) {
        // with a loaded CFA, the field is taken
        Some(Value::Cfa(offset)) if !matches!(rule.cfa, cfa::DEREF_FP | cfa::DEREF_SP) => {
            Ok(Rule { ra: ra::SAVED, extra: fits(offset)?, ..rule })
        }
        _ => Err(unsupported::RETURN_ADDRESS),
    }
}

fn frame_pointer(architecture: Architecture, saved: Saved<'_>, rule: Rule) -> Result<Rule, u8> {
    if matches!(saved, Saved::Unmentioned | Saved::Same) {
        return Ok(rule);
    }
    let (kind, offset) = match place(architecture, saved) {
        Some(Value::Cfa(offset)) => (fp::AT_CFA, offset),
        Some(Value::Register(r, offset)) if r == architecture.frame_pointer() => (fp::AT_FP, offset),
        Some(Value::Register(r, offset)) if r == architecture.stack_pointer() => (fp::AT_SP, offset),
        _ => (fp::LOST, 0),
    };
    Ok(Rule { fp: kind, fp_offset: fits(offset)?, ..rule })
}

/// Where rbx is saved. Few functions need it, so a form that is not supported costs only those.
fn base_register(saved: Saved<'_>) -> i32 {
    if matches!(saved, Saved::Unmentioned | Saved::Same) {
        return bx::SAME;
    }
    match place(Architecture::X86_64, saved) {
        Some(Value::Cfa(offset)) if offset != 0 => i32::try_from(offset).unwrap_or(bx::LOST),
        _ => bx::LOST,
    }
}

/// Where in memory a register is saved.
fn place(architecture: Architecture, saved: Saved<'_>) -> Option<Value> {
    match saved {
        Saved::AtCfa(offset) => Some(Value::Cfa(offset)),
        Saved::At(code) => expression::place(architecture, code),
        Saved::Unmentioned | Saved::Undefined | Saved::Same | Saved::In(_) | Saved::Elsewhere => None,
    }
}

fn fits(bytes: i64) -> Result<i32, u8> {
    i32::try_from(bytes).map_err(|_| unsupported::OFFSET)
}

#[cfg(test)]
mod tests {
    use super::*;

    const X86: Convention = Convention { architecture: Architecture::X86_64, return_register: 16, signal: false };
    const ARM: Convention = Convention { architecture: Architecture::Aarch64, return_register: 30, signal: false };

    fn state<'a>(cfa: Cfa<'a>, fp: Saved<'a>, ra: Saved<'a>) -> State<'a> {
        State { cfa, cfa_offset: 0, fp, ra, bx: Saved::Unmentioned, sp: Saved::Unmentioned }
    }

    #[test]
    fn x86_64_bases() {
        let of = |cfa| rule(X86, &state(cfa, Saved::Unmentioned, Saved::AtCfa(-8)));
        assert_eq!(of(Cfa::Register(7, 16)), Rule { cfa: cfa::SP, cfa_offset: 16, ..Rule::NONE });
        assert_eq!(of(Cfa::Register(6, 16)), Rule { cfa: cfa::FP, cfa_offset: 16, ..Rule::NONE });
        assert_eq!(of(Cfa::Register(10, 0)), Rule { cfa: cfa::REGISTER, register: 10, ..Rule::NONE });
        assert_eq!(of(Cfa::Register(16, 0)), Rule::unsupported(unsupported::CFA_EXPRESSION));
        assert_eq!(of(Cfa::Register(1 << 40, 0)), Rule::unsupported(unsupported::CFA_EXPRESSION));
        assert_eq!(of(Cfa::Undefined), Rule::unsupported(unsupported::CFA_EXPRESSION));
        assert_eq!(of(Cfa::Register(7, 1 << 31)), Rule::unsupported(unsupported::OFFSET));
        assert_eq!(of(Cfa::Expression(&[0x76, 0x78, 0x06])), Rule { cfa: cfa::DEREF_FP, cfa_offset: -8, ..Rule::NONE });
    }

    #[test]
    fn x86_64_frame_pointers() {
        let of = |fp| rule(X86, &state(Cfa::Register(7, 16), fp, Saved::AtCfa(-8)));
        let base = Rule { cfa: cfa::SP, cfa_offset: 16, ..Rule::NONE };
        assert_eq!(of(Saved::Same), base);
        assert_eq!(of(Saved::AtCfa(-16)), Rule { fp: fp::AT_CFA, fp_offset: -16, ..base });
        assert_eq!(of(Saved::At(&[0x76, 0])), Rule { fp: fp::AT_FP, ..base });
        assert_eq!(of(Saved::At(&[0x77, 8])), Rule { fp: fp::AT_SP, fp_offset: 8, ..base });
        assert_eq!(of(Saved::At(&[0x7a, 8])), Rule { fp: fp::LOST, ..base });
        assert_eq!(of(Saved::Elsewhere), Rule { fp: fp::LOST, ..base });
        assert_eq!(of(Saved::Undefined), Rule { fp: fp::LOST, ..base });
        assert_eq!(of(Saved::AtCfa(i64::MIN)), Rule::unsupported(unsupported::OFFSET));
    }

    #[test]
    fn x86_64_base_registers() {
        let of = |bx| rule(X86, &State { bx, ..state(Cfa::Register(7, 16), Saved::Unmentioned, Saved::AtCfa(-8)) });
        let base = Rule { cfa: cfa::SP, cfa_offset: 16, ..Rule::NONE };
        assert_eq!(of(Saved::Same), base);
        assert_eq!(of(Saved::AtCfa(-24)), Rule { bx_offset: -24, ..base });
        for lost in [Saved::AtCfa(0), Saved::AtCfa(i64::MIN), Saved::At(&[0x77, 8]), Saved::Elsewhere] {
            assert_eq!(of(lost), Rule { bx_offset: bx::LOST, ..base });
        }
    }

    #[test]
    fn x86_64_return_addresses() {
        let of = |ra| rule(X86, &state(Cfa::Register(7, 16), Saved::Unmentioned, ra));
        assert_eq!(of(Saved::Undefined), Rule::END);
        for other in [Saved::Unmentioned, Saved::Same, Saved::AtCfa(-16), Saved::Elsewhere] {
            assert_eq!(of(other), Rule::unsupported(unsupported::RETURN_ADDRESS));
        }
        let in_rdi = Rule { cfa: cfa::SP, cfa_offset: 16, ra: ra::REGISTER, extra: 5, ..Rule::NONE };
        assert_eq!(of(Saved::In(5)), in_rdi);
        assert_eq!(of(Saved::In(40)), Rule::unsupported(unsupported::RETURN_ADDRESS));
        let odd = Convention { return_register: 8, ..X86 };
        let plain = state(Cfa::Register(7, 16), Saved::Unmentioned, Saved::AtCfa(-8));
        assert_eq!(rule(odd, &plain), Rule::unsupported(unsupported::RETURN_ADDRESS));
    }

    /// `__longjmp` of glibc: `cfi_def_cfa (%rdi, 0)`, `cfi_register (%rsp, %r8)`, `cfi_register (%rip, %rdx)`.
    #[test]
    fn stack_pointers_that_are_not_the_cfa() {
        let of = |sp| rule(X86, &State { sp, ..state(Cfa::Register(5, 0), Saved::In(9), Saved::In(1)) });
        let at_rdi = Rule { cfa: cfa::REGISTER, register: 5, fp: fp::LOST, ra: ra::REGISTER, extra: 1, ..Rule::NONE };
        assert_eq!(of(Saved::Unmentioned), at_rdi);
        assert_eq!(of(Saved::Same), at_rdi);
        for other in [Saved::In(8), Saved::AtCfa(48), Saved::At(&[0x77, 8]), Saved::Elsewhere] {
            assert_eq!(of(other), Rule::unsupported(unsupported::RETURN_ADDRESS));
        }
    }

    #[test]
    fn x86_64_signal_frames() {
        let signal = Convention { signal: true, ..X86 };
        // glibc's __restore_rt: the CFA is the saved stack pointer, the return address the saved pc
        let restore =
            state(Cfa::Expression(&[0x77, 0xa0, 1, 0x06]), Saved::At(&[0x77, 0xf8, 0]), Saved::At(&[0x77, 0xa8, 1]));
        assert_eq!(rule(signal, &restore), Rule::SIGNAL);
        let ordinary = state(Cfa::Register(7, 16), Saved::Unmentioned, Saved::AtCfa(-8));
        assert_eq!(rule(signal, &ordinary), rule(X86, &ordinary));
    }

    #[test]
    fn aarch64_return_addresses() {
        let of = |ra| rule(ARM, &state(Cfa::Register(31, 32), Saved::AtCfa(-32), ra));
        let base = Rule { cfa: cfa::SP, cfa_offset: 32, fp: fp::AT_CFA, fp_offset: -32, ..Rule::NONE };
        assert_eq!(of(Saved::Unmentioned), Rule { ra: ra::LINK_REGISTER, ..base });
        assert_eq!(of(Saved::Same), Rule { ra: ra::LINK_REGISTER, ..base });
        assert_eq!(of(Saved::AtCfa(-24)), Rule { ra: ra::SAVED, extra: -24, ..base });
        assert_eq!(of(Saved::Undefined), Rule::END);
        assert_eq!(of(Saved::Elsewhere), Rule::unsupported(unsupported::RETURN_ADDRESS));
        let loaded = state(Cfa::Expression(&[0x8d, 0, 0x06]), Saved::Unmentioned, Saved::AtCfa(-24));
        assert_eq!(rule(ARM, &loaded), Rule::unsupported(unsupported::RETURN_ADDRESS));
    }

    #[test]
    fn aarch64_signal_frames_are_never_followed_as_described() {
        let signal = Convention { signal: true, ..ARM };
        let vdso = state(Cfa::Register(29, 0), Saved::AtCfa(0), Saved::AtCfa(8));
        assert_eq!(rule(signal, &vdso), Rule::SIGNAL);
    }
}
