//! Thousands of processes that sleep while one works.

use std::collections::BTreeSet;

use crate::common::target::{all_processes, status_field};
use crate::storm::maps::{known_to, wait_until_forgotten};
use crate::storm::{Watched, long};
use crate::support::build::Workshop;
use crate::support::folded::Stack;
use crate::support::judge::Judge;
use crate::support::needs;
use crate::support::record::Recorded;
use crate::support::workload::{Truth, Workload};

/// Bytes of the recorder's memory for each process that only sleeps.
const PER_SLEEPER: u64 = 16 << 10;
const FREQUENCY: u32 = 499;

/// Nanoseconds that a process's first thread was on a CPU.
fn cpu_of(pid: u32) -> f64 {
    let text = std::fs::read_to_string(format!("/proc/{pid}/schedstat")).expect("the process is there");
    text.split_whitespace().next().and_then(|first| first.parse::<f64>().ok()).expect("nanoseconds") / 1e9
}

/// Children of a process.
fn children_of(parent: u32) -> BTreeSet<u32> {
    let of_parent = |pid: &u32| status_field(*pid, "PPid").is_some_and(|field| field == parent.to_string());
    all_processes().into_iter().filter(of_parent).collect()
}

/// What came of recording the machine while one process works.
struct Outcome {
    recorded: Recorded,
    /// CPU seconds of that process from the beginning of the sampling on.
    cpu: f64,
    /// Bytes of the recorder's memory when it had begun, and at most.
    begun: u64,
    peak: u64,
}

/// Records a process that works already, until it is done.
fn record_worker(shop: &Workshop, mut look: impl FnMut(&Watched)) -> Outcome {
    let mut worker = Workload::start(&[shop.path("lone_worker").as_os_str(), "4".as_ref()]);
    worker.go();
    let watched = Watched::machine(FREQUENCY);
    // it is sampled from now on, whatever the recorder has still to learn
    let before = cpu_of(worker.pid());
    let begun = watched.memory("VmRSS");
    look(&watched);
    worker.done();
    let cpu = cpu_of(worker.pid()) - before;
    let peak = watched.memory("VmHWM");
    let recorded = watched.stop();
    worker.end();
    Outcome { recorded, cpu, begun, peak }
}

#[test]
fn one_works_while_thousands_sleep() {
    needs!("cc");
    let shop = Workshop::new();
    shop.c("lone_worker", "calls.c", &["-O1"]);
    let sleepers_program = shop.c("sleepers", "sleepers.c", &[]);
    let alone = record_worker(&shop, |_| ());

    let count = if long() { 10_000 } else { 2_000 };
    let mut sleepers = Workload::start(&[sleepers_program.as_os_str(), count.to_string().as_ref()]);
    let asleep = children_of(sleepers.pid());
    assert!(asleep.len() >= 1_000, "only {} processes could be started", asleep.len());
    let mut missing = usize::MAX;
    let Outcome { recorded, cpu, begun, peak } = record_worker(&shop, |watched| {
        let known = known_to(watched.pid());
        missing = asleep.difference(&known["processes"]).count();
    });
    let count = asleep.len();
    println!(
        "LIVE {count} sleepers: {begun} bytes at first ({} without them), {peak} ({}) at most",
        alone.begun, alone.peak
    );
    let chain = |stack: &Stack| {
        let frames = stack.from("main")?;
        let known = ["main", "drive", "fibonacci", "many", "variable", "clock_gettime"];
        frames.iter().all(|frame| known.contains(frame)).then(String::new)
    };
    let name = format!("C, one works, {count} sleep");
    let mut judge =
        Judge::of(&recorded, "lone_worker", &name, FREQUENCY).samples_for(cpu).chains(&Truth::default(), chain);
    judge.require(missing == 0, format!("{missing} of {count} that sleep are not in the table of processes"));
    let most = alone.begun + PER_SLEEPER * count as u64;
    judge.require(begun <= most, format!("{begun} bytes; {} without the sleepers", alone.begun));
    judge.end();

    // their end is a storm of its own
    let watched = Watched::machine(FREQUENCY);
    assert!(asleep.is_subset(&known_to(watched.pid())["processes"]));
    sleepers.go();
    sleepers.done();
    sleepers.end();
    wait_until_forgotten(watched.pid());
    let known = known_to(watched.pid());
    let alive: BTreeSet<u32> = all_processes().into_iter().collect();
    let left = known.values().flatten().filter(|pid| asleep.contains(pid) && !alive.contains(pid)).count();
    assert_eq!(left, 0, "of {} processes that are over", asleep.len());
    watched.stop();
}
