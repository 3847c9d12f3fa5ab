//! Whole stacks of live programs, against framehop's from the same registers and the same memory.
//!
//! The sampler runs as it always does, in the kernel, and sends with each sample what it was walked from. Three walks are
//! compared: ours in the kernel, ours in user space over the copy, and framehop's over the copy.

mod compare;
mod judge;
mod modules;
mod programs;
mod report;
mod stack;

use std::cell::RefCell;
use std::ffi::OsString;
use std::rc::Rc;
use std::time::{Duration, Instant};

use anyhow::Context;
use recorder::{Options, Recording, Target};

pub use report::{Disagreement, ProgramReport, Report};

use judge::{Judge, Tally};
use programs::{PROGRAMS, Started};

/// Between two looks at whether a program has ended.
const STEP: Duration = Duration::from_millis(50);

/// Options.
#[derive(clap::Args, Debug)]
pub struct Arguments {
    /// Samples per second
    #[arg(short = 'F', long, default_value_t = 199)]
    frequency: u32,
    /// Seconds that each program may run
    #[arg(short, long, default_value_t = 8)]
    seconds: u64,
    /// Only programs whose name contains this
    #[arg(long, value_name = "TEXT", conflicts_with = "command")]
    only: Option<String>,
    /// A command to be compared instead of the set of programs
    #[arg(last = true)]
    command: Vec<OsString>,
}

/// Runs it; false: a comparison failed.
pub fn run(arguments: &Arguments, json: bool) -> anyhow::Result<bool> {
    let report = collect(arguments, !json)?;
    if json {
        println!("{}", serde_json::to_string_pretty(&report)?);
    } else {
        print!("{report}");
    }
    Ok(report.holds())
}

/// Compares the stacks of a command and its children, with so many samples a second for at most so many seconds.
///
/// # Errors
/// The command does not start, or cannot be recorded.
pub fn compare_command(command: &[OsString], frequency: u32, seconds: u64) -> anyhow::Result<ProgramReport> {
    let name = command.iter().map(|part| part.to_string_lossy()).collect::<Vec<_>>().join(" ");
    record(&name, programs::start(command)?, frequency, seconds)
}

/// Compares; `tell` shows each program's result as soon as it is there.
pub(crate) fn collect(arguments: &Arguments, tell: bool) -> anyhow::Result<Report> {
    let mut report = Report::default();
    if !arguments.command.is_empty() {
        add(&mut report, compare_command(&arguments.command, arguments.frequency, arguments.seconds)?, tell);
        return Ok(report);
    }
    let only = arguments.only.as_deref().unwrap_or_default();
    for program in PROGRAMS.iter().filter(|program| program.name.contains(only)) {
        let lacks = program.lacks();
        if !lacks.is_empty() {
            report.missing.push(format!("{}: there is no {}", program.name, lacks.join(", ")));
            continue;
        }
        let directory = tempfile::tempdir().context("no temporary directory")?;
        let started = program.start(&programs::workloads(), directory.path())?;
        add(&mut report, record(program.name, started, arguments.frequency, arguments.seconds)?, tell);
    }
    Ok(report)
}

fn add(report: &mut Report, program: ProgramReport, tell: bool) {
    if tell {
        println!("{program}");
    }
    report.programs.push(program);
}

/// Records a program and its children.
fn record(name: &str, mut started: Started, frequency: u32, seconds: u64) -> anyhow::Result<ProgramReport> {
    let tally = Rc::new(RefCell::new(Tally::default()));
    let target = Target::Processes(vec![started.pid()]);
    let options = Options { target, frequency, keeps_eval_loops: false };
    let judge = Box::new(Judge::new(tally.clone()));
    let mut recording = Recording::start_with(&options, Some(judge)).context("cannot record")?;
    started.go().context("the program does not start")?;
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_secs(seconds) && !started.has_ended() {
        recording.step(STEP).context("cannot go on recording")?;
    }
    recording.finish();
    let tally = tally.borrow();
    Ok(ProgramReport::new(name, &tally))
}
