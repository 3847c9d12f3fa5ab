//! Python workloads: started, told, let go.

use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use crate::explain::interpreters::Interpreter;
use crate::explain::workloads as parking;
use crate::judge::Wanted;
use crate::judge::truth::Told;

/// The workloads of these tests.
pub(crate) fn workloads() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/python/workloads")
}

/// One of them where an interpreter finds it, with all others beside it.
pub(crate) fn script(interpreter: &Interpreter, name: &str) -> PathBuf {
    let scripts = std::fs::read_dir(workloads()).expect("workloads").flatten().map(|entry| entry.path());
    let scripts = scripts.filter(|file| file.extension().is_some_and(|extension| extension == "py"));
    let copies: Vec<_> = scripts.map(|file| interpreter.lend(&file)).collect();
    copies.into_iter().find(|file| file.ends_with(name)).unwrap_or_else(|| panic!("no {name}"))
}

/// Where an interpreter finds the cases that park.
pub(crate) fn cases(interpreter: &Interpreter) -> PathBuf {
    if interpreter.is_in_tree() { interpreter.script().with_file_name("") } else { parking() }
}

/// A command that runs a workload.
pub(crate) fn command(interpreter: &Interpreter, name: &str, arguments: &[&str]) -> Command {
    let mut command = interpreter.command(&[]);
    command.arg(script(interpreter, name)).args(arguments);
    prepared(&mut command);
    command
}

/// As on nearly every system; and nothing is left behind.
pub(crate) fn prepared(command: &mut Command) {
    command.env("LC_ALL", "C.UTF-8").env("PYTHONDONTWRITEBYTECODE", "1");
}

/// Does something with each interpreter, and fails at the end if that failed for any.
#[track_caller]
pub(crate) fn with_each(interpreters: &[Interpreter], check: impl Fn(&Interpreter)) {
    let fails = |interpreter: &&Interpreter| {
        std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| check(interpreter))).is_err()
    };
    let failed: Vec<&str> = interpreters.iter().filter(fails).map(|interpreter| interpreter.name.as_str()).collect();
    assert!(failed.is_empty(), "{} of {} failed: {}", failed.len(), interpreters.len(), failed.join(", "));
}

/// What is demanded of recordings of an interpreter. musl's own code has no unwind information, so no stack of a thread reaches its root.
pub(crate) fn wanted(interpreter: &Interpreter, lines: bool) -> Wanted {
    let stopped = if interpreter.name == "musl" { 1.0 } else { Wanted::with_lines(lines).stopped };
    Wanted { stopped, ..Wanted::with_lines(lines) }
}

/// Whether there is time for more of it.
pub(crate) fn is_long() -> bool {
    std::env::var_os("WHOLESTACK_HARDSHIP").is_some_and(|value| value == "long")
}

/// So many bytes of what a workload has complained are shown.
const COMPLAINTS: u64 = 4096;

/// A workload that was started. Ends when dropped.
pub(crate) struct Running {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    /// Its standard error. A pipe that nobody reads would hold it up.
    complaints: File,
    pub(crate) told: Told,
}

impl Running {
    /// Starts a workload and waits until it is ready.
    pub(crate) fn start(command: Command) -> Running {
        Running::start_until(command, "READY")
    }

    /// Starts a program and waits until it says a word.
    pub(crate) fn start_until(mut command: Command, word: &str) -> Running {
        let complaints = tempfile::tempfile().expect("a temporary file");
        let stderr = complaints.try_clone().expect("another descriptor of it");
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(stderr);
        let mut child = command.spawn().unwrap_or_else(|error| panic!("{command:?}: {error}"));
        let (input, output) = (child.stdin.take(), child.stdout.take().expect("a pipe"));
        let mut running = Running { child, input, output: BufReader::new(output), complaints, told: Told::default() };
        running.hear(|line, _| line == word);
        running
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Lets it work, or whatever it waits for.
    pub(crate) fn go(&mut self) {
        if let Err(error) = self.input.as_mut().expect("not ended").write_all(b"\n") {
            panic!("it does not read ({error}): {}", self.end());
        }
    }

    /// Waits until the work is done.
    pub(crate) fn done(&mut self) {
        self.hear(|_, told| told.is_over);
    }

    /// How it ended, with the end of its complaints.
    fn end(&mut self) -> String {
        let status = self.child.wait().expect("waiting for it");
        let length = self.complaints.metadata().map_or(0, |metadata| metadata.len());
        let mut last = vec![0; usize::try_from(length.min(COMPLAINTS)).expect("small")];
        let read = self.complaints.read_at(&mut last, length.saturating_sub(COMPLAINTS)).unwrap_or(0);
        format!("{status}\n{}", String::from_utf8_lossy(&last[..read]).trim_end())
    }

    fn hear(&mut self, is_last: impl Fn(&str, &Told) -> bool) {
        loop {
            let mut line = String::new();
            let read = self.output.read_line(&mut line).expect("text");
            if read == 0 {
                panic!("it ended early: {}", self.end());
            }
            if line.starts_with('{') {
                self.told.hear(&line);
            }
            if is_last(line.trim_end(), &self.told) {
                return;
            }
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // all that it has started ends at this
        self.input = None;
        let _ = (self.child.kill(), self.child.wait());
    }
}
