//! How much slower a profiled Python program is.

use anyhow::Result;

use super::PythonBench;
use crate::harness::{Figures, Variant, interleave_between};
use crate::profiler::{Target, Tool};
use crate::ratios::relate;
use crate::report::{Section, Table, column};

const RATES: [u32; 2] = [99, 999];

/// Takes the measure.
pub fn take(python: &PythonBench) -> Result<Section> {
    let rounds = rounds_for(python)?;
    let bare = Variant::new("none", move || run(python, rounds, None));
    let mut variants = Vec::new();
    for tool in python.tools() {
        for hertz in RATES {
            let tool = tool.clone();
            let name = format!("{tool}, {hertz} Hz");
            variants.push(Variant::new(name, move || run(python, rounds, Some((tool.clone(), hertz)))));
        }
    }
    let series = relate(interleave_between(python.bench.rounds, bare, variants)?);
    let columns = [
        column("CPU ratio", "CPU ratio", 4),
        column("wall ratio", "wall ratio", 4),
        column("CPU s", "cpu", 3),
        column("wall s", "wall", 3),
    ];
    Ok(Section {
        title: "Slow-down of a Python program",
        about: format!(
            "The same work (calls, objects, strings, sorting, JSON, zlib) of Python {} with and without a profiler. Ratios are to \
             the mean of the two bare runs of the same round; the two bare rows are the noise floor. A profiler that stops the \
             target takes wall time, not CPU time, of it. Run-time statistics of BPF programs are off.",
            python.compared()
        ),
        tables: vec![Table::of(&series, "profiler", &columns)],
        series,
        notes: Vec::new(),
    })
}

fn run(python: &PythonBench, rounds: u64, profiler: Option<(Tool, u32)>) -> Result<Figures> {
    let mut workload = python.scripts.start(python.compared(), "mix.py", &[rounds.to_string()])?;
    let mut profiling = None;
    if let Some((tool, hertz)) = profiler {
        let job = python.bench.job(tool, Target::Pids(vec![workload.pid()]), hertz, "folded");
        let mut started = job.start()?;
        started.wait_until_at_work()?;
        profiling = Some((started, job.output));
    }
    workload.go()?;
    let work = workload.work()?;
    if let Some((profiling, output)) = profiling {
        profiling.stop()?;
        std::fs::remove_file(output)?;
    }
    Ok(Figures::from([("cpu", work.cpu), ("wall", work.wall)]))
}

/// Rounds of `mix.py` that take as long as the measure wants.
fn rounds_for(python: &PythonBench) -> Result<u64> {
    let trial = 300;
    let mut workload = python.scripts.start(python.compared(), "mix.py", &[trial.to_string()])?;
    workload.go()?;
    let each = workload.work()?.cpu / trial as f64;
    Ok((python.bench.time(4.0, 1.5).as_secs_f64() / each).ceil() as u64)
}
