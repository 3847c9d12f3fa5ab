//! Processes that are recorded, and whether they are as they were.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use super::wait_for;

/// A process that is recorded. Killed when dropped.
pub struct Target {
    child: Child,
    output: BufReader<std::process::ChildStdout>,
}

/// What a recording must not change of a process.
#[derive(PartialEq, Eq, Debug)]
pub struct Condition {
    /// State letter, `R` for running or about to.
    state: String,
    tracer: String,
    threads: String,
    signals: Vec<String>,
    seccomp: String,
    mappings: String,
    descriptors: Vec<String>,
}

impl Target {
    /// Starts a program that says a line when it is where it should be.
    pub fn start(program: &Path, arguments: &[&str]) -> Target {
        let mut command = Command::new(program);
        command.args(arguments);
        Target::of(command)
    }

    /// [`Target::start`] with more to say about it.
    pub fn of(mut command: Command) -> Target {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("target");
        let output = BufReader::new(child.stdout.take().expect("its output"));
        Target { child, output }
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// The next line that it says.
    pub fn line(&mut self) -> String {
        let mut line = String::new();
        self.output.read_line(&mut line).expect("a line");
        assert!(line.ends_with('\n'), "the target ended: {line:?}");
        line.trim_end().to_owned()
    }

    /// A number that it says.
    pub fn number(&mut self) -> u32 {
        self.line().parse().expect("a number")
    }

    /// Lets it go on.
    pub fn go(&mut self) {
        self.child.stdin.as_mut().expect("its input").write_all(b"\n").expect("it reads");
    }

    pub fn signal(&self, signal: i32) {
        // SAFETY: a child of ours that was not waited for.
        assert_eq!(unsafe { libc::kill(self.child.id() as i32, signal) }, 0, "the target is there");
    }

    /// Ends it and takes note of that, so that nothing of it is left.
    pub fn end(mut self) {
        let _ = (self.child.kill(), self.child.wait());
    }

    /// It is there, and as it was.
    #[track_caller]
    pub fn assert_unharmed(&self, before: &Condition) {
        assert!(!is_over(self.pid()), "the target ended");
        assert_eq!(&condition(self.pid()), before);
    }
}

impl Drop for Target {
    fn drop(&mut self) {
        let _ = (self.child.kill(), self.child.wait());
    }
}

/// What a process is like now.
pub fn condition(pid: u32) -> Condition {
    let field = |name: &str| status_field(pid, name).unwrap_or_default();
    let state = field("State");
    // whether it is on a CPU at the moment is of no account
    let state = if state.starts_with(['R', 'S']) { "runs".to_owned() } else { state };
    let mappings = std::fs::read_to_string(format!("/proc/{pid}/maps")).unwrap_or_default();
    let descriptors = std::fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
    let descriptors =
        descriptors.map(|entry| format!("{:?} {:?}", entry.file_name(), std::fs::read_link(entry.path())));
    Condition {
        state,
        tracer: field("TracerPid"),
        threads: field("Threads"),
        signals: ["SigBlk", "SigIgn", "SigCgt", "SigPnd", "ShdPnd"].map(field).to_vec(),
        seccomp: field("Seccomp"),
        mappings,
        descriptors: descriptors.collect(),
    }
}

impl Condition {
    /// Nobody traces it and it was not stopped.
    #[track_caller]
    pub fn assert_free(&self) {
        assert_eq!((self.state.as_str(), self.tracer.as_str()), ("runs", "0"));
    }
}

/// A field of /proc/PID/status.
pub fn status_field(pid: u32, name: &str) -> Option<String> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).map(|value| value.trim().to_owned())
}

/// Whether a process has ended, waited for or not.
pub fn is_over(pid: u32) -> bool {
    status_field(pid, "State").is_none_or(|state| state.starts_with(['Z', 'X']))
}

/// Clock ticks that a process was on a CPU.
fn cpu_ticks(pid: u32) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).expect("the process is there");
    let fields: Vec<&str> = text[text.rfind(')').expect("a name") + 1..].split_ascii_whitespace().collect();
    let number = |at: usize| fields[at].parse::<u64>().expect("a number");
    number(11) + number(12)
}

/// Waits until a process was on a CPU for a while from now on.
pub fn wait_until_it_ran(pid: u32) {
    let before = cpu_ticks(pid);
    wait_for("the target runs", || cpu_ticks(pid) > before + 5);
}

/// Every process that is there.
pub fn all_processes() -> Vec<u32> {
    let names = std::fs::read_dir("/proc").expect("/proc").flatten().map(|entry| entry.file_name());
    names.filter_map(|name| name.to_str()?.parse().ok()).collect()
}
