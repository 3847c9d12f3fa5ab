//! `wholestack record`.

mod outputs;
mod progress;
mod summary;

use std::os::unix::process::ExitStatusExt;
use std::process::{ExitCode, ExitStatus};
use std::time::{Duration, Instant};

use formats::Output;
use profile::Profile;
use recorder::{Finished, Options, Recording, StartError, Target};

use crate::Outcome;
use crate::cli::Record;
use crate::exit::Failure;
use crate::launcher::{Running, Waiting};
use crate::record::progress::ProgressLine;
use crate::sigbus;
use crate::signals::Stop;

/// Between two looks at what has come.
const STEP: Duration = Duration::from_millis(50);

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
    let mut recording = Recording::start(&Options { target, frequency: options.frequency }).map_err(start_failure)?;
    let mut running = waiting.map(Waiting::start).transpose()?;
    let status = follow(options, &mut recording, running.as_mut(), &stop)?;
    let finished = recording.finish();
    finish(options, finished, &outputs)?;
    Ok(status.map_or(ExitCode::SUCCESS, exit_code))
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
    if status.is_none()
        && let Some(running) = running
    {
        // after Ctrl-C or at the end of the time the command may be on its way out, or goes on without us
        status = running.ended();
        if status.is_none() && !options.quiet {
            eprintln!("wholestack: the command still runs as process {}", running.pid());
        }
    }
    Ok(status)
}

fn finish(options: &Record, mut finished: Finished, outputs: &[Output]) -> Result<(), Failure> {
    describe(options, &mut finished.profile);
    let mut failed = None;
    for output in outputs {
        match output.finish(&finished.profile) {
            Ok(()) => {}
            Err(error) => failed = Some(error),
        }
    }
    if !options.quiet {
        summary::print(&finished);
        if sigbus::happened() {
            eprintln!("  a file was shortened while it was read: its names may be incomplete");
        }
    }
    match failed {
        Some(error) => Err(Failure::failed(error)),
        None => {
            if !options.quiet {
                outputs.iter().for_each(|output| eprintln!("wrote {}", output.path().display()));
            }
            Ok(())
        }
    }
}

/// What the recording knows nothing of.
fn describe(options: &Record, profile: &mut Profile) {
    let meta = &mut profile.meta;
    meta.version = env!("CARGO_PKG_VERSION").to_owned();
    let arguments = std::env::args_os().map(|argument| argument.to_string_lossy().into_owned());
    meta.command_line = arguments.collect::<Vec<_>>().join(" ");
    meta.target = target_text(options);
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
    for pid in pids {
        if let Err(problem) = recorder::check_target(*pid) {
            return Err(Failure::target(problem));
        }
    }
    Ok(())
}

fn start_failure(error: StartError) -> Failure {
    Failure::not_allowed(error).with_remedy("`wholestack check` says what this machine allows and what to do about it")
}

fn exit_code(status: ExitStatus) -> ExitCode {
    let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal)).unwrap_or(1);
    ExitCode::from(u8::try_from(code).unwrap_or(1))
}
