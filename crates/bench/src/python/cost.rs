//! Time in the kernel of a sample, and of each Python frame in it.

use anyhow::{Context, Result};

use super::interpreters::Interpreter;
use super::{PythonBench, stacks};
use crate::bpf;
use crate::harness::{Figures, Series, Variant, interleave};
use crate::interrupt::pause;
use crate::profiler::Target;
use crate::report::{Section, Table, column};
use crate::sampler::{Cost, Look};
use crate::statistics::Line;

const RATES: [u32; 2] = [99, 999];

/// How a recursion goes on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum How {
    /// From one eval loop's frame to the next.
    Plain,
    /// Through `sorted(key=)`: each frame has an eval loop of its own.
    Nested,
}

impl How {
    fn name(self) -> &'static str {
        match self {
            How::Plain => "plain",
            How::Nested => "nested",
        }
    }

    fn depths(self) -> &'static [u32] {
        match self {
            How::Plain => &[10, 50, 100, 300, 1000],
            How::Nested => &[10, 100, 300],
        }
    }
}

/// Takes the measure.
pub fn take(python: &PythonBench) -> Result<Section> {
    let _statistics = bpf::measure()?;
    let mut variants = Vec::new();
    for interpreter in &python.interpreters {
        for (how, hertz) in kinds() {
            for depth in how.depths() {
                let name = format!("{} {depth}, {hertz} Hz", group(interpreter, how));
                variants.push(Variant::new(name, move || sample(python, interpreter, how, *depth, hertz)));
            }
        }
    }
    let series = interleave(python.bench.rounds, variants)?;
    let columns = [
        column("us a sample", "ns a sample", 2).times(1e-3),
        column("Python frames", "python", 1),
        column("other frames", "others", 1),
        column("samples", "samples", 0),
        column("deferred", "deferred", 0),
    ];
    let groups = python
        .interpreters
        .iter()
        .flat_map(|interpreter| kinds().map(move |(how, hertz)| (group(interpreter, how), hertz)));
    Ok(Section {
        title: "Time in the kernel of Python frames",
        about: "By the kernel's run-time statistics, as for native frames. The target works at the end of a recursion of so \
            many Python functions. Plain: a function calls itself. Nested: through sorted(key=), so that each has an eval loop \
            and native frames of its own. Up to 3.10 plain recursion has them, too. Frames are those of the profile; native \
            frames of eval loops, which Python frames stand for, were walked but are not in it. The second table has lines of \
            least squares over the depths: what a sample costs without the recursion, and what each further Python frame adds, \
            with the native frames that belong to it."
            .to_owned(),
        tables: vec![Table::of(&series, "work", &columns), slopes(groups, &series)],
        series,
        notes: Vec::new(),
    })
}

fn kinds() -> impl Iterator<Item = (How, u32)> {
    [How::Plain, How::Nested].into_iter().flat_map(|how| RATES.map(|hertz| (how, hertz)))
}

fn group(interpreter: &Interpreter, how: How) -> String {
    format!("{interpreter} {}", how.name())
}

fn sample(python: &PythonBench, interpreter: &Interpreter, how: How, depth: u32, hertz: u32) -> Result<Figures> {
    let bench = &python.bench;
    let seconds = bench.time(3.0, 1.0).as_secs_f64();
    let arguments = [how.name().to_owned(), depth.to_string(), seconds.to_string()];
    let mut workload = python.scripts.start(interpreter, "deep.py", &arguments)?;
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
    let stacks = stacks::read(&job.output, &job.tool)?;
    let mut figures = Cost::between(&attached, &before, &after).context("the sampler did not run")?.figures();
    let frames = stacks::mean(&stacks, |stack| stack.python.len()).context("no samples")?;
    // without the name of the process
    let others = stacks::mean(&stacks, |stack| stack.others.saturating_sub(1)).context("no samples")?;
    figures.extend([("python", frames), ("others", others)]);
    Ok(figures)
}

/// A row for each group of depths.
fn slopes(groups: impl Iterator<Item = (String, u32)>, series: &[Series]) -> Table {
    let rows = groups.map(|(group, hertz)| {
        let (prefix, suffix) = (format!("{group} "), format!(", {hertz} Hz"));
        let own = series.iter().filter(|series| series.name.starts_with(&prefix) && series.name.ends_with(&suffix));
        let runs: Vec<&Figures> = own.flat_map(|series| &series.runs).collect();
        let line = |figure: &str| {
            let points = runs.iter().filter_map(|run| Some((*run.get("python")?, *run.get(figure)?)));
            Line::through(&points.collect::<Vec<_>>())
        };
        let cell = |value: Option<f64>, decimals| value.map_or("-".to_owned(), |value| format!("{value:.decimals$}"));
        vec![
            format!("{group}{suffix}"),
            cell(line("ns a sample").map(|line| line.slope), 0),
            cell(line("others").map(|line| line.slope), 2),
            cell(line("ns a sample").map(|line| line.at_zero), 0),
            runs.len().to_string(),
        ]
    });
    let columns = ["work", "ns a Python frame", "other frames with it", "ns without frames", "runs"];
    Table { rows: rows.collect(), columns: columns.map(str::to_owned).to_vec() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slope_is_of_one_group() {
        let of = |name: &str, python: f64, nanoseconds: f64, others: f64| Series {
            name: name.to_owned(),
            runs: vec![Figures::from([("python", python), ("ns a sample", nanoseconds), ("others", others)])],
            failures: vec![],
        };
        let series = [
            of("3.12.1 plain 10, 99 Hz", 14.0, 3800.0, 9.0),
            of("3.12.1 plain 100, 99 Hz", 104.0, 21_800.0, 9.0),
            of("3.12.1 plain 100, 999 Hz", 104.0, 1.0, 9.0),
            of("3.12.1 nested 10, 99 Hz", 14.0, 1.0, 9.0),
            of("3.12.10 plain 10, 99 Hz", 14.0, 1.0, 9.0),
        ];
        let groups = [("3.12.1 plain".to_owned(), 99), ("3.12.1 nested".to_owned(), 99)];
        let table = slopes(groups.into_iter(), &series);
        assert_eq!(table.rows[0], ["3.12.1 plain, 99 Hz", "200", "0.00", "1000", "2"]);
        assert_eq!(table.rows[1], ["3.12.1 nested, 99 Hz", "-", "-", "-", "1"]);
    }
}
