//! Processes that have parked their threads, and where these are, as the interpreter has it.

use std::any::Any;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde::Deserialize;

/// A frame.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(from = "(String, String, Option<u32>, u32)")]
pub(crate) struct Frame {
    /// `co_qualname` from 3.11 on, before `co_name`. What is no text is U+FFFD, here and in the file's name.
    pub(crate) name: String,
    /// `co_filename`.
    pub(crate) file: String,
    /// The line where it is, if it has one.
    pub(crate) line: Option<u32>,
    /// `co_firstlineno`.
    pub(crate) first_line: u32,
}

impl From<(String, String, Option<u32>, u32)> for Frame {
    fn from((name, file, line, first_line): (String, String, Option<u32>, u32)) -> Frame {
        Frame { name, file, line, first_line }
    }
}

/// A parked thread.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Thread {
    /// The case that it runs.
    pub(crate) case: String,
    /// The process, as the process itself sees it.
    pub(crate) pid: u32,
    /// `threading.get_ident()`, which is its `pthread_self()`.
    pub(crate) ident: u64,
    /// Its thread id, as the process itself sees it; `None` where the interpreter cannot tell.
    pub(crate) native: Option<u32>,
    /// Innermost first.
    pub(crate) traceback: Vec<Frame>,
    /// Where it is in the interpreter from which it entered this one.
    #[serde(default)]
    pub(crate) outer: Vec<Frame>,
}

/// What an interpreter says of itself.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct About {
    /// As in `3.13.5`.
    pub(crate) version: String,
    /// `final`, or which kind of pre-release.
    pub(crate) release: String,
    /// `cpython`, `pypy`.
    pub(crate) implementation: String,
    pub(crate) free_threaded: bool,
    /// Whether it counts references, as debug builds do.
    pub(crate) debug: bool,
    pub(crate) executable: String,
    pub(crate) prefix: String,
    /// Cases of those wanted, and modules of cases, that it cannot run.
    pub(crate) left_out: Vec<String>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Line {
    About { interpreter: About },
    Thread(Thread),
}

/// Which process has the interpreter.
#[derive(Clone, Copy)]
pub(crate) enum Which {
    /// The one that tells.
    Told,
    /// The only child of the one that was started; what is told are other ids than ours.
    OnlyChild,
}

/// A process that is parked. Ends when dropped.
pub(crate) struct Parked {
    started: Started,
    /// Its process id, as we see it.
    pub(crate) pid: u32,
    /// What it says of itself; a program that runs a workload of its own says nothing.
    pub(crate) about: Option<About>,
    pub(crate) threads: Vec<Thread>,
    kept: Vec<Box<dyn Any>>,
}

/// A process that waits for a line before it goes on.
pub(crate) struct Waiting(Started);

struct Started {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

impl Started {
    fn new(mut command: Command) -> Started {
        // as on nearly every system; paths are no ASCII
        command.env("LC_ALL", "C.UTF-8").env("PYTHONDONTWRITEBYTECODE", "1");
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap_or_else(|error| panic!("{command:?}: {error}"));
        let (input, output) = (child.stdin.take(), child.stdout.take().expect("a pipe"));
        Started { child, input, output: BufReader::new(output) }
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        let read = self.output.read_line(&mut line).expect("text");
        if read == 0 {
            panic!("it ended before it was ready: {:?}", self.child.wait());
        }
        line
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        // all that it has started ends at this
        self.input = None;
        let _ = (self.child.kill(), self.child.wait());
    }
}

impl Parked {
    /// Starts a workload and waits until it is parked.
    pub(crate) fn start(command: Command) -> Parked {
        Parked::start_in(command, Which::Told)
    }

    /// Starts a workload below another process.
    pub(crate) fn start_in(command: Command, which: Which) -> Parked {
        Parked::when_ready(Started::new(command), which, |_| ())
    }

    /// Starts a program that tells nothing until it has been asked.
    pub(crate) fn start_and_ask(command: Command, ask: impl FnOnce(u32)) -> Parked {
        Parked::when_ready(Started::new(command), Which::Told, ask)
    }

    fn when_ready(mut started: Started, which: Which, ask: impl FnOnce(u32)) -> Parked {
        ask(started.child.id());
        let (mut about, mut threads) = (None, Vec::new());
        loop {
            let line = started.line();
            if line.trim_end() == "READY" {
                break;
            }
            // a server may have more to say
            let Some(json) = line.find('{').map(|at| &line[at..]) else { continue };
            match serde_json::from_str(json).unwrap_or_else(|error| panic!("{error}: {line}")) {
                Line::About { interpreter } => about = Some(interpreter),
                Line::Thread(thread) => threads.push(thread),
            }
        }
        let pid = match which {
            Which::Told => threads.last().map_or(started.child.id(), |thread: &Thread| thread.pid),
            Which::OnlyChild => only_child(started.child.id()),
        };
        Parked { started, pid, about, threads, kept: Vec::new() }
    }

    /// Keeps something as long as the process.
    pub(crate) fn keeping(mut self, kept: impl Any) -> Parked {
        self.kept.push(Box::new(kept));
        self
    }

    /// Lets it end by itself.
    pub(crate) fn end(mut self) -> std::process::ExitStatus {
        self.started.input = None;
        self.started.child.wait().expect("a child of ours")
    }
}

impl Waiting {
    /// Starts a program that says `WAITING`.
    pub(crate) fn start(command: Command) -> Waiting {
        let mut started = Started::new(command);
        assert_eq!(started.line(), "WAITING\n");
        Waiting(started)
    }

    pub(crate) fn pid(&self) -> u32 {
        self.0.child.id()
    }

    /// Lets it go on, and waits until it is parked.
    pub(crate) fn go(mut self) -> Parked {
        self.0.input.as_mut().expect("not ended").write_all(b"\n").expect("it reads");
        Parked::when_ready(self.0, Which::Told, |_| ())
    }
}

fn only_child(pid: u32) -> u32 {
    let children = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).expect("it is there");
    children.trim().parse().unwrap_or_else(|_| panic!("children of {pid}: {children:?}"))
}
