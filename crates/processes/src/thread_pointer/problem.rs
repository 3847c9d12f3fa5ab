//! Why a thread's registers cannot be had.

use std::io;
use std::time::Duration;

use crate::access::Access;
use crate::stat::{Stat, State};
use crate::{Proc, namespaces};

/// Why a thread's registers cannot be had. In no case does it stay stopped or traced.
#[derive(Debug, thiserror::Error)]
pub enum ThreadProblem {
    /// There is none with this id.
    #[error("there is no thread {tid}")]
    NoSuchThread {
        /// The id.
        tid: u32,
    },
    /// It has ended, is ending, or has executed another program meanwhile.
    #[error("thread {tid} has ended")]
    Ended {
        /// The id.
        tid: u32,
    },
    /// It has no user registers.
    #[error("thread {tid} is one of the kernel's")]
    KernelThread {
        /// The id.
        tid: u32,
    },
    /// A process cannot trace itself.
    #[error("thread {tid} is one of this program's own")]
    Own {
        /// The id.
        tid: u32,
    },
    /// A debugger, strace or another profiler has it. There can be one tracer only.
    #[error("thread {tid} is traced by process {tracer} already (a debugger, strace?); end that first")]
    Traced {
        /// The id.
        tid: u32,
        /// The tracer: a thread's id.
        tracer: u32,
    },
    /// `EPERM`.
    #[error("thread {tid} cannot be stopped: {access}")]
    NotPermitted {
        /// The id.
        tid: u32,
        /// What is in the way, and what helps.
        access: Access,
    },
    /// It did not stop in time since it waits for something that cannot be interrupted: a disk, a network file
    /// system, a child made by vfork that has not executed a program yet.
    #[error("thread {tid} is in uninterruptible sleep; it did not stop within {} ms", .waited.as_millis())]
    Uninterruptible {
        /// The id.
        tid: u32,
        /// For how long it was waited for.
        waited: Duration,
    },
    /// It did not stop in time for another reason: it got no CPU.
    #[error("thread {tid} did not stop within {} ms; it is {state:?}", .waited.as_millis())]
    NotStopped {
        /// The id.
        tid: u32,
        /// What it was doing at last.
        state: State,
        /// For how long it was waited for.
        waited: Duration,
    },
    /// It runs 32-bit code, whose thread pointer is another register.
    #[error("thread {tid} runs 32-bit code")]
    ThirtyTwoBit {
        /// The id.
        tid: u32,
    },
    /// Any other failure.
    #[error("thread {tid} cannot be traced: {source}")]
    System {
        /// The id.
        tid: u32,
        /// What the kernel said.
        source: io::Error,
    },
}

/// What /proc says of a thread: /proc/TID is there for every thread, if it is not listed.
pub(super) fn stat(tid: u32) -> io::Result<Stat> {
    Proc::system().stat(tid)
}

impl ThreadProblem {
    /// Why the kernel refused to trace it.
    pub(super) fn of_seizing(tid: u32, source: io::Error) -> ThreadProblem {
        match source.raw_os_error() {
            Some(libc::ESRCH) => ThreadProblem::NoSuchThread { tid },
            Some(libc::EPERM) => ThreadProblem::of_refusal(tid),
            _ => ThreadProblem::System { tid, source },
        }
    }

    /// What `EPERM` means here (`ptrace_attach` in kernel/ptrace.c).
    fn of_refusal(tid: u32) -> ThreadProblem {
        let proc = Proc::system();
        match stat(tid) {
            Err(_) => return ThreadProblem::NoSuchThread { tid },
            Ok(stat) if matches!(stat.state, State::Zombie | State::Dead) => return ThreadProblem::Ended { tid },
            Ok(stat) if stat.is_kernel_thread => return ThreadProblem::KernelThread { tid },
            Ok(_) => {}
        }
        if namespaces::thread_group(&proc, tid).is_ok_and(|process| process == std::process::id()) {
            return ThreadProblem::Own { tid };
        }
        match namespaces::tracer(&proc, tid) {
            Ok(Some(tracer)) => ThreadProblem::Traced { tid, tracer },
            _ => ThreadProblem::NotPermitted { tid, access: Access::denied(tid) },
        }
    }
}
