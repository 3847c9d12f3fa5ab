//! CPU time that a profiler takes itself, split into what starting and stopping cost and what each minute costs.

use std::time::Duration;

use anyhow::Result;

use crate::bench::Bench;
use crate::harness::{Figures, Series, Variant, interleave};
use crate::interrupt::pause;
use crate::procfs;
use crate::profiler::{Target, Tool};
use crate::report::{Section, Table, column};
use crate::statistics::Line;

const HERTZ: u32 = 99;

/// Takes the measure.
pub fn take(bench: &Bench) -> Result<Section> {
    let times = [bench.time(5.0, 2.0), bench.time(20.0, 6.0)];
    let busy = bench.busy_pair()?;
    let one = Target::Pids(vec![busy[0].pid()]);
    let mut variants = Vec::new();
    let mut names = Vec::new();
    for tool in [bench.ours(), Tool::PerfFp, Tool::PerfDwarf] {
        for (what, target) in [("one process", one.clone()), ("whole machine", Target::Machine)] {
            let name = format!("{tool}, {what}");
            for time in times {
                let (tool, target) = (tool.clone(), target.clone());
                let run = move || run(bench, &tool, &target, time);
                variants.push(Variant::new(format!("{name}, {} s", time.as_secs()), run));
            }
            names.push(name);
        }
    }
    let series = interleave(bench.rounds, variants)?;
    let columns = [column("CPU s", "cpu", 3), column("from start to end, s", "seconds", 2)];
    Ok(Section {
        title: "CPU time of the profiler",
        about: format!(
            "User and system time of the profiler and its children from its start to its end, output included, at {HERTZ} Hz, \
             while two processes are busy. perf's time is that of `perf record` alone: it names nothing and draws nothing. \
             Time in the target's interrupts is not in it."
        ),
        tables: vec![split(&names, &series), Table::of(&series, "profiler", &columns)],
        series,
        notes: Vec::new(),
    })
}

fn run(bench: &Bench, tool: &Tool, target: &Target, time: Duration) -> Result<Figures> {
    let job = bench.job(tool.clone(), target.clone(), HERTZ, "html");
    let profiling = job.start()?;
    pause(time)?;
    let started = profiling.started;
    let stopped = profiling.stop()?;
    std::fs::remove_file(&job.output)?;
    let seconds = (procfs::monotonic() - started).as_secs_f64();
    Ok(Figures::from([("cpu", stopped.cpu), ("asked", time.as_secs_f64()), ("seconds", seconds)]))
}

/// One row per profiler, from its series of all times.
pub fn split(names: &[String], series: &[Series]) -> Table {
    let rows = names.iter().map(|name| {
        let own = series
            .iter()
            .filter(|series| series.name.strip_prefix(name.as_str()).is_some_and(|rest| rest.starts_with(", ")));
        let points: Vec<(f64, f64)> =
            own.filter_map(|series| Some((series.median("asked")?, series.median("cpu")?))).collect();
        let cells = match Line::through(&points) {
            Some(line) => {
                let minute = line.slope * 60.0;
                [line.at_zero, minute, line.at_zero + minute].map(|seconds| format!("{seconds:.2}"))
            }
            None => ["-".to_owned(), "-".to_owned(), "-".to_owned()],
        };
        std::iter::once(name.clone()).chain(cells).collect()
    });
    let columns = ["profiler", "start and end, CPU s", "each minute, CPU s", "a recording of one minute, CPU s"];
    Table { columns: columns.map(str::to_owned).to_vec(), rows: rows.collect() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_times_give_a_fixed_and_a_running_part() {
        let of = |name: &str, asked: f64, cpu: &[f64]| Series {
            name: name.to_owned(),
            runs: cpu.iter().map(|cpu| Figures::from([("asked", asked), ("cpu", *cpu)])).collect(),
            failures: vec![],
        };
        let series = [of("a, 5 s", 5.0, &[0.3, 0.25, 9.0]), of("a, 20 s", 20.0, &[0.45]), of("ab, 5 s", 5.0, &[7.0])];
        let table = split(&["a".to_owned(), "missing".to_owned()], &series);
        assert_eq!(table.rows[0], ["a", "0.25", "0.60", "0.85"]);
        assert_eq!(table.rows[1], ["missing", "-", "-", "-"]);
    }
}
