//! Starting a command that is recorded from its first instruction.
//!
//! `record` starts wholestack once more as a launcher, which waits for a byte through a pipe and then becomes the
//! command. So the process is known before it runs, and no code runs between a fork and an exec.

use std::ffi::OsString;
use std::io::{Read, Write};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus};

use rustix::io::{FdFlags, fcntl_setfd};
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{WaitId, WaitIdOptions, waitid};

use crate::Outcome;
use crate::exit::Failure;

/// Names the pipe's number for the launcher.
const GATE: &str = "WHOLESTACK_GATE";

/// A command that waits to be started.
pub(crate) struct Waiting {
    child: Child,
    gate: OwnedFd,
}

impl Waiting {
    /// Prepares a command.
    pub(crate) fn prepare(command: &[OsString]) -> Result<Waiting, Failure> {
        let program = find(&command[0])?;
        let (reader, writer) = pipe_with(PipeFlags::CLOEXEC).map_err(Failure::failed)?;
        fcntl_setfd(&reader, FdFlags::empty()).map_err(Failure::failed)?;
        let child = Command::new("/proc/self/exe")
            .arg0("wholestack")
            .arg("launch")
            .arg("--")
            .arg(program)
            .args(command)
            .env(GATE, reader.as_raw_fd().to_string())
            .spawn()
            .map_err(|error| Failure::command(format!("cannot start a process: {error}")))?;
        Ok(Waiting { child, gate: writer })
    }

    /// Its process id, which the command keeps.
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Lets it run.
    pub(crate) fn start(self) -> Result<Running, Failure> {
        std::fs::File::from(self.gate).write_all(b"!").map_err(Failure::failed)?;
        Ok(Running { child: self.child })
    }
}

/// A command that runs.
pub(crate) struct Running {
    child: Child,
}

impl Running {
    /// How it ended, if it did.
    pub(crate) fn ended(&mut self) -> Option<ExitStatus> {
        // a thread of ours may hold it for a moment, as a tracer; then `wait4` takes its stop for an end, whatever it is asked for
        // (wait(2), kernel/exit.c: wait_task_stopped)
        let pid = rustix::process::Pid::from_child(&self.child);
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        let status = waitid(WaitId::Pid(pid), options).ok().flatten()?;
        match status.exited() || status.killed() || status.dumped() {
            true => self.child.try_wait().ok().flatten(),
            false => None,
        }
    }

    /// Its process id.
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }
}

/// The launcher: waits, then becomes the command. `command` is the program's path and its arguments from 0 on.
pub(crate) fn launch(command: &[OsString]) -> Outcome {
    let [program, name, arguments @ ..] = command else {
        return Err(Failure::usage("launch is for wholestack's own use"));
    };
    let gate = std::env::var(GATE).ok().and_then(|gate| gate.parse().ok());
    let gate: i32 = gate.ok_or_else(|| Failure::usage("launch is for wholestack's own use"))?;
    // SAFETY: `prepare` left the pipe open under this number for the launcher alone.
    let gate = unsafe { OwnedFd::from_raw_fd(gate) };
    let mut byte = [0];
    if std::fs::File::from(gate).read(&mut byte).ok() != Some(1) {
        // the recording did not begin
        return Ok(std::process::ExitCode::from(1));
    }
    let error = Command::new(program).arg0(name).args(arguments).env_remove(GATE).exec();
    Err(Failure::command(format!("cannot run {}: {error}", Path::new(name).display())))
}

/// The file of a command, as a shell would find it.
fn find(name: &OsString) -> Result<PathBuf, Failure> {
    let given = Path::new(name);
    if name.as_bytes().contains(&b'/') {
        return match executable(given) {
            true => Ok(given.to_owned()),
            false => Err(Failure::command(format!("cannot run {}: not an executable file", given.display()))),
        };
    }
    let path = std::env::var_os("PATH").unwrap_or_else(|| "/usr/local/bin:/usr/bin:/bin".into());
    std::env::split_paths(&path).map(|directory| directory.join(given)).find(|file| executable(file)).ok_or_else(|| {
        Failure::command(format!("cannot run {}: not found in PATH", given.display()))
            .with_remedy("sudo may have another PATH than you: give the full path of the command")
    })
}

fn executable(file: &Path) -> bool {
    file.is_file() && rustix::fs::access(file, rustix::fs::Access::EXEC_OK).is_ok()
}
