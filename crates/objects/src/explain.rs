//! Rules in words.

use abi::table::{Rule, bx, cfa, fp, ra, unsupported};

use crate::architecture::Architecture;

/// A rule in words: `CFA=rsp+16, rbp at CFA-16` or `CFA=sp+32, x29 at CFA-32, return address at CFA-24`.
pub fn describe(rule: &Rule, architecture: Architecture) -> String {
    let sp = architecture.register_name(architecture.stack_pointer() as u8);
    let fp = architecture.register_name(architecture.frame_pointer() as u8);
    let offset = rule.cfa_offset;
    let cfa = match rule.cfa {
        cfa::NONE => return "no unwind information".to_owned(),
        cfa::END => return "end of stack (return address undefined)".to_owned(),
        cfa::SIGNAL => return "signal frame".to_owned(),
        cfa::UNSUPPORTED => return format!("not supported: {}", reason(rule.register)),
        cfa::SP => format!("CFA={sp}{offset:+}"),
        cfa::FP => format!("CFA={fp}{offset:+}"),
        cfa::REGISTER => format!("CFA={}{offset:+}", architecture.register_name(rule.register)),
        cfa::DEREF_FP => format!("CFA=*({fp}{offset:+}){:+}", rule.extra),
        cfa::DEREF_SP => format!("CFA=*({sp}{offset:+}){:+}", rule.extra),
        cfa::OTHER_STACK => format!("CFA={fp}{offset:+} on another stack"),
        cfa::PLT => format!("CFA={sp}+8, +16 if (rip & 15) >= {offset}"),
        other => return format!("unknown kind of CFA {other}"),
    };
    [cfa, frame_pointer(rule, &sp, &fp), base_register(rule), return_address(rule, architecture)].concat()
}

fn frame_pointer(rule: &Rule, sp: &str, fp: &str) -> String {
    let offset = rule.fp_offset;
    match rule.fp {
        fp::SAME => String::new(),
        fp::AT_CFA => format!(", {fp} at CFA{offset:+}"),
        fp::AT_FP => format!(", {fp} at {fp}{offset:+}"),
        fp::AT_SP => format!(", {fp} at {sp}{offset:+}"),
        fp::LOST => format!(", {fp} lost"),
        other => format!(", {fp} by unknown kind {other}"),
    }
}

fn base_register(rule: &Rule) -> String {
    match rule.bx_offset {
        bx::SAME => String::new(),
        bx::LOST => ", rbx lost".to_owned(),
        offset => format!(", rbx at CFA{offset:+}"),
    }
}

fn return_address(rule: &Rule, architecture: Architecture) -> String {
    match (architecture, rule.ra) {
        (Architecture::X86_64, ra::REGISTER) => {
            let register = u8::try_from(rule.extra).unwrap_or(u8::MAX);
            format!(", return address in {}", architecture.register_name(register))
        }
        (Architecture::X86_64, _) => String::new(),
        (_, ra::LINK_REGISTER) => ", return address in x30".to_owned(),
        (_, ra::SAVED) => format!(", return address at CFA{:+}", rule.extra),
        (_, other) => format!(", return address by unknown kind {other}"),
    }
}

fn reason(number: u8) -> String {
    match number {
        unsupported::CFA_EXPRESSION => "the CFA is an expression of no known form".to_owned(),
        unsupported::RETURN_ADDRESS => "the return address is not where the ABI has it".to_owned(),
        unsupported::TOO_MANY_RULES => "too many distinct rules in one file".to_owned(),
        unsupported::BAD_FDE => "the function's unwind information is damaged".to_owned(),
        unsupported::OFFSET => "an offset is too large".to_owned(),
        other => format!("unknown reason {other}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn x86_64() {
        let say = |rule| describe(&rule, Architecture::X86_64);
        let base = Rule { cfa: cfa::SP, cfa_offset: 16, ..Rule::NONE };
        assert_eq!(say(base), "CFA=rsp+16");
        assert_eq!(say(Rule { fp: fp::AT_CFA, fp_offset: -16, ..base }), "CFA=rsp+16, rbp at CFA-16");
        assert_eq!(say(Rule { bx_offset: -24, ..base }), "CFA=rsp+16, rbx at CFA-24");
        assert_eq!(say(Rule { bx_offset: bx::LOST, ..base }), "CFA=rsp+16, rbx lost");
        assert_eq!(
            say(Rule { cfa: cfa::DEREF_FP, cfa_offset: -8, fp: fp::AT_FP, ..Rule::NONE }),
            "CFA=*(rbp-8)+0, rbp at rbp+0"
        );
        assert_eq!(say(Rule { cfa: cfa::REGISTER, register: 10, ..Rule::NONE }), "CFA=r10+0");
        assert_eq!(say(Rule { cfa: cfa::PLT, cfa_offset: 11, ..Rule::NONE }), "CFA=rsp+8, +16 if (rip & 15) >= 11");
        assert_eq!(say(Rule::SIGNAL), "signal frame");
        assert_eq!(
            say(Rule::unsupported(unsupported::BAD_FDE)),
            "not supported: the function's unwind information is damaged"
        );
    }

    #[test]
    fn aarch64() {
        let say = |rule| describe(&rule, Architecture::Aarch64);
        let base = Rule { cfa: cfa::SP, cfa_offset: 32, fp: fp::AT_CFA, fp_offset: -32, ..Rule::NONE };
        assert_eq!(
            say(Rule { ra: ra::SAVED, extra: -24, ..base }),
            "CFA=sp+32, x29 at CFA-32, return address at CFA-24"
        );
        assert_eq!(say(Rule { ra: ra::LINK_REGISTER, fp: fp::SAME, ..base }), "CFA=sp+32, return address in x30");
    }

    #[test]
    fn any_rule_has_words() {
        for number in 0..=u8::MAX {
            let rule = Rule { cfa: number, register: number, fp: number, ra: number, ..Rule::NONE };
            assert!(!describe(&rule, Architecture::X86_64).is_empty());
            assert!(!describe(&rule, Architecture::Aarch64).is_empty());
        }
    }
}
