//! The thread pointer and the registers of a thread of another process, by ptrace, and nothing of it stays behind.
//!
//! The kernel shows a thread's thread pointer to nobody but BPF and tracers, and to those only while the thread is
//! stopped: /proc/PID/task/TID/syscall has the stack pointer and the pc of a blocked thread, but not this register.
//!
//! # Why the target is the same afterwards
//! * The thread is seized (`PTRACE_SEIZE`: no stop, no signal), interrupted, read and detached from by a short-lived thread
//!   of our own. Whatever happens to that one, an error, a panic, `kill -9` of the whole program: when it ends the kernel
//!   detaches from all that it traces, and lets it run (`exit_ptrace` in kernel/ptrace.c). No tracing option is set, so no
//!   event but a stop can come.
//! * Stops are looked at with `WNOWAIT`. An ordinary wait takes the number of the signal that is about to be
//!   delivered out of the stopped thread (`wait_task_stopped` in kernel/exit.c); killed before it gives it back, a
//!   tracer would swallow that signal. Here it stays where it is until `PTRACE_DETACH` names it again, or our end
//!   lets it pass.
//! * A thread of a process that is stopped (`SIGSTOP`, Ctrl-Z) goes back into that stop, since the kernel renews it at
//!   the detach (`__ptrace_unlink`).
//! * A thread in uninterruptible sleep never stops, so each wait has a bound ([`Patience`]). `PTRACE_DETACH` works on
//!   stopped threads only; such a thread is left by the end of the tracing thread, which takes back the interruption too.
//!   That end is waited for.
//! * Ctrl-Z and the like are kept from the threads that take part while a thread is held, so that a stop of ours is not
//!   one of the target's. `SIGSTOP` cannot be kept away: it would hold the target for as long as it holds us.
//!
//! # What a target can notice
//! An interruption ends a blocking system call, which the kernel then starts again, with the rest of its time. As after
//! `SIGSTOP` and `SIGCONT`, a few calls return `EINTR` instead although no handler ran (signal(7)): `epoll_wait`,
//! `semop`, `sigtimedwait`, `io_getevents`, and sockets with a time limit. And a program that executes a set-user-ID file in the
//! very moment does not get its rights, if we have no CAP_SYS_PTRACE.

mod problem;
mod registers;
mod tracee;
mod tracer;

use std::sync::mpsc;
use std::time::{Duration, Instant};

pub use problem::ThreadProblem;
pub use registers::ThreadRegisters;
use tracee::Tracee;

/// How long a thread is waited for until it stops.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Patience {
    /// One in uninterruptible sleep.
    pub uninterruptible: Duration,
    /// One that waits for a CPU, or for a reason that is not known. It may take long on a busy machine.
    pub other: Duration,
}

impl Default for Patience {
    fn default() -> Patience {
        Patience { uninterruptible: Duration::from_millis(50), other: Duration::from_secs(2) }
    }
}

/// What was read from a thread.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Looked {
    /// The registers.
    pub registers: ThreadRegisters,
    /// It stood still for at most so long: from when it was last seen not to be stopped until it was let go.
    pub held: Duration,
}

/// What came of a look at a stopped thread.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Held<R> {
    /// What the function returned.
    pub value: R,
    /// Whether the thread stood still until it returned. If not, what it has read may be of several moments.
    pub in_time: bool,
    /// As in [`Looked`].
    pub held: Duration,
}

/// The registers of a thread, by its id.
///
/// # Errors
/// Each reason by name.
pub fn of_thread(tid: u32, patience: Patience) -> Result<Looked, ThreadProblem> {
    of_threads(&[tid], patience).pop().unwrap_or(Err(ThreadProblem::NoSuchThread { tid }))
}

/// The registers of threads, in the same order. One is stopped at a time, each for as long as three system calls take.
pub fn of_threads(tids: &[u32], patience: Patience) -> Vec<Result<Looked, ThreadProblem>> {
    let mut results = Vec::with_capacity(tids.len());
    while let Some(rest) = tids.get(results.len()..).filter(|rest| !rest.is_empty()) {
        match tracer::run(|| look_at(rest, patience)) {
            Ok(some) => results.extend(some),
            Err(source) => results.push(Err(ThreadProblem::System { tid: rest[0], source })),
        }
    }
    results
}

/// Looks at threads up to the first that cannot be detached from, which the end of this thread does. At least one.
fn look_at(tids: &[u32], patience: Patience) -> Vec<Result<Looked, ThreadProblem>> {
    let mut results = Vec::new();
    for tid in tids {
        let looked = Tracee::stop(*tid, patience).and_then(|tracee| {
            let registers = ThreadRegisters::of_stopped(*tid)?;
            Ok(Looked { registers, held: tracee.detach() })
        });
        let may_be_attached = looked.is_err();
        results.push(looked);
        if may_be_attached {
            break;
        }
    }
    results
}

/// Stops a thread, calls `look` with its registers, and lets it go, after `longest` even if `look` has not returned by
/// then. Only this one thread stands still; the others of its process may change what `look` reads.
///
/// # Errors
/// If the thread was not stopped, each reason by name; `look` is not called then.
pub fn with_stopped<R>(
    tid: u32,
    patience: Patience,
    longest: Duration,
    look: impl FnOnce(&ThreadRegisters) -> R,
) -> Result<Held<R>, ThreadProblem> {
    let (stopped, registers) = mpsc::sync_channel(1);
    let (finished, end) = mpsc::sync_channel::<()>(0);
    let hold = move || -> Result<Hold, ThreadProblem> {
        let tracee = Tracee::stop(tid, patience)?;
        let registers = ThreadRegisters::of_stopped(tid)?;
        let deadline = Instant::now() + longest;
        let given = stopped.send(registers);
        // the sender is dropped when `look` has returned or panicked
        let ended = given.is_err() || end.recv_timeout(longest) == Err(mpsc::RecvTimeoutError::Disconnected);
        let in_time = ended && Instant::now() <= deadline;
        Ok(Hold { in_time, held: tracee.detach() })
    };
    let run = tracer::run_beside(hold, || {
        let looked = registers.recv().ok().map(|registers| look(&registers));
        drop(finished);
        looked
    });
    match run {
        Ok((Ok(hold), Some(value))) => Ok(Held { value, in_time: hold.in_time, held: hold.held }),
        Ok((Err(problem), _)) => Err(problem),
        Ok((Ok(_), None)) => Err(ThreadProblem::Ended { tid }),
        Err(source) => Err(ThreadProblem::System { tid, source }),
    }
}

/// How a thread was held.
struct Hold {
    in_time: bool,
    held: Duration,
}
