//! Records of all CPUs, merged into one sequence.
//!
//! Rings are read one after the other, so an event of one CPU could be read before the event of another CPU that
//! caused it. Therefore the time is taken first and nothing later than that is handed out: whatever happened before
//! an event up to that time was written before the first ring was read.

use std::io;
use std::ops::ControlFlow;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::cpus::{CpuListError, online_cpus};
use crate::records::{Event, TimedEvent, decode};
use crate::ring::{RingError, RingOptions, SidebandRing};
use crate::{Proc, monotonic_ns};

/// How to open a [`Sideband`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Options {
    /// The CPUs; all that are online if `None`.
    pub cpus: Option<Vec<u32>>,
    /// Pages of data for each CPU, a power of two. 128 (and the control page) are what a user without
    /// `CAP_PERFMON` or `CAP_IPC_LOCK` may lock by default (`kernel.perf_event_mlock_kb` = 516).
    pub data_pages: usize,
    /// Unread bytes at which [`Sideband::wait`] returns; 1 for every record.
    pub watermark: u32,
}

impl Default for Options {
    fn default() -> Options {
        Options { cpus: None, data_pages: 128, watermark: 1 }
    }
}

/// Why processes cannot be followed.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Which CPUs there are is not known.
    #[error(transparent)]
    Cpus(#[from] CpuListError),
    /// None of the CPUs is online.
    #[error("no CPU to follow processes on: none of those asked for is online")]
    NoCpu,
    /// The number of pages is not a power of two.
    #[error("a perf buffer of {0} pages: must be a power of two")]
    DataPages(usize),
    /// EPERM, EACCES.
    #[error(
        "following processes on all CPUs is not permitted: it needs CAP_PERFMON (before Linux 5.8 CAP_SYS_ADMIN) or \
         kernel.perf_event_paranoid at most 0 (it is {paranoid}); a container's seccomp profile or kernel lockdown can \
         forbid it, too ({source})"
    )]
    NotPermitted {
        /// The setting, as /proc has it.
        paranoid: String,
        /// What the kernel said.
        source: io::Error,
    },
    /// EMFILE, ENFILE.
    #[error(
        "too many open files at CPU {cpu}: one is needed for each CPU; raise the limit (ulimit -n, LimitNOFILE=) ({source})"
    )]
    TooManyFiles {
        /// The CPU at which the limit was reached.
        cpu: u32,
        /// What the kernel said.
        source: io::Error,
    },
    /// The buffer may not be locked in memory.
    #[error(
        "no memory may be locked for the perf buffer of CPU {cpu}: {kilobytes} KB are asked for; raise \
         kernel.perf_event_mlock_kb or the limit of locked memory (ulimit -l), or run with CAP_IPC_LOCK ({source})"
    )]
    LockedMemory {
        /// The CPU.
        cpu: u32,
        /// Size of one buffer.
        kilobytes: usize,
        /// What the kernel said.
        source: io::Error,
    },
    /// ENOSYS, ENOENT, EOPNOTSUPP.
    #[error("this kernel has no perf events (CONFIG_PERF_EVENTS) ({0})")]
    NotSupported(#[source] io::Error),
    /// Anything else.
    #[error("cannot follow processes on CPU {cpu}: {source}")]
    Other {
        /// The CPU.
        cpu: u32,
        /// What failed.
        source: RingError,
    },
}

/// What [`Sideband::drain`] did.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Drained {
    /// Events handed out.
    pub events: usize,
    /// Whether newer ones stayed behind for the next call. [`Sideband::wait`] is not woken by those.
    pub more: bool,
}

/// Records of all CPUs.
#[derive(Debug)]
pub struct Sideband {
    rings: Vec<SidebandRing>,
    build_ids: bool,
}

impl Sideband {
    /// Opens the records of every CPU. A CPU that is offline is left out.
    ///
    /// # Errors
    /// The cause, and what would help.
    pub fn open(options: &Options) -> Result<Sideband, OpenError> {
        if !options.data_pages.is_power_of_two() {
            return Err(OpenError::DataPages(options.data_pages));
        }
        let cpus = match &options.cpus {
            Some(cpus) => cpus.clone(),
            None => online_cpus()?,
        };
        let mut ring = RingOptions { data_pages: options.data_pages, watermark: options.watermark, build_ids: true };
        let mut rings = Vec::with_capacity(cpus.len());
        for cpu in cpus {
            match open_probing(cpu, &mut ring) {
                Ok(opened) => rings.push(opened),
                Err(error) if is_offline(&error) => {}
                Err(error) => return Err(explain(cpu, ring.data_pages, error)),
            }
        }
        if rings.is_empty() {
            return Err(OpenError::NoCpu);
        }
        Ok(Sideband { rings, build_ids: ring.build_ids })
    }

    /// Whether mappings carry build-ids.
    pub fn build_ids(&self) -> bool {
        self.build_ids
    }

    /// The CPUs that are followed.
    pub fn cpus(&self) -> impl Iterator<Item = u32> {
        self.rings.iter().map(SidebandRing::cpu)
    }

    /// One descriptor for each CPU; readable when there are new records. For poll and (edge-triggered) epoll: the
    /// kernel reports each batch of records once, whether or not it was read.
    pub fn fds(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.rings.iter().map(AsFd::as_fd)
    }

    /// Waits until there are new records, or until `timeout` is over. A signal ends the wait early.
    ///
    /// # Errors
    /// What the kernel says, which can only be lack of memory.
    pub fn wait(&self, timeout: Option<Duration>) -> io::Result<()> {
        let mut fds: Vec<_> = self.rings.iter().map(|ring| PollFd::new(ring, PollFlags::IN)).collect();
        let timeout = timeout.and_then(|timeout| Timespec::try_from(timeout).ok());
        match poll(&mut fds, timeout.as_ref()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Appends all events up to now to `events`, sorted by time. A record that cannot be understood counts as lost.
    pub fn drain(&mut self, events: &mut Vec<TimedEvent>) -> Drained {
        self.drain_until(monotonic_ns(), events)
    }

    /// The same of all events up to `horizon` (CLOCK_MONOTONIC, ns).
    pub fn drain_until(&mut self, horizon: u64, events: &mut Vec<TimedEvent>) -> Drained {
        let first = events.len();
        let mut more = false;
        for ring in &mut self.rings {
            more |= drain_ring(ring, horizon, events);
        }
        events[first..].sort_by_key(|event| event.time);
        Drained { events: events.len() - first, more }
    }
}

/// Takes the events of one ring up to `horizon`; whether there are later ones.
fn drain_ring(ring: &mut SidebandRing, horizon: u64, events: &mut Vec<TimedEvent>) -> bool {
    let cpu = ring.cpu();
    let mut more = false;
    let mut bad = 0;
    let dropped = ring.read(|record| {
        match decode(record) {
            Ok(Some(event)) if event.time > horizon => {
                more = true;
                return ControlFlow::Break(());
            }
            Ok(Some(event)) => events.push(event),
            Ok(None) => {}
            Err(_) => bad += 1,
        }
        ControlFlow::Continue(())
    });
    if bad > 0 || dropped > 0 {
        events.push(TimedEvent { time: horizon, cpu, event: Event::Lost { count: bad.max(1) } });
    }
    more
}

/// Opens a ring, without build-ids if the kernel knows none; remembers that in `options`.
fn open_probing(cpu: u32, options: &mut RingOptions) -> Result<SidebandRing, RingError> {
    match SidebandRing::open(cpu, *options) {
        Err(RingError::Open(error)) if options.build_ids && error.raw_os_error() == Some(libc::EINVAL) => {
            let ring = SidebandRing::open(cpu, RingOptions { build_ids: false, ..*options })?;
            options.build_ids = false;
            Ok(ring)
        }
        result => result,
    }
}

/// A CPU that went offline after it was listed.
fn is_offline(error: &RingError) -> bool {
    matches!(error, RingError::Open(error) if error.raw_os_error() == Some(libc::ENODEV))
}

/// The cause behind an error.
fn explain(cpu: u32, data_pages: usize, error: RingError) -> OpenError {
    match error {
        RingError::Open(source) => match source.raw_os_error() {
            Some(libc::EPERM | libc::EACCES) => OpenError::NotPermitted { paranoid: paranoid(), source },
            Some(libc::EMFILE | libc::ENFILE) => OpenError::TooManyFiles { cpu, source },
            Some(libc::ENOSYS | libc::ENOENT | libc::EOPNOTSUPP) => OpenError::NotSupported(source),
            _ => OpenError::Other { cpu, source: RingError::Open(source) },
        },
        RingError::Map(source) if matches!(source.raw_os_error(), Some(libc::EPERM | libc::ENOMEM)) => {
            let kilobytes = (data_pages + 1).saturating_mul(rustix::param::page_size()) / 1024;
            OpenError::LockedMemory { cpu, kilobytes, source }
        }
        source => OpenError::Other { cpu, source },
    }
}

/// `kernel.perf_event_paranoid`.
fn paranoid() -> String {
    let path = Proc::system().root().join("sys/kernel/perf_event_paranoid");
    std::fs::read_to_string(path).map_or_else(|_| "not readable".to_owned(), |text| text.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open(code: i32) -> RingError {
        RingError::Open(io::Error::from_raw_os_error(code))
    }

    #[test]
    fn causes() {
        for code in [libc::EPERM, libc::EACCES] {
            let error = explain(0, 128, open(code));
            assert!(matches!(error, OpenError::NotPermitted { .. }));
            assert!(error.to_string().contains("CAP_PERFMON"), "{error}");
        }
        assert!(matches!(explain(3, 128, open(libc::EMFILE)), OpenError::TooManyFiles { cpu: 3, .. }));
        assert!(matches!(explain(0, 128, open(libc::ENOSYS)), OpenError::NotSupported(_)));
        assert!(matches!(explain(0, 128, open(libc::EBUSY)), OpenError::Other { .. }));
        let locked = explain(0, 128, RingError::Map(io::Error::from_raw_os_error(libc::EPERM)));
        assert!(matches!(locked, OpenError::LockedMemory { .. }));
        assert!(is_offline(&open(libc::ENODEV)) && !is_offline(&open(libc::EPERM)));
    }
}
