//! Stacks that cannot be, on a program whose calls are known.

use anyhow::{Result, ensure};

use super::truth::Verdict;
use super::{PythonBench, stacks};
use crate::harness::{Figures, Variant, interleave};
use crate::profiler::{Target, Tool};
use crate::report::{Section, Table, column};

const HERTZ: u32 = 999;

/// Takes the measure.
pub fn take(python: &PythonBench) -> Result<Section> {
    let variants = python.tools().into_iter().map(|tool| {
        let name = format!("{tool}, {HERTZ} Hz");
        Variant::new(name, move || run(python, &tool))
    });
    let series = interleave(python.bench.rounds, variants.collect())?;
    let columns = [
        column("samples", "samples", 0),
        column("impossible, %", "impossible", 3).times(100.0),
        column("without <module>, %", "rootless", 3).times(100.0),
        column("without Python, %", "without python", 3).times(100.0),
    ];
    Ok(Section {
        title: "Stacks that cannot be",
        about: format!(
            "Functions of Python {} call leaves of their own in quick alternation, some through recursion, a generator, an \
             exception, sorted(key=). Impossible: a function below one that never calls it, or the recursion at another depth than \
             it has. Without <module>: Python functions that do not begin where the program does. Without Python: not one Python \
             function. Samples of the waiting program are left out.",
            python.compared()
        ),
        tables: vec![Table::of(&series, "profiler", &columns)],
        series,
        notes: Vec::new(),
    })
}

fn run(python: &PythonBench, tool: &Tool) -> Result<Figures> {
    let seconds = python.bench.time(20.0, 4.0).as_secs_f64();
    let mut workload = python.scripts.start(python.compared(), "truth.py", &[seconds.to_string()])?;
    let job = python.bench.job(tool.clone(), Target::Pids(vec![workload.pid()]), HERTZ, "folded");
    let mut profiling = job.start()?;
    profiling.wait_until_at_work()?;
    workload.go()?;
    workload.work()?;
    profiling.stop()?;
    let verdict = Verdict::on(&stacks::read(&job.output, tool)?);
    std::fs::remove_file(&job.output)?;
    ensure!(verdict.samples > 0, "no samples");
    Ok(figures(verdict))
}

fn figures(verdict: Verdict) -> Figures {
    let share = |of: u64| of as f64 / verdict.samples as f64;
    Figures::from([
        ("samples", verdict.samples as f64),
        ("impossible", share(verdict.impossible)),
        ("rootless", share(verdict.rootless)),
        ("without python", share(verdict.without_python)),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_shares_of_samples() {
        let figures = figures(Verdict { samples: 200, impossible: 1, rootless: 2, without_python: 50 });
        let of = ["samples", "impossible", "rootless", "without python"].map(|figure| figures[figure]);
        assert_eq!(of, [200.0, 0.005, 0.01, 0.25]);
    }
}
