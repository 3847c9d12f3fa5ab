//! Time in the kernel: of a sample, of a frame, and of the programs that follow processes.

use anyhow::{Context, Result};

use crate::bench::{Bench, MIX, Shape};
use crate::bpf;
use crate::folded;
use crate::harness::{Figures, Series, Variant, interleave};
use crate::interrupt::pause;
use crate::profiler::Target;
use crate::report::{Section, Table, column};
use crate::sampler::{Cost, Look};
use crate::statistics::Line;

const RATES: [u32; 2] = [99, 999];
const FLAT: Shape = Shape { depth: 0, share: 0 };
const DEEP: Shape = Shape { depth: 60, share: 100 };
const DEEPER: Shape = Shape { depth: 500, share: 100 };
const SHAPES: [(&str, Shape); 4] = [("mix", MIX), ("flat", FLAT), ("deep 61", DEEP), ("deep 501", DEEPER)];
/// Programs and the figures of their runs.
const FOLLOWERS: [(&str, &str, &str); 3] =
    [("follow", "fork runs", "fork ns"), ("exec", "exec runs", "exec ns"), ("remap", "mmap runs", "mmap ns")];

/// Takes the measure.
pub fn take(bench: &Bench) -> Result<Section> {
    let _statistics = bpf::measure()?;
    let mut variants = Vec::new();
    for (name, shape) in SHAPES {
        let rounds = bench.rounds_for(bench.time(4.0, 2.0), shape)?;
        for hertz in RATES {
            variants.push(Variant::new(format!("{name}, {hertz} Hz"), move || sample(bench, shape, rounds, hertz)));
        }
    }
    let mut series = interleave(bench.rounds, variants)?;
    let sampler = Table::of(
        &series,
        "work",
        &[
            column("ns a run", "ns a run", 0),
            column("ns an idle run", "ns an idle run", 0),
            column("us a sample", "ns a sample", 2).times(1e-3),
            column("frames", "frames", 1),
            column("ns a frame", "ns a frame", 0),
            column("samples", "samples", 0),
            column("deferred", "deferred", 0),
        ],
    );
    let notes = RATES.iter().map(|hertz| slope(&series, *hertz)).collect();
    let followers =
        interleave(bench.rounds, vec![Variant::new("a child and 1000 mappings a round", || follow(bench))])?;
    let columns = FOLLOWERS.iter().flat_map(|(_, runs, time)| [column(runs, runs, 0), column(time, time, 0)]);
    let programs = Table::of(&followers, "work", &columns.collect::<Vec<_>>());
    series.extend(followers);
    Ok(Section {
        title: "Time in the kernel",
        about: "By the kernel's run-time statistics, whose two clock readings a run are in the figures. A run is one of the \
            sampler, whoever it hits; a sample is one of the target. What runs that hit idle CPUs and other processes take \
            is measured before the target begins to work, and taken off. Frames are those of the profile, without the \
            kernel's; ns a frame is the time of a sample divided by them, with all that a sample costs by itself."
            .to_owned(),
        tables: vec![sampler, programs],
        series,
        notes,
    })
}

fn sample(bench: &Bench, shape: Shape, rounds: u64, hertz: u32) -> Result<Figures> {
    let mut workload = bench.calls(rounds, shape)?;
    let job = bench.job(bench.ours(), Target::Pids(vec![workload.pid()]), hertz, "folded");
    let mut profiling = job.start()?;
    profiling.wait_until_at_work()?;
    let attached = Look::at(&profiling)?;
    pause(bench.time(1.0, 0.5))?;
    let before = Look::at(&profiling)?;
    workload.go()?;
    workload.work()?;
    let after = Look::at(&profiling)?;
    profiling.stop()?;
    let stacks = folded::read(&job.output)?;
    let frames = folded::mean_user_frames(&stacks).context("no samples")?;
    let cost = Cost::between(&attached, &before, &after).context("the sampler did not run")?;
    let mut figures = cost.figures();
    figures.extend([("frames", frames), ("ns a frame", cost.each / frames)]);
    Ok(figures)
}

/// What one more frame costs, from work of different depth.
fn slope(series: &[Series], hertz: u32) -> String {
    let fixed_depth =
        |series: &&Series| !series.name.starts_with("mix") && series.name.ends_with(&format!(", {hertz} Hz"));
    let runs = series.iter().filter(fixed_depth).flat_map(|series| &series.runs);
    let points: Vec<(f64, f64)> =
        runs.filter_map(|run| Some((*run.get("frames")?, *run.get("ns a sample")?))).collect();
    match Line::through(&points) {
        Some(line) => format!(
            "{hertz} Hz: a sample costs {:.0} ns and {:.0} ns a frame (least squares over flat, deep 61 and deep 501, {} runs)",
            line.at_zero,
            line.slope,
            points.len()
        ),
        None => format!("{hertz} Hz: no slope, for want of runs"),
    }
}

fn follow(bench: &Bench) -> Result<Figures> {
    let rounds = if bench.quick { 100 } else { 400 };
    let mut workload = bench.workloads.start("churn", [rounds.to_string()])?;
    let job = bench.job(bench.ours(), Target::Pids(vec![workload.pid()]), 99, "folded");
    let mut profiling = job.start()?;
    profiling.wait_until_at_work()?;
    let before = bpf::runs(profiling.pid())?;
    workload.go()?;
    workload.work()?;
    let after = bpf::runs(profiling.pid())?;
    profiling.stop()?;
    let mut figures = Figures::new();
    for (program, count, time) in FOLLOWERS {
        let now = after.get(program).with_context(|| format!("no program named {program}"))?;
        let runs = now.since(before.get(program).copied().unwrap_or_default());
        figures.insert(count, runs.count as f64);
        if let Some(mean) = runs.mean() {
            figures.insert(time, mean);
        }
    }
    Ok(figures)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_slope_is_of_one_rate_and_fixed_depths() {
        let run = |frames: f64, time: f64| Figures::from([("frames", frames), ("ns a sample", time)]);
        let of = |name: &str, runs: Vec<Figures>| Series { name: name.to_owned(), runs, failures: vec![] };
        let series = [
            of("mix, 99 Hz", vec![run(20.0, 1e9)]),
            of("flat, 99 Hz", vec![run(8.0, 1800.0)]),
            of("flat, 999 Hz", vec![run(8.0, 1e9)]),
            of("deep 61, 99 Hz", vec![run(68.0, 7800.0)]),
        ];
        assert!(
            slope(&series, 99).starts_with("99 Hz: a sample costs 1000 ns and 100 ns a frame"),
            "{}",
            slope(&series, 99)
        );
        assert!(slope(&series, 999).contains("no slope"));
    }
}
