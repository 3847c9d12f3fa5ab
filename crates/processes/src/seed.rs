//! What the table learns from /proc: the processes that were there before the events, and corrections.
//!
//! The time is taken before a process is read, and events up to that time are contained in what was read. Later
//! events may be contained, too; applying them again comes to the same in the end.

use std::collections::BTreeMap;
use std::io;
use std::time::Duration;

use rustc_hash::FxHashSet;

use crate::maps::MapsEnd;
use crate::process::ProcessState;
use crate::scan::{Scanned, is_over, read_ranges, scan_all};
use crate::table::{ProcessTable, Scope};
use crate::{MappedRange, monotonic_ns};

/// What [`ProcessTable::seed`] found.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Seeded {
    /// Processes added.
    pub processes: usize,
    /// Processes whose mappings may not be read (they belong to other users): added without mappings.
    pub not_permitted: Vec<u32>,
    /// Processes asked for that are not there, or are ending.
    pub missing: Vec<u32>,
}

/// What [`ProcessTable::rescan`] did.
#[derive(Debug)]
pub struct Rescan {
    /// How the reading ended. Unless it is `Complete` or `TooMany`, nothing was changed.
    pub end: MapsEnd,
    /// Ranges that are there and were not known.
    pub added: Vec<MappedRange>,
    /// Ranges that were known and are not there.
    pub removed: Vec<MappedRange>,
}

/// What [`ProcessTable::resync`] changed.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Resync {
    /// Processes that were not known; those whose id was in use by another are in `exited`, too.
    pub started: Vec<u32>,
    /// Processes that are gone.
    pub exited: Vec<u32>,
    /// Processes whose mappings or command line are not those that were known: they may have called exec. Their
    /// generation went up.
    pub changed: Vec<u32>,
}

/// How long a process without its first thread may wait for the events of the others before /proc is asked.
const REAP_AFTER: Duration = Duration::from_secs(1);

impl ProcessTable {
    /// Reads the processes of the table's scope from /proc, without the names of their threads.
    ///
    /// Open the [`crate::Sideband`] first, so that nothing is missed in between.
    ///
    /// # Errors
    /// If /proc cannot be listed.
    pub fn seed(&mut self) -> io::Result<Seeded> {
        let pids = match self.scope() {
            Scope::All => self.proc.pids()?,
            Scope::Only { pids, .. } => pids.clone(),
        };
        let mut seeded = Seeded::default();
        for (pid, scanned) in scan_all(&self.proc, &pids) {
            match scanned {
                Scanned::Found(process) => self.adopt(*process),
                Scanned::NotPermitted(process) => {
                    seeded.not_permitted.push(pid);
                    self.adopt(*process);
                }
                Scanned::Missing => {
                    seeded.missing.push(pid);
                    continue;
                }
            }
            seeded.processes += 1;
        }
        if *self.scope() == Scope::All {
            seeded.missing.clear();
        }
        Ok(seeded)
    }

    /// Reads the names of a process's threads that are not known yet.
    ///
    /// # Errors
    /// If there is no such process.
    pub fn read_thread_names(&mut self, pid: u32) -> io::Result<()> {
        let Some(process) = self.processes.get_mut(&pid) else { return Err(io::ErrorKind::NotFound.into()) };
        for (tid, comm) in process.threads.iter_mut().filter(|(_, comm)| comm.is_none()) {
            *comm = self.proc.comm(pid, *tid).ok();
        }
        Ok(())
    }

    /// Puts the ranges of a process in step with /proc/PID/maps. `None` if the process is not known.
    ///
    /// A range that is mapped as it was keeps the identity that it had.
    pub fn rescan(&mut self, pid: u32) -> Option<Rescan> {
        let time = monotonic_ns();
        let process = self.processes.get_mut(&pid)?;
        let (found, end) = read_ranges(&self.proc, pid, process.threads.keys().copied());
        let mut rescan = Rescan { end, added: Vec::new(), removed: Vec::new() };
        if !matches!(rescan.end, MapsEnd::Complete | MapsEnd::TooMany) {
            return Some(rescan);
        }
        let mut ranges = crate::RangeSet::default();
        for range in found {
            let known = process.ranges.find(range.start).filter(|known| is_part(&range, known));
            let range = known.map_or_else(|| range.clone(), |known| known.part(range.start, range.end));
            process.ranges_full |= ranges.insert(range).is_err();
        }
        let before: BTreeMap<_, _> = process.ranges.iter().map(|range| (range.start, range)).collect();
        let after: BTreeMap<_, _> = ranges.iter().map(|range| (range.start, range)).collect();
        let not_in = |range: &&MappedRange, other: &BTreeMap<u64, &MappedRange>| other.get(&range.start) != Some(range);
        rescan.added = ranges.iter().filter(|range| not_in(range, &before)).cloned().collect();
        rescan.removed = process.ranges.iter().filter(|range| not_in(range, &after)).cloned().collect();
        process.ranges = ranges;
        process.ranges_full = matches!(rescan.end, MapsEnd::TooMany);
        process.complete = true;
        process.maps_scanned_at = time;
        Some(rescan)
    }

    /// Adds what is mapped now where nothing is known to be, which the kernel did not report: a range that was moved.
    /// Unlike after a rescan, events that have not been applied yet still count. Whether anything was added.
    pub fn find_unreported(&mut self, pid: u32) -> bool {
        let Some(process) = self.processes.get_mut(&pid) else { return false };
        let (found, _) = read_ranges(&self.proc, pid, process.threads.keys().copied());
        let mut added = false;
        for range in found {
            if !process.ranges.overlaps(range.start, range.end) {
                added |= process.map(&range).is_ok();
            }
        }
        added
    }

    /// Reads everything again, after events were lost. Events up to now may be applied or not: they are contained.
    ///
    /// # Errors
    /// If /proc cannot be listed.
    pub fn resync(&mut self) -> io::Result<Resync> {
        let time = monotonic_ns();
        let pids = self.proc.pids()?;
        let mut resync = Resync::default();
        let there: FxHashSet<u32> = pids.iter().copied().collect();
        let mut gone: Vec<u32> = self.processes.keys().copied().filter(|pid| !there.contains(pid)).collect();
        let wanted = self.to_resync(pids);
        for (pid, scanned) in scan_all(&self.proc, &wanted) {
            match (scanned, self.processes.contains_key(&pid)) {
                (Scanned::Found(now), true) => self.compare(*now, &mut resync),
                (Scanned::Found(process) | Scanned::NotPermitted(process), false) => {
                    self.adopt(*process);
                    resync.started.push(pid);
                }
                (Scanned::Missing, true) => gone.push(pid),
                (Scanned::NotPermitted(_), true) | (Scanned::Missing, false) => {}
            }
        }
        for pid in gone {
            self.remove(time, pid);
            resync.exited.push(pid);
        }
        Ok(resync)
    }

    /// Those of `pids` that are known, or belong to the scope, by themselves or as children of such.
    fn to_resync(&self, pids: Vec<u32>) -> Vec<u32> {
        let belongs = |pid: &u32| self.processes.contains_key(pid) || self.scope().follows(*pid, false);
        let (wanted, others): (Vec<u32>, Vec<u32>) = pids.into_iter().partition(belongs);
        if !matches!(self.scope(), Scope::Only { children: true, .. }) {
            return wanted;
        }
        let mut wanted: FxHashSet<u32> = wanted.into_iter().collect();
        let mut others: Vec<_> = others.into_iter().filter_map(|pid| self.proc.stat(pid).ok()).collect();
        loop {
            let before = wanted.len();
            others.retain(|stat| !(wanted.contains(&stat.parent) && wanted.insert(stat.pid)));
            if wanted.len() == before {
                return wanted.into_iter().collect();
            }
        }
    }

    /// Puts a process as it is now in the place of what was known of it.
    fn compare(&mut self, mut now: ProcessState, resync: &mut Resync) {
        let Some(known) = self.processes.get(&now.pid) else { return };
        if known.start_ticks.is_some() && known.start_ticks != now.start_ticks {
            resync.exited.push(now.pid);
            resync.started.push(now.pid);
            self.adopt(now);
            return;
        }
        let same_image = known.command_line == now.command_line && known.complete && covers_same(known, &now);
        now.instance = known.instance;
        now.origin = known.origin;
        now.since = known.since;
        now.generation = known.generation;
        for (tid, comm) in &mut now.threads {
            *comm = comm.or_else(|| known.threads.get(tid).copied().flatten());
        }
        if same_image {
            now.ranges = known.ranges.clone();
        } else {
            now.generation = now.generation.saturating_add(1);
            resync.changed.push(now.pid);
        }
        self.leaderless.remove(&now.pid);
        if now.leader_exited.is_some() {
            self.leaderless.insert(now.pid);
        }
        self.processes.insert(now.pid, now);
    }

    fn adopt(&mut self, mut process: ProcessState) {
        process.instance = self.next_instance();
        let (pid, leaderless) = (process.pid, process.leader_exited.is_some());
        self.add(process.scanned_at, process);
        if leaderless {
            self.leaderless.insert(pid);
        }
    }

    /// Removes processes whose first thread ended more than a second ago and that are not in /proc any more: for the
    /// case that the event of another thread's end was lost, or came before the scan that still saw it. Returns
    /// their ids. Costs nothing unless there are such processes.
    pub fn reap(&mut self) -> Vec<u32> {
        let now = monotonic_ns();
        let waited_from = now.saturating_sub(REAP_AFTER.as_nanos() as u64);
        let ended: Vec<u32> = self.leaderless.iter().copied().filter(|pid| self.has_ended(*pid, waited_from)).collect();
        for pid in &ended {
            self.remove(now, *pid);
        }
        ended
    }

    fn has_ended(&self, pid: u32, waited_from: u64) -> bool {
        let Some(process) = self.processes.get(&pid) else { return true };
        if process.leader_exited.is_none_or(|time| time > waited_from) {
            return false;
        }
        match self.proc.stat(pid) {
            Ok(stat) => is_over(&stat) || process.start_ticks.is_some_and(|ticks| ticks != stat.start_ticks),
            Err(error) => error.kind() == io::ErrorKind::NotFound || error.raw_os_error() == Some(libc::ESRCH),
        }
    }
}

/// Whether `found` (from /proc) is that part of `known`.
fn is_part(found: &MappedRange, known: &MappedRange) -> bool {
    let part = |known: &MappedRange| known.part(found.start, found.end);
    found.end <= known.end
        && found.path == known.path
        && found.file_offset == part(known).file_offset
        && found.identity.same_file(&known.identity) != Some(false)
}

/// Whether both have the same ranges, apart from how their files are identified.
fn covers_same(known: &ProcessState, now: &ProcessState) -> bool {
    known.ranges.len() == now.ranges.len()
        && known.ranges.iter().zip(now.ranges.iter()).all(|(a, b)| a.end == b.end && is_part(b, a))
}
