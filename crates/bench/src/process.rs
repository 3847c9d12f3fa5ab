//! A child process that never outlives its owner.

use std::io;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, ExitStatus};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use rustix::process::{Pid, Signal, kill_process};

use crate::interrupt;

/// Between two looks at whether it ended.
const STEP: Duration = Duration::from_millis(1);

/// How a process ended and what it took.
#[derive(Clone, Copy, Debug)]
pub struct Ended {
    /// Its status.
    pub status: ExitStatus,
    /// User and system time in seconds, of it and of the children that it waited for.
    pub cpu: f64,
}

/// A process that runs, or that nobody has waited for yet. Killed on drop.
pub struct Process {
    child: Child,
    name: String,
    reaped: bool,
}

impl Process {
    /// Starts it.
    ///
    /// # Errors
    /// What the kernel says, with the program's name.
    pub fn start(command: &mut Command) -> Result<Process> {
        let name = command.get_program().to_string_lossy().into_owned();
        let child = command.spawn().with_context(|| format!("cannot start {name}"))?;
        Ok(Process { child, name, reaped: false })
    }

    /// Its id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// The child itself, for its pipes.
    pub fn child(&mut self) -> &mut Child {
        &mut self.child
    }

    /// Sends it SIGINT.
    ///
    /// # Errors
    /// If it has ended and was waited for.
    pub fn interrupt(&self) -> Result<()> {
        let pid = i32::try_from(self.pid()).ok().and_then(Pid::from_raw).filter(|_| !self.reaped);
        let pid = pid.with_context(|| format!("{} has ended", self.name))?;
        kill_process(pid, Signal::INT).with_context(|| format!("cannot interrupt {}", self.name))
    }

    /// Whether it has ended, and how.
    ///
    /// # Errors
    /// If it cannot be waited for.
    pub fn ended(&mut self) -> Result<Option<Ended>> {
        let pid = i32::try_from(self.pid()).context("a process id")?;
        let (mut status, mut usage) = (0, std::mem::MaybeUninit::<libc::rusage>::zeroed());
        // SAFETY: both pointers are to memory of the right type that outlives the call.
        let waited = unsafe { libc::wait4(pid, &raw mut status, libc::WNOHANG, usage.as_mut_ptr()) };
        if waited < 0 {
            return Err(io::Error::last_os_error()).with_context(|| format!("cannot wait for {}", self.name));
        }
        if waited == 0 {
            return Ok(None);
        }
        self.reaped = true;
        // SAFETY: plain integers, zero at first, filled by the kernel.
        let usage = unsafe { usage.assume_init() };
        let seconds = |time: libc::timeval| time.tv_sec as f64 + time.tv_usec as f64 * 1e-6;
        let cpu = seconds(usage.ru_utime) + seconds(usage.ru_stime);
        Ok(Some(Ended { status: ExitStatus::from_raw(status), cpu }))
    }

    /// Waits until it ends, and calls `meanwhile` with its id about every millisecond.
    ///
    /// # Errors
    /// If it does not end in time, or the user interrupts.
    pub fn wait(&mut self, most: Duration, mut meanwhile: impl FnMut(u32)) -> Result<Ended> {
        let begun = Instant::now();
        loop {
            meanwhile(self.pid());
            if let Some(ended) = self.ended()? {
                return Ok(ended);
            }
            interrupt::check()?;
            if begun.elapsed() > most {
                bail!("{} did not end within {} s", self.name, most.as_secs());
            }
            std::thread::sleep(STEP);
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if !self.reaped {
            // it may have ended by itself
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn status_and_time_of_a_child() {
        let mut shell =
            Process::start(Command::new("sh").args(["-c", "i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done; exit 7"]))
                .expect("sh is there");
        let ended = shell.wait(Duration::from_secs(600), |_| ()).expect("it ends");
        assert_eq!(ended.status.code(), Some(7));
        assert!(ended.cpu > 0.0);
        assert!(shell.interrupt().is_err(), "nobody else's process is hit");
    }

    #[test]
    fn dropped_children_are_gone() {
        let sleeper = Process::start(Command::new("sleep").arg("600")).expect("sleep is there");
        let place = format!("/proc/{}", sleeper.pid());
        assert!(std::path::Path::new(&place).exists());
        drop(sleeper);
        assert!(!std::path::Path::new(&place).exists());
    }

    #[test]
    fn a_missing_program_is_named() {
        let error = Process::start(&mut Command::new("/nonexistent/profiler")).err().expect("is not there");
        assert!(error.to_string().contains("/nonexistent/profiler"), "{error}");
    }
}
