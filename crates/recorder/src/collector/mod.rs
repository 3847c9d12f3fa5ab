//! The collector: brings what the sampler sends and what the kernel says of processes into one order, keeps the
//! sampler's maps in step, and puts stacks and counts together.

mod counting;
mod deferral;
mod objects;
mod python;
mod testimony;

use std::collections::VecDeque;
use std::io;
use std::time::{Duration, Instant};

use abi::process::{Mapping, Pages, code};
use abi::record::GivenAway;
use abi::stop::Stop;
use abi::word::{TAG_SHIFT, Word};
use aya::maps::{HashMap, MapData, RingBuf};
use processes::{Change, Event, ProcessTable, Sideband, TimedEvent};
use rustc_hash::{FxHashMap, FxHashSet};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use symbols::{PerfMap, PerfMapError};

use crate::builders::Builders;
use crate::counts::Counts;
use crate::deferred::Walker;
use crate::evidence::Witness;
use crate::exits::ExitMap;
use crate::interpreters::Interpreters;
use crate::known_objects::{KnownObjects, TableState};
use crate::process_map::ProcessMap;
use crate::python_map::PythonMap;
use crate::pythons::Pythons;
use crate::ring::{DeferredSample, NewStack, Record, decode};
use crate::ring_positions::RingPositions;
use crate::stacks::Stacks;
use crate::tables::Tables;
use testimony::Testimony;

/// Between two drains of the counts.
const COUNTS_EVERY: Duration = Duration::from_secs(1);
/// A table without users is kept so long, in case its program is started again.
const TABLE_LINGERS: Duration = Duration::from_secs(10);
/// Deferred samples outside all mappings after which a process's mappings count as complete, until the next one.
const SETTLED_AFTER: u32 = 16;
/// Between two readings of one process's /proc/PID/maps because a sample fell outside.
const RESCAN_EVERY: Duration = Duration::from_secs(1);

/// What is known of a process for its label.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ProcessInfo {
    /// Process id.
    pub pid: u32,
    /// Name of its first thread, last seen.
    pub comm: Vec<u8>,
    /// Arguments, each ended by a NUL; `None` if they could not be read.
    pub command_line: Option<Vec<u8>>,
}

/// Things that went wrong and do not end a recording, for the summary.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Troubles {
    /// Process events that the kernel dropped; the table was read anew from /proc.
    pub lost_events: u64,
    /// Counts whose stack never came.
    pub missing_stacks: u64,
    /// Records of the ring buffer that could not be decoded.
    pub bad_records: u64,
    /// The last refusal of room for a process or a table.
    pub no_room: Option<String>,
    /// The counts could not be read.
    pub counts_error: Option<String>,
    /// The last perf map that was there and was not used.
    pub perf_map: Option<String>,
}

/// A deferred sample that waits for a table.
struct Parked {
    sample: Box<DeferredSample>,
    instance: u64,
    mappings: Vec<Mapping>,
    needs: u32,
}

/// What the ring buffer brought besides stacks.
#[derive(Default)]
struct FromRing {
    deferred: VecDeque<Box<DeferredSample>>,
    given: Vec<GivenAway>,
}

impl FromRing {
    fn is_empty(&self) -> bool {
        self.deferred.is_empty() && self.given.is_empty()
    }

    /// Takes what happened up to a time, the samples in order; the rest stays.
    fn up_to(&mut self, time: u64) -> FromRing {
        self.deferred.make_contiguous().sort_by_key(|sample| sample.time);
        let later = self.deferred.split_off(self.deferred.partition_point(|sample| sample.time <= time));
        let (given, given_later) = self.given.iter().partition(|given| given.header.time <= time);
        let deferred = std::mem::replace(self, FromRing { deferred: later, given: given_later }).deferred;
        FromRing { deferred, given }
    }
}

/// Something that changes which process maps what.
enum Happening {
    Event(TimedEvent),
    GivenAway(GivenAway),
}

impl Happening {
    fn time(&self) -> u64 {
        match self {
            Happening::Event(event) => event.time,
            Happening::GivenAway(given) => given.header.time,
        }
    }
}

/// What the collector keeps about a process besides the process table.
#[derive(Default)]
struct Attention {
    /// Objects it maps, as entered as their user.
    objects: Vec<u32>,
    /// It was sampled: its tables are wanted.
    hot: bool,
    /// Deferred samples outside all mappings since the last change.
    outside: u32,
    rescanned: Option<Instant>,
    python: python::State,
}

/// Its parts are public within the crate for [`crate::recording`], which takes it apart at the end.
pub(crate) struct Collector {
    pub(crate) table: ProcessTable,
    sideband: Sideband,
    ring: RingBuf<MapData>,
    ring_positions: RingPositions,
    counts: Counts,
    processes: ProcessMap,
    followed: Option<HashMap<MapData, u32, u32>>,
    pub(crate) tables: Tables,
    pub(crate) objects: KnownObjects,
    builders: Builders,
    walker: Walker,
    pub(crate) stacks: Stacks,
    pub(crate) known: FxHashMap<u64, ProcessInfo>,
    pub(crate) perf_maps: FxHashMap<u64, Option<PerfMap>>,
    pub(crate) pythons: Pythons,
    pub(crate) troubles: Troubles,
    recent: FxHashMap<u32, u64>,
    attention: FxHashMap<u32, Attention>,
    dirty: FxHashSet<u32>,
    parked: Vec<Parked>,
    waiting: FromRing,
    idle_objects: FxHashMap<u32, Instant>,
    testimony: Option<Testimony>,
    counted_at: Instant,
    /// Events up to here (CLOCK_MONOTONIC, ns) are in the process table.
    as_of: u64,
}

/// What a collector is made of.
pub(crate) struct Parts {
    pub(crate) table: ProcessTable,
    pub(crate) sideband: Sideband,
    pub(crate) ring: RingBuf<MapData>,
    pub(crate) ring_positions: RingPositions,
    pub(crate) counts: Counts,
    pub(crate) processes: ProcessMap,
    pub(crate) exits: ExitMap,
    pub(crate) followed: Option<HashMap<MapData, u32, u32>>,
    pub(crate) tables: Tables,
    pub(crate) builders: Builders,
    pub(crate) interpreters: Interpreters,
    pub(crate) python_map: PythonMap,
    pub(crate) keeps_eval_loops: bool,
    pub(crate) witness: Option<Box<dyn Witness>>,
}

impl Collector {
    /// Enters the processes that the table knows.
    pub(crate) fn new(parts: Parts) -> Collector {
        let mut collector = Collector {
            table: parts.table,
            sideband: parts.sideband,
            ring: parts.ring,
            ring_positions: parts.ring_positions,
            counts: parts.counts,
            processes: parts.processes,
            followed: parts.followed,
            tables: parts.tables,
            objects: KnownObjects::new(),
            builders: parts.builders,
            walker: Walker::new(parts.exits),
            stacks: Stacks::default(),
            known: FxHashMap::default(),
            perf_maps: FxHashMap::default(),
            pythons: Pythons::new(parts.interpreters, parts.python_map, parts.keeps_eval_loops),
            troubles: Troubles::default(),
            recent: FxHashMap::default(),
            attention: FxHashMap::default(),
            dirty: FxHashSet::default(),
            parked: Vec::new(),
            waiting: FromRing::default(),
            idle_objects: FxHashMap::default(),
            testimony: parts.witness.map(Testimony::new),
            counted_at: Instant::now(),
            as_of: 0,
        };
        let pids: Vec<u32> = collector.table.iter().map(|process| process.pid).collect();
        pids.iter().for_each(|pid| collector.started(*pid));
        collector.flush();
        collector
    }

    /// Whether only some processes are recorded, whose tables are then made ahead of need.
    fn selective(&self) -> bool {
        self.followed.is_some()
    }

    /// Waits until there is something to do or `timeout` is over, and does it.
    pub(crate) fn step(&mut self, timeout: Duration) -> io::Result<()> {
        let timeout = timeout.min(self.until_next_look());
        let ready = {
            let mut fds = vec![PollFd::new(&self.ring, PollFlags::IN)];
            fds.push(PollFd::from_borrowed_fd(self.builders.ready(), PollFlags::IN));
            fds.push(PollFd::from_borrowed_fd(self.pythons.ready(), PollFlags::IN));
            fds.extend(self.sideband.fds().map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN)));
            wait(&mut fds, timeout)?
        };
        let Some(ready) = ready else { return Ok(()) };
        if ready > 0 {
            // events come in bursts (an exec is a dozen): let the burst end
            std::thread::sleep(Duration::from_millis(1));
        }
        self.pump();
        if self.counted_at.elapsed() >= COUNTS_EVERY {
            self.drain_counts();
            self.free_idle_tables();
        }
        Ok(())
    }

    /// Takes what has come, in the order in which it happened.
    pub(crate) fn pump(&mut self) {
        let now = processes::monotonic_ns();
        if self.read_ring() {
            self.as_of = now;
        }
        let FromRing { mut deferred, given } = self.waiting.up_to(self.as_of);
        // in this order: whatever the ring has up to then, the events have what it depends on, and nothing later
        let mut events = Vec::new();
        self.sideband.drain_until(self.as_of, &mut events);
        let mut happened: Vec<Happening> = events.into_iter().map(Happening::Event).collect();
        happened.extend(given.into_iter().map(Happening::GivenAway));
        happened.sort_by_key(Happening::time);
        for happening in &happened {
            while deferred.front().is_some_and(|sample| sample.time < happening.time()) {
                let sample = deferred.pop_front();
                sample.into_iter().for_each(|sample| self.resolve(sample));
            }
            match happening {
                Happening::Event(event) => self.apply(event),
                Happening::GivenAway(given) => self.take_away(given),
            }
        }
        deferred.into_iter().for_each(|sample| self.resolve(sample));
        self.table.reap().iter().for_each(|pid| self.exited(*pid));
        self.keep_gone();
        self.take_tables();
        self.take_pythons();
        self.flush();
    }

    /// Whether memory of a process was given away and it is not known which.
    pub(super) fn has_lost(&self, pid: u32) -> bool {
        let lost = self.processes.lost_at(pid);
        lost.is_some_and(|lost| self.table.get(pid).is_some_and(|process| process.maps_scanned_at < lost))
    }

    fn take_away(&mut self, given: &GivenAway) {
        let pid = given.header.key.pid;
        if let Change::Unmapped { .. } = self.table.given_away(given.header.time, pid, given.begin, given.end) {
            self.dirty.insert(pid);
        }
    }

    /// Whether everything was read that had been written when it began.
    fn read_ring(&mut self) -> bool {
        let written = self.ring_positions.written();
        let (mut stacks, mut codes) = (Vec::new(), Vec::new());
        while let Some(item) = self.ring.next() {
            match decode(&item) {
                Some(Record::Stack(stack)) => stacks.push(stack),
                Some(Record::Deferred(sample)) => self.waiting.deferred.push_back(sample),
                Some(Record::GivenAway(record)) => self.waiting.given.push(record),
                Some(Record::Code(code)) => codes.push(code),
                None => self.troubles.bad_records += 1,
            }
        }
        codes.iter().for_each(|code| self.name_code(code));
        stacks.iter().for_each(|stack| self.add_stack(stack));
        self.ring_positions.read() >= written
    }

    fn add_stack(&mut self, stack: &NewStack) {
        if let Some(testimony) = &mut self.testimony {
            testimony.sent(stack);
        }
        let (pid, hash) = (stack.key.pid, stack.key.hash);
        self.stacks.add(pid, hash, &stack.words);
        if let Some(instance) = self.recent.get(&pid) {
            self.open_perf_map(*instance, pid, &stack.words);
        }
        self.look_for_python(pid);
    }

    /// JIT code is named by a file of the process, which must be opened while there is a way to it.
    fn open_perf_map(&mut self, instance: u64, pid: u32, words: &[u64]) {
        let jit = words.iter().any(|word| matches!(Word::decode(*word), Word::Raw { .. }));
        if jit {
            let opened = self.perf_maps.entry(instance).or_insert(None);
            if opened.is_none() {
                match PerfMap::open(pid) {
                    Ok(map) => *opened = Some(map),
                    // most have none, or make it later
                    Err(PerfMapError::Missing(_) | PerfMapError::Process { .. }) => {}
                    Err(error) => self.troubles.perf_map = Some(error.to_string()),
                }
            }
        }
    }

    fn apply(&mut self, event: &TimedEvent) {
        match self.table.apply(event) {
            Change::Started { pid, parent, complete } => {
                if !complete {
                    self.table.rescan(pid);
                }
                self.started(pid);
                let as_parent = complete && !self.dirty.contains(&parent);
                let python = self.inherit_python(parent, pid);
                if as_parent && matches!(self.processes.copy(parent, pid, python, event.time), Ok(true)) {
                    self.dirty.remove(&pid);
                    self.note_objects_of_child(parent, pid);
                }
            }
            Change::Execed { pid } => {
                self.forget_python(pid);
                self.dirty.insert(pid);
            }
            Change::Mapped { pid, .. } | Change::Unmapped { pid, .. } => {
                self.dirty.insert(pid);
            }
            Change::Exited { pid } => self.exited(pid),
            Change::Lost { count } => self.resync(count),
            Change::RangesFull { .. }
            | Change::Nothing
            | Change::Renamed { .. }
            | Change::ThreadStarted { .. }
            | Change::ThreadExited { .. } => {}
        }
        // a pid may be used again within one batch: what its last owner was is kept at once
        if matches!(event.event, Event::Fork { .. } | Event::Exit { .. }) {
            self.keep_gone();
        }
    }

    fn started(&mut self, pid: u32) {
        let Some(process) = self.table.get(pid) else { return };
        self.recent.insert(pid, process.instance);
        if let Some(followed) = &mut self.followed {
            // the BPF program has entered children already
            let _ = followed.insert(pid, 0, 0);
        }
        self.attention.insert(pid, Attention { hot: self.selective(), ..Attention::default() });
        self.dirty.insert(pid);
    }

    fn exited(&mut self, pid: u32) {
        self.dirty.remove(&pid);
        self.processes.remove(pid);
        self.walker.exits.forget(pid);
        if let Some(followed) = &mut self.followed {
            let _ = followed.remove(&pid);
        }
        self.forget_python(pid);
        if let Some(attention) = self.attention.remove(&pid) {
            attention.objects.iter().for_each(|number| self.remove_user(*number, pid));
        }
    }

    fn resync(&mut self, count: u64) {
        self.troubles.lost_events += count;
        if self.table.resync().is_err() {
            return;
        }
        self.keep_gone();
        let gone: Vec<u32> = self.attention.keys().copied().filter(|pid| self.table.get(*pid).is_none()).collect();
        gone.iter().for_each(|pid| self.exited(*pid));
        let there: Vec<(u32, u64)> = self.table.iter().map(|process| (process.pid, process.instance)).collect();
        for (pid, instance) in there {
            if self.recent.get(&pid) != Some(&instance) || !self.attention.contains_key(&pid) {
                self.started(pid);
            }
            self.dirty.insert(pid);
        }
    }

    /// Remembers what processes that are gone were called.
    fn keep_gone(&mut self) {
        for process in self.table.take_gone() {
            self.known.insert(process.instance, info(&process));
        }
    }

    /// The mappings of a process as the sampler wants them.
    fn mappings_of(&mut self, pid: u32) -> Vec<Mapping> {
        let Some(process) = self.table.get(pid) else { return Vec::new() };
        let mut mappings = Vec::with_capacity(process.ranges.len());
        for range in process.ranges.iter().filter(|range| range.end >> TAG_SHIFT == 0) {
            let (object, code) = self.objects.of_range(pid, range);
            let mut mapping = Mapping {
                begin: range.start,
                end: range.end,
                file_offset: range.file_offset,
                object,
                code,
                ..Mapping::default()
            };
            point_at_table(&mut mapping, &self.objects);
            mappings.push(mapping);
        }
        mappings
    }

    /// Tells the sampler about processes that changed.
    fn flush(&mut self) {
        for pid in std::mem::take(&mut self.dirty) {
            if self.has_lost(pid) {
                self.table.rescan(pid);
            }
            let mappings = self.mappings_of(pid);
            let objects: FxHashSet<u32> =
                mappings.iter().map(|mapping| mapping.object).filter(|object| *object != 0).collect();
            self.set_users(pid, objects.iter().copied().collect());
            self.keep_python(pid, &objects);
            let attention = self.attention.entry(pid).or_default();
            attention.outside = 0;
            if attention.hot {
                objects.iter().for_each(|object| self.ask_table(*object));
            }
            match self.processes.set(pid, &mappings, 0, self.python_index(pid), self.as_of) {
                Ok(true) => {}
                Ok(false) => _ = self.dirty.insert(pid),
                Err(error) => self.troubles.no_room = Some(error.to_string()),
            }
        }
    }

    /// After the sampler has stopped: everything that is under way comes to its end.
    pub(crate) fn finish(&mut self) {
        self.drain_counts();
        while !self.waiting.is_empty() {
            // a program that was detached may still be writing its last record
            std::thread::sleep(Duration::from_millis(1));
            self.pump();
        }
        while self.builders.busy() && !self.parked.is_empty() {
            std::thread::sleep(Duration::from_millis(1));
            self.take_tables();
        }
        for parked in std::mem::take(&mut self.parked) {
            let words = self.walker.unwalked(&parked.sample, Stop::TableNotReady);
            self.count_words(&parked.sample.key, parked.instance, &words);
        }
        self.table.iter().for_each(|process| {
            self.known.insert(process.instance, info(process));
        });
    }
}

/// Waits until something is there to be read, or `longest` is over: how many. `None` after a signal: the caller looks at what it
/// was.
fn wait(fds: &mut [PollFd<'_>], longest: Duration) -> io::Result<Option<usize>> {
    let timeout = Timespec { tv_sec: longest.as_secs() as i64, tv_nsec: i64::from(longest.subsec_nanos()) };
    match poll(fds, Some(&timeout)) {
        Ok(ready) => Ok(Some(ready)),
        Err(rustix::io::Errno::INTR) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

fn info(process: &processes::ProcessState) -> ProcessInfo {
    ProcessInfo {
        pid: process.pid,
        comm: process.comm.as_bytes().to_vec(),
        command_line: process.command_line.as_ref().map(|line| line.to_vec()),
    }
}

/// Completes a mapping by what is known of its object's table now.
fn point_at_table(mapping: &mut Mapping, objects: &KnownObjects) {
    let Some(object) = objects.get(mapping.object) else { return };
    (mapping.code, mapping.page_base, mapping.pages) = match &object.table {
        TableState::Installed(installed) => (code::TABLE, installed.page_base, installed.pages),
        TableState::Unasked | TableState::Asked => (code::PENDING, 0, Pages::default()),
        TableState::None(_) => (code::NO_TABLE, 0, Pages::default()),
    };
}
