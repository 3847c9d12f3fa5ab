//! From the signal to stop to a finished file.

use anyhow::Result;

use crate::bench::Bench;
use crate::harness::{Figures, Variant, interleave};
use crate::interrupt::pause;
use crate::profiler::{Target, Tool};
use crate::report::{Section, Table, column};

const HERTZ: u32 = 99;
const FORMATS: [(&str, &str); 3] = [("HTML", "html"), ("pprof", "pb.gz"), ("folded", "folded")];

/// Takes the measure.
pub fn take(bench: &Bench) -> Result<Section> {
    let busy = bench.busy_pair()?;
    let targets = [("one process", Target::Pids(vec![busy[0].pid()])), ("whole machine", Target::Machine)];
    let mut variants = Vec::new();
    for (what, target) in &targets {
        for (format, extension) in FORMATS {
            let run = move || run(bench, &bench.ours(), target, extension);
            variants.push(Variant::new(format!("{what}, {format}"), run));
        }
        variants.push(Variant::new(format!("{what}, perf fp"), move || run(bench, &Tool::PerfFp, target, "data")));
    }
    let series = interleave(bench.rounds, variants)?;
    let columns = [
        column("ms to the end", "seconds", 0).times(1e3),
        column("CPU ms", "cpu", 0).times(1e3),
        column("file KB", "bytes", 1).times(1e-3),
    ];
    Ok(Section {
        title: "From the end to a finished file",
        about: format!(
            "From SIGINT until the profiler has ended and its file is there, at {HERTZ} Hz, while two processes are busy. \
             The CPU time is that of the profiler after the signal. perf's file has no names yet."
        ),
        tables: vec![Table::of(&series, "what", &columns)],
        series,
        notes: Vec::new(),
    })
}

fn run(bench: &Bench, tool: &Tool, target: &Target, extension: &str) -> Result<Figures> {
    let job = bench.job(tool.clone(), target.clone(), HERTZ, extension);
    let mut profiling = job.start()?;
    profiling.wait_until_at_work()?;
    pause(bench.time(5.0, 2.0))?;
    let stopped = profiling.stop()?;
    std::fs::remove_file(&job.output)?;
    Ok(Figures::from([("seconds", stopped.seconds), ("cpu", stopped.end_cpu), ("bytes", stopped.bytes as f64)]))
}
