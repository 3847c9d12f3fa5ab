//! `kill -9` of the reader at any moment.

use std::process::Child;
use std::time::{Duration, Instant};

use processes::stat::State;

use crate::disturbance::{named, send_number};
use crate::target::{Target, reader, states};

const KILLS: u32 = 200;

/// Moments within a few rounds of looks, in an order that is the same each time.
fn moment(number: u32) -> Duration {
    Duration::from_micros(u64::from(number.wrapping_mul(2_654_435_761) % 20_000))
}

/// Starts a reader and waits until it reads.
fn start(pid: u32) -> Child {
    let mut child = reader(pid).spawn().expect("it starts");
    let mut output = std::io::BufReader::new(child.stdout.take().expect("a pipe"));
    let mut line = String::new();
    while !line.contains("begins") {
        line.clear();
        assert_ne!(std::io::BufRead::read_line(&mut output, &mut line).expect("it prints"), 0);
    }
    child
}

fn kill(mut child: Child) {
    child.kill().expect("it runs");
    child.wait().expect("it ends");
}

#[test]
fn no_thread_stays_behind() {
    let Some(mut target) = Target::start(&["threads", "50"]) else { return };
    let mut before = target.counters();
    for number in 0..KILLS {
        let child = start(target.pid);
        std::thread::sleep(moment(number));
        kill(child);
        let stopped: Vec<_> = states(target.pid).into_iter().filter(|(_, state)| *state == State::Stopped).collect();
        assert!(stopped.is_empty(), "after kill {number}: {stopped:?}");
        target.assert_untraced();
    }
    let begin = Instant::now();
    loop {
        let after = target.counters();
        if (0..50).all(|number| (after[number] > before[number]) == (number % 5 < 3)) {
            break;
        }
        assert!(begin.elapsed() < Duration::from_secs(60), "{before:?} {after:?}");
        before = before.into_iter().zip(after).map(|(before, after)| before.min(after)).collect();
        std::thread::sleep(Duration::from_millis(100));
    }
}

#[test]
fn no_signal_is_swallowed() {
    let Some(mut target) = Target::start(&["signals"]) else { return };
    let mut sent = 0;
    for number in 0..KILLS {
        let child = start(target.pid);
        let end = Instant::now() + moment(number);
        while Instant::now() < end {
            if send_number(target.pid, sent) {
                sent += 1;
            }
        }
        kill(child);
    }
    target.tell();
    let line = target.line();
    println!("{}", line.join(" "));
    assert_eq!((named(&line, "numbers"), named(&line, "wrong")), (i64::from(sent), 0));
    let missed = named(&line, "expected") - named(&line, "ticks");
    assert!((-1..=1).contains(&missed), "{missed} ticks");
}
