//! Fork, exec, exit, threads, names.

use std::process::Command;

use processes::{Change, Comm, Origin, Scope};

use crate::actor::{Actor, Follower, build, pid_of, proc_ranges, shape};

#[test]
fn exec_is_told_before_what_it_maps() {
    needs_root!();
    let mut follower = Follower::start(Scope::All);
    let mut actor = Actor::start();
    actor.tell("mmap 0 4000 5");
    actor.tell("thread");
    follower.follow();
    let generation = follower.table.get(actor.pid).expect("known").generation;
    actor.tell("exec some argument");
    let changes = follower.follow_one(actor.pid);
    let exec = changes.iter().position(|change| matches!(change, Change::Execed { .. })).expect("exec is seen");
    assert!(!changes[..exec].iter().any(|change| matches!(change, Change::Mapped { .. })), "{changes:?}");
    assert!(changes[exec..].iter().filter(|change| matches!(change, Change::Mapped { .. })).count() >= 3);
    follower.check(actor.pid);
    let process = follower.table.get(actor.pid).expect("known");
    assert_eq!(process.generation, generation + 1);
    assert_eq!(process.threads.len(), 1);
    let line = process.command_line.as_deref().unwrap_or_default();
    assert!(line.ends_with(b"/actor\0some argument\0"), "{:?}", String::from_utf8_lossy(line));
    assert_eq!(process.comm, Comm::new(b"actor"));
    actor.end();
}

#[test]
fn exec_by_another_thread() {
    needs_root!();
    let mut follower = Follower::start(Scope::All);
    let mut actor = Actor::start();
    actor.tell("thread");
    follower.follow();
    actor.tell("threadexec again");
    let changes = follower.follow_one(actor.pid);
    assert!(changes.contains(&Change::Execed { pid: actor.pid }), "{changes:?}");
    assert!(!changes.contains(&Change::Exited { pid: actor.pid }), "{changes:?}");
    follower.check(actor.pid);
    let process = follower.table.get(actor.pid).expect("known");
    assert_eq!(process.threads.keys().collect::<Vec<_>>(), [&actor.pid]);
    assert_eq!(process.leaderless_since(), None);
    let pid = actor.pid;
    actor.end();
    assert!(follower.follow_one(pid).contains(&Change::Exited { pid }));
}

#[test]
fn threads_and_their_names() {
    needs_root!();
    let mut follower = Follower::start(Scope::All);
    let mut actor = Actor::start();
    actor.tell("name parent");
    follower.follow();
    let tid = actor.tell("thread") as u32;
    let changes = follower.follow_one(actor.pid);
    assert_eq!(changes, [Change::ThreadStarted { pid: actor.pid, tid }, Change::Renamed { pid: actor.pid, tid }]);
    let process = follower.table.get(actor.pid).expect("known");
    assert_eq!(process.thread_comm(tid), Comm::new(b"waiting"));
    assert_eq!(process.thread_comm(actor.pid), Comm::new(b"parent"));
    actor.tell("endthread");
    assert_eq!(follower.follow_one(actor.pid), [Change::ThreadExited { pid: actor.pid, tid }]);
    actor.tell("name a name that is too long");
    follower.follow();
    assert_eq!(follower.table.get(actor.pid).expect("known").comm, Comm::new(b"a name that is "));
    actor.end();
}

#[test]
fn a_child_has_its_parents_memory_and_name() {
    needs_root!();
    let mut follower = Follower::start(Scope::All);
    let mut actor = Actor::start();
    actor.tell("mmap 0 4000 5");
    actor.tell("name original");
    follower.follow();
    let child = actor.tell("fork") as u32;
    let changes = follower.follow_one(child);
    assert_eq!(changes, [Change::Started { pid: child, parent: actor.pid, complete: true }]);
    follower.check(child);
    let process = follower.table.get(child).expect("known");
    assert_eq!((process.comm, process.origin), (Comm::new(b"original"), Origin::Forked));
    actor.tell(&format!("wait {child:x}"));
    assert_eq!(follower.follow_one(child), [Change::Exited { pid: child }]);
    assert!(follower.table.get(child).is_none());
    let gone = follower.table.take_gone();
    let gone = gone.iter().find(|process| process.pid == child).expect("among those that are gone");
    assert!(gone.ended.is_some_and(|ended| ended > gone.since));
    assert_eq!(shape(gone.ranges.iter()), shape(proc_ranges(actor.pid).iter()));
    actor.end();
}

#[test]
fn a_process_outlives_its_first_thread() {
    needs_root!();
    let mut follower = Follower::start(Scope::All);
    let mut actor = Actor::start();
    follower.follow();
    let tid = actor.tell("leaderexit") as u32;
    follower.follow();
    actor.tell("mmap 0 2000 5");
    let changes = follower.follow_one(actor.pid);
    assert!(matches!(changes[..], [Change::Mapped { .. }]), "{changes:?}");
    let process = follower.table.get(actor.pid).expect("it goes on");
    assert_eq!(process.threads.keys().collect::<Vec<_>>(), [&tid]);
    assert!(process.leaderless_since().is_some());
    // /proc/PID/maps is empty now, but a thread's is not: a seed and a rescan find it
    let count = process.ranges.len();
    let rescan = follower.table.rescan(actor.pid).expect("known");
    assert_eq!((rescan.added.len(), rescan.removed.len()), (0, 0), "{rescan:?}");
    assert_eq!(follower.table.get(actor.pid).map(|process| process.ranges.len()), Some(count));
    let other = Follower::start(Scope::Only { pids: vec![actor.pid], children: false });
    let process = other.table.get(actor.pid).expect("found by the seed");
    assert_eq!(process.ranges.len(), count);
    assert_eq!(process.threads.keys().collect::<Vec<_>>(), [&tid]);
    assert_eq!(follower.table.reap(), [], "it lives");
    let pid = actor.pid;
    actor.end();
    let changes = follower.follow_one(pid);
    assert_eq!(changes.last(), Some(&Change::Exited { pid }), "{changes:?}");
}

/// Every process of a storm starts and ends exactly once, with the parent and the image that it had.
#[test]
fn a_storm_of_short_processes() {
    needs_root!();
    const COUNT: usize = 800;
    let program = build(&[]);
    let mut follower = Follower::start(Scope::All);
    let mut actor = Actor::run(Command::new(&program));
    follower.follow();
    let mut changes = Vec::new();
    for _ in 0..8 {
        actor.tell(&format!("storm {:x}", COUNT / 8));
        changes.extend(follower.follow());
    }
    assert!(!changes.iter().any(|change| matches!(change, Change::Lost { .. })), "lost");
    let of_actor = |change: &&Change| matches!(change, Change::Started { parent, .. } if *parent == actor.pid);
    let started: Vec<u32> = changes.iter().filter(of_actor).filter_map(pid_of).collect();
    assert_eq!(started.len(), COUNT);
    let gone = follower.table.take_gone();
    let gone: Vec<_> = gone.iter().filter(|process| process.parent == actor.pid).collect();
    assert_eq!(gone.len(), COUNT);
    assert!(gone.iter().all(|process| process.complete && process.ended.is_some()));
    let execed: Vec<_> = gone.iter().filter(|process| process.generation == 1).collect();
    assert_eq!(execed.len(), COUNT / 2);
    for process in execed {
        assert!(process.ranges.iter().any(|range| *range.path == *program), "{process:?}");
        assert!(process.ranges.iter().any(|range| range.path.to_string_lossy().contains("libc.so")), "{process:?}");
    }
    for pid in started {
        assert!(follower.table.get(pid).is_none_or(|process| process.parent != actor.pid), "{pid} is still there");
    }
    actor.end();
}

#[test]
fn children_are_followed_if_asked() {
    needs_root!();
    let mut actor = Actor::start();
    let other = Actor::start();
    let scope = |children| Scope::Only { pids: vec![actor.pid], children };
    let mut with = Follower::start(scope(true));
    let mut without = Follower::start(scope(false));
    let child = actor.tell("fork") as u32;
    for (follower, expected) in [(&mut with, true), (&mut without, false)] {
        follower.follow();
        assert!(follower.table.get(actor.pid).is_some());
        assert_eq!(follower.table.get(child).is_some(), expected);
        assert!(follower.table.get(other.pid).is_none());
    }
    actor.tell(&format!("wait {child:x}"));
    with.follow();
    assert_eq!(with.table.len(), 1);
    actor.end();
    other.end();
}
