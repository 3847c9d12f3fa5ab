//! Mappings.

use std::process::Command;

use processes::{BuildId, Change, FileIdentity, RangeKind, Scope};

use crate::actor::{Actor, Follower, build, proc_ranges, shape};

const EXEC: u32 = 5;

#[test]
fn every_mapping_is_seen_as_it_is_made() {
    needs_root!();
    let mut follower = Follower::start(Scope::All);
    let mut actor = Actor::start();
    follower.follow();
    follower.check(actor.pid);
    for step in
        ["dlopen libm.so.6", "mmap 0 4000 5", "memfd", "mapfile /usr/bin/env", "mmap 0 2000 4", "dlopen libresolv.so.2"]
    {
        actor.tell(step);
        let changes = follower.follow_one(actor.pid);
        assert!(changes.iter().any(|change| matches!(change, Change::Mapped { .. })), "{step}: {changes:?}");
        follower.check(actor.pid);
    }
    actor.end();
}

#[test]
fn mprotect_is_seen_when_it_makes_code() {
    needs_root!();
    let mut follower = Follower::start(Scope::All);
    let mut actor = Actor::start();
    let memory = actor.tell("mmap 0 8000 3");
    follower.follow();
    assert_eq!(actor.tell(&format!("mprotect {:x} 2000 5", memory + 0x2000)), 0);
    let changes = follower.follow_one(actor.pid);
    assert!(matches!(changes[..], [Change::Mapped { .. }]), "{changes:?}");
    follower.check(actor.pid);
    // next to it: joined; the same again: no change
    actor.tell(&format!("mprotect {:x} 1000 5", memory + 0x4000));
    assert_eq!(follower.follow_one(actor.pid).len(), 1);
    follower.check(actor.pid);
    let process = follower.table.get(actor.pid).expect("known");
    assert_eq!(process.find(memory + 0x2000).map(|range| range.length()), Some(0x3000));
    actor.tell(&format!("mprotect {:x} 1000 7", memory + 0x4000));
    assert_eq!(follower.follow_one(actor.pid), [], "already executable");
    // taking the right away is not reported
    actor.tell(&format!("mprotect {:x} 3000 3", memory + 0x2000));
    assert_eq!(follower.follow_one(actor.pid), [], "this kernel reports it: say so in the documentation");
    actor.end();
}

#[test]
fn splitting_a_library_changes_nothing() {
    needs_root!();
    let mut follower = Follower::start(Scope::All);
    let mut actor = Actor::start();
    follower.follow();
    let process = follower.table.get(actor.pid).expect("known");
    let libc = process.ranges.iter().find(|range| range.path.to_string_lossy().contains("libc.so")).cloned();
    let libc = libc.expect("libc is mapped");
    assert!(matches!(libc.identity, FileIdentity::BuildId(_)));
    for protection in [7, EXEC] {
        actor.tell(&format!("mprotect {:x} 1000 {protection:x}", libc.start + 0x3000));
    }
    assert_eq!(follower.follow_one(actor.pid), []);
    follower.check(actor.pid);
    actor.end();
}

#[test]
fn stale_ranges_go_when_reused_or_rescanned() {
    needs_root!();
    let mut follower = Follower::start(Scope::All);
    let mut actor = Actor::start();
    actor.tell("dlopen libm.so.6");
    follower.follow();
    let before = proc_ranges(actor.pid);
    actor.tell("dlclose");
    assert_eq!(follower.follow_one(actor.pid), [], "munmap is not reported");
    let process = follower.table.get(actor.pid).expect("known");
    assert_eq!(shape(process.ranges.iter()), shape(before.iter()));
    let stale = before.iter().find(|range| range.path.to_string_lossy().contains("libm")).expect("libm was mapped");
    // code over a part of it
    actor.tell(&format!("mmap {:x} 1000 5", stale.start + 0x2000));
    follower.follow();
    let process = follower.table.get(actor.pid).expect("known");
    assert_eq!(process.find(stale.start + 0x2000).map(|range| range.kind()), Some(RangeKind::Anonymous));
    let rescan = follower.table.rescan(actor.pid).expect("known");
    assert_eq!(rescan.removed.len(), 2, "before and behind the new code: {rescan:?}");
    assert_eq!(rescan.added, []);
    follower.check(actor.pid);
    // a second rescan finds nothing
    let rescan = follower.table.rescan(actor.pid).expect("known");
    assert_eq!((rescan.added, rescan.removed), (vec![], vec![]));
    actor.end();
}

#[test]
fn a_moved_range_is_found_by_a_rescan() {
    needs_root!();
    let mut follower = Follower::start(Scope::All);
    let mut actor = Actor::start();
    let memory = actor.tell("mmap 0 4000 5");
    actor.tell(&format!("mmap {:x} 1000 0", memory + 0x3000)); // so that it cannot grow in place
    follower.follow();
    let moved = actor.tell(&format!("mremap {memory:x} 3000 20000"));
    assert_ne!(moved, memory);
    assert_eq!(follower.follow_one(actor.pid), [], "this kernel reports mremap: say so in the documentation");
    assert!(follower.table.find_unreported(actor.pid));
    let process = follower.table.get(actor.pid).expect("known");
    assert!(process.find(moved).is_some() && process.find(memory).is_some(), "added, and nothing is taken away");
    assert!(!follower.table.find_unreported(actor.pid), "all is known");
    let rescan = follower.table.rescan(actor.pid).expect("known");
    assert_eq!(rescan.added, []);
    assert_eq!(rescan.removed.iter().map(|range| range.start).collect::<Vec<_>>(), [memory]);
    follower.check(actor.pid);
    actor.end();
}

#[test]
fn build_ids_are_those_that_readelf_shows() {
    needs_root!();
    let mut follower = Follower::start(Scope::All);
    let program = build(&[]);
    let actor = Actor::run(Command::new(&program));
    follower.follow();
    let process = follower.table.get(actor.pid).expect("known");
    let range = process.ranges.iter().find(|range| *range.path == *program).expect("the program is mapped");
    let output = Command::new("readelf").arg("-n").arg(&program).output().expect("readelf runs");
    let output = String::from_utf8_lossy(&output.stdout).into_owned();
    let FileIdentity::BuildId(id) = range.identity else { panic!("no build-id: {range:?}") };
    assert!(output.contains(&format!("Build ID: {id}")), "{id} is not in {output}");
    assert_eq!(id.as_bytes().len(), BuildId::MAX);
    actor.end();
}

#[test]
fn a_file_without_build_id_has_its_inode() {
    needs_root!();
    use std::os::unix::fs::MetadataExt;
    let mut follower = Follower::start(Scope::All);
    let program = build(&["-Wl,--build-id=none"]);
    let actor = Actor::run(Command::new(&program));
    follower.follow();
    let process = follower.table.get(actor.pid).expect("known");
    let range = process.ranges.iter().find(|range| *range.path == *program).expect("the program is mapped");
    let FileIdentity::Inode { inode, .. } = range.identity else { panic!("no inode: {range:?}") };
    assert_eq!(inode, std::fs::metadata(&program).expect("it is there").ino());
    let in_proc = proc_ranges(actor.pid);
    let in_proc = in_proc.find(range.start).expect("mapped");
    assert_eq!(in_proc.identity.same_file(&range.identity), Some(true));
    actor.end();
}
