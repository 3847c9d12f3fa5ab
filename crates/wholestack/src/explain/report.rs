//! What `explain` found, for people and for programs.

use serde::Serialize;

/// All of it.
#[derive(Serialize, Debug)]
pub(crate) struct Report {
    pub(crate) process: Process,
    /// One for each interpreter that was found.
    pub(crate) interpreters: Vec<Interpreter>,
    /// Ascending by id.
    pub(crate) threads: Vec<Thread>,
}

/// The process.
#[derive(Serialize, Debug)]
pub(crate) struct Process {
    pub(crate) pid: u32,
    pub(crate) name: String,
    pub(crate) command_line: String,
    pub(crate) uid: u32,
}

/// An interpreter.
#[derive(Serialize, Debug)]
pub(crate) struct Interpreter {
    /// `CPython`.
    pub(crate) runtime: &'static str,
    pub(crate) version: Option<String>,
    /// Path as the process sees it.
    pub(crate) file: String,
    pub(crate) build_id: Option<String>,
    /// What was found out, in order, up to the proof or the refusal; behind the proof, what recordings need beside it.
    pub(crate) steps: Vec<Step>,
    /// Why it is not walked; `None`: it is.
    pub(crate) refusal: Option<Refusal>,
    /// Why recordings do not show the frames of one that is walked here; `None`: they do, or it is not walked at all.
    pub(crate) not_recorded: Option<Refusal>,
}

/// A step of the proof.
#[derive(Serialize, Debug)]
pub(crate) struct Step {
    /// A word or two.
    pub(crate) name: &'static str,
    pub(crate) result: String,
    /// What it rests on.
    pub(crate) evidence: Vec<String>,
}

/// Why an interpreter is not walked.
#[derive(Serialize, Debug)]
pub(crate) struct Refusal {
    /// Stable, for programs.
    pub(crate) name: &'static str,
    /// The step at which it came to that.
    pub(crate) step: &'static str,
    pub(crate) cause: String,
    pub(crate) remedy: String,
}

/// A thread.
#[derive(Serialize, Debug)]
pub(crate) struct Thread {
    pub(crate) tid: u32,
    pub(crate) name: String,
    /// Microseconds for which it was held; `None` if it could not be.
    pub(crate) held_us: Option<f64>,
    /// Why it could not be held.
    pub(crate) not_held: Option<String>,
    pub(crate) native: Option<NativeStack>,
    pub(crate) python: Vec<PythonStack>,
}

/// A native stack, innermost frame first.
#[derive(Serialize, Debug)]
pub(crate) struct NativeStack {
    pub(crate) frames: Vec<NativeFrame>,
    /// Whether it reaches its root; else the last frame says why not.
    pub(crate) whole: bool,
}

/// A native frame.
#[derive(Serialize, Debug)]
pub(crate) struct NativeFrame {
    /// As in flame graphs; with source lines where they are known.
    pub(crate) name: String,
    pub(crate) module: Option<String>,
    /// In the module's file.
    pub(crate) offset: u64,
    pub(crate) inlined: bool,
}

/// The Python stack of a thread in one interpreter, innermost frame first.
#[derive(Serialize, Debug)]
pub(crate) struct PythonStack {
    /// Position in `interpreters`.
    pub(crate) interpreter: usize,
    /// Address of the `PyThreadState`.
    pub(crate) thread_state: u64,
    pub(crate) frames: Vec<PythonFrame>,
    /// Why it ends before its outermost frame.
    pub(crate) stopped: Option<String>,
}

/// A Python frame.
#[derive(Serialize, Debug)]
pub(crate) struct PythonFrame {
    pub(crate) name: String,
    pub(crate) file: String,
    /// `None`: the instruction has no line.
    pub(crate) line: Option<u32>,
    pub(crate) first_line: u32,
}
