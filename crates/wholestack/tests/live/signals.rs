//! Signal handlers: what they interrupted is below them.

use crate::support::build::Workshop;
use crate::support::folded::Stack;
use crate::support::judge::Judge;
use crate::support::needs;
use crate::support::record::Recording;
use crate::support::workload::Truth;

/// The trampoline is a local symbol of libc: only with debug symbols it has a name.
const TRAMPOLINES: [&str; 2] = ["__restore_rt", "[libc.so.6]"];

fn chain(stack: &Stack) -> Option<String> {
    let frames = stack.from("main")?;
    let handlers: Vec<usize> =
        (0..frames.len()).filter(|at| ["on_alarm", "on_nested"].contains(&frames[*at])).collect();
    let entered = |at: &usize| TRAMPOLINES.contains(&frames[at - 1]);
    let last = *frames.last()?;
    let right = handlers.iter().all(entered)
        && match last {
            "leaf_handler" => frames.ends_with(&["on_alarm", "handler_work", "leaf_handler"]) && handlers.len() == 1,
            "leaf_nested" => frames.ends_with(&["on_nested", "leaf_nested"]) && handlers.len() == 2,
            "leaf_main" => frames == ["main", "interrupted", "leaf_main"],
            _ => true,
        };
    right.then(|| last.to_owned())
}

fn record(mode: &str) {
    let shop = Workshop::new();
    let program = shop.c("signals", "signals.c", &[]);
    let recorded = Recording::at(999).command(&[program.as_os_str(), "3".as_ref(), mode.as_ref()]);
    let truth = Truth::parse(&recorded.stdout);
    let judge = Judge::of(&recorded, "signals", &format!("C, signals, {mode}"), 999);
    let mut judge = judge.samples_for(truth.cpu).chains(&truth, chain);
    for interrupted in ["leaf_main", "pushes"] {
        let below = |stack: &&Stack| {
            let frames = stack.user();
            let at = frames.iter().position(|frame| *frame == "on_alarm");
            at.is_some_and(|at| frames[..at].contains(&interrupted))
        };
        let found = recorded.stacks.iter().any(|stack| below(&stack));
        judge.require(found, format!("no handler above {interrupted}"));
    }
    judge.end();
}

#[test]
fn on_the_threads_stack() {
    needs!("cc");
    record("plain");
}

#[test]
fn on_an_alternate_stack() {
    needs!("cc");
    record("alternate");
}

#[test]
fn within_a_handler() {
    needs!("cc");
    record("nested");
}
