//! More than the ring buffer holds.

use std::time::Duration;

use crate::common::target::{status_field, wait_until_it_ran};
use crate::common::wait_for;
use crate::storm::Watched;
use crate::support::build::Workshop;
use crate::support::folded::{End, Stack, total};
use crate::support::judge::{Judge, list};
use crate::support::needs;
use crate::support::record::Recorded;
use crate::support::workload::{Truth, Workload};

/// The highest rate that `record` takes and the kernel allows.
fn highest_rate() -> u32 {
    let text = std::fs::read_to_string("/proc/sys/kernel/perf_event_max_sample_rate").expect("a limit");
    text.trim().parse::<u32>().expect("a number").min(10_000)
}

/// Frames of the program from `main` on, if they are such as it can have.
fn chain(stack: &Stack) -> Option<String> {
    let frames = stack.from("main")?;
    let known =
        |frame: &&str| frame.starts_with("deep_") || ["main", "deeper", "leaf", "clock_gettime"].contains(frame);
    frames.iter().all(known).then(String::new)
}

/// What was seen and what was lost are all the ticks of the CPU time that the program had.
#[track_caller]
fn assert_sum(recorded: &Recorded, cpu: f64, frequency: u32, what: &str) {
    let (seen, lost) = (total(&recorded.stacks), recorded.lost());
    let (expected, rate) = (cpu * f64::from(frequency), f64::from(frequency));
    // a tick that comes during a sample is not taken, and then that is said
    let never_came = recorded.summary.contains("never came");
    let bound = 5.0 * expected.sqrt() + (0.05 + recorded.stolen) * rate;
    println!(
        "LIVE {what}: {seen} seen, {lost} lost, {expected:.0} +- {bound:.0} expected at {frequency} Hz{}",
        if never_came { ", ticks missing" } else { "" }
    );
    let sum = (seen + lost) as f64;
    assert!(sum <= expected + bound, "{seen} + {lost}, not {expected} +- {bound}\n{}", recorded.summary);
    assert!(never_came || sum >= expected - bound, "{seen} + {lost}, not {expected} +- {bound}\n{}", recorded.summary);
    assert!(!recorded.summary.contains("accounted for"), "{}", recorded.summary);
}

#[test]
fn ever_new_deep_stacks_at_the_highest_rate() {
    needs!("cc");
    let shop = Workshop::new();
    let deluge = shop.c("deluge", "deluge.c", &[]);
    let frequency = highest_rate();
    let recorded = Watched::command(frequency, &[deluge.as_os_str(), "3".as_ref()]).finish();
    let truth = Truth::parse(&recorded.stdout);
    assert_sum(&recorded, truth.cpu, frequency, "flood");
    let stacks = recorded.of("deluge");
    // what comes before it, the launcher's too, is not in question
    let works = |stack: &Stack| stack.user().iter().any(|frame| *frame == "deeper" || frame.starts_with("deep_"));
    let wrong = |stack: &&Stack| works(stack) && stack.end() == End::Whole && chain(stack).is_none();
    let wrong: Vec<&Stack> = stacks.into_iter().filter(wrong).collect();
    assert!(wrong.is_empty(), "{}", list(&wrong));
}

/// Stops the recorder for two seconds while `work` goes on.
fn stop_meanwhile(watched: &Watched, work: impl FnOnce()) {
    watched.signal(libc::SIGSTOP);
    wait_for("stopped", || status_field(watched.pid(), "State").is_some_and(|state| state.starts_with('T')));
    work();
    std::thread::sleep(Duration::from_secs(2));
    watched.signal(libc::SIGCONT);
}

/// Nobody reads the ring buffer for two seconds, in which a known process has new stacks.
#[test]
fn a_recorder_that_is_stopped_for_a_while() {
    needs!("cc");
    let shop = Workshop::new();
    let deluge = shop.c("deluge", "deluge.c", &[]);
    let frequency = highest_rate().min(4999);
    let mut workload = Workload::start(&[deluge.as_os_str(), "4".as_ref()]);
    let watched = Watched::processes(frequency, &[workload.pid()]);
    workload.go();
    wait_until_it_ran(workload.pid());
    stop_meanwhile(&watched, || ());
    let truth = workload.done();
    let recorded = watched.stop();
    workload.end();
    assert!(recorded.status.success(), "{}", recorded.summary);
    assert_sum(&recorded, truth.cpu, frequency, "recorder stopped for 2 s");
    let judge = Judge::of(&recorded, "deluge", "recorder stopped for 2 s", frequency);
    judge.losing_at_most(0.9).chains(&Truth::default(), chain).end();
}

/// The same with processes that begin meanwhile: each of their samples has to wait for the recorder, with a copy of its
/// stack, and there is not room for all.
#[test]
fn processes_that_begin_while_the_recorder_is_stopped() {
    needs!("cc");
    let shop = Workshop::new();
    let gale = shop.c("gale", "gale.c", &[]);
    let alpha = shop.c("alpha", "squall.c", &["-DNAME=alpha", "-DSPACE=100"]);
    let frequency = highest_rate();
    let mut storm = Workload::start(&[gale.as_os_str(), "3".as_ref(), "500".as_ref(), alpha.as_os_str()]);
    let watched = Watched::processes(frequency, &[storm.pid()]);
    stop_meanwhile(&watched, || storm.go());
    let truth = storm.done();
    storm.end();
    let recorded = watched.finish();
    assert!(recorded.status.success(), "{}", recorded.summary);
    assert_sum(&recorded, truth.cpu + truth.number("children_s"), frequency, "storm, recorder stopped for 2 s");
    assert!(recorded.lost() > 0, "nothing was lost\n{}", recorded.summary);
    assert!(recorded.summary.contains("lost: ring buffer full"), "{}", recorded.summary);
    let wrong = |stack: &&Stack| {
        // until it becomes another program, a child is one of the storm's
        let in_work = stack.parts[1] != "gale" && stack.from("main").is_some_and(|frames| frames.len() > 1);
        in_work && !stack.from("main").is_some_and(|frames| frames.starts_with(&["main", "alpha_work"]))
    };
    let wrong: Vec<&Stack> = recorded.of("alpha").into_iter().filter(wrong).collect();
    assert!(wrong.is_empty(), "{}", list(&wrong));
}
