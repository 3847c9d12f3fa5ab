//! How much slower a profiled program is.

use anyhow::Result;

use crate::bench::{Bench, MIX};
use crate::harness::{Figures, Variant, interleave_between};
use crate::profiler::{Target, Tool};
use crate::ratios::relate;
use crate::report::{Section, Table, column};

const RATES: [u32; 2] = [99, 999];

/// Takes the measure.
pub fn take(bench: &Bench) -> Result<Section> {
    let rounds = bench.rounds_for(bench.time(3.0, 1.0), MIX)?;
    let bare = Variant::new("none", move || run(bench, rounds, None));
    let mut variants = Vec::new();
    for tool in [bench.ours(), Tool::PerfFp, Tool::PerfDwarf] {
        for hertz in RATES {
            let tool = tool.clone();
            let name = format!("{tool}, {hertz} Hz");
            variants.push(Variant::new(name, move || run(bench, rounds, Some((tool.clone(), hertz)))));
        }
    }
    let series = relate(interleave_between(bench.rounds, bare, variants)?);
    let columns = [
        column("CPU ratio", "CPU ratio", 4),
        column("wall ratio", "wall ratio", 4),
        column("CPU s", "cpu", 3),
        column("wall s", "wall", 3),
    ];
    Ok(Section {
        title: "Slow-down of the target",
        about:
            "The same work with and without a profiler. Ratios are to the mean of the two bare runs of the same round; \
            the two bare rows are the noise floor. On a kernel without IRQ_TIME_ACCOUNTING the CPU time of a target \
            contains the interrupts that sample it. Run-time statistics of BPF programs are off."
                .to_owned(),
        tables: vec![Table::of(&series, "profiler", &columns)],
        series,
        notes: Vec::new(),
    })
}

fn run(bench: &Bench, rounds: u64, profiler: Option<(Tool, u32)>) -> Result<Figures> {
    let mut workload = bench.calls(rounds, MIX)?;
    let mut profiling = None;
    if let Some((tool, hertz)) = profiler {
        let job = bench.job(tool, Target::Pids(vec![workload.pid()]), hertz, "folded");
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
