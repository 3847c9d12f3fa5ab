//! What is known of one process.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::{Comm, MappedRange, RangeSet, RangesFull};

/// How a process came to be known.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Origin {
    /// Found in /proc.
    Scanned,
    /// Its fork was seen.
    Forked,
    /// An event named it, but neither its fork nor /proc was seen before: events were lost, or it ended at once.
    Heard,
}

/// What is known of one process.
#[derive(Clone, Debug)]
pub struct ProcessState {
    /// Its id.
    pub pid: u32,
    /// A number that no other process of the same table has or had, whatever its id.
    pub instance: u64,
    /// Execs since it became known. A new image: all that was known of the old one is void.
    pub generation: u32,
    /// How it came to be known.
    pub origin: Origin,
    /// The process that made it, or adopted it before the scan; 0 if that is unknown.
    pub parent: u32,
    /// It runs in the kernel only.
    pub is_kernel_thread: bool,
    /// Since when it is known: its fork, or the scan (`CLOCK_MONOTONIC`, ns).
    pub since: u64,
    /// When its last thread ended (`CLOCK_MONOTONIC`, ns).
    pub ended: Option<u64>,
    /// Start in clock ticks since boot, if /proc could be asked while it lived (at a scan or an exec).
    pub start_ticks: Option<u64>,
    /// Its threads that live. A name is `None` if the scan did not read it and it was not set since.
    pub threads: FxHashMap<u32, Option<Comm>>,
    /// Name of the process: that of its first thread.
    pub comm: Comm,
    /// At most 4 KB of the command line, each argument ended by a NUL. `None` if the process ended before it
    /// could be read, or has none (kernel threads). A child that has not called exec has its parent's.
    pub command_line: Option<Arc<[u8]>>,
    /// Executable ranges.
    pub ranges: RangeSet,
    /// Whether `ranges` started from a full picture: a scan, an exec, or a parent of which that is true. Otherwise
    /// there may be more than is known, until [`crate::ProcessTable::rescan`].
    pub complete: bool,
    /// More ranges than are kept: some are missing.
    pub ranges_full: bool,
    /// Events up to here are contained in the scan.
    pub(crate) scanned_at: u64,
    /// Mappings up to here are contained in `ranges`.
    pub maps_scanned_at: u64,
    /// See [`ProcessState::leaderless_since`].
    pub(crate) leader_exited: Option<u64>,
    /// How often the command line may still be asked for.
    pub(crate) command_line_tries: u8,
}

impl ProcessState {
    /// A process of which nothing is known but its id.
    pub(crate) fn new(pid: u32, instance: u64, origin: Origin, since: u64) -> ProcessState {
        ProcessState {
            pid,
            instance,
            generation: 0,
            origin,
            parent: 0,
            is_kernel_thread: false,
            since,
            ended: None,
            start_ticks: None,
            threads: FxHashMap::default(),
            comm: Comm::default(),
            command_line: None,
            ranges: RangeSet::default(),
            complete: false,
            ranges_full: false,
            scanned_at: 0,
            maps_scanned_at: 0,
            leader_exited: None,
            command_line_tries: 0,
        }
    }

    /// The executable range that holds `address`.
    pub fn find(&self, address: u64) -> Option<&MappedRange> {
        self.ranges.find(address)
    }

    /// When the first thread ended, if others go on (`CLOCK_MONOTONIC`, ns; for a scanned process that of the scan).
    pub fn leaderless_since(&self) -> Option<u64> {
        self.leader_exited
    }

    /// Name of a thread; that of the process if it is not known.
    pub fn thread_comm(&self, tid: u32) -> Comm {
        self.threads.get(&tid).copied().flatten().unwrap_or(self.comm)
    }

    /// A child as it is right after the fork by thread `ptid`: the same memory and name, one thread.
    pub(crate) fn forked(&self, pid: u32, ptid: u32, instance: u64, since: u64) -> ProcessState {
        let comm = self.thread_comm(ptid);
        let mut child = ProcessState::new(pid, instance, Origin::Forked, since);
        child.parent = self.pid;
        child.is_kernel_thread = self.is_kernel_thread;
        child.threads.insert(pid, Some(comm));
        child.comm = comm;
        child.command_line = self.command_line.clone();
        child.ranges = self.ranges.clone();
        child.complete = self.complete;
        child.ranges_full = self.ranges_full;
        child
    }

    /// Names a thread.
    pub(crate) fn rename(&mut self, tid: u32, comm: Comm) {
        self.threads.insert(tid, Some(comm));
        if tid == self.pid {
            self.comm = comm;
        }
    }

    /// Maps or, if it is not executable, unmaps a range; whether anything changed.
    pub(crate) fn map(&mut self, range: &MappedRange) -> Result<bool, RangesFull> {
        if !range.executable {
            let changed = self.ranges.overlaps(range.start, range.end);
            self.ranges.remove(range.start, range.end);
            return Ok(changed);
        }
        let result = self.ranges.insert(range.clone());
        self.ranges_full |= result.is_err();
        result
    }
}
