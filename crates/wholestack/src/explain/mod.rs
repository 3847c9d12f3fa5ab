//! `wholestack explain`: what runs in a process now, and the evidence by which its stacks are read.

mod interpreters;
mod native;
mod report;
mod text;
mod threads;

use std::io::{Write, stdout};
use std::process::ExitCode;

use inspect::Files;
use processes::maps::{self, MapsEnd, Wanted};
use processes::memory::{MemoryProblem, ProcessMemory};
use processes::target::{Target, TargetProblem, check_target};
use processes::{MAX_RANGES, MappedRange, Proc, RangeKind};
use python::interpreters::{Cache, Threads};
use python::prove::Effort;

use self::report::{Process, Report};
use crate::Outcome;
use crate::cli::Explain;
use crate::exit::{Failure, with_causes};

/// Prints what runs in a process.
pub(crate) fn run(options: &Explain) -> Outcome {
    let report = gather(options)?;
    let text = match options.json {
        true => serde_json::to_string_pretty(&report).map_err(Failure::failed)? + "\n",
        false => text::text(&report),
    };
    match stdout().lock().write_all(text.as_bytes()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => Err(Failure::failed(error)),
        _ => Ok(ExitCode::SUCCESS),
    }
}

/// A process that can be looked into.
struct Subject {
    target: Target,
    memory: ProcessMemory,
    /// All its mappings, sorted.
    ranges: Vec<MappedRange>,
    files: Files,
}

impl Subject {
    /// Whether the program that it ran is gone: nothing of its memory can be read any more.
    fn is_replaced(&self) -> bool {
        let readable = self.ranges.iter().find(|range| range.readable && range.kind() == RangeKind::File);
        readable.is_some_and(|range| self.memory.read(range.start, &mut [0]).is_err())
    }
}

fn gather(options: &Explain) -> Result<Report, Failure> {
    let subject = open(options.pid)?;
    let tids = tids(options.pid)?;
    let cache = Cache::new();
    let process = python::interpreters::Process::new(&cache, &subject.memory, &subject.ranges);
    let interpreters = interpreters::find(&process, &mut Threads::new(tids.clone(), Effort::FULL));
    let threads = if options.no_stacks { Vec::new() } else { threads::look(&subject, &tids, &interpreters) };
    if subject.is_replaced() {
        let message = format!("process {} has ended or replaced its program while it was looked at", options.pid);
        return Err(Failure::target(message).with_remedy("run it again"));
    }
    Ok(Report {
        process: describe(&subject.target),
        interpreters: interpreters.iter().map(interpreters::report).collect(),
        threads,
    })
}

fn tids(pid: u32) -> Result<Vec<u32>, Failure> {
    let mut tids = Proc::system()
        .tids(pid)
        .map_err(|error| Failure::target(format!("cannot list the threads of process {pid}: {error}")))?;
    tids.sort_unstable();
    Ok(tids)
}

fn open(pid: u32) -> Result<Subject, Failure> {
    let target = check_target(pid).map_err(|problem| target_failure(&problem))?;
    let memory = ProcessMemory::open(pid).map_err(|problem| memory_failure(&problem))?;
    let (ranges, end) = maps::read(&Proc::system(), pid, Wanted::All, MAX_RANGES);
    match end {
        MapsEnd::Complete | MapsEnd::TooMany => {}
        MapsEnd::NotPermitted => return Err(target_failure(&TargetProblem::Protected { pid, comm: target.comm })),
        MapsEnd::NoMemory | MapsEnd::Gone => return Err(memory_failure(&MemoryProblem::NoMemory { pid })),
        MapsEnd::Failed(source) => return Err(Failure::failed(format!("cannot read /proc/{pid}/maps: {source}"))),
    }
    let files = Files::of_process(pid, &ranges);
    Ok(Subject { target, memory, ranges, files })
}

fn describe(target: &Target) -> Process {
    let line = Proc::system().command_line(target.pid).unwrap_or_default();
    let arguments = line.split(|byte| *byte == 0).map(String::from_utf8_lossy);
    Process {
        pid: target.pid,
        name: target.comm.to_string(),
        command_line: arguments.collect::<Vec<_>>().join(" ").trim_end().to_owned(),
        uid: target.uid,
    }
}

fn target_failure(problem: &TargetProblem) -> Failure {
    let message = with_causes(problem);
    match problem {
        TargetProblem::NoSuchProcess { .. } => {
            Failure::target(message).with_remedy("`pgrep NAME` finds the id of a process")
        }
        TargetProblem::Thread { pid, .. } => Failure::target(message).with_remedy(format!("wholestack explain {pid}")),
        TargetProblem::OtherUser { .. } | TargetProblem::Protected { .. } => {
            Failure::not_allowed(message).with_remedy("run it with sudo")
        }
        _ => Failure::target(message),
    }
}

fn memory_failure(problem: &MemoryProblem) -> Failure {
    match problem {
        MemoryProblem::NotPermitted { .. } => Failure::not_allowed(problem).with_remedy("run it with sudo"),
        MemoryProblem::NoSuchProcess { .. } | MemoryProblem::NoMemory { .. } => Failure::target(problem),
        MemoryProblem::System { .. } => Failure::failed(with_causes(problem)),
    }
}
