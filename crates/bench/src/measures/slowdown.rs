//! How much slower a profiled program is.

use anyhow::Result;

use crate::bench::{Bench, MIX};
use crate::harness::{Figures, Series, Variant, interleave_between};
use crate::profiler::{Target, Tool};
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

/// Adds the ratios to the bare runs of each round, as far as no run of a series failed: then rounds cannot be told apart.
fn relate(mut series: Vec<Series>) -> Vec<Series> {
    let (Some(first), Some(again)) = (series.first().cloned(), series.last().cloned()) else { return series };
    let complete = |series: &Series| series.failures.is_empty();
    if !complete(&first) || !complete(&again) {
        return series;
    }
    for one in series.iter_mut().filter(|series| complete(series)) {
        for (run, (first, again)) in one.runs.iter_mut().zip(first.runs.iter().zip(&again.runs)) {
            for (figure, ratio) in [("cpu", "CPU ratio"), ("wall", "wall ratio")] {
                run.insert(ratio, run[figure] / f64::midpoint(first[figure], again[figure]));
            }
        }
    }
    series
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratios_are_to_the_bare_runs_of_the_same_round() {
        let of = |name: &str, cpu: &[f64]| Series {
            name: name.to_owned(),
            runs: cpu.iter().map(|cpu| Figures::from([("cpu", *cpu), ("wall", *cpu * 2.0)])).collect(),
            failures: vec![],
        };
        let mut broken = of("broken", &[9.0]);
        broken.failures.push("gone".to_owned());
        let series = vec![of("none", &[1.0, 2.0]), of("a", &[1.5, 4.5]), broken, of("none, again", &[2.0, 4.0])];
        let series = relate(series);
        let ratios: Vec<f64> = series[1].runs.iter().map(|run| run["CPU ratio"]).collect();
        assert_eq!(ratios, [1.0, 1.5]);
        assert_eq!(series[1].runs[1]["wall ratio"], 1.5);
        assert!(!series[2].runs[0].contains_key("CPU ratio"));
    }
}
