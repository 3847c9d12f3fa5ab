//! Every interpreter, every way to park a thread: frame for frame what the interpreter says of itself.

use crate::explained::explain;
use crate::support::interpreters::{self, Interpreter};
use crate::support::skip;

fn check(interpreter: &Interpreter, cases: &[&str]) -> usize {
    let parked = interpreter.park(cases);
    let report = explain(parked.pid);
    let (name, refusals) = (&interpreter.name, report.refusals());
    assert!(refusals.is_empty(), "{name}: {refusals:?}");
    assert_eq!(report.interpreters.len(), 1, "{name}: {:?}", report.interpreters);
    let [found] = report.interpreters.as_slice() else { unreachable!() };
    assert_eq!(found.version.as_deref(), parked.about.as_ref().map(|about| about.version.as_str()), "{name}");
    let eval_loop = found.eval_loop().unwrap_or_default();
    assert!(eval_loop.contains(" piece") && eval_loop.ends_with(" bytes"), "{name}: {eval_loop:?}");
    assert!(found.not_recorded.is_none(), "{name}: {:?}", found.not_recorded);
    let wrong = report.mismatches(&parked);
    assert!(wrong.is_empty(), "{name} {cases:?}: {} of {}:\n{}", wrong.len(), parked.threads.len(), wrong.join("\n"));
    let not_held: Vec<_> = report.threads.iter().filter_map(|thread| thread.not_held.as_deref()).collect();
    assert!(not_held.is_empty(), "{name}: {not_held:?}");
    let whole =
        report.threads.iter().filter(|thread| thread.native.as_ref().is_some_and(|native| native.whole)).count();
    println!("LIVE explain {name} {cases:?}: {whole} of {} native stacks whole", report.threads.len());
    // musl's own code has no unwind information, and its first function does not return
    let enough = whole * 10 >= report.threads.len() * 9 || name == "musl";
    assert!(enough, "{name}: {whole} of {} are whole", report.threads.len());
    let threads = parked.threads.len();
    assert!(parked.end().success(), "{name} {cases:?} ends as it would have");
    threads
}

#[test]
fn every_interpreter() {
    skip(&interpreters::missing());
    let all = interpreters::all();
    assert!(!all.is_empty(), "no Python at all");
    for interpreter in all {
        let threads = check(&interpreter, &["parked", "interpreters"]);
        println!("LIVE explain {}: {threads} stacks equal", interpreter.name);
    }
}

/// Threads that work in C meanwhile, that hold the GIL, in a signal's handler, in a child that was forked.
#[test]
fn threads_that_are_at_work() {
    for interpreter in interpreters::pyenv().iter().chain(&interpreters::installed()) {
        for group in ["busy", "gil", "signal", "fork"] {
            check(interpreter, &[group]);
        }
    }
}
