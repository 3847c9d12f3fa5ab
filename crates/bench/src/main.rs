//! What wholestack costs, measured: `cargo xtask bench`.
//!
//! `record` measures recordings, beside perf where perf can do the same. Each measure is a file in `measures`; runs are
//! interleaved (`harness`), and what a reader sees are medians and the spread. Needs root, a C compiler, and for the
//! comparison `perf`.

mod bench;
mod bpf;
mod code;
mod folded;
mod harness;
mod interrupt;
mod machine;
mod measures;
mod private_cache;
mod process;
mod procfs;
mod profiler;
mod report;
mod statistics;
mod workload;

use std::path::PathBuf;

use anyhow::{Context, Result, bail, ensure};
use clap::{Args, Parser, Subcommand};

use crate::bench::Bench;
use crate::measures::{ALL, Measure};
use crate::report::{Report, Section};

/// Rounds of each measure, if nothing else is asked for.
const ROUNDS: usize = 5;
const QUICK_ROUNDS: usize = 2;

/// Measures what wholestack costs.
#[derive(Parser, Debug)]
#[command(name = "bench", version)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand, Debug)]
enum Command {
    /// Measure recordings
    Record(Record),
}

#[derive(Args, Debug)]
struct Record {
    /// Shorter runs and fewer rounds; the figures say less
    #[arg(long)]
    quick: bool,

    /// Only these measures: bpf, slowdown, own-cpu, memory, tables, first-sample, finish
    #[arg(long, value_name = "NAME", num_args = 1..)]
    only: Vec<String>,

    /// Rounds of each measure [default: 5, quick 2]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    rounds: Option<u16>,

    /// One JSON document with all runs instead of Markdown
    #[arg(long)]
    json: bool,

    /// The program to measure
    #[arg(long, value_name = "PATH", default_value = "target/release/wholestack")]
    wholestack: PathBuf,
}

fn main() -> Result<()> {
    let Command::Record(options) = Arguments::parse().command;
    let measures = chosen(&options.only)?;
    ensure!(rustix::process::geteuid().is_root(), "needs root: it loads BPF and mounts over the cache of tables");
    let directory =
        tempfile::Builder::new().prefix("wholestack-bench-").tempdir().context("a directory for profiles")?;
    let wholestack = options.wholestack.canonicalize().with_context(|| options.wholestack.display().to_string())?;
    let rounds = options.rounds.map_or(if options.quick { QUICK_ROUNDS } else { ROUNDS }, usize::from);
    // before anything makes a thread
    let bench = Bench::new(wholestack, directory.path(), rounds, options.quick)?;
    interrupt::catch()?;
    let report = take(&bench, &measures)?;
    if options.json {
        println!("{}", serde_json::to_string_pretty(&report)?);
    } else {
        print!("{}", report.markdown());
    }
    Ok(())
}

fn chosen(names: &[String]) -> Result<Vec<&'static Measure>> {
    if let Some(unknown) = names.iter().find(|name| ALL.iter().all(|measure| measure.name != name.as_str())) {
        let known: Vec<&str> = ALL.iter().map(|measure| measure.name).collect();
        bail!("no measure is named {unknown:?}; there are {}", known.join(", "));
    }
    Ok(ALL.iter().filter(|measure| names.is_empty() || names.iter().any(|name| name == measure.name)).collect())
}

fn take(bench: &Bench, measures: &[&Measure]) -> Result<Report> {
    let mut conditions = machine::conditions(&bench.wholestack);
    conditions.push(("rounds", format!("{}{}", bench.rounds, if bench.quick { ", quick" } else { "" })));
    conditions.push(("begun", format!("{}, load average {}", machine::date(), machine::load())));
    let mut sections = Vec::new();
    for measure in measures {
        eprintln!("{}", measure.name);
        let section = (measure.take)(bench);
        interrupt::check()?;
        sections.push(section.unwrap_or_else(|error| Section::failed(measure.name, &error)));
    }
    conditions.push(("ended", format!("{}, load average {}", machine::date(), machine::load())));
    Ok(Report { conditions, sections })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn measures_are_chosen_by_name() {
        assert_eq!(chosen(&[]).expect("all").len(), ALL.len());
        let two = chosen(&["finish".to_owned(), "bpf".to_owned()]).expect("there are");
        assert_eq!(two.iter().map(|measure| measure.name).collect::<Vec<_>>(), ["bpf", "finish"]);
        assert!(chosen(&["speed".to_owned()]).is_err());
    }
}
