//! Why the two sides differ at a place that an FDE describes.

use abi::stop::Stop;
use gimli::RegisterRule;

use super::answer::{Answer, Caller};
use super::arbiter::Row;
use super::kinds::Kind;
use super::thread::{Mode, RA, RBP, RSP, Thread};

/// The kind of a disagreement in which ours gives `ours`.
pub(crate) fn classify(row: &Row<'_, '_>, thread: &Thread, ours: &Answer) -> Kind {
    match (ours, row.caller(thread)) {
        (Answer::Caller(ours), Answer::Caller(truth)) => of_callers(row, thread, ours, &truth),
        (Answer::Root, Answer::Root) if !is_found(row, thread) => Kind::NotInSearchTable,
        (Answer::Root, Answer::Root) => Kind::Unexplained,
        (Answer::Stopped(stop, _), truth) => of_refusal(row, thread, *stop, &truth),
        _ => Kind::Contradicted,
    }
}

fn of_callers(row: &Row<'_, '_>, thread: &Thread, ours: &Caller, truth: &Caller) -> Kind {
    let in_expression = matches!(row.register_rule(RBP), Some(RegisterRule::Expression(_)));
    if (ours.pc, ours.sp) == (truth.pc, truth.sp) && in_expression && ours.fp == Some(thread.register(RBP)) {
        return Kind::FramePointerGivenBack;
    }
    let lost = ours.fp.is_none();
    if (ours.pc, ours.sp) != (truth.pc, truth.sp) || !(lost || ours.fp == truth.fp) {
        return Kind::Contradicted;
    }
    if !is_found(row, thread) {
        return Kind::NotInSearchTable;
    }
    let (cfa, needs) = row.cfa(thread).unwrap_or_default();
    if needs.other_register {
        return Kind::OtherRegister;
    }
    if needs.memory {
        return if row.is_signal_frame() { Kind::SignalFrame } else { Kind::LoadedCfa };
    }
    if return_needs_register(row, thread, cfa) {
        return Kind::ReturnInRegister;
    }
    match row.register_rule(RBP) {
        Some(RegisterRule::Offset(_) | RegisterRule::SameValue) | None if lost => Kind::Refused,
        _ if lost => Kind::FramePointerLost,
        _ => Kind::Unexplained,
    }
}

fn is_found(row: &Row<'_, '_>, thread: &Thread) -> bool {
    let place = match thread.mode {
        Mode::Interrupted => thread.pc,
        Mode::Called => thread.pc - 1,
    };
    row.section.is_found(place, row.fde)
}

fn return_needs_register(row: &Row<'_, '_>, thread: &Thread, cfa: u64) -> bool {
    row.value(RA, cfa, thread).is_some_and(|(_, needs)| needs.other_register)
}

fn of_refusal(row: &Row<'_, '_>, thread: &Thread, stop: Stop, truth: &Answer) -> Kind {
    let Some((cfa, needs)) = row.cfa(thread) else { return Kind::Refused };
    let called = thread.mode == Mode::Called;
    match stop {
        Stop::LostRegister if called && needs.other_register => Kind::LostRegister,
        Stop::LostRegister if called && return_needs_register(row, thread, cfa) => Kind::ReturnInRegisterLost,
        Stop::NotAscending if cfa <= thread.register(RSP) || cfa % 8 != 0 => Kind::NotAscending,
        Stop::UnsupportedRule if !is_ordinary(row) || *truth == Answer::Unknown => Kind::UnsupportedRule,
        _ => Kind::Refused,
    }
}

/// Whether a row is of the form that compilers give nearly all of them: it must be supported.
fn is_ordinary(row: &Row<'_, '_>) -> bool {
    let is_plain = |number| matches!(row.register_rule(number), None | Some(RegisterRule::Offset(_)));
    let returns_to_cfa = matches!(row.register_rule(RSP), None | Some(RegisterRule::ValOffset(0)));
    let is_pushed = row.register_rule(RA) == Some(RegisterRule::Offset(-8));
    !row.depends_on_place() && is_pushed && returns_to_cfa && is_plain(RBP)
}
