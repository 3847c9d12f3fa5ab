//! About the recording: when, what, how, and what is missing.

use std::time::{Duration, SystemTime};

/// About the recording.
#[derive(Clone, Debug)]
pub struct Meta {
    /// Version of wholestack.
    pub version: String,
    /// The command line of wholestack, as typed.
    pub command_line: String,
    /// What was recorded, in a few words: `pid 4711 (nginx)`, `whole machine`, `make -j2`.
    pub target: String,
    /// Host name.
    pub host: String,
    /// Kernel release and architecture.
    pub kernel: String,
    /// When it began.
    pub start: SystemTime,
    /// How long it took.
    pub duration: Duration,
    /// Samples per second and CPU that were asked for.
    pub frequency: u32,
    /// What drove the sampling: `cpu-clock` or `cycles`.
    pub event: String,
    /// Whether labels should carry `(file:LINE)`.
    pub lines: bool,
    /// What was lost.
    pub losses: Vec<Losses>,
    /// How the user stacks ended, all processes together, most frequent first.
    pub stops: Vec<StopCount>,
    /// One line per process that has something to say.
    pub statuses: Vec<ProcessStatus>,
    /// One line per interpreter that was met, with the evidence for it or the reason why it was refused: `pid 4711 python
    /// 3.12.1 libpython3.12.so: key 0 at _PyRuntime+0x608 [code, table, live]; 1,204 stacks, 0 refused`. What stands before
    /// the first `: ` says which one.
    pub interpreters: Vec<String>,
}

impl Default for Meta {
    fn default() -> Meta {
        Meta {
            version: String::new(),
            command_line: String::new(),
            target: String::new(),
            host: String::new(),
            kernel: String::new(),
            start: SystemTime::UNIX_EPOCH,
            duration: Duration::ZERO,
            frequency: 0,
            event: String::new(),
            lines: false,
            losses: Vec::new(),
            stops: Vec::new(),
            statuses: Vec::new(),
            interpreters: Vec::new(),
        }
    }
}

/// Samples lost for one cause.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Losses {
    /// The cause.
    pub cause: String,
    /// How many samples.
    pub count: u64,
}

/// How many user stacks ended for one reason.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StopCount {
    /// The reason, as its bracketed frame says it; `root` for whole stacks.
    pub reason: String,
    /// Whether such a stack is whole.
    pub whole: bool,
    /// How many samples.
    pub count: u64,
}

/// What is to be said of one process.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ProcessStatus {
    /// Process id.
    pub pid: u32,
    /// Its name.
    pub name: String,
    /// Samples of it.
    pub samples: u64,
    /// How its user stacks ended, most frequent first.
    pub stops: Vec<StopCount>,
}
