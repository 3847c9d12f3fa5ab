//! The ring buffers.

use std::ops::ControlFlow;

use processes::records::decode;
use processes::ring::{RingOptions, SidebandRing};
use processes::{Event, OpenError, Options, Sideband, online_cpus};

use crate::actor::Actor;

/// Names that an actor gave itself and that were lost, on a CPU.
#[derive(Default, Debug)]
struct Seen {
    names: u64,
    lost: u64,
}

/// Reads all that is there now; panics at a record that is torn. Names on a CPU must come in order.
fn read_names(rings: &mut [SidebandRing], pid: u32, last: &mut [Option<u64>], seen: &mut Seen) {
    for (ring, last) in rings.iter_mut().zip(last) {
        let dropped = ring.read(|record| {
            match decode(record).expect("a whole record").map(|event| event.event) {
                Some(Event::Comm { pid: of, comm, .. }) if of == pid => {
                    let Ok(number) = comm.to_string().parse::<u64>() else { return ControlFlow::Continue(()) };
                    assert!(last.is_none_or(|last| last < number), "{number} comes after {last:?}");
                    *last = Some(number);
                    seen.names += 1;
                }
                Some(Event::Lost { count }) => seen.lost += count,
                _ => {}
            }
            ControlFlow::Continue(())
        });
        assert_eq!(dropped, 0);
    }
}

/// Rings of one page are gone round many times: no record is torn, and what does not fit is counted. `per_step`
/// names at a time.
fn go_round(per_step: u64, steps: u64) -> Seen {
    let options = RingOptions { data_pages: 1, watermark: 1, build_ids: false };
    let cpus = online_cpus().expect("/sys");
    let mut rings: Vec<_> = cpus.iter().map(|cpu| SidebandRing::open(*cpu, options).expect("perf events")).collect();
    let mut last = vec![None; rings.len()];
    let mut seen = Seen::default();
    let mut actor = Actor::start();
    for step in 0..steps {
        actor.tell(&format!("names {:x} {per_step:x}", 1 + step * per_step));
        read_names(&mut rings, actor.pid, &mut last, &mut seen);
    }
    for _ in 0..1000 {
        if seen.names + seen.lost >= per_step * steps {
            break;
        }
        // a loss is told with the next record of the same CPU
        actor.tell("name end");
        read_names(&mut rings, actor.pid, &mut last, &mut seen);
    }
    actor.end();
    assert!(seen.names + seen.lost >= per_step * steps, "{seen:?}");
    seen
}

#[test]
fn no_record_is_torn_at_the_end_of_a_ring() {
    needs_root!();
    let seen = go_round(20, 500);
    // others on the machine may cause some losses, but not of most
    assert!(seen.names > 1000, "{seen:?}");
}

#[test]
fn what_does_not_fit_is_counted() {
    needs_root!();
    let seen = go_round(1000, 3);
    assert!(seen.lost > 0 && seen.names < 3000, "{seen:?}");
}

/// Where the reader breaks off, it goes on.
#[test]
fn breaking_off_keeps_the_record() {
    needs_root!();
    let options = RingOptions { data_pages: 8, watermark: 1, build_ids: true };
    let cpus = online_cpus().expect("/sys");
    let mut rings: Vec<_> = cpus.iter().map(|cpu| SidebandRing::open(*cpu, options).expect("perf events")).collect();
    let mut actor = Actor::start();
    actor.tell("names 1 5");
    actor.end();
    for ring in &mut rings {
        let mut first = Vec::new();
        ring.read(|record| {
            first = record.to_vec();
            ControlFlow::Break(())
        });
        let mut again = Vec::new();
        ring.read(|record| {
            again.push(record.to_vec());
            ControlFlow::Continue(())
        });
        assert_eq!(again.first().cloned().unwrap_or_default(), first);
    }
}

#[test]
fn a_wait_ends_with_the_first_record() {
    needs_root!();
    let mut sideband = Sideband::open(&Options::default()).expect("perf events");
    let mut actor = Actor::start();
    let mut events = Vec::new();
    sideband.drain(&mut events);
    actor.tell("name woken");
    let mut seen = false;
    // no limit: a wait that is not woken never ends
    while !seen {
        sideband.wait(None).expect("poll");
        events.clear();
        while sideband.drain(&mut events).more {}
        seen = events.iter().any(|event| matches!(event.event, Event::Comm { pid, .. } if pid == actor.pid));
    }
    actor.end();
}

#[test]
fn all_cpus_are_covered() {
    needs_root!();
    let sideband = Sideband::open(&Options::default()).expect("perf events");
    assert_eq!(sideband.cpus().collect::<Vec<_>>(), online_cpus().expect("/sys"));
    assert_eq!(sideband.fds().count(), sideband.cpus().count());
}

#[test]
fn what_cannot_be_opened() {
    needs_root!();
    let open = |options: Options| Sideband::open(&options).map(drop);
    let first = online_cpus().expect("/sys")[..1].to_vec();
    let only = Sideband::open(&Options { cpus: Some(first.clone()), ..Options::default() }).expect("perf events");
    assert_eq!(only.cpus().collect::<Vec<_>>(), first);
    assert!(matches!(open(Options { cpus: Some(vec![]), ..Options::default() }), Err(OpenError::NoCpu)));
    assert!(matches!(open(Options { data_pages: 3, ..Options::default() }), Err(OpenError::DataPages(3))));
    // no kernel has so many
    let beyond = open(Options { cpus: Some(vec![60_000]), ..Options::default() });
    assert!(matches!(beyond, Err(OpenError::Other { cpu: 60_000, .. })), "{beyond:?}");
}

/// Another user's error names what is missing.
#[test]
fn without_the_right_to() {
    needs_root!();
    let paranoid = std::fs::read_to_string("/proc/sys/kernel/perf_event_paranoid").expect("a setting");
    let error = crate::namespaces::as_nobody(|| Sideband::open(&Options::default()).map(drop));
    match error {
        Err(OpenError::NotPermitted { paranoid: said, .. }) => assert_eq!(said, paranoid.trim()),
        Err(error) => panic!("{error}"),
        Ok(()) => assert!(paranoid.trim().parse::<i32>().is_ok_and(|level| level <= 0), "permitted at {paranoid}"),
    }
}
