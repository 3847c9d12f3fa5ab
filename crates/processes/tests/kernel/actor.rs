//! The program that acts, and the follower that watches it.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::Once;
use std::sync::atomic::{AtomicU32, Ordering};

use processes::maps::{self, MapsEnd, Wanted};
use processes::{Change, MappedRange, Options, Proc, ProcessTable, RangeSet, Scope, Sideband, TimedEvent};

/// A directory of its own for each caller. Those of earlier runs are removed.
pub(crate) fn directory() -> PathBuf {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    static CLEANED: Once = Once::new();
    let all = Path::new(env!("CARGO_TARGET_TMPDIR")).join("processes");
    CLEANED.call_once(|| remove_old(&all));
    let path = all.join(std::process::id().to_string()).join(NUMBER.fetch_add(1, Ordering::Relaxed).to_string());
    std::fs::create_dir_all(&path).expect("a directory");
    path
}

/// Removes what runs left behind whose process is gone.
fn remove_old(all: &Path) {
    for entry in std::fs::read_dir(all).into_iter().flatten().flatten() {
        let pid = entry.file_name().to_str().and_then(|name| name.parse().ok());
        if pid.is_some_and(|pid| !processes::target::exists(pid)) {
            std::fs::remove_dir_all(entry.path()).expect("removed");
        }
    }
}

/// Compiles the actor into a new directory.
pub(crate) fn build(options: &[&str]) -> PathBuf {
    let program = directory().join("actor");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/kernel/actor.c");
    let status = Command::new("cc")
        .args(["-O1", "-Wl,--build-id=sha1", "-pthread", "-o"])
        .args([&program, &source])
        .args(options)
        .arg("-ldl")
        .status()
        .expect("cc runs");
    assert!(status.success(), "the actor compiles");
    program
}

/// A running actor.
pub(crate) struct Actor {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    /// Its id here.
    pub(crate) pid: u32,
}

impl Actor {
    pub(crate) fn start() -> Actor {
        Actor::run(Command::new(build(&[])))
    }

    /// Runs a command that ends up as an actor without another fork.
    pub(crate) fn run(command: Command) -> Actor {
        let (mut actor, answer) = Actor::run_nested(command);
        actor.pid = answer;
        assert_eq!(actor.pid, actor.child.id());
        actor
    }

    /// Runs a command that starts an actor; the actor's id as it sees it itself.
    pub(crate) fn run_nested(mut command: Command) -> (Actor, u32) {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("it starts");
        let (input, output) = (child.stdin.take().expect("a pipe"), child.stdout.take().expect("a pipe"));
        let pid = child.id();
        let mut actor = Actor { child, input, output: BufReader::new(output), pid };
        let own = actor.answer() as u32;
        (actor, own)
    }

    /// Tells it what to do; its answer.
    pub(crate) fn tell(&mut self, command: &str) -> u64 {
        writeln!(self.input, "{command}").expect("it listens");
        self.answer()
    }

    fn answer(&mut self) -> u64 {
        let mut line = String::new();
        self.output.read_line(&mut line).expect("it answers");
        u64::from_str_radix(line.trim(), 16).unwrap_or_else(|_| panic!("a number: {line:?}"))
    }

    /// Ends it and waits for that.
    pub(crate) fn end(self) {
        let Actor { mut child, input, .. } = self;
        drop(input);
        child.wait().expect("it ends");
    }
}

/// Sideband and table.
pub(crate) struct Follower {
    sideband: Sideband,
    pub(crate) table: ProcessTable,
}

impl Follower {
    pub(crate) fn start(scope: Scope) -> Follower {
        Follower::with_options(scope, &Options::default())
    }

    pub(crate) fn with_options(scope: Scope, options: &Options) -> Follower {
        let sideband = Sideband::open(options).expect("perf events");
        let mut table = ProcessTable::new(scope);
        table.seed().expect("/proc");
        Follower { sideband, table }
    }

    /// All events that happened before the call.
    pub(crate) fn events(&mut self) -> Vec<TimedEvent> {
        let mut events = Vec::new();
        self.sideband.drain(&mut events);
        events
    }

    /// Applies all events that happened before the call; what they changed.
    pub(crate) fn follow(&mut self) -> Vec<Change> {
        let events = self.events();
        assert!(events.is_sorted_by_key(|event| event.time));
        events.iter().map(|event| self.table.apply(event)).filter(|change| *change != Change::Nothing).collect()
    }

    /// The changes of one process.
    pub(crate) fn follow_one(&mut self, pid: u32) -> Vec<Change> {
        self.follow().into_iter().filter(|change| pid_of(change) == Some(pid)).collect()
    }

    /// Compares the ranges of a process with /proc.
    #[track_caller]
    pub(crate) fn check(&self, pid: u32) {
        let process = self.table.get(pid).expect("a known process");
        assert_eq!(shape(process.ranges.iter()), shape(proc_ranges(pid).iter()), "table (left) and /proc (right)");
    }
}

pub(crate) fn pid_of(change: &Change) -> Option<u32> {
    match change {
        Change::Nothing | Change::Lost { .. } => None,
        Change::Started { pid, .. }
        | Change::Execed { pid }
        | Change::Mapped { pid, .. }
        | Change::Unmapped { pid, .. }
        | Change::RangesFull { pid }
        | Change::Renamed { pid, .. }
        | Change::ThreadStarted { pid, .. }
        | Change::ThreadExited { pid, .. }
        | Change::Exited { pid } => Some(*pid),
    }
}

/// What /proc says, neighbours joined as in a table.
pub(crate) fn proc_ranges(pid: u32) -> RangeSet {
    let (found, end) = maps::read(&Proc::system(), pid, Wanted::Executable, usize::MAX);
    assert!(matches!(end, MapsEnd::Complete), "{end:?}");
    let mut ranges = RangeSet::default();
    for range in found {
        ranges.insert(range).expect("room");
    }
    ranges
}

/// What a record and /proc must agree on: the identities are of different kinds.
pub(crate) fn shape<'a>(ranges: impl Iterator<Item = &'a MappedRange>) -> Vec<(String, u64, String)> {
    let one = |range: &MappedRange| {
        let place = format!("{:x}-{:x}", range.start, range.end);
        (place, range.file_offset, range.path.to_string_lossy().into_owned())
    };
    ranges.map(one).collect()
}
