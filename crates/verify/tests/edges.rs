//! The walk at each instruction of small programs, judged by the calls that were made.

#![cfg(target_arch = "x86_64")]

use std::path::Path;

use abi::table::{Rule, cfa};
use objects::UnwindTable;
use verify::edges::{Alter, Judge, Report, programs};

/// Steps the named variant of a program and compares at most `states` walks; `None`: it cannot be compiled or stepped here.
fn step(program: &str, variant: &str, states: u64, alter: Option<Alter>) -> Option<Report> {
    let known = programs().iter().find(|known| known.name == program).expect("a program of this name");
    let variant = known.variants.iter().find(|known| known.name == variant).expect("a variant of this name");
    let mut judge = Judge::new(alter).expect("a temporary directory");
    if let Err(error) = judge.run(known, variant, states) {
        assert!(is_forbidden(&error), "{error:#}");
        println!("SKIPPED: ptrace is not permitted here");
        return None;
    }
    let report = judge.finish();
    if let Some(skipped) = report.skipped.first() {
        println!("SKIPPED: {} {}: {}", skipped.program, skipped.variant, skipped.reason);
        return None;
    }
    Some(report)
}

fn is_forbidden(error: &anyhow::Error) -> bool {
    let errors = error.chain().filter_map(|cause| cause.downcast_ref::<std::io::Error>());
    errors.into_iter().any(|error| error.kind() == std::io::ErrorKind::PermissionDenied)
}

/// No walk is wrong, the program came to its end, and at least `whole` percent of the stacks are whole.
fn assert_right(report: &Report, whole: u64) {
    assert_eq!(report.wrong, 0, "{report}");
    assert!(report.states > 1000 && report.runs[0].ended == "exit status 0", "{report}");
    assert!(report.whole * 100 >= report.states * whole, "{report}");
    let all = report.whole + report.stopped + report.rewritten + report.wrong;
    assert_eq!(all, report.states, "each walk is judged once");
}

/// Prologues, epilogues, lazy binding, the start and the end of a process: 8,474 states, 99.9 % of them whole.
#[test]
fn calls_and_lazily_bound_stubs() {
    let Some(report) = step("calls", "O2-lazy-no-pie", 50_000, None) else { return };
    assert_right(&report, 99);
    let events = report.runs[0].events;
    assert_eq!((events.strays, events.overwritten), (0, 0), "every return goes to the call that was made last");
    assert_eq!(events.calls, events.returns + report.runs[0].left, "{events:?}");
}

/// Realigned frames, variable-length arrays and probes.
#[test]
fn stacks_that_move() {
    let Some(report) = step("stack", "O2-clash", 50_000, None) else { return };
    assert_right(&report, 99);
}

/// Handlers on both stacks, by the program's signals and by one before each instruction.
#[test]
fn signals_before_each_instruction() {
    let Some(report) = step("signals", "O2-now", 50_000, None) else { return };
    assert_right(&report, 98);
    let events = report.runs[0].events;
    assert!(events.signals > 300 && events.switches > 100, "{events:?}");
    let left_by_jumps = events.signals - events.signal_returns;
    assert!((1..=2 * events.jumps).contains(&left_by_jumps), "{events:?}");
}

/// `longjmp` leaves calls behind.
#[test]
fn jumps_over_frames() {
    let Some(report) = step("jumps", "Os", 50_000, None) else { return };
    assert_right(&report, 95);
    assert!(report.runs[0].events.jumps > 10, "{report}");
}

/// An exception goes through frames with clean-ups. While libgcc overwrites the return addresses of its own frames, which
/// takes a few hundred instructions for each landing, no walk can be right.
#[test]
fn exceptions() {
    let Some(report) = step("exceptions", "O2-frame-pointer", 62_000, None) else { return };
    assert_eq!((report.wrong, report.states), (0, 62_000), "{report}");
    assert!(report.whole * 100 >= report.states * 96, "{report}");
    assert!(report.runs[0].events.overwritten > 2 && report.rewritten > 0, "{report}");
}

/// Unusual unwind information.
#[test]
fn hand_written_functions() {
    let Some(report) = step("odd", "O2", 50_000, None) else { return };
    assert_right(&report, 99);
}

/// A table in which one kind of rule is spoilt is found to be wrong: one that leaves a caller out, and one that ends stacks.
#[test]
fn a_spoilt_rule_is_found() {
    let entered = |offset| Rule { cfa: cfa::SP, cfa_offset: offset, ..Rule::NONE };
    for (spoilt, other) in [(entered(8), entered(40)), (entered(16), Rule::END)] {
        let alter = move |path: &Path, table: &mut UnwindTable| {
            if path.file_name().is_some_and(|name| name == "calls-O2-now") {
                table.rules.iter_mut().filter(|rule| **rule == spoilt).for_each(|rule| *rule = other);
            }
        };
        let Some(report) = step("calls", "O2-now", 50_000, Some(Box::new(alter))) else { return };
        assert!(report.wrong > 0, "{report}");
        let fault = report.faults.first().expect("a fault is described");
        assert!(fault.place.starts_with("calls-O2-now") && fault.example.is_some(), "{fault:?}");
    }
}
