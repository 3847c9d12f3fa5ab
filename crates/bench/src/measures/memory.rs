//! Memory of the profiler and of its BPF maps.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use crate::bench::{Bench, MIX};
use crate::bpf;
use crate::code::{self, Code};
use crate::harness::{Figures, Variant, interleave};
use crate::interrupt::pause;
use crate::procfs::{self, Memory};
use crate::profiler::{Target, Tool};
use crate::report::{Section, Table, column};
use crate::workload::Workload;

/// Rows of tables that the large case is to have.
const ROWS: usize = 8_000_000;
const HERTZ: u32 = 99;
const NO_TABLE_TAKES_LONGER: Duration = Duration::from_secs(4);

/// Takes the measure.
pub fn take(bench: &Bench) -> Result<Section> {
    let busy = bench.busy_pair()?;
    let code = code::largest(ROWS)?;
    let notes = vec![code.describe()];
    let one = Target::Pids(vec![busy[0].pid()]);
    let variants = vec![
        Variant::new("one process", || run(bench, &bench.ours(), &one)),
        Variant::new("whole machine", || run(bench, &bench.ours(), &Target::Machine)),
        Variant::new("much code, tables made", || {
            bench.cache.clear()?;
            much_code(bench, &code)
        }),
        Variant::new("much code, tables from the cache", || much_code(bench, &code)),
        Variant::new("perf fp, one process", || run(bench, &Tool::PerfFp, &one)),
        Variant::new("perf fp, whole machine", || run(bench, &Tool::PerfFp, &Target::Machine)),
    ];
    // whoever makes the tables leaves them in the cache, and comes first in the first round
    let series = interleave(bench.rounds, variants)?;
    let mib = |column: crate::report::Column| column.times(1.0 / 1024.0);
    let columns = [
        mib(column("peak", "peak", 1)),
        mib(column("peak before the end", "peak before end", 1)),
        mib(column("at work", "resident", 1)),
        mib(column("anonymous", "anonymous", 1)),
        mib(column("files and maps", "file", 1)),
        mib(column("proportional", "proportional", 1)),
        mib(column("anonymous at the end, most", "anonymous at end", 1)),
        mib(column("BPF maps", "maps", 1)),
    ];
    Ok(Section {
        title: "Memory",
        about: format!(
            "MiB. Peak is the most that was resident from start to end (VmHWM); the columns after it are as found while it \
             was at work, just before it was stopped. BPF maps are kernel memory; what of it the profiler maps counts in \
             \"files and maps\", too, the ring buffer's pages twice. {HERTZ} Hz, HTML output, two processes busy."
        ),
        tables: vec![Table::of(&series, "what", &columns)],
        series,
        notes,
    })
}

fn run(bench: &Bench, tool: &Tool, target: &Target) -> Result<Figures> {
    let job = bench.job(tool.clone(), target.clone(), HERTZ, "html");
    let mut profiling = job.start()?;
    profiling.wait_until_at_work()?;
    let pid = profiling.pid();
    let maps = wait_for_tables(pid)?;
    pause(bench.time(5.0, 2.0))?;
    let before = Memory::of(pid).context("the profiler is gone")?;
    let proportional = procfs::proportional(pid).context("the profiler is gone")?;
    let stopped = profiling.stop()?;
    Ok(Figures::from([
        ("peak", stopped.memory.peak as f64),
        ("peak before end", before.peak as f64),
        ("resident", before.resident as f64),
        ("anonymous", before.anonymous as f64),
        ("file", (before.file + before.shared) as f64),
        ("proportional", proportional as f64),
        ("anonymous at end", stopped.most_anonymous as f64),
        ("maps", maps as f64 / 1024.0),
    ]))
}

/// Returns when the maps have not grown for some seconds, and their size in bytes: tables are made while sampling goes on,
/// and a large one takes more than a second on a busy machine.
fn wait_for_tables(pid: u32) -> Result<u64> {
    let (mut last, mut since) = (0, Instant::now());
    while since.elapsed() < NO_TABLE_TAKES_LONGER {
        let now = bpf::map_bytes(pid)?.values().sum();
        if now != last {
            (last, since) = (now, Instant::now());
        }
        pause(Duration::from_millis(200))?;
    }
    Ok(last)
}

fn much_code(bench: &Bench, code: &Code) -> Result<Figures> {
    let files = code.files.iter().map(|file| file.path.clone());
    let mut mapper: Workload = bench.workloads.start("mapper", files.collect::<Vec<PathBuf>>())?;
    let mut busy = bench.calls(0, MIX)?;
    mapper.go()?;
    busy.go()?;
    run(bench, &bench.ours(), &Target::Pids(vec![mapper.pid(), busy.pid()]))
}
