//! A target whose memory is not there for a moment.

use crate::storm::Watched;
use crate::support::build::Workshop;
use crate::support::folded::{End, Stack, total};
use crate::support::judge::list;
use crate::support::needs;
use crate::support::workload::Truth;

/// A tick in `present` shows all callers; one in `absent` its caller, and that the rest could not be read.
#[test]
fn stack_and_code_that_are_paged_out() {
    needs!("cc");
    let shop = Workshop::new();
    let program = shop.c("evicted", "evicted.c", &["-pthread"]);
    let recorded = Watched::command(999, &[program.as_os_str(), "4".as_ref()]).finish();
    assert!(recorded.status.success() && recorded.losses().is_empty(), "{}", recorded.summary);
    let truth = Truth::parse(&recorded.stdout);
    let stacks = recorded.of("evicted");
    let of = |leaf: &str| stacks.iter().filter(|stack| stack.user().last() == Some(&leaf)).copied().collect::<Vec<_>>();
    let (present, absent) = (of("present"), of("absent"));
    for (leaf, stacks) in [("present", &present), ("absent", &absent)] {
        let (samples, expected) = (total(stacks.iter().copied()) as f64, truth.shares[leaf] * 999.0);
        let bound = 5.0 * expected.sqrt() + (0.05 + recorded.stolen) * 999.0;
        assert!((samples - expected).abs() <= bound, "{samples} samples in {leaf}, not {expected} +- {bound}");
        let right = ["thread", "middle", "phase", leaf];
        let wrong: Vec<&Stack> = stacks
            .iter()
            .filter(|stack| match stack.end() {
                End::Stopped => !right.ends_with(&own(stack)),
                _ => stack.from("thread") != Some(right.to_vec()),
            })
            .copied()
            .collect();
        assert!(wrong.is_empty(), "{}", list(&wrong));
    }
    let share = |stacks: &[&Stack], says: &dyn Fn(&Stack) -> bool| {
        total(stacks.iter().copied().filter(|stack| says(stack))) as f64 / total(stacks.iter().copied()) as f64
    };
    let whole = share(&present, &|stack| stack.end() == End::Whole);
    let unreadable =
        share(&absent, &|stack| stack.parts.iter().any(|part| part.starts_with("[stopped: unreadable stack")));
    println!("LIVE paged out: {whole:.3} of `present` whole, {unreadable:.3} of `absent` unreadable");
    // the first samples are made from copies that are not as long as this stack
    assert!(whole >= 0.9, "{whole} whole\n{}", recorded.summary);
    // what the thread itself touches between two looks comes back
    assert!(unreadable >= 0.5, "{unreadable} unreadable\n{}", recorded.summary);
}

/// What it shows besides the reason of its end.
fn own(stack: &Stack) -> Vec<&str> {
    stack.user().into_iter().filter(|frame| !frame.starts_with("[stopped: ")).collect()
}
