//! From the start of a profiler to its first sample.

use std::ffi::OsString;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result};

use crate::bench::Bench;
use crate::folded;
use crate::harness::{Figures, Variant, interleave};
use crate::interrupt::pause;
use crate::profiler::{Job, Target, Tool};
use crate::report::{Section, Table, column};
use crate::workload::{Workload, parse_work};

/// Length of a phase of the workload.
const PHASE: Duration = Duration::from_millis(10);
const HERTZ: u32 = 99;
const PREFIX: &str = "phase_";

/// Whether tables are in the cache.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Tables {
    Cached,
    Missing,
}

/// Takes the measure.
pub fn take(bench: &Bench) -> Result<Section> {
    let variants = vec![
        Variant::new("one process, tables cached", || running(bench, &bench.ours(), false, Tables::Cached)),
        Variant::new("one process, no tables", || running(bench, &bench.ours(), false, Tables::Missing)),
        Variant::new("whole machine, tables cached", || running(bench, &bench.ours(), true, Tables::Cached)),
        Variant::new("whole machine, no tables", || running(bench, &bench.ours(), true, Tables::Missing)),
        Variant::new("a command, tables cached", || launched(bench, Tables::Cached)),
        Variant::new("a command, no tables", || launched(bench, Tables::Missing)),
        Variant::new("perf dwarf, one process", || running(bench, &Tool::PerfDwarf, false, Tables::Cached)),
    ];
    let series = interleave(bench.rounds, variants)?;
    let columns = [
        column("first sample after ms", "first", 0).times(1e3),
        column("the command held back for ms", "held", 0).times(1e3),
        column("of the command not sampled, ms", "blind", 0).times(1e3),
    ];
    Ok(Section {
        title: "From start to first sample",
        about: format!(
            "The target runs functions one after the other, each for {} ms of wall time; the middle of the lowest one in the \
             profile is taken for the time of the first sample of it, at {HERTZ} Hz. So half the time between two samples is \
             in it. Without tables, the cache on disk is empty; the files themselves are in the page cache.",
            PHASE.as_millis()
        ),
        tables: vec![Table::of(&series, "what", &columns)],
        series,
        notes: Vec::new(),
    })
}

/// Empties the cache, or fills it by a recording of the same kind.
fn prepare(bench: &Bench, machine: bool, tables: Tables) -> Result<()> {
    if tables == Tables::Missing {
        return bench.cache.clear();
    }
    let mut workload = bench.workloads.start("phases", arguments())?;
    workload.go()?;
    let mut profiling = bench.job(bench.ours(), target(&workload, machine), HERTZ, "folded").start()?;
    profiling.wait_until_at_work()?;
    profiling.stop()?;
    Ok(())
}

fn target(workload: &Workload, machine: bool) -> Target {
    if machine { Target::Machine } else { Target::Pids(vec![workload.pid()]) }
}

/// Seconds into the work at which the first sample was taken.
fn first_phase(job: &Job) -> Result<f64> {
    let phase = match job.tool {
        Tool::Wholestack(_) => folded::lowest(&folded::read(&job.output)?, PREFIX),
        Tool::PerfFp | Tool::PerfDwarf => lowest_of_perf(&job.output)?,
        // they see no native functions, or do not say when
        Tool::PySpy(..) | Tool::Austin(_) => None,
    };
    let phase = phase.context("no sample of the target")?;
    Ok((f64::from(phase) + 0.5) * PHASE.as_secs_f64())
}

fn lowest_of_perf(data: &Path) -> Result<Option<u32>> {
    let script =
        Command::new("perf").args(["script", "-F", "ip,sym", "-i"]).arg(data).stderr(Stdio::null()).output()?;
    let text = String::from_utf8_lossy(&script.stdout).into_owned();
    Ok(text.split_whitespace().filter_map(|word| word.strip_prefix(PREFIX)?.get(..3)?.parse().ok()).min())
}

fn arguments() -> [String; 1] {
    [PHASE.as_millis().to_string()]
}

fn running(bench: &Bench, tool: &Tool, machine: bool, tables: Tables) -> Result<Figures> {
    if matches!(tool, Tool::Wholestack(_)) {
        prepare(bench, machine, tables)?;
    }
    let mut workload = bench.workloads.start("phases", arguments())?;
    workload.go()?;
    pause(Duration::from_millis(300))?;
    let job = bench.job(tool.clone(), target(&workload, machine), HERTZ, "folded");
    let profiling = job.start()?;
    let started = profiling.started.as_secs_f64();
    let work = workload.work()?;
    profiling.stop()?;
    Ok(Figures::from([("first", work.begun + first_phase(&job)? - started)]))
}

fn launched(bench: &Bench, tables: Tables) -> Result<Figures> {
    prepare(bench, false, tables)?;
    let program = bench.workloads.path("phases").into_os_string();
    let command = std::iter::once(program).chain(arguments().map(OsString::from)).collect();
    let job = bench.job(bench.ours(), Target::Command(command), HERTZ, "folded");
    let profiling = job.start()?;
    let started = profiling.started.as_secs_f64();
    profiling.end()?;
    let work = parse_work(&std::fs::read_to_string(job.output.with_extension("printed"))?)?;
    let blind = first_phase(&job)?;
    let held = work.begun - started;
    Ok(Figures::from([("first", held + blind), ("held", held), ("blind", blind)]))
}
