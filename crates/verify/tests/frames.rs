//! The walk at each instruction of eval loops, judged by continuity.

#![cfg(target_arch = "x86_64")]

#[path = "../../python/tests/interpreters/mod.rs"]
mod interpreters;

use std::sync::Arc;

use python::eval_loop::EvalLoop;
use verify::frames::{StartError, Target, judge};

/// Stacks that are judged of each interpreter.
fn stacks() -> u64 {
    match std::env::var("WHOLESTACK_HARDSHIP").as_deref() {
        Ok("long") => 2_000_000,
        _ => 40_000,
    }
}

/// Without what the code tells of its pushes and pops, stacks are wrong or not whole: the judge sees it.
#[test]
fn frames_in_between_are_found() {
    let mut seen = 0;
    for interpreter in interpreters::all().into_iter().filter(|interpreter| interpreter.place.tree.is_none()) {
        let Ok(mut target) = Target::start(interpreter.place.command()) else { continue };
        // of some builds none are known
        if target.eval_loop.moments.is_empty() {
            continue;
        }
        let mut eval_loop = EvalLoop::clone(&target.eval_loop);
        eval_loop.moments.clear();
        target.eval_loop = Arc::new(eval_loop);
        let report = judge(target, 10_000).expect("a run");
        assert!(!report.holds(), "{report}");
        seen += 1;
    }
    if seen == 0 {
        println!("SKIPPED: no interpreter here that can be traced and has moments");
    }
}

#[test]
fn frames_do_not_vanish_or_change_places() {
    let mut stepped = 0;
    let mut wrong = Vec::new();
    for interpreter in interpreters::all() {
        let target = match Target::start(interpreter.place.command()) {
            Ok(target) => target,
            Err(StartError::System(error)) if error.kind() == std::io::ErrorKind::PermissionDenied => {
                return println!("SKIPPED: ptrace is not permitted here");
            }
            Err(error @ StartError::Refused(_)) if interpreter.is_free_threaded => {
                println!("NOT HERE: {}: {error}", interpreter.place.file.display());
                continue;
            }
            Err(error) => panic!("{}: {error}", interpreter.place.file.display()),
        };
        let report = judge(target, stacks()).expect("a run");
        println!("{report}");
        assert!(report.in_eval_loop > 20_000 && report.pushed > 50, "{report}");
        if !report.holds() {
            wrong.push(report.name);
        }
        stepped += 1;
    }
    if stepped == 0 {
        println!("SKIPPED: no interpreter here");
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}
