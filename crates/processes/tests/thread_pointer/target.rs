//! The programs of target.c, and the reader as a program of its own.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::OnceLock;

use processes::{Proc, namespaces, stat::State};

/// The compiled program, once for all tests. `None`, and a line that says so, without a C compiler.
fn program() -> Option<&'static Path> {
    static PROGRAM: OnceLock<Option<PathBuf>> = OnceLock::new();
    let program = PROGRAM.get_or_init(|| {
        let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join("traced");
        remove_old(&directory);
        std::fs::create_dir_all(&directory).expect("a directory");
        let program = directory.join(std::process::id().to_string());
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/thread_pointer/target.c");
        let mut compiler = Command::new("cc");
        compiler.args(["-O1", "-Wall", "-Werror", "-pthread", "-o"]).args([&program, &source]).arg("-lrt");
        let status = compiler.status().ok()?;
        assert!(status.success(), "target.c compiles");
        Some(program)
    });
    if program.is_none() {
        println!("SKIPPED: no C compiler");
    }
    program.as_deref()
}

/// Removes what runs left behind whose process is gone.
fn remove_old(directory: &Path) {
    for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
        let pid = entry.file_name().to_str().and_then(|name| name.parse().ok());
        if pid.is_some_and(|pid| !processes::target::exists(pid)) {
            std::fs::remove_file(entry.path()).expect("removed");
        }
    }
}

/// A running target.
pub(crate) struct Target {
    pub(crate) child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    pub(crate) pid: u32,
    /// What `pthread_self()` is in each thread.
    pub(crate) threads: BTreeMap<u32, u64>,
    /// Numbers of the line `ready`.
    pub(crate) ready: Vec<String>,
}

impl Target {
    /// Starts one and waits until it is ready.
    pub(crate) fn start(arguments: &[&str]) -> Option<Target> {
        let mut command = Command::new(program()?);
        command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().expect("it starts");
        let (input, output) = (child.stdin.take(), child.stdout.take().expect("a pipe"));
        let pid = child.id();
        let threads = BTreeMap::new();
        let mut target = Target { child, input, output: BufReader::new(output), pid, threads, ready: Vec::new() };
        loop {
            let words = target.line();
            match words.first().map(String::as_str) {
                Some("thread") => {
                    let pointer = u64::from_str_radix(&words[2], 16).expect("a number");
                    target.threads.insert(words[1].parse().expect("a number"), pointer);
                }
                Some("ready") => {
                    target.ready = words[1..].to_vec();
                    return Some(target);
                }
                other => panic!("it says {other:?}"),
            }
        }
    }

    /// The next line that it prints, by words.
    pub(crate) fn line(&mut self) -> Vec<String> {
        let mut line = String::new();
        self.output.read_line(&mut line).expect("it prints");
        line.split_ascii_whitespace().map(str::to_owned).collect()
    }

    /// Tells it to do what it does next.
    pub(crate) fn tell(&mut self) {
        writeln!(self.input.as_mut().expect("it listens"), "go").expect("it listens");
    }

    /// Ends its input.
    pub(crate) fn hang_up(&mut self) {
        self.input = None;
    }

    /// Its threads' counters.
    pub(crate) fn counters(&mut self) -> Vec<u64> {
        self.tell();
        let line = self.line();
        assert_eq!(line.first().map(String::as_str), Some("counters"), "{line:?}");
        line[1..].iter().map(|number| number.parse().expect("a number")).collect()
    }

    /// Sends a signal to the process.
    pub(crate) fn signal(&self, signal: i32) {
        // SAFETY: a child that was not waited for keeps its id.
        assert_eq!(unsafe { libc::kill(self.pid as i32, signal) }, 0);
    }

    /// Waits until all its threads are as wanted; fails if that takes long.
    pub(crate) fn wait_until(&self, what: &str, wanted: impl Fn(State) -> bool) {
        let proc = Proc::system();
        for _ in 0..2_000 {
            let tids = proc.tids(self.pid).expect("it is there");
            if tids.iter().all(|tid| proc.stat(*tid).is_ok_and(|stat| wanted(stat.state))) {
                return;
            }
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        panic!("never {what}: {:?}", states(self.pid));
    }

    /// No thread of it is traced.
    pub(crate) fn assert_untraced(&self) {
        let proc = Proc::system();
        for tid in proc.tids(self.pid).expect("it is there") {
            match namespaces::tracer(&proc, tid) {
                Ok(tracer) => assert_eq!(tracer, None, "thread {tid}"),
                Err(_) => assert!(!proc.path(tid, "stat").exists(), "a thread that has ended"),
            }
        }
    }
}

impl Drop for Target {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What the threads of a process are doing.
pub(crate) fn states(pid: u32) -> Vec<(u32, State)> {
    let proc = Proc::system();
    let tids = proc.tids(pid).expect("it is there");
    tids.into_iter().filter_map(|tid| Some((tid, proc.stat(tid).ok()?.state))).collect()
}

/// Names the process that the reader reads, and makes a test the reader.
pub(crate) const READ: &str = "WHOLESTACK_TEST_READ";

/// Starts this test program as a reader of a process: [`crate::reader`].
pub(crate) fn reader(pid: u32) -> Command {
    let mut command = Command::new(std::env::current_exe().expect("a program"));
    command.args(["--exact", "reader", "--nocapture"]).env(READ, pid.to_string()).stdout(Stdio::piped());
    command
}
