//! The whole machine.

use std::collections::HashSet;

use processes::maps::{self, MapsEnd, Wanted};
use processes::{Change, MappedRange, Proc, ProcessState, Scope};

use crate::actor::{Actor, Follower, pid_of};

/// After a lively time, every executable range that /proc shows is in the table, for every process of the machine
/// that was quiet meanwhile.
#[test]
fn nothing_is_missing() {
    needs_root!();
    let mut follower = Follower::start(Scope::All);
    let mut actors: Vec<Actor> = (0..4).map(|_| Actor::start()).collect();
    for round in 0..6 {
        for (index, actor) in actors.iter_mut().enumerate() {
            let library = ["libm.so.6", "libresolv.so.2", "libutil.so.1", "libdl.so.2"][(round + index) % 4];
            for step in [&format!("dlopen {library}"), "storm 10", "mmap 0 5000 5", "memfd", "dlclose"] {
                actor.tell(step);
            }
            if round == 3 {
                actor.tell("exec again");
            }
        }
        let changes = follower.follow();
        assert!(!changes.iter().any(|change| matches!(change, Change::Lost { .. })), "lost");
    }
    let pids: Vec<u32> = follower.table.iter().map(|process| process.pid).collect();
    let scans: Vec<_> =
        pids.iter().map(|pid| (*pid, maps::read(&Proc::system(), *pid, Wanted::Executable, 1 << 20))).collect();
    let before: Vec<ProcessState> = follower.table.iter().cloned().collect();
    let changed: HashSet<u32> = follower.follow().iter().filter_map(pid_of).collect();
    let mut compared = 0;
    for (pid, (ranges, end)) in scans {
        let process = before.iter().find(|process| process.pid == pid).expect("listed");
        if changed.contains(&pid) || !matches!(end, MapsEnd::Complete) {
            continue;
        }
        for range in &ranges {
            assert!(
                is_known(process, range),
                "{pid} ({}) has {range:x?}, the table {:x?}",
                process.comm,
                process.ranges
            );
        }
        compared += 1;
    }
    assert!(compared >= actors.len(), "{compared} processes were compared");
    for actor in actors {
        assert!(!changed.contains(&actor.pid));
        actor.end();
    }
}

fn is_known(process: &ProcessState, range: &MappedRange) -> bool {
    process.find(range.start).is_some_and(|known| {
        let offset = known.file_offset + (range.start - known.start);
        let same_place = known.identity == processes::FileIdentity::None || offset == range.file_offset;
        known.end >= range.end && same_place && known.path == range.path
    })
}
