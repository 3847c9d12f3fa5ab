//! From what the paths came to, the rule of the place, or why there is none.

use abi::table::{Rule, bx, cfa, fp, ra};

use super::search::{Found, Return};
use super::state::{Base, Place, RBP, RBX, RSP, Stores, Sum, Value};
use super::{Exit, Unclear};

/// DWARF's numbers of the registers, by their number in instructions (System V ABI, AMD64 supplement, figure 3.36).
const DWARF: [u8; 16] = [0, 2, 1, 3, 7, 6, 4, 5, 8, 9, 10, 11, 12, 13, 14, 15];

/// The rule that all returns agree on.
pub(super) fn decide(found: &Found) -> Exit {
    let returns: Vec<&Return> = found.returns.iter().filter(|one| !one.by_default).collect();
    let Some(first) = returns.first() else { return Exit::Unclear(why_none(found)) };
    if returns.iter().any(|other| other.cfa != first.cfa) {
        return Exit::Unclear(Unclear::SeveralDepths);
    }
    match with_cfa(first.cfa, &found.stores) {
        Ok(rule) => {
            let rule = with_frame_pointer(rule, first.cfa, agreed(&returns, |one| one.fp), &found.stores);
            Exit::Rule(with_rbx(rule, first.cfa, agreed(&returns, |one| one.bx), &found.stores))
        }
        Err(unclear) => Exit::Unclear(unclear),
    }
}

/// What kept paths from returns; the first that holds.
fn why_none(found: &Found) -> Unclear {
    let ends = &found.ends;
    let reasons = [
        (ends.too_long, Unclear::TooLong),
        (ends.unknown, Unclear::UnknownStackPointer),
        (ends.unaligned, Unclear::SeveralDepths),
        (ends.indirect_jump || !found.returns.is_empty(), Unclear::IndirectJump),
        (ends.undecodable, Unclear::Undecodable),
        (ends.outside, Unclear::OutsideCode),
    ];
    reasons.iter().find(|(holds, _)| *holds).map_or(Unclear::NoReturn, |(_, unclear)| *unclear)
}

/// What all returns have in a register.
fn agreed(returns: &[&Return], of: impl Fn(&Return) -> Value) -> Value {
    let first = of(returns.first()?);
    first.filter(|_| returns.iter().all(|one| of(one) == first))
}

fn with_cfa(sum: Sum, stores: &Stores) -> Result<Rule, Unclear> {
    let offset = sum.offset;
    let rule = Rule { ra: ra::CHECKED, ..Rule::NONE };
    match sum.base {
        Base::Register(register @ (RSP | RBP)) => {
            // a return to an address that the code itself put there is a jump
            if stores.wrote(Place { register, offset: offset - 8 }) {
                return Err(Unclear::IndirectJump);
            }
            let kind = if register == RSP { cfa::SP } else { cfa::FP };
            Ok(Rule { cfa: kind, cfa_offset: offset, ..rule })
        }
        Base::Register(number) => {
            let register = DWARF[usize::from(number & 15)];
            Ok(Rule { cfa: cfa::REGISTER, register, cfa_offset: offset, ..rule })
        }
        Base::Word(place) if stores.wrote(place) || stores.any_saved_elsewhere(place) => {
            Err(Unclear::UnknownStackPointer)
        }
        Base::Word(place) => {
            let kind = if place.register == RSP { cfa::DEREF_SP } else { cfa::DEREF_FP };
            Ok(Rule { cfa: kind, cfa_offset: place.offset, extra: offset, ..rule })
        }
    }
}

/// Where a register's value is at the start that it has at the return.
enum Kept {
    Same,
    In(Place),
    Lost,
}

fn kept(register: u8, value: Value, stores: &Stores) -> Kept {
    match value {
        Some(sum) if sum == Sum::own(register) => Kept::Same,
        Some(Sum { base: Base::Word(place), offset: 0 })
            if !stores.wrote(place) && !stores.saved_elsewhere(register, place) =>
        {
            Kept::In(place)
        }
        _ => Kept::Lost,
    }
}

/// Bytes from the CFA to a place, if both have the same base.
fn from_cfa(cfa: Sum, place: Place) -> Option<i32> {
    (cfa.base == Base::Register(place.register)).then(|| place.offset.checked_sub(cfa.offset)).flatten()
}

fn with_frame_pointer(rule: Rule, cfa: Sum, value: Value, stores: &Stores) -> Rule {
    let (kind, offset) = match kept(RBP, value, stores) {
        Kept::Same => (fp::SAME, 0),
        Kept::In(place) => match from_cfa(cfa, place) {
            Some(offset) => (fp::AT_CFA, offset),
            None if place.register == RSP => (fp::AT_SP, place.offset),
            None => (fp::AT_FP, place.offset),
        },
        Kept::Lost => (fp::LOST, 0),
    };
    Rule { fp: kind, fp_offset: offset, ..rule }
}

/// rbx is believed where it is restored from the stack. That it is not written proves nothing: what V8 and HotSpot compile
/// writes it without saving it (it was wrong at 52 % and 30 % of their places in two programs that were single-stepped).
fn with_rbx(rule: Rule, cfa: Sum, value: Value, stores: &Stores) -> Rule {
    let bx_offset = match kept(RBX, value, stores) {
        // nothing is saved in the caller's frame
        Kept::In(place) => from_cfa(cfa, place).filter(|offset| *offset < 0).unwrap_or(bx::LOST),
        Kept::Same | Kept::Lost => bx::LOST,
    };
    Rule { bx_offset, ..rule }
}
