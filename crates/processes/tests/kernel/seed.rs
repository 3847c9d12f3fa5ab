//! Scans of /proc.

use processes::{Change, Event, Options, Proc, ProcessTable, Scope, Sideband};

use crate::actor::{Actor, Follower, shape};

#[test]
fn a_seed_is_what_records_would_have_told() {
    needs_root!();
    let mut first = Follower::start(Scope::All);
    let mut actor = Actor::start();
    actor.tell("thread");
    actor.tell("dlopen libm.so.6");
    actor.tell("mmap 0 3000 5");
    first.follow();
    let second = Follower::start(Scope::All);
    let by_records = first.table.get(actor.pid).expect("known");
    let by_scan = second.table.get(actor.pid).expect("known");
    assert_eq!(shape(by_records.ranges.iter()), shape(by_scan.ranges.iter()));
    assert_eq!(by_records.command_line, by_scan.command_line);
    assert_eq!(by_records.comm, by_scan.comm);
    assert_eq!(by_records.parent, by_scan.parent);
    assert_eq!(by_records.start_ticks, by_scan.start_ticks);
    let tids = |process: &processes::ProcessState| {
        let mut tids: Vec<u32> = process.threads.keys().copied().collect();
        tids.sort_unstable();
        tids
    };
    assert_eq!(tids(by_records), tids(by_scan));
    assert_eq!(by_scan.threads.len(), 2);
    actor.end();
}

#[test]
fn thread_names_are_read_when_asked_for() {
    needs_root!();
    let mut actor = Actor::start();
    let tid = actor.tell("thread") as u32;
    let mut table = ProcessTable::new(Scope::Only { pids: vec![actor.pid], children: false });
    table.seed().expect("/proc");
    assert_eq!(table.get(actor.pid).map(|process| process.threads.get(&tid).copied()), Some(Some(None)));
    table.read_thread_names(actor.pid).expect("known");
    assert_eq!(table.get(actor.pid).expect("known").thread_comm(tid).as_bytes(), b"waiting");
    assert!(table.read_thread_names(1 << 30).is_err());
    actor.end();
}

#[test]
fn all_of_proc() {
    needs_root!();
    let actor = Actor::start();
    let mut table = ProcessTable::new(Scope::All);
    let seeded = table.seed().expect("/proc");
    assert_eq!(seeded.processes, table.len());
    assert!(!seeded.not_permitted.contains(&actor.pid));
    let kthreadd = table.get(2).filter(|process| process.comm.as_bytes() == b"kthreadd");
    if let Some(kthreadd) = kthreadd {
        assert!(kthreadd.is_kernel_thread && kthreadd.ranges.is_empty() && kthreadd.command_line.is_none());
    }
    let own = table.get(std::process::id()).expect("this process");
    assert_eq!(own.start_ticks, Proc::system().stat(own.pid).map(|stat| stat.start_ticks).ok());
    assert!(table.get(actor.pid).is_some_and(|process| !process.is_kernel_thread && process.ranges.len() > 2));
    actor.end();
}

#[test]
fn missing_processes_are_named() {
    let mut table = ProcessTable::new(Scope::Only { pids: vec![1 << 30], children: true });
    let seeded = table.seed().expect("/proc");
    assert_eq!((seeded.processes, seeded.missing), (0, vec![1 << 30]));
}

/// Events from before the scan do not undo what the scan saw.
#[test]
fn a_scan_supersedes_earlier_events() {
    needs_root!();
    let mut sideband = Sideband::open(&Options::default()).expect("perf events");
    let mut actor = Actor::start();
    actor.tell("dlopen libm.so.6");
    actor.tell("dlclose");
    let mut table = ProcessTable::new(Scope::Only { pids: vec![actor.pid], children: true });
    table.seed().expect("/proc");
    let seeded = shape(table.get(actor.pid).expect("known").ranges.iter());
    let mut events = Vec::new();
    sideband.drain(&mut events);
    let about = events.iter().filter(|event| matches!(&event.event, Event::Map(map) if map.pid == actor.pid));
    assert!(about.count() > 3, "the events are there");
    for event in &events {
        assert_eq!(table.apply(event), Change::Nothing, "{event:?}");
    }
    assert_eq!(shape(table.get(actor.pid).expect("known").ranges.iter()), seeded);
    actor.end();
}

/// After a loss, a second look puts everything right: new, changed and ended processes.
#[test]
fn resync_after_lost_events() {
    needs_root!();
    let mut follower = Follower::start(Scope::All);
    let (mut changed, ended, mut same) = (Actor::start(), Actor::start(), Actor::start());
    same.tell("thread");
    follower.follow();
    let generation = |follower: &Follower, pid: u32| follower.table.get(pid).map(|process| process.generation);
    let (of_changed, of_same) = (generation(&follower, changed.pid), generation(&follower, same.pid));
    changed.tell("exec another");
    let ended_pid = ended.pid;
    ended.end();
    let new = Actor::start();
    drop(follower.events());
    let resync = follower.table.resync().expect("/proc");
    assert!(resync.started.contains(&new.pid) && resync.exited.contains(&ended_pid), "{resync:?}");
    assert!(resync.changed.contains(&changed.pid) && !resync.changed.contains(&same.pid), "{resync:?}");
    assert_eq!(generation(&follower, changed.pid), of_changed.map(|generation| generation + 1));
    assert_eq!(generation(&follower, same.pid), of_same);
    assert_eq!(follower.table.get(same.pid).map(|process| process.threads.len()), Some(2));
    for pid in [changed.pid, same.pid, new.pid] {
        follower.check(pid);
    }
    // and the records go on from there
    same.tell("mmap 0 3000 5");
    follower.follow();
    follower.check(same.pid);
    for actor in [changed, same, new] {
        let pid = actor.pid;
        actor.end();
        assert_eq!(follower.follow_one(pid).last(), Some(&Change::Exited { pid }));
    }
}

/// Children whose forks were lost belong to the scope all the same.
#[test]
fn resync_finds_lost_children() {
    needs_root!();
    let mut actor = Actor::start();
    let other = Actor::start();
    let mut follower = Follower::start(Scope::Only { pids: vec![actor.pid], children: true });
    let mut without = Follower::start(Scope::Only { pids: vec![actor.pid], children: false });
    let child = actor.tell("fork") as u32;
    drop(follower.events());
    assert_eq!(follower.table.resync().expect("/proc").started, [child]);
    follower.check(child);
    assert_eq!(without.table.resync().expect("/proc").started, []);
    assert_eq!((follower.table.len(), without.table.len()), (2, 1));
    actor.tell(&format!("wait {child:x}"));
    actor.end();
    other.end();
}

/// More processes than one thread scans.
#[test]
fn many_processes() {
    needs_root!();
    let mut actor = Actor::start();
    let children: Vec<u32> = (0..450).map(|_| actor.tell("fork") as u32).collect();
    let mut table = ProcessTable::new(Scope::All);
    table.seed().expect("/proc");
    let expected = shape(table.get(actor.pid).expect("known").ranges.iter());
    let mut instances = std::collections::HashSet::new();
    for child in &children {
        let process = table.get(*child).expect("known");
        assert_eq!(shape(process.ranges.iter()), expected);
        assert!(instances.insert(process.instance));
    }
    for child in children {
        actor.tell(&format!("wait {child:x}"));
    }
    actor.end();
}
