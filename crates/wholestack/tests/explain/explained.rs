//! What `explain --json` says, and how it compares with the truth.

use std::process::Command;

use serde::Deserialize;

use crate::common::recorder::program;
use crate::support::parked::{Frame, Parked, Thread};

/// The report, as far as tests look at it.
#[derive(Deserialize, Debug)]
pub(crate) struct Report {
    pub(crate) interpreters: Vec<Interpreter>,
    pub(crate) threads: Vec<Explained>,
}

#[derive(Deserialize, Debug)]
pub(crate) struct Interpreter {
    pub(crate) version: Option<String>,
    pub(crate) steps: Vec<Step>,
    pub(crate) refusal: Option<Refusal>,
    pub(crate) not_recorded: Option<Refusal>,
}

#[derive(Deserialize, Debug)]
pub(crate) struct Step {
    pub(crate) name: String,
    pub(crate) result: String,
}

#[derive(Deserialize, Debug)]
pub(crate) struct Refusal {
    pub(crate) name: String,
    pub(crate) step: String,
    pub(crate) cause: String,
    pub(crate) remedy: String,
}

#[derive(Deserialize, Debug)]
pub(crate) struct Explained {
    pub(crate) tid: u32,
    pub(crate) not_held: Option<String>,
    pub(crate) native: Option<Native>,
    pub(crate) python: Vec<Stack>,
}

#[derive(Deserialize, Debug)]
pub(crate) struct Native {
    pub(crate) whole: bool,
}

#[derive(Deserialize, Debug)]
pub(crate) struct Stack {
    pub(crate) frames: Vec<PythonFrame>,
    pub(crate) stopped: Option<String>,
}

#[derive(Deserialize, Debug)]
pub(crate) struct PythonFrame {
    pub(crate) name: String,
    pub(crate) file: String,
    pub(crate) line: Option<u32>,
    pub(crate) first_line: u32,
}

impl PartialEq<Frame> for PythonFrame {
    fn eq(&self, truth: &Frame) -> bool {
        (&self.name, &self.file, self.line, self.first_line) == (&truth.name, &truth.file, truth.line, truth.first_line)
    }
}

/// Runs `explain --json` on a process.
pub(crate) fn explain(pid: u32) -> Report {
    let output = Command::new(program()).args(["explain", "--json", &pid.to_string()]).output().expect("it runs");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "explain {pid}: {}: {errors}", output.status);
    serde_json::from_slice(&output.stdout).expect("JSON")
}

impl Interpreter {
    /// What is said of its eval loop, if that was found.
    pub(crate) fn eval_loop(&self) -> Option<&str> {
        self.steps.iter().find(|step| step.name == "eval loop").map(|step| step.result.as_str())
    }
}

impl Report {
    /// Whether every interpreter was proven, and why not.
    pub(crate) fn refusals(&self) -> Vec<&Refusal> {
        self.interpreters.iter().filter_map(|interpreter| interpreter.refusal.as_ref()).collect()
    }

    fn has(&self, thread: &Thread, native: Option<u32>, truth: &[Frame]) -> bool {
        let of_thread = |explained: &&Explained| native.is_none_or(|native| explained.tid == native);
        let is_it = |stack: &Stack| stack.stopped.is_none() && stack.frames == *truth;
        let found = self.threads.iter().filter(of_thread).any(|explained| explained.python.iter().any(is_it));
        found || (truth.is_empty() && thread.traceback.is_empty())
    }

    /// Threads whose stacks are not, frame for frame with names, files and lines, what the interpreter says of them.
    pub(crate) fn mismatches(&self, parked: &Parked) -> Vec<String> {
        // in another pid namespace threads have other numbers
        let same_numbers = |thread: &Thread| thread.pid == parked.pid;
        let wrong = parked.threads.iter().filter(|thread| {
            let native = thread.native.filter(|_| same_numbers(thread));
            let outer_is_wrong = !thread.outer.is_empty() && !self.has(thread, native, &thread.outer);
            !self.has(thread, native, &thread.traceback) || outer_is_wrong
        });
        wrong.map(|thread| self.describe(thread)).collect()
    }

    fn describe(&self, thread: &Thread) -> String {
        let explained = self.threads.iter().find(|explained| Some(explained.tid) == thread.native);
        format!("{}: says {:?}, explained as {explained:?}", thread.case, thread.traceback)
    }
}
