//! All processes, kept in step with events.

use std::collections::hash_map::Entry;
use std::io;

use rustc_hash::{FxHashMap, FxHashSet};

use crate::process::{Origin, ProcessState};
use crate::records::{Event, MapEvent, TimedEvent};
use crate::{Comm, MappedRange, Proc};

/// Which processes a table is about.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Scope {
    /// All.
    All,
    /// Those, and maybe the processes that they make from now on.
    Only {
        /// The processes.
        pids: Vec<u32>,
        /// Whether their children are followed.
        children: bool,
    },
}

/// What an event changed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Change {
    /// Nothing: it was known already, or is about a process that is not followed.
    Nothing,
    /// A process is new. If its id was in use, the process that had it is gone. The event that gave notice of it, if
    /// it is not a fork, is contained in its state.
    Started {
        /// Its id.
        pid: u32,
        /// Who made it; 0 if unknown.
        parent: u32,
        /// Whether all its mappings are known. If not, [`ProcessTable::rescan`] reads them.
        complete: bool,
    },
    /// A process has a new image: nothing is mapped yet, one thread, a higher generation.
    Execed {
        /// The process.
        pid: u32,
    },
    /// A range is executable now.
    Mapped {
        /// The process.
        pid: u32,
        /// As reported; in the process's state it may be joined with its neighbours.
        range: MappedRange,
    },
    /// A range is executable no longer.
    Unmapped {
        /// The process.
        pid: u32,
        /// First address.
        start: u64,
        /// First address behind it.
        end: u64,
    },
    /// A range could not be added: [`crate::MAX_RANGES`].
    RangesFull {
        /// The process.
        pid: u32,
    },
    /// A thread has another name.
    Renamed {
        /// Its process.
        pid: u32,
        /// The thread.
        tid: u32,
    },
    /// A thread is new.
    ThreadStarted {
        /// Its process.
        pid: u32,
        /// The thread.
        tid: u32,
    },
    /// A thread ended; others go on.
    ThreadExited {
        /// Its process.
        pid: u32,
        /// The thread.
        tid: u32,
    },
    /// The last thread ended. The state is among [`ProcessTable::take_gone`].
    Exited {
        /// The process.
        pid: u32,
    },
    /// Events were lost: [`ProcessTable::resync`] puts the table right.
    Lost {
        /// How many.
        count: u64,
    },
}

/// Tries to read the command line after exec: it is empty until the kernel has set up the new image.
const COMMAND_LINE_TRIES: u8 = 8;

/// All processes, or those asked for. Its state is that of the last event applied.
#[derive(Debug)]
pub struct ProcessTable {
    pub(crate) proc: Proc,
    scope: Scope,
    pub(crate) processes: FxHashMap<u32, ProcessState>,
    gone: Vec<ProcessState>,
    /// Processes whose first thread ended before the others.
    pub(crate) leaderless: FxHashSet<u32>,
    instances: u64,
}

impl ProcessTable {
    /// An empty table.
    pub fn new(scope: Scope) -> ProcessTable {
        ProcessTable::with_proc(scope, Proc::system())
    }

    /// An empty table that asks this /proc.
    pub fn with_proc(scope: Scope, proc: Proc) -> ProcessTable {
        ProcessTable {
            proc,
            scope,
            processes: FxHashMap::default(),
            gone: Vec::new(),
            leaderless: FxHashSet::default(),
            instances: 0,
        }
    }

    /// The process that has this id now.
    pub fn get(&self, pid: u32) -> Option<&ProcessState> {
        self.processes.get(&pid)
    }

    /// All processes, in no order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &ProcessState> {
        self.processes.values()
    }

    /// How many processes there are.
    pub fn len(&self) -> usize {
        self.processes.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.processes.is_empty()
    }

    /// Which processes it is about.
    pub fn scope(&self) -> &Scope {
        &self.scope
    }

    /// The processes that ended since the last call. They are kept until taken.
    pub fn take_gone(&mut self) -> Vec<ProcessState> {
        std::mem::take(&mut self.gone)
    }

    /// Brings the table to the moment of `event`. Events must come in the order in which they happened.
    ///
    /// At exec, the command line and the start time are read from /proc.
    pub fn apply(&mut self, event: &TimedEvent) -> Change {
        let time = event.time;
        match &event.event {
            Event::Map(map) => self.mapped(time, map),
            Event::Comm { pid, tid, comm, exec: true } => self.execed(time, *pid, *tid, *comm),
            Event::Comm { pid, tid, comm, exec: false } => self.renamed(time, *pid, *tid, *comm),
            Event::Fork { pid, ppid, tid, ptid } if pid == ppid => self.thread_started(time, *pid, *tid, *ptid),
            Event::Fork { pid, ppid, ptid, .. } => self.forked(time, *pid, *ppid, *ptid),
            Event::Exit { pid, tid, .. } => self.exited(time, *pid, *tid),
            Event::Lost { count } => Change::Lost { count: *count },
        }
    }

    /// What was mapped from `start` to `end` is gone: the kernel has found that memory free.
    pub fn given_away(&mut self, time: u64, pid: u32, start: u64, end: u64) -> Change {
        match self.processes.get_mut(&pid) {
            Some(process) if time > process.maps_scanned_at && process.ranges.overlaps(start, end) => {
                process.ranges.remove(start, end);
                Change::Unmapped { pid, start, end }
            }
            _ => Change::Nothing,
        }
    }

    fn mapped(&mut self, time: u64, event: &MapEvent) -> Change {
        let pid = event.pid;
        let Some((process, started)) = self.known(time, pid, event.tid) else { return Change::Nothing };
        if started.is_none() && time <= process.maps_scanned_at {
            return Change::Nothing;
        }
        let result = process.map(&event.range);
        if process.command_line_tries > 0 {
            self.read_command_line(pid);
        }
        let (start, end) = (event.range.start, event.range.end);
        match (started, result) {
            (Some(started), _) => started,
            (None, Err(_)) => Change::RangesFull { pid },
            (None, Ok(false)) => Change::Nothing,
            (None, Ok(true)) if !event.range.executable => Change::Unmapped { pid, start, end },
            (None, Ok(true)) => Change::Mapped { pid, range: event.range.clone() },
        }
    }

    fn execed(&mut self, time: u64, pid: u32, tid: u32, comm: Comm) -> Change {
        let Some((process, started)) = self.known(time, pid, tid) else { return Change::Nothing };
        process.generation = process.generation.saturating_add(1);
        process.is_kernel_thread = false;
        process.leader_exited = None;
        process.threads.clear();
        process.rename(pid, comm);
        if time > process.maps_scanned_at {
            process.ranges = Default::default();
            process.ranges_full = false;
            process.complete = true;
        }
        process.command_line = None;
        process.command_line_tries = COMMAND_LINE_TRIES;
        let (parent, complete) = (process.parent, process.complete);
        self.leaderless.remove(&pid);
        self.read_start_time(pid);
        self.read_command_line(pid);
        match started {
            Some(_) => Change::Started { pid, parent, complete },
            None => Change::Execed { pid },
        }
    }

    fn renamed(&mut self, time: u64, pid: u32, tid: u32, comm: Comm) -> Change {
        let Some((process, started)) = self.known(time, pid, tid) else { return Change::Nothing };
        process.rename(tid, comm);
        started.unwrap_or(Change::Renamed { pid, tid })
    }

    fn thread_started(&mut self, time: u64, pid: u32, tid: u32, ptid: u32) -> Change {
        let Some((process, started)) = self.known(time, pid, ptid) else { return Change::Nothing };
        let comm = process.threads.get(&ptid).copied().flatten();
        process.threads.insert(tid, comm);
        started.unwrap_or(Change::ThreadStarted { pid, tid })
    }

    fn forked(&mut self, time: u64, pid: u32, ppid: u32, ptid: u32) -> Change {
        if !is_id(pid) || self.processes.get(&pid).is_some_and(|known| time <= known.scanned_at) {
            return Change::Nothing;
        }
        let parent = self.processes.get(&ppid);
        if !self.scope.follows(pid, parent.is_some()) {
            return Change::Nothing;
        }
        let instance = self.instances + 1;
        let child = match parent {
            Some(parent) => parent.forked(pid, ptid, instance, time),
            None => {
                let mut child = ProcessState::new(pid, instance, Origin::Forked, time);
                child.parent = if is_id(ppid) { ppid } else { 0 };
                child.threads.insert(pid, None);
                child
            }
        };
        let (parent, complete) = (child.parent, child.complete);
        self.add(time, child);
        Change::Started { pid, parent, complete }
    }

    fn exited(&mut self, time: u64, pid: u32, tid: u32) -> Change {
        let Some(process) = self.processes.get_mut(&pid) else { return Change::Nothing };
        if time <= process.scanned_at {
            return Change::Nothing;
        }
        process.threads.remove(&tid);
        if process.threads.is_empty() {
            self.remove(time, pid);
            return Change::Exited { pid };
        }
        if tid == pid {
            process.leader_exited = Some(time);
            self.leaderless.insert(pid);
        }
        Change::ThreadExited { pid, tid }
    }

    /// The process that an event is about. One that was not known is added if it is to be followed, with the thread
    /// that the event names. `None` if there is nothing to do.
    fn known(&mut self, time: u64, pid: u32, tid: u32) -> Option<(&mut ProcessState, Option<Change>)> {
        let follows = is_id(pid) && self.scope.follows(pid, false);
        match self.processes.entry(pid) {
            Entry::Occupied(entry) if time <= entry.get().scanned_at => None,
            Entry::Occupied(entry) => Some((entry.into_mut(), None)),
            Entry::Vacant(entry) if follows => {
                self.instances += 1;
                let process = entry.insert(ProcessState::new(pid, self.instances, Origin::Heard, time));
                process.threads.insert(tid, None);
                Some((process, Some(Change::Started { pid, parent: 0, complete: false })))
            }
            Entry::Vacant(_) => None,
        }
    }

    /// Adds a process; one that had its id before is gone.
    pub(crate) fn add(&mut self, time: u64, process: ProcessState) {
        self.remove(time, process.pid);
        self.instances = self.instances.max(process.instance);
        self.processes.insert(process.pid, process);
    }

    /// A number for the next process.
    pub(crate) fn next_instance(&self) -> u64 {
        self.instances + 1
    }

    /// Moves a process to those that are gone.
    pub(crate) fn remove(&mut self, time: u64, pid: u32) {
        self.leaderless.remove(&pid);
        if let Some(mut process) = self.processes.remove(&pid) {
            process.ended = Some(time);
            self.gone.push(process);
        }
    }

    fn read_start_time(&mut self, pid: u32) {
        let stat = self.proc.stat(pid);
        if let (Some(process), Ok(stat)) = (self.processes.get_mut(&pid), stat) {
            process.start_ticks = Some(stat.start_ticks);
        }
    }

    /// Asks for the command line; again later if it is still empty.
    fn read_command_line(&mut self, pid: u32) {
        let result: io::Result<Vec<u8>> = self.proc.command_line(pid);
        let Some(process) = self.processes.get_mut(&pid) else { return };
        match result {
            Ok(line) if line.is_empty() => process.command_line_tries = process.command_line_tries.saturating_sub(1),
            Ok(line) => {
                process.command_line = Some(line.into());
                process.command_line_tries = 0;
            }
            Err(_) => process.command_line_tries = 0,
        }
    }
}

/// Whether a number in an event is the id of a process that can be seen from here: the kernel writes 0 for those of
/// other pid namespaces and -1 for those that are gone.
fn is_id(pid: u32) -> bool {
    pid != 0 && pid <= i32::MAX as u32
}

impl Scope {
    /// Whether a process belongs to the table; `by_known`: its parent does.
    pub(crate) fn follows(&self, pid: u32, by_known: bool) -> bool {
        match self {
            Scope::All => true,
            Scope::Only { pids, children } => by_known && *children || pids.contains(&pid),
        }
    }
}
