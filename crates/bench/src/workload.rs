//! The programs that are profiled: compiled into a temporary directory, started, told to begin, and asked what they did.

use std::ffi::OsString;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{ChildStdout, Command, Stdio};

use anyhow::{Context, Result, bail, ensure};
use serde::Deserialize;

use crate::process::Process;

const HEADER: (&str, &str) = ("bench.h", include_str!("../workloads/bench.h"));
const SOURCES: [(&str, &str); 4] = [
    ("calls", include_str!("../workloads/calls.c")),
    ("phases", include_str!("../workloads/phases.c")),
    ("churn", include_str!("../workloads/churn.c")),
    ("mapper", include_str!("../workloads/mapper.c")),
];
/// No frame pointers, and each call a call.
const FLAGS: [&str; 5] = ["-O2", "-g", "-fomit-frame-pointer", "-fno-optimize-sibling-calls", "-fno-inline"];

/// The line at the end of a workload, in seconds.
#[derive(Clone, Copy, PartialEq, Debug, Deserialize)]
pub struct Work {
    /// When it began (CLOCK_MONOTONIC).
    pub begun: f64,
    /// Wall time.
    pub wall: f64,
    /// CPU time.
    pub cpu: f64,
}

/// The compiled workloads.
pub struct Workloads {
    directory: PathBuf,
}

impl Workloads {
    /// Compiles all of them.
    ///
    /// # Errors
    /// If there is no C compiler, or what it says.
    pub fn build(directory: &Path) -> Result<Workloads> {
        std::fs::write(directory.join(HEADER.0), HEADER.1)?;
        for (name, source) in SOURCES {
            let file = directory.join(format!("{name}.c"));
            std::fs::write(&file, source)?;
            let status = Command::new("cc").args(FLAGS).arg("-o").arg(directory.join(name)).arg(&file).status();
            ensure!(
                status.context("cannot run cc, which makes the workloads")?.success(),
                "cc cannot compile {name}.c"
            );
        }
        Ok(Workloads { directory: directory.to_owned() })
    }

    /// The file of one.
    pub fn path(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }

    /// Starts one; it waits for [`Workload::go`].
    ///
    /// # Errors
    /// If it cannot be started or does not say that it is ready.
    pub fn start(&self, name: &str, arguments: impl IntoIterator<Item = impl Into<OsString>>) -> Result<Workload> {
        let mut command = Command::new(self.path(name));
        command.args(arguments.into_iter().map(Into::into));
        Workload::start(name, command)
    }
}

/// A workload that runs. Killed on drop.
pub struct Workload {
    process: Process,
    output: BufReader<ChildStdout>,
}

impl Workload {
    /// Starts a program that does as workloads do; `name` is for errors.
    ///
    /// # Errors
    /// As [`Workloads::start`].
    pub fn start(name: &str, mut command: Command) -> Result<Workload> {
        let mut process = Process::start(command.stdin(Stdio::piped()).stdout(Stdio::piped()))?;
        let output = process.child().stdout.take().context("a pipe")?;
        let mut workload = Workload { process, output: BufReader::new(output) };
        let line = workload.line()?;
        ensure!(line.starts_with("READY"), "{name} said {line:?}");
        Ok(workload)
    }

    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.process.pid()
    }

    /// Lets it begin.
    ///
    /// # Errors
    /// If it is gone.
    pub fn go(&mut self) -> Result<()> {
        self.process.child().stdin.as_mut().context("a pipe")?.write_all(b"go\n").context("the workload is gone")
    }

    /// Waits for the end of its work; it stays until it is dropped.
    ///
    /// # Errors
    /// If it ends without a word.
    pub fn work(&mut self) -> Result<Work> {
        parse_work(&self.line()?)
    }

    fn line(&mut self) -> Result<String> {
        let mut line = String::new();
        if self.output.read_line(&mut line)? == 0 {
            bail!("the workload ended without a word");
        }
        Ok(line)
    }
}

/// The work in the last line of what a workload printed.
///
/// # Errors
/// If it is none.
pub fn parse_work(text: &str) -> Result<Work> {
    let line = text.lines().rfind(|line| line.starts_with('{')).unwrap_or(text);
    serde_json::from_str(line).with_context(|| format!("not the end of a workload: {line:?}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_line_tells() {
        let work = parse_work("READY 7\n{\"begun\":1.5,\"wall\":2.25,\"cpu\":2.0}\n").expect("a line of a workload");
        assert_eq!(work, Work { begun: 1.5, wall: 2.25, cpu: 2.0 });
        assert!(parse_work("READY 7\n").is_err());
    }

    /// The oracle for "each does fixed work" is the clock of the process itself.
    #[test]
    fn workloads_do_what_they_say() {
        let directory = tempfile::tempdir().expect("a directory");
        let workloads = match Workloads::build(directory.path()) {
            Ok(workloads) => workloads,
            Err(error) => return println!("SKIPPED: {error:#}"),
        };
        let mut calls = workloads.start("calls", ["200", "500", "100"]).expect("starts");
        calls.go().expect("waits");
        let work = calls.work().expect("ends");
        assert!(work.cpu > 0.0 && work.wall >= work.cpu * 0.99, "{work:?}");
        let mut phases = workloads.start("phases", ["1"]).expect("starts");
        phases.go().expect("waits");
        assert!(phases.work().expect("ends").wall >= 0.5, "500 phases of a millisecond");
        let mut churn = workloads.start("churn", ["3"]).expect("starts");
        churn.go().expect("waits");
        churn.work().expect("ends");
    }
}
