//! The table under events made by hand: those that real machines give rarely, and any.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::sync::Arc;

use processes::records::MapEvent;
use processes::{Change, Comm, Event, FileIdentity, MappedRange, Origin, Proc, ProcessTable, Scope, TimedEvent};
use proptest::prelude::*;

/// A table that finds nothing in /proc.
fn table() -> ProcessTable {
    ProcessTable::with_proc(Scope::All, Proc::at("/nonexistent"))
}

fn at(time: u64, event: Event) -> TimedEvent {
    TimedEvent { time, cpu: 0, event }
}

fn fork(pid: u32, ppid: u32) -> Event {
    Event::Fork { pid, ppid, tid: pid, ptid: ppid }
}

fn thread(pid: u32, tid: u32) -> Event {
    Event::Fork { pid, ppid: pid, tid, ptid: pid }
}

fn exit(pid: u32, tid: u32) -> Event {
    Event::Exit { pid, ppid: 1, tid, ptid: 1 }
}

fn comm(pid: u32, tid: u32, name: &str, exec: bool) -> Event {
    Event::Comm { pid, tid, comm: Comm::new(name.as_bytes()), exec }
}

fn range(start: u64, end: u64, file: u64) -> MappedRange {
    let identity = FileIdentity::Inode { major: 8, minor: 1, inode: file, generation: 1 };
    let path = Arc::from(OsStr::new(&format!("/file{file}")));
    MappedRange { start, end, file_offset: 0, executable: true, readable: true, identity, path }
}

fn map(pid: u32, range: MappedRange) -> Event {
    Event::Map(MapEvent { pid, tid: pid, range })
}

/// Applies events at times 1, 2, ...
fn apply(table: &mut ProcessTable, events: impl IntoIterator<Item = Event>) -> Vec<Change> {
    events.into_iter().zip(1..).map(|(event, time)| table.apply(&at(time, event))).collect()
}

#[test]
fn a_reused_pid_is_another_process() {
    let mut table = table();
    apply(&mut table, [comm(10, 10, "old", true), map(10, range(0, 10, 1)), exit(10, 10), fork(10, 5)]);
    let process = table.get(10).expect("the new one").clone();
    assert!(process.ranges.is_empty() && process.comm == Comm::default());
    let gone = table.take_gone();
    assert_eq!(gone.len(), 1);
    assert_eq!((gone[0].comm, gone[0].ended), (Comm::new(b"old"), Some(3)));
    assert_ne!(gone[0].instance, process.instance);
    assert!(table.take_gone().is_empty());
}

#[test]
fn a_reused_pid_whose_end_was_lost() {
    let mut table = table();
    apply(&mut table, [comm(10, 10, "old", true), map(10, range(0, 10, 1)), thread(10, 11)]);
    let change = table.apply(&at(9, fork(10, 5)));
    assert_eq!(change, Change::Started { pid: 10, parent: 5, complete: false });
    let gone = table.take_gone();
    assert_eq!((gone.len(), gone[0].ended), (1, Some(9)));
    let process = table.get(10).expect("the new one");
    assert_eq!((process.threads.len(), process.ranges.len()), (1, 0));
}

#[test]
fn a_process_that_was_not_heard_of() {
    let mut table = table();
    let changes = apply(&mut table, [map(10, range(0, 10, 1)), map(10, range(10, 20, 2))]);
    assert_eq!(changes[0], Change::Started { pid: 10, parent: 0, complete: false });
    assert_eq!(changes[1], Change::Mapped { pid: 10, range: range(10, 20, 2) });
    let process = table.get(10).expect("known now");
    assert_eq!((process.origin, process.complete, process.ranges.len()), (Origin::Heard, false, 2));
    // its children are no better known, until they call exec
    let changes = apply(&mut table, [fork(11, 10), comm(11, 11, "new", true)]);
    assert_eq!(changes, [Change::Started { pid: 11, parent: 10, complete: false }, Change::Execed { pid: 11 }]);
    assert!(table.get(11).is_some_and(|process| process.complete && process.ranges.is_empty()));
    assert_eq!(table.apply(&at(5, exit(99, 99))), Change::Nothing);
    let exec = table.apply(&at(6, comm(12, 12, "x", true)));
    assert_eq!(exec, Change::Started { pid: 12, parent: 0, complete: true });
}

#[test]
fn a_child_takes_the_name_of_the_thread_that_forked() {
    let mut table = table();
    apply(&mut table, [comm(10, 10, "main", true), thread(10, 11), comm(10, 11, "worker", false)]);
    table.apply(&at(8, Event::Fork { pid: 20, ppid: 10, tid: 20, ptid: 11 }));
    assert_eq!(table.get(20).map(|process| process.comm), Some(Comm::new(b"worker")));
    assert_eq!(table.get(10).map(|process| process.comm), Some(Comm::new(b"main")));
    assert_eq!(table.get(20).map(|process| process.thread_comm(20)), Some(Comm::new(b"worker")));
}

#[test]
fn parent_and_child_go_their_own_ways() {
    let mut table = table();
    apply(&mut table, [comm(10, 10, "a", true), map(10, range(0, 10, 1)), fork(20, 10), map(20, range(5, 8, 2))]);
    table.apply(&at(9, map(10, range(20, 30, 3))));
    let of =
        |pid: u32| table.get(pid).map(|process| process.ranges.iter().map(|r| (r.start, r.end)).collect::<Vec<_>>());
    assert_eq!(of(10), Some(vec![(0, 10), (20, 30)]));
    assert_eq!(of(20), Some(vec![(0, 5), (5, 8), (8, 10)]));
    let behind = table.get(20).and_then(|process| process.find(9)).expect("what is left of the file");
    assert_eq!(behind.file_offset, 8);
}

#[test]
fn exec_by_another_thread_after_the_first_ended() {
    let mut table = table();
    apply(&mut table, [comm(10, 10, "a", true), thread(10, 11), thread(10, 12)]);
    let changes = apply(&mut table, [exit(10, 12), exit(10, 10), comm(10, 10, "b", true), exit(10, 10)]);
    let expected = [
        Change::ThreadExited { pid: 10, tid: 12 },
        Change::ThreadExited { pid: 10, tid: 10 },
        Change::Execed { pid: 10 },
        Change::Exited { pid: 10 },
    ];
    assert_eq!(changes, expected);
}

/// The end of a thread that the table did not know does not end the process, and what the table wrongly
/// believes to be a thread is found out by asking /proc.
#[test]
fn a_thread_whose_end_was_lost() {
    let mut table = table();
    apply(&mut table, [comm(10, 10, "a", true), thread(10, 11), exit(10, 99), exit(10, 10)]);
    assert!(table.get(10).is_some());
    assert_eq!(table.reap(), [10], "/proc has no such process");
    assert_eq!(table.take_gone().len(), 1);
    assert_eq!(table.reap(), []);
}

#[test]
fn not_executable_any_more() {
    let mut table = table();
    apply(&mut table, [comm(10, 10, "a", true), map(10, range(0, 30, 1))]);
    let data = MappedRange { executable: false, ..range(10, 20, 2) };
    assert_eq!(table.apply(&at(3, map(10, data.clone()))), Change::Unmapped { pid: 10, start: 10, end: 20 });
    assert_eq!(table.apply(&at(4, map(10, data.clone()))), Change::Nothing);
    assert!(table.get(10).is_some_and(|process| process.find(15).is_none() && process.find(25).is_some()));
    let rest = MappedRange { executable: false, ..range(20, 30, 2) };
    assert_eq!(table.apply(&at(5, map(10, rest))), Change::Unmapped { pid: 10, start: 20, end: 30 });
}

#[test]
fn ids_that_are_none() {
    let mut table = table();
    for pid in [0, u32::MAX] {
        let events =
            [map(pid, range(0, 10, 1)), comm(pid, pid, "a", true), fork(pid, 1), thread(pid, 7), exit(pid, pid)];
        assert_eq!(apply(&mut table, events), vec![Change::Nothing; 5]);
    }
    assert!(table.is_empty());
}

#[test]
fn too_many_ranges() {
    let mut table = table();
    table.apply(&at(1, comm(10, 10, "a", true)));
    for index in 0..processes::MAX_RANGES as u64 {
        table.apply(&at(2, map(10, range(index * 10, index * 10 + 5, 1))));
    }
    assert_eq!(table.apply(&at(3, map(10, range(5, 10, 2)))), Change::RangesFull { pid: 10 });
    assert!(table.get(10).is_some_and(|process| process.ranges_full));
    table.apply(&at(4, comm(10, 10, "b", true)));
    assert!(table.get(10).is_some_and(|process| !process.ranges_full && process.ranges.is_empty()));
}

fn any_event() -> impl Strategy<Value = Event> {
    let id = || prop_oneof![1..6u32, Just(0), Just(u32::MAX)];
    prop_oneof![
        (id(), 0..50u64, 1..20u64, 0..3u64, any::<bool>()).prop_map(|(pid, start, length, file, executable)| {
            map(pid, MappedRange { executable, ..range(start, start + length, file) })
        }),
        (id(), id(), any::<bool>()).prop_map(|(pid, tid, exec)| comm(pid, tid, "name", exec)),
        (id(), id(), id(), id()).prop_map(|(pid, ppid, tid, ptid)| Event::Fork { pid, ppid, tid, ptid }),
        (id(), id()).prop_map(|(pid, tid)| exit(pid, tid)),
        Just(Event::Lost { count: 1 }),
    ]
}

proptest! {
    /// Whatever comes, in whatever order: a process that is there has threads, instances are never used twice, and
    /// every process that was there is either still there or among those that are gone.
    #[test]
    fn any_events(events in prop::collection::vec((0..100u64, any_event()), 0..100)) {
        let mut table = table();
        let mut seen = HashSet::new();
        let mut gone = HashSet::new();
        for (time, event) in events {
            let change = table.apply(&at(time, event));
            if let Change::Started { pid, .. } = change {
                let process = table.get(pid).ok_or_else(|| TestCaseError::fail("started and not there"))?;
                prop_assert!(seen.insert(process.instance), "an instance twice");
            }
            for process in table.take_gone() {
                prop_assert!(process.ended.is_some());
                prop_assert!(gone.insert(process.instance));
            }
            for process in table.iter() {
                prop_assert!(!process.threads.is_empty());
                prop_assert!(process.pid != 0 && process.ended.is_none());
            }
        }
        let there: HashSet<u64> = table.iter().map(|process| process.instance).collect();
        prop_assert!(there.is_disjoint(&gone));
        prop_assert_eq!(seen, &there | &gone);
    }
}
