//! What the kernel allows, found by doing it and undoing it at once.

use std::io;
use std::os::fd::{FromRawFd, OwnedFd};

use aya::programs::ProgramType;
use aya::sys::is_helper_supported;
use aya_obj::generated::bpf_func_id as helper;
use perf_event_open_sys::bindings as sys;
use processes::{OpenError, Sideband};

use crate::load::{Sampler, Sizes, load};
use crate::recording::{StartError, sideband_options};
use crate::sampling::{self, Event};

/// A program that the kernel verified.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Verified {
    /// Its name.
    pub name: String,
    /// Instructions that the verifier went through; `None` before Linux 5.16, which does not say.
    pub instructions: Option<u32>,
}

/// A sampler that was loaded, attached and removed again.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ProbeReport {
    /// Its programs.
    pub programs: Vec<Verified>,
    /// What drove it.
    pub event: Event,
}

/// Loads the sampler, attaches it to every CPU for a moment in which it samples nobody, and removes it.
///
/// # Errors
/// The [`StartError`] that a recording would end with.
pub fn probe() -> Result<ProbeReport, StartError> {
    let cpus = processes::online_cpus().map_err(OpenError::from)?;
    let possible = aya::util::nr_cpus().map_or(cpus.len(), |count| count.max(cpus.len())) as u32;
    let sizes = Sizes {
        cpus: possible,
        processes: 1 << 10,
        counts: 1 << 12,
        ring: 1 << 22,
        copy: 1 << 14,
        follow: true,
        evidence: true,
    };
    let mut sampler = load(sizes)?;
    sampling::watch_processes(&mut sampler.bpf)?;
    let event = sampling::start(&mut sampler.bpf, &cpus, 1)?;
    Ok(ProbeReport { programs: verified(&sampler), event })
}

fn verified(sampler: &Sampler) -> Vec<Verified> {
    let programs = sampler.bpf.programs().map(|(name, program)| Verified {
        name: name.to_owned(),
        instructions: program.info().ok().and_then(|info| info.verified_instruction_count()),
    });
    programs.collect()
}

/// Follows processes for a moment, as a recording does.
///
/// # Errors
/// The [`OpenError`] that a recording would end with.
pub fn probe_sideband() -> Result<(), OpenError> {
    Sideband::open(&sideband_options()).map(drop)
}

/// Opens the event that would drive sampling, on one CPU and for all processes, without BPF.
///
/// # Errors
/// What the kernel says of the timer of its own, which every kernel with perf events has.
pub fn probe_event() -> io::Result<Event> {
    let cpu = processes::online_cpus().map_err(io::Error::other)?.first().copied().unwrap_or(0);
    let cycles = open(sys::PERF_TYPE_HARDWARE, u64::from(sys::PERF_COUNT_HW_CPU_CYCLES), cpu, 0);
    if cycles.is_ok() {
        return Ok(Event::Cycles);
    }
    open(sys::PERF_TYPE_SOFTWARE, u64::from(sys::PERF_COUNT_SW_CPU_CLOCK), cpu, 0).map(|_| Event::CpuClock)
}

fn open(kind: u32, config: u64, cpu: u32, flags: u64) -> io::Result<OwnedFd> {
    let size = size_of::<sys::perf_event_attr>() as u32;
    let mut attributes = sys::perf_event_attr { type_: kind, size, config, ..Default::default() };
    attributes.set_disabled(1);
    attributes.set_freq(1);
    attributes.__bindgen_anon_1.sample_freq = 1;
    let cpu = i32::try_from(cpu).map_err(io::Error::other)?;
    let flags = flags | u64::from(sys::PERF_FLAG_FD_CLOEXEC);
    // SAFETY: the attributes are a whole structure of the size that they say; the kernel writes to `size` at most.
    match unsafe { perf_event_open_sys::perf_event_open(&mut attributes, -1, cpu, -1, flags) } {
        -1 => Err(io::Error::last_os_error()),
        // SAFETY: a descriptor that the kernel just made and nobody else knows.
        fd => Ok(unsafe { OwnedFd::from_raw_fd(fd) }),
    }
}

/// Whether a system call gets as far as the code that does it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reach {
    /// It does.
    Reached,
    /// It is refused before its arguments are looked at: by a seccomp filter, by a security module, or, for `bpf`
    /// before Linux 5.19, for want of CAP_BPF.
    Refused,
    /// The kernel does not have it, or a seccomp filter says so.
    Absent,
}

/// Whether `bpf` is to be reached: calls it with a command that does not exist.
pub fn probe_bpf_call() -> Reach {
    const NO_SUCH_COMMAND: libc::c_long = 0x7fff_ffff;
    let attributes = [0u64; 8];
    // SAFETY: an unknown command; the kernel reads at most the 64 bytes that there are.
    let result =
        unsafe { libc::syscall(libc::SYS_bpf, NO_SUCH_COMMAND, attributes.as_ptr(), size_of_val(&attributes)) };
    reach(result == 0, &io::Error::last_os_error())
}

/// Whether `perf_event_open` is to be reached: calls it with a flag that does not exist.
pub fn probe_perf_call() -> Reach {
    const NO_SUCH_FLAG: u64 = 1 << 31;
    match open(sys::PERF_TYPE_SOFTWARE, u64::from(sys::PERF_COUNT_SW_DUMMY), 0, NO_SUCH_FLAG) {
        Ok(_) => Reach::Reached,
        Err(error) => reach(false, &error),
    }
}

fn reach(done: bool, error: &io::Error) -> Reach {
    match error.raw_os_error() {
        _ if done => Reach::Reached,
        Some(libc::ENOSYS) => Reach::Absent,
        Some(libc::EPERM | libc::EACCES) => Reach::Refused,
        _ => Reach::Reached,
    }
}

/// What the sampler needs that kernels had not always, and since when they have it.
const NEEDED: [(helper, &str); 4] = [
    (helper::BPF_FUNC_ringbuf_output, "the BPF ring buffer (Linux 5.8)"),
    (helper::BPF_FUNC_get_current_task_btf, "bpf_get_current_task_btf (Linux 5.11)"),
    (helper::BPF_FUNC_task_pt_regs, "bpf_task_pt_regs (Linux 5.15)"),
    (helper::BPF_FUNC_loop, "bpf_loop (Linux 5.17)"),
];

/// What the sampler needs and this kernel does not have; what could not be found out, for want of rights, is not in it.
pub fn missing_features() -> Vec<&'static str> {
    let absent = |needed: helper| matches!(is_helper_supported(ProgramType::PerfEvent, needed), Ok(false));
    NEEDED.iter().filter(|(needed, _)| absent(*needed)).map(|(_, name)| *name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_recording_does_can_be_done_here() {
        let report = probe().expect("loads as root on this kernel");
        assert!(report.programs.iter().all(|program| program.instructions.is_none_or(|count| count > 0)), "{report:?}");
        assert!(report.programs.iter().any(|program| program.name == "sample"), "{report:?}");
        assert_eq!(probe_event().expect("as root"), report.event);
        probe_sideband().expect("as root");
        assert_eq!((probe_bpf_call(), probe_perf_call()), (Reach::Reached, Reach::Reached));
        assert!(missing_features().is_empty());
    }

    #[test]
    fn errors_tell_how_far_a_call_came() {
        for (code, expected) in [
            (libc::EINVAL, Reach::Reached),
            (libc::E2BIG, Reach::Reached),
            (libc::EPERM, Reach::Refused),
            (libc::ENOSYS, Reach::Absent),
        ] {
            assert_eq!(reach(false, &io::Error::from_raw_os_error(code)), expected);
        }
    }
}
