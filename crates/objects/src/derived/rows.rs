//! From what is known at a place, its rule.

use abi::table::{Rule, bx, cfa, fp};

use super::facts::{Facts, Thread};
use crate::exits::state::{RBP, RBX, RSP, Sum};

/// The return address is the word at the entry's stack pointer; the CFA is behind it.
const RETURN_ADDRESS: i32 = 8;

/// The rule of a place; [`Rule::NONE`] where the facts give none. `ra` says how much the return address is believed.
pub(super) fn rule(facts: &Facts, ra: u8) -> Rule {
    match facts.thread {
        Thread::Same => {}
        Thread::New => return Rule::END,
        Thread::Either | Thread::Unknown => return Rule::NONE,
    }
    let record = facts
        .frame()
        .filter(|frame| facts.state.saved(RBP).is_some_and(|place| (place.register, place.offset) == (RSP, *frame)));
    let (kind, base) = match (record, facts.depth()) {
        (Some(frame), _) => (cfa::FP, frame),
        // above its entry's stack pointer a function has taken the return address off the stack
        (None, Some(depth)) if depth <= 0 => (cfa::SP, depth),
        _ => match facts.frame() {
            Some(frame) => (cfa::FP, frame),
            None => return Rule::NONE,
        },
    };
    let rule = Rule { cfa: kind, ra, cfa_offset: RETURN_ADDRESS - base, ..Rule::NONE };
    let (fp, fp_offset) = match saved(facts, RBP) {
        Saved::Same => (fp::SAME, 0),
        Saved::At(offset) => (fp::AT_CFA, offset),
        Saved::Lost => (fp::LOST, 0),
    };
    let bx_offset = match saved(facts, RBX) {
        Saved::Same => bx::SAME,
        Saved::At(offset) => offset,
        Saved::Lost => bx::LOST,
    };
    Rule { fp, fp_offset, bx_offset, ..rule }
}

enum Saved {
    Same,
    /// Bytes from the CFA.
    At(i32),
    Lost,
}

fn saved(facts: &Facts, register: u8) -> Saved {
    if facts.state.get(register) == Some(Sum::own(register)) {
        return Saved::Same;
    }
    match facts.state.saved(register) {
        Some(place) if place.register == RSP && place.offset < 0 => Saved::At(place.offset - RETURN_ADDRESS),
        _ => Saved::Lost,
    }
}
