//! Whether a process can be recorded, asked before it is, so that the answer can say what is wrong.

use std::io;

use crate::maps::{self, MapsEnd, Wanted};
use crate::stat::State;
use crate::{Comm, Proc, namespaces};

/// A process that can be recorded.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Target {
    /// Its id.
    pub pid: u32,
    /// Its name.
    pub comm: Comm,
    /// What it is doing.
    pub state: State,
    /// Threads.
    pub threads: u32,
    /// Its owner.
    pub uid: u32,
}

/// Why a process cannot be recorded.
#[derive(Debug, thiserror::Error)]
pub enum TargetProblem {
    /// There is none with this id.
    #[error("there is no process {pid}")]
    NoSuchProcess {
        /// The id.
        pid: u32,
    },
    /// It is a thread of another process.
    #[error("{tid} is a thread of process {pid}, not a process")]
    Thread {
        /// The id.
        tid: u32,
        /// The process.
        pid: u32,
    },
    /// It has no user code.
    #[error("process {pid} ({comm}) is a kernel thread")]
    KernelThread {
        /// The id.
        pid: u32,
        /// Its name.
        comm: Comm,
    },
    /// It has ended.
    #[error("process {pid} ({comm}) has ended and waits for its parent to notice (zombie)")]
    Zombie {
        /// The id.
        pid: u32,
        /// Its name.
        comm: Comm,
    },
    /// Its memory cannot be looked at.
    #[error(
        "process {pid} ({comm}) belongs to user {uid}, you are user {own_uid}: its mappings cannot be read without \
         CAP_SYS_PTRACE"
    )]
    OtherUser {
        /// The id.
        pid: u32,
        /// Its name.
        comm: Comm,
        /// Its owner.
        uid: u32,
        /// The user who asks.
        own_uid: u32,
    },
    /// It is the same user's and cannot be looked at: set-user-ID programs, `prctl(PR_SET_DUMPABLE, 0)`, Yama.
    #[error("process {pid} ({comm}) does not let its mappings be read without CAP_SYS_PTRACE (it is not dumpable)")]
    Protected {
        /// The id.
        pid: u32,
        /// Its name.
        comm: Comm,
    },
    /// /proc cannot be read.
    #[error("cannot read the status of process {pid}: {source}")]
    Unreadable {
        /// The id.
        pid: u32,
        /// The error.
        source: io::Error,
    },
}

/// Whether there is a process with this id.
pub fn exists(pid: u32) -> bool {
    Proc::system().path(pid, "stat").exists()
}

/// Whether a process runs in the kernel only.
///
/// # Errors
/// If there is no such process.
pub fn is_kernel_thread(pid: u32) -> io::Result<bool> {
    Ok(Proc::system().stat(pid)?.is_kernel_thread)
}

/// What a process is doing.
///
/// # Errors
/// If there is no such process.
pub fn state(pid: u32) -> io::Result<State> {
    Ok(Proc::system().stat(pid)?.state)
}

/// A process may end between two looks at it.
fn unreadable(pid: u32, source: io::Error) -> TargetProblem {
    match source.raw_os_error() {
        Some(libc::ENOENT | libc::ESRCH) => TargetProblem::NoSuchProcess { pid },
        _ => TargetProblem::Unreadable { pid, source },
    }
}

/// Whether a process can be recorded.
///
/// # Errors
/// What is in the way.
pub fn check_target(pid: u32) -> Result<Target, TargetProblem> {
    let proc = Proc::system();
    let stat = proc.stat(pid).map_err(|source| unreadable(pid, source))?;
    let comm = stat.comm;
    if let Some(process) = namespaces::thread_group(&proc, pid).ok().filter(|process| *process != pid) {
        return Err(TargetProblem::Thread { tid: pid, pid: process });
    }
    if stat.is_kernel_thread {
        return Err(TargetProblem::KernelThread { pid, comm });
    }
    if matches!(stat.state, State::Zombie | State::Dead) && stat.threads <= 1 {
        return Err(TargetProblem::Zombie { pid, comm });
    }
    let uid = namespaces::owner(&proc, pid).map_err(|source| unreadable(pid, source))?;
    match maps::read(&proc, pid, Wanted::Executable, 1).1 {
        MapsEnd::NotPermitted => Err(not_permitted(pid, comm, uid)),
        MapsEnd::Gone => Err(TargetProblem::NoSuchProcess { pid }),
        MapsEnd::Failed(source) => Err(unreadable(pid, source)),
        MapsEnd::Complete | MapsEnd::TooMany | MapsEnd::NoMemory => {
            Ok(Target { pid, comm, state: stat.state, threads: stat.threads, uid })
        }
    }
}

fn not_permitted(pid: u32, comm: Comm, uid: u32) -> TargetProblem {
    let own_uid = rustix::process::getuid().as_raw();
    match uid == own_uid {
        true => TargetProblem::Protected { pid, comm },
        false => TargetProblem::OtherUser { pid, comm, uid, own_uid },
    }
}
