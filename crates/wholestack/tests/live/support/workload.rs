//! Workloads that wait to be started.
//!
//! A workload prints `READY`, waits for a line, works, prints a line of JSON about itself, and stays until its
//! standard input is closed. With `GATE=0` it does not wait, neither before nor after.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::Value;

/// What a workload says of itself.
#[derive(Clone, Debug, Default)]
pub(crate) struct Truth {
    /// CPU seconds of the work.
    pub(crate) cpu: f64,
    /// What it did of each kind, in any unit.
    pub(crate) shares: BTreeMap<String, f64>,
    /// Everything that it said.
    pub(crate) all: Value,
}

impl Truth {
    /// Finds the line of JSON in the output of a workload.
    pub(crate) fn parse(output: &str) -> Truth {
        let line = output.lines().find(|line| line.starts_with('{')).unwrap_or_else(|| panic!("no result: {output:?}"));
        let all: Value = serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
        let shares = all["truth"].as_object().into_iter().flatten();
        let shares = shares.map(|(name, value)| (name.clone(), value.as_f64().expect("a number"))).collect();
        Truth { cpu: all["cpu_s"].as_f64().expect("CPU seconds"), shares, all }
    }

    /// A number that the workload said.
    pub(crate) fn number(&self, name: &str) -> f64 {
        self.all[name].as_f64().unwrap_or_else(|| panic!("no {name} in {}", self.all))
    }
}

/// A workload that was started.
pub(crate) struct Workload {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    pid: u32,
}

impl Workload {
    /// Starts a workload and waits until it is ready.
    pub(crate) fn start<S: Into<OsString> + Clone>(command: &[S]) -> Workload {
        let words: Vec<OsString> = command.iter().cloned().map(Into::into).collect();
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap_or_else(|error| panic!("{command:?}: {error}"));
        let input = child.stdin.take();
        let output = BufReader::new(child.stdout.take().expect("a pipe"));
        let pid = child.id();
        let mut workload = Workload { child, input, output, pid };
        let line = workload.line();
        assert!(line.starts_with("READY"), "{line:?}");
        workload
    }

    /// Its process id as we see it; a workload below a launcher has another.
    pub(crate) fn pid(&self) -> u32 {
        self.pid
    }

    /// Lets it work.
    pub(crate) fn go(&mut self) {
        self.input.as_mut().expect("not ended").write_all(b"go\n").expect("a waiting workload");
    }

    /// Waits until the work is done.
    pub(crate) fn done(&mut self) -> Truth {
        Truth::parse(&self.line())
    }

    /// Lets it end, and waits for that.
    pub(crate) fn end(&mut self) {
        self.input = None;
        self.child.wait().expect("waiting for a workload");
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.output.read_line(&mut line).expect("reading from a workload");
        line
    }
}

impl Drop for Workload {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
