//! A crowd of threads in one process.

use std::collections::BTreeSet;

use crate::storm::maps::wait_until_forgotten;
use crate::storm::{Watched, anchor, long};
use crate::support::build::Workshop;
use crate::support::folded::Stack;
use crate::support::judge::Judge;
use crate::support::needs;
use crate::support::workload::Workload;

#[test]
fn each_works_a_little() {
    needs!("cc");
    let shop = Workshop::new();
    let program = shop.c("crowd", "crowd.c", &["-pthread"]);
    let threads: u32 = if long() { 5000 } else { 1000 };
    let (seconds, frequency) = (4.0, 997);
    let mut crowd = Workload::start(&[program.as_os_str(), "4".as_ref(), threads.to_string().as_ref()]);
    let anchor = anchor();
    let watched = Watched::processes(frequency, &[crowd.pid(), anchor.pid()]);
    crowd.go();
    let truth = crowd.done();
    assert_eq!(truth.number("threads"), f64::from(threads), "started");
    crowd.end();
    wait_until_forgotten(watched.pid());
    let peak = watched.memory("VmHWM");
    let recorded = watched.stop();
    let chain = |stack: &Stack| {
        if stack.parts.get(1).is_none_or(|name| !name.starts_with("thread ")) {
            return Some(String::new());
        }
        let number: usize = stack.parts[1]["thread ".len()..].parse().ok()?;
        let expected = ["work_a", "work_b", "work_c"][number % 3];
        let Some(frames) = stack.from("thread") else { return Some(String::new()) };
        match frames.as_slice() {
            ["thread", "through", work] => (*work == expected).then(|| expected.to_owned()),
            ["thread"] | ["thread", "through"] => Some(String::new()),
            // waiting for one another, asking for the time
            ["thread", other, ..] => (!other.starts_with("work_")).then(String::new),
            _ => None,
        }
    };
    let mut judge = Judge::of(&recorded, "crowd", &format!("C, {threads} threads"), frequency)
        .losing_at_most(0.01)
        .samples_for(truth.cpu)
        .chains(&truth, chain);
    let seen: BTreeSet<&str> = recorded.of("crowd").iter().map(|stack| stack.parts[1].as_str()).collect();
    let seen = seen.iter().filter(|name| name.starts_with("thread ")).count() as f64;
    // ticks at random over the work of each would miss this share of them
    let ticks = |which: f64| seconds * f64::from(frequency) * which / (2.0 * f64::from(threads));
    let hit = [1.0, 2.0, 3.0].map(|which| 1.0 - (-ticks(which)).exp());
    let expected = hit.iter().sum::<f64>() / 3.0 * f64::from(threads);
    let bound = 5.0 * (hit.iter().map(|p| p * (1.0 - p)).sum::<f64>() / 3.0 * f64::from(threads)).sqrt();
    println!("LIVE {threads} threads: {seen} with samples, expected {expected:.0} -{bound:.0}; {peak} bytes at most");
    judge.require(seen >= expected - bound, format!("{seen} threads with samples, expected {expected} - {bound}"));
    judge.end();
}
