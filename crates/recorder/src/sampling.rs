//! The perf events that drive the sampler: one per CPU.
//!
//! One event per CPU serves every recording, also that of one process: the sampler leaves at once when the tick hits
//! somebody else. An event per thread would cost the target a switch of event at each of its context switches, and
//! has to be opened for each of its threads.

use aya::Ebpf;
use aya::programs::perf_event::{HardwareEvent, PerfEventConfig, PerfEventScope, SamplePolicy, SoftwareEvent};
use aya::programs::{PerfEvent, ProgramError, RawTracePoint};
use aya::sys::SyscallError;

/// What drives the sampling.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Event {
    /// CPU cycles counted by the hardware.
    Cycles,
    /// A timer of the kernel's, where there is no such counter (most virtual machines).
    CpuClock,
}

impl Event {
    /// Name as perf writes it.
    pub fn name(self) -> &'static str {
        match self {
            Event::Cycles => "cycles",
            Event::CpuClock => "cpu-clock",
        }
    }

    fn config(self) -> PerfEventConfig {
        match self {
            Event::Cycles => PerfEventConfig::Hardware(HardwareEvent::CpuCycles),
            Event::CpuClock => PerfEventConfig::Software(SoftwareEvent::CpuClock),
        }
    }
}

/// Why sampling could not begin.
#[derive(Debug, thiserror::Error)]
pub enum SamplingError {
    /// The kernel has a lower limit.
    #[error("{asked} Hz is more than this kernel allows (kernel.perf_event_max_sample_rate = {most})")]
    Rate {
        /// Asked for.
        asked: u32,
        /// The kernel's limit.
        most: u32,
    },
    /// The event was refused.
    #[error("the kernel refused the {event} event: {source}")]
    Event {
        /// Which.
        event: &'static str,
        /// What it said.
        source: ProgramError,
    },
    /// No CPU could be sampled.
    #[error("no CPU is online")]
    NoCpu,
    /// The programs are not loaded.
    #[error("the BPF object has no program {0}")]
    Missing(&'static str),
}

/// Attaches the sampler to an event on each CPU; says which event it is.
pub(crate) fn start(bpf: &mut Ebpf, cpus: &[u32], frequency: u32) -> Result<Event, SamplingError> {
    if let Some(most) = most_frequent()
        && frequency > most
    {
        return Err(SamplingError::Rate { asked: frequency, most });
    }
    let program = bpf.program_mut("sample").ok_or(SamplingError::Missing("sample"))?;
    let program: &mut PerfEvent = program.try_into().map_err(|_| SamplingError::Missing("sample"))?;
    match attach(program, Event::Cycles, cpus, frequency) {
        Ok(()) => Ok(Event::Cycles),
        Err(SamplingError::Event { .. }) => attach(program, Event::CpuClock, cpus, frequency).map(|()| Event::CpuClock),
        Err(error) => Err(error),
    }
}

/// Programs that keep the sampler's knowledge of processes true between two looks of user space, and the tracepoints that
/// they run at.
pub(crate) const TRACEPOINTS: [(&str, &str); 3] =
    [("follow", "sched_process_fork"), ("exec", "sched_process_exec"), ("remap", "vm_unmapped_area")];

/// Attaches the programs of [`TRACEPOINTS`].
pub(crate) fn watch_processes(bpf: &mut Ebpf) -> Result<(), SamplingError> {
    TRACEPOINTS.iter().try_for_each(|(name, tracepoint)| attach_tracepoint(bpf, name, tracepoint))
}

fn attach_tracepoint(bpf: &mut Ebpf, name: &'static str, tracepoint: &'static str) -> Result<(), SamplingError> {
    let program = bpf.program_mut(name).ok_or(SamplingError::Missing(name))?;
    let program: &mut RawTracePoint = program.try_into().map_err(|_| SamplingError::Missing(name))?;
    let attached = program.attach(tracepoint);
    attached.map(drop).map_err(|source| SamplingError::Event { event: tracepoint, source })
}

fn attach(program: &mut PerfEvent, event: Event, cpus: &[u32], frequency: u32) -> Result<(), SamplingError> {
    let mut attached = 0;
    for cpu in cpus {
        let scope = PerfEventScope::AllProcessesOneCpu { cpu: *cpu };
        match program.attach(event.config(), scope, SamplePolicy::Frequency(u64::from(frequency)), false) {
            Ok(_) => attached += 1,
            // the CPU went offline since the list was read
            Err(error) if errno(&error) == Some(libc::ENODEV) => {}
            Err(source) => return Err(SamplingError::Event { event: event.name(), source }),
        }
    }
    if attached == 0 { Err(SamplingError::NoCpu) } else { Ok(()) }
}

fn errno(error: &ProgramError) -> Option<i32> {
    match error {
        ProgramError::SyscallError(SyscallError { io_error, .. }) => io_error.raw_os_error(),
        _ => None,
    }
}

/// The kernel's limit in samples per second.
fn most_frequent() -> Option<u32> {
    std::fs::read_to_string("/proc/sys/kernel/perf_event_max_sample_rate").ok()?.trim().parse().ok()
}
