//! Reading processes from /proc.

use crate::maps::{self, MapsEnd, Wanted};
use crate::process::{Origin, ProcessState};
use crate::stat::{Stat, State};
use crate::{MAX_RANGES, MappedRange, Proc, monotonic_ns};

/// What a scan says of one process. The state has no instance yet.
pub(crate) enum Scanned {
    /// All there is to know.
    Found(Box<ProcessState>),
    /// All but the mappings.
    NotPermitted(Box<ProcessState>),
    /// It is gone, or about to be.
    Missing,
}

/// Threads that scan at once, at most.
const THREADS: usize = 8;
/// Processes that are worth a thread: reading one takes some 0.1 ms.
const PER_THREAD: usize = 200;

/// Reads many processes, on several CPUs if they are many. In the order of `pids`.
pub(crate) fn scan_all(proc: &Proc, pids: &[u32]) -> Vec<(u32, Scanned)> {
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    let threads = cpus.min(THREADS).min(pids.len() / PER_THREAD).max(1);
    let scan_some = |pids: &[u32]| pids.iter().map(|pid| (*pid, scan(proc, *pid))).collect::<Vec<_>>();
    if threads == 1 {
        return scan_some(pids);
    }
    std::thread::scope(|scope| {
        let part = pids.len().div_ceil(threads);
        let start = |pids| std::thread::Builder::new().spawn_scoped(scope, move || scan_some(pids));
        let parts: Vec<_> = pids.chunks(part).map(|pids| (pids, start(pids))).collect();
        let scanned = parts.into_iter().map(|(pids, thread)| (pids, thread.ok().and_then(|thread| thread.join().ok())));
        // without a thread, or if it failed: here
        scanned.flat_map(|(pids, scanned)| scanned.unwrap_or_else(|| scan_some(pids))).collect()
    })
}

/// Reads one process.
fn scan(proc: &Proc, pid: u32) -> Scanned {
    let time = monotonic_ns();
    let Ok(stat) = proc.stat(pid) else { return Scanned::Missing };
    let mut process = Box::new(ProcessState::new(pid, 0, Origin::Scanned, time));
    process.parent = stat.parent;
    process.is_kernel_thread = stat.is_kernel_thread;
    process.start_ticks = Some(stat.start_ticks);
    process.comm = stat.comm;
    process.threads.insert(pid, Some(stat.comm));
    process.scanned_at = time;
    process.maps_scanned_at = time;
    process.complete = true;
    if stat.is_kernel_thread {
        return Scanned::Found(process);
    }
    if is_over(&stat) {
        return Scanned::Missing;
    }
    if stat.threads > 1 {
        let tids = proc.tids(pid).unwrap_or_default();
        process.threads.extend(tids.into_iter().filter(|tid| *tid != pid).map(|tid| (tid, None)));
    }
    if stat.state == State::Zombie {
        process.threads.remove(&pid);
        process.leader_exited = Some(time);
    }
    process.command_line = proc.command_line(pid).ok().filter(|line| !line.is_empty()).map(Into::into);
    let (found, end) = read_ranges(proc, pid, process.threads.keys().copied());
    for range in found {
        process.ranges_full |= process.ranges.insert(range).is_err();
    }
    process.ranges_full |= matches!(end, MapsEnd::TooMany);
    match end {
        MapsEnd::Complete | MapsEnd::TooMany => Scanned::Found(process),
        MapsEnd::NoMemory | MapsEnd::Gone => Scanned::Missing,
        MapsEnd::NotPermitted | MapsEnd::Failed(_) => {
            process.complete = false;
            Scanned::NotPermitted(process)
        }
    }
}

/// Whether all threads have ended.
pub(crate) fn is_over(stat: &Stat) -> bool {
    matches!(stat.state, State::Zombie | State::Dead) && stat.threads <= 1
}

/// Reads the executable ranges. A process whose first thread has ended while others go on shows its memory in those
/// only.
pub(crate) fn read_ranges(proc: &Proc, pid: u32, tids: impl Iterator<Item = u32>) -> (Vec<MappedRange>, MapsEnd) {
    let mut result = maps::read(proc, pid, Wanted::Executable, MAX_RANGES);
    for tid in tids.filter(|tid| *tid != pid) {
        if !matches!(result.1, MapsEnd::NoMemory) {
            break;
        }
        result = maps::read(proc, tid, Wanted::Executable, MAX_RANGES);
    }
    result
}
