//! A recorder that is watched while it works.

pub(crate) mod maps;

use std::ffi::OsString;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, ExitStatus};

use tempfile::TempDir;

use crate::common::open_directory;
use crate::common::recorder::{Recorder, hang_guard, program};
use crate::common::target::{Target, status_field};
use crate::support::folded;
use crate::support::record::{Recorded, stolen};

/// Whether the long variant of the tests is asked for.
pub(crate) fn long() -> bool {
    std::env::var_os("WHOLESTACK_HARDSHIP").is_some_and(|value| value == "long")
}

/// A process that does nothing: recorded along with others, it keeps the recording from ending with them.
pub(crate) fn anchor() -> Target {
    let mut sleep = Command::new("sleep");
    sleep.arg(hang_guard());
    Target::of(sleep)
}

/// A recording whose recorder can be looked at. Writes folded stacks.
pub(crate) struct Watched {
    recorder: Recorder,
    out: TempDir,
    stolen: f64,
}

impl Watched {
    /// Starts `record` with these arguments and waits until it samples. `launcher` is what the recorder is started by, in
    /// its own process.
    pub(crate) fn start(frequency: u32, launcher: &[&str], arguments: &[OsString]) -> Watched {
        let out = open_directory();
        let mut words: Vec<OsString> = launcher.iter().map(OsString::from).collect();
        words.push(program().into());
        words.extend(
            ["record", "-F", &frequency.to_string(), "-d", &hang_guard(), "-o", "out.folded"].map(OsString::from),
        );
        words.extend(arguments.iter().cloned());
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]).current_dir(out.path()).env("GATE", "0");
        let mut watched = Watched { recorder: Recorder::start(command), out, stolen: stolen() };
        // if it has ended, its end will tell why
        watched.recorder.wait_until_sampling();
        watched
    }

    /// The whole machine.
    pub(crate) fn machine(frequency: u32) -> Watched {
        Watched::start(frequency, &[], &[])
    }

    /// These processes and their children.
    pub(crate) fn processes(frequency: u32, pids: &[u32]) -> Watched {
        let arguments: Vec<OsString> = pids.iter().flat_map(|pid| ["-p".into(), pid.to_string().into()]).collect();
        Watched::start(frequency, &[], &arguments)
    }

    /// A command.
    pub(crate) fn command<S: AsRef<std::ffi::OsStr>>(frequency: u32, command: &[S]) -> Watched {
        let words = std::iter::once("--".into()).chain(command.iter().map(|word| word.as_ref().to_owned()));
        Watched::start(frequency, &[], &words.collect::<Vec<OsString>>())
    }

    pub(crate) fn pid(&self) -> u32 {
        self.recorder.pid()
    }

    pub(crate) fn signal(&self, signal: i32) {
        self.recorder.signal(signal);
    }

    /// A field of /proc/PID/status that is in kB, in bytes: `VmHWM`, `VmRSS`.
    pub(crate) fn memory(&self, field: &str) -> u64 {
        let text = status_field(self.pid(), field).unwrap_or_else(|| panic!("no {field} of the recorder"));
        let kib: u64 = text.trim_end_matches(" kB").trim().parse().expect("kB");
        kib << 10
    }

    /// Stops it as Ctrl-C does.
    pub(crate) fn stop(self) -> Recorded {
        self.recorder.signal(libc::SIGINT);
        self.finish()
    }

    /// Waits for its end.
    pub(crate) fn finish(self) -> Recorded {
        let ended = self.recorder.wait();
        let text = std::fs::read_to_string(self.out.path().join("out.folded"));
        let text = text.unwrap_or_else(|error| panic!("no output ({error}): {ended:?}"));
        let status = match (ended.code, ended.signal) {
            (Some(code), _) => ExitStatus::from_raw(code << 8),
            (None, signal) => ExitStatus::from_raw(signal.unwrap_or(0)),
        };
        Recorded {
            stacks: folded::parse(&text),
            summary: ended.stderr,
            stdout: ended.stdout,
            status,
            stolen: stolen() - self.stolen,
        }
    }
}
