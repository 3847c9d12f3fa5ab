//! `wholestack record`.

mod outputs;
mod progress;
mod summary;

use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{ExitCode, ExitStatus};
use std::time::{Duration, Instant};

use formats::Output;
use profile::Profile;
use recorder::{Finished, Options, Recording, StartError, Target, TargetProblem};

use crate::Outcome;
use crate::cli::{PythonNative, Record};
use crate::exit::{Failure, is_caused_by, with_causes};
use crate::launcher::{Running, Waiting};
use crate::record::progress::ProgressLine;
use crate::say::say;
use crate::sigbus;
use crate::signals::Stop;

/// Between two looks at what has come.
const STEP: Duration = Duration::from_millis(100);

/// Records and writes.
pub(crate) fn run(options: &Record) -> Outcome {
    check_pids(&options.pid)?;
    let name = target_name(options);
    let outputs = outputs::open(&options.output, &name)?;
    sigbus::install().map_err(Failure::failed)?;
    let stop = Stop::catch().map_err(Failure::failed)?;
    let waiting = match options.command.as_slice() {
        [] => None,
        command => Some(Waiting::prepare(command)?),
    };
    let target = match &waiting {
        Some(waiting) => Target::Processes(vec![waiting.pid()]),
        None if options.pid.is_empty() => Target::Machine,
        None => Target::Processes(options.pid.clone()),
    };
    let described = target_text(options);
    let keeps_eval_loops = options.python_native == PythonNative::All;
    let mut recording =
        Recording::start(&Options { target, frequency: options.frequency, keeps_eval_loops }).map_err(start_failure)?;
    if stop.asked() && waiting.is_some() {
        return Err(Failure::interrupted("interrupted before the command was started"));
    }
    if !options.pid.is_empty() && !recording.has_processes() {
        let which = if options.pid.len() == 1 { "the process" } else { "all processes" };
        return Err(Failure::target(format!("{which} to be recorded ended before the recording began"))
            .with_remedy("a command is recorded from its beginning with: wholestack record -- COMMAND"));
    }
    let mut running = waiting.map(Waiting::start).transpose()?;
    let status = follow(options, &mut recording, running.as_mut(), &stop)?;
    let mut finished = recording.finish();
    describe(options, described, &mut finished.profile);
    finish(options, &finished, &outputs)?;
    let ended = status.or_else(|| running.as_mut().and_then(Running::ended));
    if let (None, Some(running), false) = (ended, &running, options.quiet) {
        say!("the command still runs, as process {}", running.pid());
    }
    // the command that ends by the same Ctrl-C did what it was told
    Ok(if stop.asked() { ExitCode::SUCCESS } else { ended.map_or(ExitCode::SUCCESS, exit_code) })
}

/// Works until the recording is over; gives the command's status.
fn follow(
    options: &Record,
    recording: &mut Recording,
    mut running: Option<&mut Running>,
    stop: &Stop,
) -> Result<Option<ExitStatus>, Failure> {
    let started = Instant::now();
    let mut line = ProgressLine::new(options.quiet);
    let mut status = None;
    loop {
        let left = options.duration.map(|duration| duration.saturating_sub(started.elapsed()));
        recording.step(left.map_or(STEP, |left| left.min(STEP))).map_err(Failure::failed)?;
        line.show(recording);
        if let Some(running) = running.as_deref_mut() {
            status = running.ended();
        }
        let over = stop.asked()
            || status.is_some()
            || left.is_some_and(|left| left.is_zero())
            || (!options.pid.is_empty() && !recording.has_processes());
        if over {
            break;
        }
    }
    recording.stop();
    line.clear();
    Ok(status)
}

/// Writes each output, whatever becomes of the others.
fn finish(options: &Record, finished: &Finished, outputs: &[Output]) -> Result<(), Failure> {
    let written: Vec<(&Output, Result<(), formats::Error>)> =
        outputs.iter().map(|output| (output, output.finish(&finished.profile))).collect();
    if !options.quiet {
        summary::print(finished);
        if finished.profile.total() == 0 && !options.pid.is_empty() {
            say!("  children that a process had before are not recorded with it: give their ids with -p, too");
        }
        if sigbus::happened() {
            say!("  a file was shortened while it was read: its names may be incomplete");
        }
    }
    let mut failures = Vec::new();
    for (output, written) in written {
        match written {
            Ok(()) if options.quiet || output.path() == Path::new("-") => {}
            Ok(()) => say!("wrote {}", output.path().display()),
            // who reads standard output has seen enough
            Err(error) if output.path() == Path::new("-") && is_broken_pipe(&error) => {}
            Err(error) => failures.push(error.to_string()),
        }
    }
    if failures.is_empty() { Ok(()) } else { Err(Failure::failed(failures.join("; "))) }
}

fn is_broken_pipe(error: &formats::Error) -> bool {
    use formats::Error::{File, Io};
    matches!(error, File { source, .. } | Io(source) if source.kind() == std::io::ErrorKind::BrokenPipe)
}

/// What the recording knows nothing of.
fn describe(options: &Record, target: String, profile: &mut Profile) {
    let meta = &mut profile.meta;
    meta.version = env!("CARGO_PKG_VERSION").to_owned();
    let arguments = std::env::args_os().map(|argument| argument.to_string_lossy().into_owned());
    meta.command_line = arguments.collect::<Vec<_>>().join(" ");
    meta.target = target;
    let system = rustix::system::uname();
    meta.host = system.nodename().to_string_lossy().into_owned();
    meta.kernel = format!("{} {}", system.release().to_string_lossy(), system.machine().to_string_lossy());
    meta.frequency = options.frequency;
    meta.lines = options.lines;
}

fn target_text(options: &Record) -> String {
    match (options.command.as_slice(), options.pid.as_slice()) {
        ([], []) => "whole machine".to_owned(),
        ([], pids) => {
            let pids = pids.iter().map(|pid| match comm(*pid) {
                Some(comm) => format!("{pid} ({comm})"),
                None => pid.to_string(),
            });
            format!("pid {}", pids.collect::<Vec<_>>().join(", "))
        }
        (command, _) => command.iter().map(|part| part.to_string_lossy().into_owned()).collect::<Vec<_>>().join(" "),
    }
}

/// A short name for files.
fn target_name(options: &Record) -> String {
    match (options.command.first(), options.pid.first()) {
        (Some(command), _) => {
            let path = std::path::Path::new(command);
            path.file_name().map_or_else(|| "command".to_owned(), |name| name.to_string_lossy().into_owned())
        }
        (None, Some(pid)) => comm(*pid).unwrap_or_else(|| pid.to_string()),
        (None, None) => rustix::system::uname().nodename().to_string_lossy().into_owned(),
    }
}

fn comm(pid: u32) -> Option<String> {
    let comm = std::fs::read(format!("/proc/{pid}/comm")).ok()?;
    Some(String::from_utf8_lossy(&comm).trim_end().to_owned())
}

fn check_pids(pids: &[u32]) -> Result<(), Failure> {
    match pids.iter().find_map(|pid| recorder::check_target(*pid).err()) {
        None => Ok(()),
        Some(problem) => {
            let problem = match problem {
                // it ended between two looks at it
                TargetProblem::Unreadable { pid, source }
                    if matches!(source.raw_os_error(), Some(libc::ENOENT | libc::ESRCH)) =>
                {
                    TargetProblem::NoSuchProcess { pid }
                }
                problem => problem,
            };
            let remedy = target_remedy(&problem);
            Err(Failure::target(problem).with_remedy(remedy))
        }
    }
}

/// What to do instead.
fn target_remedy(problem: &TargetProblem) -> String {
    match problem {
        TargetProblem::NoSuchProcess { .. } => {
            "`pgrep NAME` finds the id of a process; a command is recorded with: wholestack record -- COMMAND"
                .to_owned()
        }
        TargetProblem::Thread { pid, .. } => format!("its process is recorded, with all its threads, by: -p {pid}"),
        TargetProblem::KernelThread { .. } => {
            "kernel threads are in the recording of the whole machine: wholestack record, without -p".to_owned()
        }
        TargetProblem::Zombie { .. } => "there is nothing left to record".to_owned(),
        TargetProblem::OtherUser { .. } | TargetProblem::Protected { .. } => {
            "run it with sudo, or as `wholestack check` says".to_owned()
        }
        TargetProblem::Unreadable { .. } => "`wholestack check` says what this machine allows".to_owned(),
    }
}

fn start_failure(error: StartError) -> Failure {
    let remedy = "`wholestack check` says what this machine allows and what to do about it";
    let failure = Failure::not_allowed(with_causes(&error));
    if is_caused_by(&error, libc::EMFILE) {
        let files = "more files have to be open at a time than the limit allows: raise it with `ulimit -Hn`, as root";
        return failure.with_remedy(format!("{files}\n{remedy}"));
    }
    failure.with_remedy(remedy)
}

fn exit_code(status: ExitStatus) -> ExitCode {
    let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal)).unwrap_or(1);
    ExitCode::from(u8::try_from(code).unwrap_or(1))
}
