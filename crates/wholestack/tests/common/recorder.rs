//! Runs the real wholestack.

use std::ffi::OsStr;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use tempfile::TempDir;

use super::{HANG, wait_for};

/// The program under test.
pub fn program() -> PathBuf {
    PathBuf::from(env!("CARGO_BIN_EXE_wholestack"))
}

/// A wholestack that runs. Killed when dropped.
pub struct Recorder {
    child: Child,
    texts: TempDir,
    ended: bool,
}

/// How it ended.
#[derive(Debug)]
pub struct Ended {
    /// Exit code; `None` if a signal killed it.
    pub code: Option<i32>,
    /// The signal that killed it.
    pub signal: Option<i32>,
    /// Standard output.
    pub stdout: String,
    /// Standard error.
    pub stderr: String,
    /// The most memory that it had, in bytes.
    pub peak: u64,
}

/// A command line that starts wholestack in `directory`.
pub fn command<S: AsRef<OsStr>>(directory: &Path, arguments: &[S]) -> Command {
    let mut command = Command::new(program());
    command.args(arguments).current_dir(directory);
    command
}

/// Starts it in `directory` and waits for its end.
pub fn run<S: AsRef<OsStr>>(directory: &Path, arguments: &[S]) -> Ended {
    Recorder::start(command(directory, arguments)).wait()
}

impl Recorder {
    /// Starts it, with its output in files.
    pub fn start(mut command: Command) -> Recorder {
        let texts = super::open_directory();
        let file = |name: &str| std::fs::File::create(texts.path().join(name)).expect("a file");
        command.stdin(Stdio::null()).stdout(file("stdout")).stderr(file("stderr"));
        Recorder { child: command.process_group(0).spawn().expect("started"), texts, ended: false }
    }

    /// Starts it with standard output and error as the caller set them.
    pub fn start_as_is(mut command: Command) -> Recorder {
        let texts = super::open_directory();
        Recorder { child: command.process_group(0).spawn().expect("started"), texts, ended: false }
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Takes one end of a pipe out of it.
    pub fn child(&mut self) -> &mut Child {
        &mut self.child
    }

    /// Waits until the sampler is attached on every CPU; false if it ended before.
    pub fn wait_until_sampling(&mut self) -> bool {
        let pid = self.pid();
        let mut sampling = false;
        wait_for("start of the recording", || {
            sampling = super::bpf::samples(pid);
            sampling || super::target::is_over(pid)
        });
        sampling
    }

    /// Waits until it holds so many maps, which is a measure of how far its start has come, or samples, or has ended.
    pub fn wait_until_maps(&self, maps: usize) {
        let pid = self.pid();
        wait_for("start", || {
            super::bpf::held_by(pid).maps.len() >= maps || super::bpf::samples(pid) || super::target::is_over(pid)
        });
    }

    pub fn signal(&self, signal: i32) {
        // SAFETY: a child of ours that was not waited for.
        let sent = unsafe { libc::kill(self.child.id() as i32, signal) };
        assert_eq!(sent, 0, "the recorder is there");
    }

    /// Waits for its end.
    pub fn wait(mut self) -> Ended {
        let pid = self.child.id() as i32;
        let mut status = 0;
        // SAFETY: plain numbers.
        let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
        // SAFETY: a child of ours that was not waited for; both results outlive the call.
        wait_for("end of the recorder", || unsafe { libc::wait4(pid, &mut status, libc::WNOHANG, &mut usage) } == pid);
        self.ended = true;
        let text = |name: &str| {
            let bytes = std::fs::read(self.texts.path().join(name)).unwrap_or_default();
            String::from_utf8_lossy(&bytes).into_owned()
        };
        Ended {
            code: libc::WIFEXITED(status).then(|| libc::WEXITSTATUS(status)),
            signal: libc::WIFSIGNALED(status).then(|| libc::WTERMSIG(status)),
            stdout: text("stdout"),
            stderr: text("stderr"),
            peak: usage.ru_maxrss as u64 * 1024,
        }
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        if !self.ended {
            let _ = (self.child.kill(), self.child.wait());
        }
    }
}

impl Ended {
    /// It ended with this code and told of nothing that only a program error brings about.
    #[track_caller]
    pub fn expect(self, code: i32) -> Ended {
        assert_eq!(self.code, Some(code), "{self:?}");
        assert!(!self.stderr.contains("panicked"), "{self:?}");
        self
    }

    /// It told this.
    #[track_caller]
    pub fn told(self, text: &str) -> Ended {
        assert!(self.stderr.contains(text), "not told: {text:?}\n{}", self.stderr);
        self
    }
}

/// Longest time for which a test records, in seconds; as an argument of `record -d`.
pub fn hang_guard() -> String {
    HANG.as_secs().to_string()
}
