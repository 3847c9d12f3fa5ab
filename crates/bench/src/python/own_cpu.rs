//! CPU time that a profiler of one Python process takes itself, and how many of its samples it gets.

use std::time::Duration;

use anyhow::Result;

use super::{PythonBench, stacks};
use crate::harness::{Figures, Variant, interleave};
use crate::measures::own_cpu::split;
use crate::profiler::{Target, Tool};
use crate::report::{Section, Table, column};
use crate::workload::Work;

const HERTZ: u32 = 99;

/// Takes the measure.
pub fn take(python: &PythonBench) -> Result<Section> {
    let bench = &python.bench;
    let times = [bench.time(5.0, 2.0), bench.time(20.0, 6.0)];
    let (mut variants, mut names) = (Vec::new(), Vec::new());
    for tool in python.tools() {
        for time in times {
            let tool = tool.clone();
            variants.push(Variant::new(format!("{tool}, {} s", time.as_secs()), move || run(python, &tool, time)));
        }
        names.push(tool.to_string());
    }
    let series = interleave(bench.rounds, variants)?;
    let columns = [
        column("CPU s", "cpu", 3),
        column("wall s of the work", "asked", 2),
        column("samples", "samples", 0),
        column("of those due by CPU time, %", "of CPU time", 1).times(100.0),
        column("of those due by wall time, %", "of wall time", 1).times(100.0),
    ];
    Ok(Section {
        title: "CPU time of a profiler of Python",
        about: format!(
            "User and system time of the profiler from its start to its end, output included, at {HERTZ} Hz, for one process of \
             Python {} that works all the time; the first table is a line through the two lengths of work. Samples are those of \
             the process at work: wholestack takes one for each 1/{HERTZ} s of CPU time, the others of wall time. Where the \
             process waits for a CPU, the two differ.",
            python.compared()
        ),
        tables: vec![split(&names, &series), Table::of(&series, "profiler", &columns)],
        series,
        notes: Vec::new(),
    })
}

fn run(python: &PythonBench, tool: &Tool, time: Duration) -> Result<Figures> {
    let seconds = time.as_secs_f64().to_string();
    let mut workload = python.scripts.start(python.compared(), "truth.py", &[seconds])?;
    let job = python.bench.job(tool.clone(), Target::Pids(vec![workload.pid()]), HERTZ, "folded");
    let mut profiling = job.start()?;
    profiling.wait_until_at_work()?;
    workload.go()?;
    let work = workload.work()?;
    let stopped = profiling.stop()?;
    let samples = stacks::samples(&stacks::read(&job.output, tool)?);
    std::fs::remove_file(&job.output)?;
    Ok(figures(stopped.cpu, work, samples))
}

fn figures(cpu: f64, work: Work, samples: u64) -> Figures {
    let samples = samples as f64;
    Figures::from([
        ("cpu", cpu),
        ("asked", work.wall),
        ("samples", samples),
        ("of CPU time", samples / (work.cpu * f64::from(HERTZ))),
        ("of wall time", samples / (work.wall * f64::from(HERTZ))),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_are_compared_with_both_clocks() {
        let figures = figures(0.25, Work { begun: 7.0, wall: 4.0, cpu: 2.0 }, 198);
        assert_eq!((figures["of CPU time"], figures["of wall time"]), (1.0, 0.5));
        assert_eq!((figures["cpu"], figures["asked"]), (0.25, 4.0));
    }
}
