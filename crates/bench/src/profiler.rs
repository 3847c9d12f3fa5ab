//! How each profiler is started, when it is at work, and how it is stopped.

use std::ffi::OsString;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::interrupt::{self, pause};
use crate::process::{Ended, Process};
use crate::procfs::{self, Descriptors, Memory};

/// A profiler that needs longer than this to start or to stop is taken for hung.
const PATIENCE: Duration = Duration::from_secs(180);
/// A profiler that has its events and has opened nothing for so long is at work.
const SETTLED: Duration = Duration::from_millis(500);

/// What py-spy (0.4.3) prints when it begins.
const PY_SPY_SAMPLES: &str = "Sampling process";
/// With which austin (3.7.0) ends when it was interrupted.
const AUSTIN_INTERRUPTED: i32 = 254;

/// Which profiler.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Tool {
    /// Ours, at this path.
    Wholestack(PathBuf),
    /// `perf record --call-graph fp`.
    PerfFp,
    /// `perf record --call-graph dwarf`.
    PerfDwarf,
    /// `py-spy record`, at this path.
    PySpy(PathBuf, PySpy),
    /// `austin`, at this path.
    Austin(PathBuf),
}

/// How py-spy is asked to look.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PySpy {
    /// As it does unless told otherwise: the target is stopped at each sample.
    Plain,
    /// With native frames.
    Native,
    /// Without stopping the target.
    Nonblocking,
}

impl PySpy {
    fn option(self) -> Option<&'static str> {
        match self {
            PySpy::Plain => None,
            PySpy::Native => Some("--native"),
            PySpy::Nonblocking => Some("--nonblocking"),
        }
    }
}

impl fmt::Display for Tool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Tool::Wholestack(_) => "wholestack",
            Tool::PerfFp => "perf fp",
            Tool::PerfDwarf => "perf dwarf",
            Tool::PySpy(_, PySpy::Plain) => "py-spy",
            Tool::PySpy(_, PySpy::Native) => "py-spy --native",
            Tool::PySpy(_, PySpy::Nonblocking) => "py-spy --nonblocking",
            Tool::Austin(_) => "austin",
        })
    }
}

/// What is profiled.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Target {
    /// Processes.
    Pids(Vec<u32>),
    /// All of them.
    Machine,
    /// A command that the profiler starts.
    Command(Vec<OsString>),
}

/// A recording to be made.
#[derive(Clone, Debug)]
pub struct Job {
    /// By which profiler.
    pub tool: Tool,
    /// Of what.
    pub target: Target,
    /// Samples per second and CPU.
    pub hertz: u32,
    /// Where the profile goes; the extension is its format.
    pub output: PathBuf,
}

impl Job {
    fn command(&self) -> Command {
        let hertz = self.hertz.to_string();
        let mut command = match &self.tool {
            Tool::Wholestack(path) => {
                let mut command = Command::new(path);
                command.args(["record", "-F", &hertz]);
                if let Target::Pids(pids) = &self.target {
                    pids.iter().for_each(|pid| _ = command.args(["-p", &pid.to_string()]));
                }
                command
            }
            Tool::PerfFp | Tool::PerfDwarf => {
                let mode = if self.tool == Tool::PerfFp { "fp" } else { "dwarf" };
                let mut command = Command::new("perf");
                command.args(["record", "-q", "-e", "cpu-clock", "-F", &hertz, "--call-graph", mode]);
                match &self.target {
                    Target::Pids(pids) => {
                        let pids: Vec<String> = pids.iter().map(u32::to_string).collect();
                        command.args(["-p", &pids.join(",")]);
                    }
                    Target::Machine => _ = command.arg("-a"),
                    Target::Command(_) => {}
                }
                command
            }
            Tool::PySpy(path, how) => {
                let mut command = Command::new(path);
                command.args(["record", "-f", "raw", "-r", &hertz]).args(how.option());
                self.add_one_process(&mut command);
                command
            }
            Tool::Austin(path) => {
                let mut command = Command::new(path);
                command.args(["-i", &format!("{}us", 1_000_000 / self.hertz)]);
                self.add_one_process(&mut command);
                command
            }
        };
        command.arg("-o").arg(&self.output);
        if let Target::Command(words) = &self.target {
            command.arg("--").args(words);
        }
        command
    }

    /// For those that look at one process.
    fn add_one_process(&self, command: &mut Command) {
        if let Target::Pids(pids) = &self.target {
            pids.iter().for_each(|pid| _ = command.args(["-p", &pid.to_string()]));
        }
    }

    /// Starts it; what it says goes to a file, for the case that it fails.
    ///
    /// # Errors
    /// If it cannot be started.
    pub fn start(&self) -> Result<Profiling> {
        let said = self.output.with_extension("said");
        let mut command = self.command();
        let file = fs::File::create(&said).with_context(|| said.display().to_string())?;
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(file.try_clone()?);
        if matches!(self.tool, Tool::PySpy(..)) {
            command.stdout(file);
        }
        if let Target::Command(_) = self.target {
            command.env("GATE", "0").stdout(fs::File::create(self.output.with_extension("printed"))?);
        }
        let started = procfs::monotonic();
        let process = Process::start(&mut command)?;
        Ok(Profiling { process, started, said, output: self.output.clone(), tool: self.tool.clone() })
    }
}

/// A profiler that runs. Killed on drop.
pub struct Profiling {
    process: Process,
    /// When it was started (CLOCK_MONOTONIC).
    pub started: Duration,
    said: PathBuf,
    output: PathBuf,
    tool: Tool,
}

/// What a profiler was when it ended.
#[derive(Clone, Copy, Debug)]
pub struct Stopped {
    /// Seconds from the signal to its end.
    pub seconds: f64,
    /// CPU seconds of all its life.
    pub cpu: f64,
    /// CPU seconds from the signal to its end; 0 if it ended by itself.
    pub end_cpu: f64,
    /// Memory as last seen, up to a millisecond before its end.
    pub memory: Memory,
    /// The most private memory that was seen after the signal, in KiB.
    pub most_anonymous: u64,
    /// Bytes of what it wrote.
    pub bytes: u64,
}

impl Profiling {
    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.process.pid()
    }

    /// Returns when it samples: it has its perf events, or says so, and has opened nothing for half a second.
    ///
    /// # Errors
    /// If it ends instead.
    pub fn wait_until_at_work(&mut self) -> Result<()> {
        let begun = Instant::now();
        let mut seen = (Descriptors::default(), Instant::now());
        loop {
            if let Some(ended) = self.process.ended()? {
                bail!("{} ended ({}) before it began: {}", self.tool, ended.status, self.last_words());
            }
            let now = Descriptors::of(self.pid()).unwrap_or_default();
            if now != seen.0 {
                seen = (now, Instant::now());
            }
            if self.samples(&now)? && seen.1.elapsed() > SETTLED {
                return Ok(());
            }
            if begun.elapsed() > PATIENCE {
                bail!("{} does not begin", self.tool);
            }
            pause(Duration::from_millis(20))?;
        }
    }

    fn samples(&self, open: &Descriptors) -> Result<bool> {
        Ok(match self.tool {
            // it opens events for process records long before it samples
            Tool::Wholestack(_) => open.sampling > 0,
            Tool::PerfFp | Tool::PerfDwarf => open.events > 0,
            Tool::PySpy(..) => fs::read_to_string(&self.said)?.contains(PY_SPY_SAMPLES),
            // it opens its output when it has found the interpreter
            Tool::Austin(_) => self.output.exists(),
        })
    }

    /// Interrupts it and waits for its end.
    ///
    /// # Errors
    /// If it fails, says no more than an error, or writes nothing.
    pub fn stop(self) -> Result<Stopped> {
        interrupt::check()?;
        let before = procfs::cpu_seconds(self.pid()).context("the profiler is gone")?;
        self.process.interrupt()?;
        let stopped = self.end()?;
        Ok(Stopped { end_cpu: stopped.cpu - before, ..stopped })
    }

    /// Waits for its end, which comes by itself.
    ///
    /// # Errors
    /// As [`Profiling::stop`].
    pub fn end(mut self) -> Result<Stopped> {
        use std::os::unix::process::ExitStatusExt;
        let begun = Instant::now();
        let (mut memory, mut most_anonymous) = (Memory::default(), 0);
        let ended: Ended = self.process.wait(PATIENCE, |pid| {
            if let Some(now) = Memory::of(pid) {
                memory = now;
                most_anonymous = most_anonymous.max(now.anonymous);
            }
        })?;
        let seconds = begun.elapsed().as_secs_f64();
        // perf ends itself by the signal that it was sent
        let interrupted = match self.tool {
            Tool::Austin(_) => ended.status.code() == Some(AUSTIN_INTERRUPTED),
            _ => ended.status.signal() == Some(libc::SIGINT),
        };
        if !ended.status.success() && !interrupted {
            bail!("{} failed ({}): {}", self.tool, ended.status, self.last_words());
        }
        let bytes = fs::metadata(&self.output).with_context(|| format!("{} wrote no profile", self.tool))?.len();
        Ok(Stopped { seconds, cpu: ended.cpu, end_cpu: 0.0, memory, most_anonymous, bytes })
    }

    fn last_words(&self) -> String {
        let said = fs::read_to_string(&self.said).unwrap_or_default();
        said.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("without a word").to_owned()
    }
}

/// The version that a program gives, or why there is none.
pub fn version(program: &Path) -> String {
    match Command::new(program).arg("--version").stdin(Stdio::null()).output() {
        Ok(output) => String::from_utf8_lossy(&output.stdout).lines().next().unwrap_or_default().trim().to_owned(),
        Err(error) => format!("{}: missing ({error})", program.display()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(tool: Tool, target: Target) -> String {
        let command = Job { tool, target, hertz: 99, output: "/tmp/o.folded".into() }.command();
        let mut words = vec![command.get_program().to_string_lossy().into_owned()];
        words.extend(command.get_args().map(|word| word.to_string_lossy().into_owned()));
        words.join(" ")
    }

    #[test]
    fn command_lines() {
        let ours = || Tool::Wholestack("ws".into());
        assert_eq!(words(ours(), Target::Pids(vec![7, 8])), "ws record -F 99 -p 7 -p 8 -o /tmp/o.folded");
        assert_eq!(words(ours(), Target::Machine), "ws record -F 99 -o /tmp/o.folded");
        assert_eq!(
            words(ours(), Target::Command(vec!["ls".into(), "-l".into()])),
            "ws record -F 99 -o /tmp/o.folded -- ls -l"
        );
        let perf = "perf record -q -e cpu-clock -F 99 --call-graph";
        assert_eq!(words(Tool::PerfFp, Target::Pids(vec![7, 8])), format!("{perf} fp -p 7,8 -o /tmp/o.folded"));
        assert_eq!(words(Tool::PerfDwarf, Target::Machine), format!("{perf} dwarf -a -o /tmp/o.folded"));
        let spy = |how| words(Tool::PySpy("spy".into(), how), Target::Pids(vec![7]));
        assert_eq!(spy(PySpy::Plain), "spy record -f raw -r 99 -p 7 -o /tmp/o.folded");
        assert_eq!(spy(PySpy::Native), "spy record -f raw -r 99 --native -p 7 -o /tmp/o.folded");
        let austin = words(Tool::Austin("austin".into()), Target::Pids(vec![7]));
        assert_eq!(austin, "austin -i 10101us -p 7 -o /tmp/o.folded");
    }

    #[test]
    fn missing_programs_are_named() {
        assert!(version(Path::new("/nonexistent/perf")).starts_with("/nonexistent/perf: missing"));
    }
}
