//! A recording from start to profile.

use std::io;
use std::time::{Duration, Instant, SystemTime};

use abi::counter::Counter;
use abi::record::{COPY_BYTES, SHORT_COPY_BYTES};
use attribution::{Attributed, Object, ProcessLabel, RawSample, Sources, ThreadLabel, Unnamed, attribute};
use aya::maps::MapData;
use aya::maps::PerCpuArray;
use objects::Cache;
use processes::namespaces::in_initial_pid_namespace;
use processes::{OpenError, ProcessTable, Scope, Sideband};
use profile::{Losses, Profile};
use python::code_object::CodeObject;
use symbols::PerfMap;

use crate::builders;
use crate::collector::{Collector, Parts, Troubles};
use crate::counts::Counts;
use crate::evidence::Witness;
use crate::interpreters;
use crate::known_objects::TableState;
use crate::load::{LoadError, Sizes, load};
use crate::process_map::ProcessMap;
use crate::python_map::PythonMap;
use crate::ring_positions::RingPositions;
use crate::sampling::{self, Event, SamplingError};
use crate::tables::Tables;

/// Unread bytes of process events that wake the collector; what is less waits for its next look. Samples of processes
/// that it does not know yet are deferred and lose nothing, and a wake-up per event would be paid for by the targets.
const SIDEBAND_BYTES: u32 = 1 << 10;

/// Bytes of process events that each CPU's buffer holds; with the control page, what `kernel.perf_event_mlock_kb` allows
/// by default where pages have 4 KiB.
const SIDEBAND_BUFFER: usize = 512 << 10;

/// Bytes of stacks that deferred samples may bring in a second, when every sample is one: while tables are made.
const COPIED_PER_SECOND: u32 = 128 << 20;

/// What to record.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Target {
    /// Every process.
    Machine,
    /// These and the children that they make meanwhile.
    Processes(Vec<u32>),
}

/// How to record.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Options {
    /// What.
    pub target: Target,
    /// Samples per second and CPU.
    pub frequency: u32,
    /// Native frames of CPython's eval loop are kept beside the Python frames that stand for them.
    pub keeps_eval_loops: bool,
}

/// Why a recording could not begin.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The sampler could not be loaded.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// Processes cannot be followed.
    #[error(transparent)]
    Sideband(#[from] OpenError),
    /// The perf events were refused.
    #[error(transparent)]
    Sampling(#[from] SamplingError),
    /// Ids here are not those of the kernel.
    #[error(
        "wholestack runs in a pid namespace of its own, a container's, where process ids are not those that the kernel \
         samples under"
    )]
    PidNamespace,
    /// /proc or a map could not be used.
    #[error("{what}: {source}")]
    Io {
        /// What was tried.
        what: &'static str,
        /// What the kernel said.
        source: io::Error,
    },
}

/// How far a recording is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Progress {
    /// Since sampling began.
    pub elapsed: Duration,
    /// Samples of what is recorded, lost ones included.
    pub samples: u64,
    /// Samples lost.
    pub lost: u64,
    /// Processes that are there.
    pub processes: usize,
}

/// An object without an unwind table.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NoTable {
    /// Its path.
    pub path: String,
    /// Why.
    pub reason: String,
}

/// What comes out.
pub struct Finished {
    /// The profile, with its stops, statuses and losses.
    pub profile: Profile,
    /// Why names are missing.
    pub unnamed: Vec<Unnamed>,
    /// Objects whose code was walked by frame pointers, if at all.
    pub no_tables: Vec<NoTable>,
    /// What went wrong on the way.
    pub troubles: Troubles,
    /// The sampler's own counters, in the order of [`Counter::ALL`].
    pub counters: Vec<(Counter, u64)>,
    /// What drove the sampling.
    pub event: Event,
    /// Times that the sampler should have run on CPUs that were not idle, where a timer drives it: by the CPU time that
    /// /proc/stat has of the recording. An idle CPU may stop its timer.
    pub ticks: Option<u64>,
}

/// A recording that runs.
pub struct Recording {
    // field order: the programs go before the maps that they use
    bpf: Option<aya::Ebpf>,
    collector: Collector,
    counters: PerCpuArray<MapData, [u64; Counter::COUNT]>,
    event: Event,
    frequency: u32,
    /// CPU time of the machine, in seconds, at the start and at the end.
    busy: [Option<f64>; 2],
    started: Instant,
    started_at: SystemTime,
    ended: Option<Duration>,
}

/// Follows processes from now on, and learns of those that there are.
fn follow_processes(scope: Scope) -> Result<(Sideband, ProcessTable), StartError> {
    // before /proc is read, so that nothing falls between the two
    let sideband = Sideband::open(&sideband_options())?;
    let mut table = ProcessTable::new(scope);
    table.seed().map_err(io_error("cannot read /proc"))?;
    Ok((sideband, table))
}

/// How processes are followed.
pub(crate) fn sideband_options() -> processes::Options {
    let data_pages = (SIDEBAND_BUFFER / rustix::param::page_size()).max(1);
    processes::Options { cpus: None, data_pages, watermark: SIDEBAND_BYTES }
}

fn io_error(what: &'static str) -> impl FnOnce(io::Error) -> StartError {
    move |source| StartError::Io { what, source }
}

impl Recording {
    /// Loads the sampler, learns of the processes that are there, and starts sampling.
    ///
    /// # Errors
    /// A [`StartError`]; nothing is left loaded.
    pub fn start(options: &Options) -> Result<Recording, StartError> {
        Recording::start_with(options, None)
    }

    /// The same with somebody who is shown each sample and what it was made from. That costs much more than sampling.
    ///
    /// # Errors
    /// As [`Recording::start`].
    pub fn start_with(options: &Options, witness: Option<Box<dyn Witness>>) -> Result<Recording, StartError> {
        if !in_initial_pid_namespace().map_err(io_error("cannot read /proc/self/ns/pid"))? {
            return Err(StartError::PidNamespace);
        }
        raise_file_limit();
        let cpus = processes::online_cpus().map_err(OpenError::from)?;
        let (scope, follow) = match &options.target {
            Target::Machine => (Scope::All, false),
            Target::Processes(pids) => (Scope::Only { pids: pids.clone(), children: true }, true),
        };
        let sizes = sizes(&cpus, options, witness.is_some());
        // the verifier takes its time, and so does /proc where there are many processes
        let (sampler, followed) = std::thread::scope(|threads| {
            let loading = std::thread::Builder::new().spawn_scoped(threads, || load(sizes));
            let followed = follow_processes(scope);
            let sampler = match loading {
                Ok(loading) => loading.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
                // without another thread, this one does both
                Err(_) => load(sizes),
            };
            (sampler, followed)
        });
        // without any rights both fail, and this one says which are needed
        let (sideband, table) = followed?;
        let mut sampler = sampler?;
        sampling::watch_processes(&mut sampler.bpf)?;
        let tables = Tables::new(sampler.pages, sampler.rows, &sampler.rules)
            .map_err(io_error("cannot map the table of rules"))?;
        let counts = Counts::new(sampler.counts, &sampler.control).map_err(io_error("cannot map the control map"))?;
        let cache = objects::default_directory().and_then(|directory| Cache::open(&directory).ok());
        let threads = std::thread::available_parallelism().map_or(1, |count| count.get().min(4));
        let builders = builders::start(threads, cache).map_err(io_error("cannot start threads"))?;
        let mut collector = Collector::new(Parts {
            table,
            sideband,
            ring_positions: RingPositions::new(&sampler.ring).map_err(io_error("cannot map the ring buffer"))?,
            ring: sampler.ring,
            counts,
            processes: ProcessMap::new(sampler.processes, sampler.stale, sampler.mappings),
            exits: sampler.exits,
            followed: follow.then_some(sampler.followed),
            tables,
            builders,
            interpreters: interpreters::start(threads).map_err(io_error("cannot start a thread"))?,
            python_map: PythonMap::new(&sampler.pythons, &sampler.eval_loops)
                .map_err(io_error("cannot map the map of interpreters"))?,
            keeps_eval_loops: options.keeps_eval_loops,
            witness,
        });
        // what happened before the sampler's own watch over processes began
        collector.pump();
        collector.prepare().map_err(io_error("cannot wait for tables and interpreters"))?;
        let event = sampling::start(&mut sampler.bpf, &cpus, options.frequency)?;
        Ok(Recording {
            bpf: Some(sampler.bpf),
            collector,
            counters: sampler.counters,
            event,
            frequency: options.frequency,
            busy: [busy_seconds(), None],
            started: Instant::now(),
            started_at: SystemTime::now(),
            ended: None,
        })
    }

    /// Works for at most `timeout`, or until a signal arrives.
    ///
    /// # Errors
    /// The kernel's, which end a recording.
    pub fn step(&mut self, timeout: Duration) -> io::Result<()> {
        self.collector.step(timeout)
    }

    /// How far it is.
    pub fn progress(&self) -> Progress {
        let counters = self.counters();
        let of = |counter: Counter| counters.get(counter as usize).map_or(0, |(_, count)| *count);
        Progress {
            elapsed: self.started.elapsed(),
            samples: of(Counter::Samples) - of(Counter::Idle) - of(Counter::Filtered),
            lost: Counter::LOSSES.iter().map(|counter| of(*counter)).sum(),
            processes: self.collector.table.len(),
        }
    }

    /// Whether any of the recorded processes is still there.
    pub fn has_processes(&self) -> bool {
        !self.collector.table.is_empty()
    }

    /// Stops sampling. What was sampled until now is kept.
    pub fn stop(&mut self) {
        if self.bpf.take().is_some() {
            self.ended = Some(self.started.elapsed());
            self.busy[1] = busy_seconds();
        }
    }

    /// Stops sampling, names everything and gives the profile.
    pub fn finish(mut self) -> Finished {
        self.stop();
        self.collector.finish();
        let counters = self.counters();
        let samples = raw_samples(&self.collector);
        let Attributed { mut profile, unnamed } = attribute(samples, &Everything::new(&mut self.collector));
        profile.meta.start = self.started_at;
        profile.meta.duration = self.ended.unwrap_or_default();
        profile.meta.event = self.event.name().to_owned();
        profile.meta.losses = losses(&counters, &self.collector.troubles);
        let no_tables = no_tables(&self.collector);
        let ticks = match (self.event, self.busy) {
            (Event::CpuClock, [Some(from), Some(to)]) => Some(((to - from) * f64::from(self.frequency)) as u64),
            _ => None,
        };
        Finished { profile, unnamed, no_tables, troubles: self.collector.troubles, counters, event: self.event, ticks }
    }

    fn counters(&self) -> Vec<(Counter, u64)> {
        let Ok(per_cpu) = self.counters.get(&0, 0) else { return Vec::new() };
        Counter::ALL
            .iter()
            .map(|counter| (*counter, per_cpu.iter().map(|counters| counters[*counter as usize]).sum()))
            .collect()
    }
}

fn losses(counters: &[(Counter, u64)], troubles: &Troubles) -> Vec<Losses> {
    let of_sampler = counters
        .iter()
        .filter(|(counter, count)| *count > 0 && (Counter::LOSSES.contains(counter) || *counter == Counter::LostFork))
        .map(|(counter, count)| Losses { cause: counter.text().to_owned(), count: *count });
    let missing = (troubles.missing_stacks > 0)
        .then(|| Losses { cause: "lost: stack never arrived".to_owned(), count: troubles.missing_stacks });
    of_sampler.chain(missing).collect()
}

fn no_tables(collector: &Collector) -> Vec<NoTable> {
    let without = collector.objects.iter().filter_map(|object| match &object.table {
        TableState::None(reason) => Some(NoTable { path: object.path.clone(), reason: reason.clone() }),
        _ => None,
    });
    without.collect()
}

fn raw_samples(collector: &Collector) -> Vec<RawSample> {
    let samples = collector.stacks.counts().map(|(thread, node, count)| RawSample {
        thread: ThreadLabel { instance: thread.instance, pid: thread.pid, tid: thread.tid, name: text(&thread.comm) },
        words: collector.stacks.words(node).collect(),
        count,
    });
    samples.collect()
}

/// Bytes up to the first NUL, as text.
fn text(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end]).into_owned()
}

/// What words refer to, out of a collector.
struct Everything<'a>(&'a Collector);

impl<'a> Everything<'a> {
    /// Reads the perf maps a last time.
    fn new(collector: &'a mut Collector) -> Everything<'a> {
        for map in collector.perf_maps.values_mut().flatten() {
            // what was read before stays
            let _ = map.refresh();
        }
        Everything(collector)
    }
}

impl Sources for Everything<'_> {
    fn object(&self, number: u32) -> Option<Object<'_>> {
        let object = self.0.objects.get(number)?;
        Some(Object {
            path: &object.path,
            build_id: object.build_id.map(|id| id.to_string()),
            file: object.file.as_deref(),
        })
    }

    fn perf_map(&self, instance: u64) -> Option<&PerfMap> {
        self.0.perf_maps.get(&instance)?.as_ref()
    }

    fn code_object(&self, instance: u64, code: u64, check: u32) -> Option<&CodeObject> {
        self.0.pythons.code(instance, code, check)
    }

    fn is_eval_loop(&self, instance: u64, object: u32, offset: u64) -> bool {
        self.0.pythons.is_eval_loop(instance, object, offset)
    }

    fn interpreters(&self, instance: u64) -> Vec<String> {
        self.0.pythons.statuses(instance).iter().map(|status| status.text.clone()).collect()
    }

    fn process(&self, instance: u64) -> Option<ProcessLabel> {
        let info = self.0.known.get(&instance)?;
        let line = info.command_line.as_ref().map(|line| {
            let arguments: Vec<String> =
                line.split(|byte| *byte == 0).map(|part| String::from_utf8_lossy(part).into_owned()).collect();
            arguments.join(" ").trim_end().to_owned()
        });
        Some(ProcessLabel { pid: info.pid, name: text(&info.comm), command_line: line })
    }
}

fn sizes(cpus: &[u32], options: &Options, evidence: bool) -> Sizes {
    let (frequency, follow) = (options.frequency, options.target != Target::Machine);
    let possible = aya::util::nr_cpus().map_or(cpus.len(), |count| count.max(cpus.len())) as u32;
    let per_second = frequency.saturating_mul(cpus.len() as u32);
    let copy = (COPIED_PER_SECOND / per_second.max(1)).clamp(SHORT_COPY_BYTES as u32, COPY_BYTES as u32);
    // a quarter fills before user space is woken, and it needs some milliseconds on a busy machine; both copies of the ring
    // in our address space count as our memory
    let ring = (per_second.saturating_mul(copy) / 16).max((1 << 21) + (possible << 18));
    Sizes {
        cpus: possible,
        processes: if follow { 1 << 14 } else { 1 << 16 },
        counts: per_second.saturating_mul(4).clamp(1 << 12, 1 << 20),
        ring: ring.next_power_of_two().min(1 << 26),
        copy,
        follow,
        evidence,
    }
}

/// CPU time of all CPUs since boot that was neither idle nor stolen, in seconds (proc_stat(5): user, nice, system, irq,
/// softirq).
fn busy_seconds() -> Option<f64> {
    let stat = std::fs::read_to_string("/proc/stat").ok()?;
    let fields: Vec<f64> = stat.lines().next()?.split_whitespace().skip(1).filter_map(|f| f.parse().ok()).collect();
    let busy: f64 = [0, 1, 2, 5, 6].iter().filter_map(|index| fields.get(*index)).sum();
    Some(busy / rustix::param::clock_ticks_per_second() as f64)
}

/// A file stays open for each executable object: take what the hard limit allows.
fn raise_file_limit() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    // a refusal leaves the lower limit, at which files are named as not opened
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum });
}
