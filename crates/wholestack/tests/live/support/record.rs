//! `wholestack record`, as a user runs it.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

use super::folded::{self, Stack};

const WHOLESTACK: &str = env!("CARGO_BIN_EXE_wholestack");

/// What a recording left.
pub(crate) struct Recorded {
    pub(crate) stacks: Vec<Stack>,
    /// Standard error: the summary, and what a recorded command wrote.
    pub(crate) summary: String,
    /// Standard output of a recorded command.
    pub(crate) stdout: String,
    pub(crate) status: ExitStatus,
    /// Seconds that the hypervisor took from all CPUs meanwhile.
    pub(crate) stolen: f64,
}

/// A recording to be.
pub(crate) struct Recording {
    frequency: u32,
    more: Vec<OsString>,
    outputs: Vec<PathBuf>,
    environment: Vec<(String, String)>,
    directory: Option<PathBuf>,
}

impl Recording {
    pub(crate) fn at(frequency: u32) -> Recording {
        Recording { frequency, more: Vec::new(), outputs: Vec::new(), environment: Vec::new(), directory: None }
    }

    /// One more output file.
    pub(crate) fn output(mut self, path: PathBuf) -> Recording {
        self.outputs.push(path);
        self
    }

    /// One more option of `record`.
    // for those who include this in `python`
    #[allow(dead_code)]
    pub(crate) fn option(mut self, option: &str) -> Recording {
        self.more.push(option.into());
        self
    }

    /// A variable for the recorded command.
    pub(crate) fn variable(mut self, name: &str, value: &str) -> Recording {
        self.environment.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Where the recorded command runs.
    pub(crate) fn directory(mut self, path: PathBuf) -> Recording {
        self.directory = Some(path);
        self
    }

    /// Records a command to its end.
    pub(crate) fn command<S: Into<OsString> + Clone>(mut self, command: &[S]) -> Recorded {
        self.more.push("--".into());
        self.more.extend(command.iter().cloned().map(Into::into));
        self.variable("GATE", "0").spawn(Stdio::null()).finish()
    }

    /// Records processes until they are gone or [`Started::stop`] is called; returns when sampling has begun.
    pub(crate) fn processes(mut self, pids: &[u32]) -> Started {
        for pid in pids {
            self.more.extend(["-p".into(), pid.to_string().into()]);
        }
        let mut started = self.spawn(Stdio::null());
        started.wait_for_sampling();
        started
    }

    /// Records the whole machine until [`Started::stop`] is called; returns when sampling has begun.
    pub(crate) fn machine(self) -> Started {
        self.processes(&[])
    }

    fn spawn(self, input: Stdio) -> Started {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let folded = directory.path().join("out.folded");
        let mut command = Command::new(WHOLESTACK);
        command.arg("record").arg("-F").arg(self.frequency.to_string()).arg("-o").arg(&folded);
        for output in self.outputs {
            command.arg("-o").arg(output);
        }
        if let Some(directory) = self.directory {
            command.current_dir(directory);
        }
        command.args(self.more).envs(self.environment);
        let child = command.stdin(input).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
        Started { child: child.expect("starting wholestack"), directory, stolen: stolen() }
    }
}

/// A recording under way.
pub(crate) struct Started {
    child: Child,
    directory: tempfile::TempDir,
    stolen: f64,
}

impl Started {
    /// Waits until the sampler is attached on every CPU, as the kernel tells it.
    fn wait_for_sampling(&mut self) {
        let cpus = std::thread::available_parallelism().map_or(1, usize::from);
        while attached(self.child.id()) < cpus {
            if self.child.try_wait().expect("waiting").is_some() {
                return;
            }
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    /// Stops the recording as Ctrl-C does.
    pub(crate) fn stop(self) -> Recorded {
        let pid = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw).expect("a process id");
        kill_process(pid, Signal::INT).expect("interrupting wholestack");
        self.finish()
    }

    /// Waits for its end.
    pub(crate) fn finish(self) -> Recorded {
        let Output { status, stdout, stderr } = self.child.wait_with_output().expect("waiting for wholestack");
        let summary = String::from_utf8_lossy(&stderr).into_owned();
        let text = std::fs::read_to_string(self.directory.path().join("out.folded"));
        let text = text.unwrap_or_else(|error| panic!("no output ({error}), {status}: {summary}"));
        Recorded {
            stacks: folded::parse(&text),
            summary,
            stdout: String::from_utf8_lossy(&stdout).into_owned(),
            status,
            stolen: stolen() - self.stolen,
        }
    }
}

/// BPF programs that a process has attached to perf events.
fn attached(pid: u32) -> usize {
    let Ok(entries) = std::fs::read_dir(format!("/proc/{pid}/fdinfo")) else { return 0 };
    let texts = entries.flatten().filter_map(|entry| std::fs::read_to_string(entry.path()).ok());
    texts.filter(|text| text.lines().any(|line| line.split_whitespace().eq(["link_type:", "perf"]))).count()
}

/// CPU time that the hypervisor gave to others since boot, in seconds.
pub(crate) fn stolen() -> f64 {
    let stat = std::fs::read_to_string("/proc/stat").unwrap_or_default();
    let ticks: f64 = stat.split_whitespace().nth(8).and_then(|field| field.parse().ok()).unwrap_or(0.0);
    ticks / rustix::param::clock_ticks_per_second() as f64
}

impl Recorded {
    /// The stacks of processes with this name (the kernel keeps 15 bytes of it).
    pub(crate) fn of(&self, process: &str) -> Vec<&Stack> {
        let name = &process[..process.len().min(15)];
        self.stacks.iter().filter(|stack| stack.process() == name).collect()
    }

    /// Samples that the summary says were lost.
    pub(crate) fn lost(&self) -> u64 {
        let counts =
            self.summary.lines().filter_map(|line| line.trim_start().strip_prefix("lost: ")?.rsplit_once(": "));
        counts.filter_map(|(_, count)| count.parse::<u64>().ok()).sum()
    }

    /// Everything that the summary says of losses.
    pub(crate) fn losses(&self) -> Vec<&str> {
        const SIGNS: [&str; 7] = [
            "lost: ",
            "lost by the kernel",
            "could not be read",
            "accounted for",
            "no room",
            "not followed",
            "panicked",
        ];
        self.summary.lines().filter(|line| SIGNS.iter().any(|sign| line.contains(sign))).collect()
    }
}
