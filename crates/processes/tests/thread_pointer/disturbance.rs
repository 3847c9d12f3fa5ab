//! What a program that is looked at without end notices: nothing.

use std::time::Duration;

use processes::Proc;
use processes::stat::State;
use processes::thread_pointer::{Patience, ThreadProblem, of_thread, of_threads};

use crate::target::Target;

/// Sends a number along with a realtime signal; false while the queue is full.
pub(crate) fn send_number(pid: u32, number: i32) -> bool {
    let value = libc::sigval { sival_ptr: number as usize as *mut libc::c_void };
    // SAFETY: no memory is involved.
    unsafe { libc::sigqueue(pid as i32, libc::SIGRTMIN() + 1, value) == 0 }
}

/// The named numbers of the line that ends the program of signals.
pub(crate) fn named(line: &[String], name: &str) -> i64 {
    let at = line.iter().position(|word| word == name).expect("its name");
    line[at + 1].parse().expect("a number")
}

#[test]
fn ten_thousand_looks() {
    let Some(mut target) = Target::start(&["threads", "10"]) else { return };
    let tids: Vec<u32> = target.threads.keys().copied().collect();
    let before = target.counters();
    let mut held: Vec<Duration> = Vec::new();
    while held.len() < 10_000 {
        for result in of_threads(&tids, Patience::default()) {
            held.push(result.expect("it stops").held);
        }
    }
    target.assert_untraced();
    assert_eq!(Proc::system().tids(target.pid).expect("it is there").len(), 11);
    let after = target.counters();
    assert!((0..10).all(|number| (after[number] > before[number]) == (number % 5 < 3)), "{before:?} {after:?}");
    held.sort_unstable();
    let at = |part: usize| held[(held.len() - 1) * part / 1000];
    println!("held: median {:?}, 90 % {:?}, 99 % {:?}, longest {:?}", at(500), at(900), at(990), at(1000));
}

#[test]
fn threads_that_come_and_go() {
    let Some(mut target) = Target::start(&["churn"]) else { return };
    let proc = Proc::system();
    let before = target.counters();
    let (mut looked, mut gone) = (0, 0);
    for _ in 0..1_000 {
        let tids = proc.tids(target.pid).expect("it is there");
        for result in of_threads(&tids, Patience::default()) {
            match result {
                Ok(_) => looked += 1,
                Err(ThreadProblem::NoSuchThread { .. } | ThreadProblem::Ended { .. }) => gone += 1,
                Err(problem) => panic!("{problem}"),
            }
        }
    }
    target.assert_untraced();
    let after = target.counters();
    println!("{looked} looked at, {gone} were gone, {:?} came and went", &after);
    assert!(looked > 0 && (0..4).all(|number| after[number] > before[number]), "{before:?} {after:?}");
}

#[test]
fn a_program_that_runs_itself_again_and_again() {
    let Some(target) = Target::start(&["again", "0"]) else { return };
    let (mut looked, mut gone) = (0, 0);
    for _ in 0..2_000 {
        match of_thread(target.pid, Patience::default()) {
            Ok(_) => looked += 1,
            Err(ThreadProblem::Ended { .. }) => gone += 1,
            Err(problem) => panic!("{problem}"),
        }
    }
    println!("{looked} looked at, {gone} were gone");
    target.assert_untraced();
    assert!(looked > 1_000);
    target.wait_until("running", |state| state != State::Stopped);
}

#[test]
fn no_signal_is_lost_or_doubled() {
    let Some(mut target) = Target::start(&["signals"]) else { return };
    let mut sent = 0;
    for _ in 0..10_000 {
        while !send_number(target.pid, sent) {
            std::thread::yield_now();
        }
        sent += 1;
        of_thread(target.pid, Patience::default()).expect("it stops");
    }
    target.tell();
    let line = target.line();
    println!("{}", line.join(" "));
    assert_eq!((named(&line, "numbers"), named(&line, "wrong")), (i64::from(sent), 0));
    let missed = named(&line, "expected") - named(&line, "ticks");
    assert!((-1..=1).contains(&missed), "{missed} ticks");
}

/// What the module's documentation says of `epoll_wait`: if this fails, the kernel has become better.
#[test]
fn a_call_that_is_not_started_again() {
    let Some(mut target) = Target::start(&["epoll"]) else { return };
    target.wait_until("waiting", |state| state == State::Sleeping);
    of_thread(target.pid, Patience::default()).expect("it stops");
    assert_eq!(target.line(), ["epoll_wait", "-1", &libc::EINTR.to_string()]);
}
