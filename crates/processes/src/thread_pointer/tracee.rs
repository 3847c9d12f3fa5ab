//! A thread from its seizing to its release.

use std::io;
use std::time::{Duration, Instant};

use libc::{c_int, c_void, pid_t};

use super::problem::stat;
use super::{Patience, ThreadProblem};
use crate::stat::State;

/// In the upper half of the status of a stop that is no signal (include/uapi/linux/ptrace.h).
const PTRACE_EVENT_STOP: c_int = 128;
/// The thread is asked for its state so often while it does not stop.
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// A thread that the calling thread has stopped. What is not detached from is let go when the calling thread ends.
#[derive(Debug)]
pub(super) struct Tracee {
    tid: u32,
    /// The signal that it was about to get, and will get.
    signal: c_int,
    /// When it was last seen not to be stopped.
    moving: Instant,
}

/// What waiting for a thread gave.
enum Stop {
    NotYet,
    /// It stands still; with a signal at the door, or 0.
    Stopped(c_int),
    Ended,
}

/// The signal that a thread is about to get, and when it was last seen not to be stopped.
type Stood = (c_int, Instant);

impl Tracee {
    /// Stops a thread. After an error it may still be traced: the calling thread must end.
    pub(super) fn stop(tid: u32, patience: Patience) -> Result<Tracee, ThreadProblem> {
        // SAFETY: neither request reads or writes our memory.
        unsafe { request(libc::PTRACE_SEIZE as _, tid, 0, 0) }
            .map_err(|source| ThreadProblem::of_seizing(tid, source))?;
        let asked = Instant::now();
        // SAFETY: as above.
        unsafe { request(libc::PTRACE_INTERRUPT as _, tid, 0, 0) }.map_err(|_| ThreadProblem::Ended { tid })?;
        let (signal, moving) = wait(tid, asked, patience)?;
        Ok(Tracee { tid, signal, moving })
    }

    /// Lets it go on as if nothing had been; for how long it was held at most.
    pub(super) fn detach(self) -> Duration {
        // It fails only if the thread was killed meanwhile: it is on its way out of the stop.
        // SAFETY: the request does not read or write our memory.
        let _ = unsafe { request(libc::PTRACE_DETACH as _, self.tid, 0, self.signal as usize) };
        self.moving.elapsed()
    }
}

/// Waits until a thread stops.
fn wait(tid: u32, asked: Instant, patience: Patience) -> Result<Stood, ThreadProblem> {
    let mut pause = Pause::default();
    let mut next_look = LOOK_EVERY;
    let mut moving = asked;
    loop {
        let now = Instant::now();
        match look(tid).map_err(|source| ThreadProblem::System { tid, source })? {
            Stop::Stopped(signal) => return Ok((signal, moving)),
            Stop::Ended => return Err(ThreadProblem::Ended { tid }),
            Stop::NotYet => moving = now,
        }
        let waited = asked.elapsed();
        if waited >= next_look {
            give_up(tid, waited, patience)?;
            next_look = waited + LOOK_EVERY;
        }
        pause.rest();
    }
}

/// Whether it is to be waited for no longer.
fn give_up(tid: u32, waited: Duration, patience: Patience) -> Result<(), ThreadProblem> {
    let Ok(stat) = stat(tid) else { return Err(ThreadProblem::Ended { tid }) };
    match stat.state {
        State::Zombie | State::Dead => Err(ThreadProblem::Ended { tid }),
        State::DiskSleep if waited >= patience.uninterruptible => Err(ThreadProblem::Uninterruptible { tid, waited }),
        state if waited >= patience.other => Err(ThreadProblem::NotStopped { tid, state, waited }),
        _ => Ok(()),
    }
}

/// Asks whether a thread has stopped, without taking anything from it.
fn look(tid: u32) -> io::Result<Stop> {
    // SAFETY: plain integers and pointers, for which zero is a value.
    let mut info: libc::siginfo_t = unsafe { std::mem::zeroed() };
    let options = libc::WSTOPPED | libc::WEXITED | libc::WNOHANG | libc::WNOWAIT | libc::__WALL;
    // SAFETY: `info` outlives the call.
    if unsafe { libc::waitid(libc::P_PID, tid, &raw mut info, options) } == -1 {
        let error = io::Error::last_os_error();
        return match error.raw_os_error() {
            Some(libc::EINTR) => Ok(Stop::NotYet),
            Some(libc::ECHILD) => Ok(Stop::Ended),
            _ => Err(error),
        };
    }
    // SAFETY: the kernel fills these two fields for a child's change; they are zero if there was none.
    let (pid, status) = unsafe { (info.si_pid(), info.si_status()) };
    Ok(match info.si_code {
        _ if pid == 0 => Stop::NotYet,
        libc::CLD_STOPPED | libc::CLD_TRAPPED if status >> 8 == PTRACE_EVENT_STOP => Stop::Stopped(0),
        libc::CLD_STOPPED | libc::CLD_TRAPPED => Stop::Stopped(status & 0x7f),
        libc::CLD_EXITED | libc::CLD_KILLED | libc::CLD_DUMPED => Stop::Ended,
        _ => Stop::NotYet,
    })
}

/// Waits longer each time: a thread that runs or sleeps stops within some ten microseconds, one that waits for a CPU
/// within milliseconds. It must be seen soon after, since it stands still until then. To yield would not do: on a busy CPU
/// that is to wait until all others have had their turn (it made the longest hundredth of looks four times as long).
#[derive(Default)]
struct Pause {
    times: u32,
}

impl Pause {
    fn rest(&mut self) {
        match self.times {
            0..10 => std::thread::sleep(Duration::from_micros(5)),
            10..100 => std::thread::sleep(Duration::from_micros(20)),
            100..500 => std::thread::sleep(Duration::from_micros(100)),
            _ => std::thread::sleep(Duration::from_micros(500)),
        }
        self.times = self.times.saturating_add(1);
    }
}

/// A ptrace request.
///
/// # Safety
/// `data` must be what the request wants: for some, the address of memory that it may read or write.
pub(super) unsafe fn request(request: c_int, tid: u32, address: usize, data: usize) -> io::Result<()> {
    let tid = pid_t::try_from(tid).map_err(|_| io::Error::from_raw_os_error(libc::ESRCH))?;
    // SAFETY: as the caller promises.
    match unsafe { libc::ptrace(request as _, tid, address as *mut c_void, data as *mut c_void) } {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}
