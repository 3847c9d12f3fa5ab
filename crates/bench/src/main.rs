//! What wholestack costs, measured: `cargo xtask bench`.
//!
//! `record` measures recordings, beside perf where perf can do the same; `python` those of Python programs, beside py-spy and
//! austin. Each measure is a file in `measures` or `python`; runs are interleaved (`harness`), and what a reader sees are medians
//! and the spread. Needs root, a C compiler, and for the comparison `perf` or a package index.

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
mod python;
mod ratios;
mod report;
mod sampler;
mod statistics;
mod workload;

use std::path::PathBuf;

use anyhow::{Context, Result, bail, ensure};
use clap::{Args, Parser, Subcommand};

use crate::bench::Bench;
use crate::measures::{Measure, RECORD};
use crate::python::{MEASURES as PYTHON, PythonBench};
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
    /// Measure recordings of Python programs
    Python(Python),
}

#[derive(Args, Debug)]
struct Record {
    /// Only these measures: bpf, slowdown, own-cpu, memory, tables, first-sample, finish
    #[arg(long, value_name = "NAME", num_args = 1..)]
    only: Vec<String>,

    #[command(flatten)]
    options: Options,
}

#[derive(Args, Debug)]
struct Python {
    /// Only these measures: frames, slowdown, errors, own-cpu
    #[arg(long, value_name = "NAME", num_args = 1..)]
    only: Vec<String>,

    /// These interpreters [default: pyenv's newest 3.8, 3.11, 3.12 and 3.13, or python3]
    #[arg(long, value_name = "PATH", num_args = 1..)]
    interpreter: Vec<PathBuf>,

    /// Where py-spy and austin are, or are installed into
    #[arg(long, value_name = "PATH", default_value = "target/python-peers")]
    peers: PathBuf,

    #[command(flatten)]
    options: Options,
}

#[derive(Args, Debug)]
struct Options {
    /// Shorter runs and fewer rounds; the figures say less
    #[arg(long)]
    quick: bool,

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
    match Arguments::parse().command {
        Command::Record(record) => {
            let measures = chosen(&RECORD, &record.only)?;
            measured(&record.options, |bench, mut conditions| {
                conditions.extend(series(&bench));
                take(&bench, &measures, conditions)
            })
        }
        Command::Python(python) => {
            let measures = chosen(&PYTHON, &python.only)?;
            measured(&python.options, |bench, mut conditions| {
                conditions.extend(series(&bench));
                let bench = PythonBench::new(bench, &python.interpreter, &python.peers)?;
                conditions.extend(bench.conditions());
                take(&bench, &measures, conditions)
            })
        }
    }
}

type Conditions = Vec<(&'static str, String)>;

/// Prints the report that `measure` gives.
fn measured(options: &Options, measure: impl FnOnce(Bench, Conditions) -> Result<Report>) -> Result<()> {
    ensure!(rustix::process::geteuid().is_root(), "needs root: it loads BPF and mounts over the cache of tables");
    let directory =
        tempfile::Builder::new().prefix("wholestack-bench-").tempdir().context("a directory for profiles")?;
    let wholestack = options.wholestack.canonicalize().with_context(|| options.wholestack.display().to_string())?;
    let rounds = options.rounds.map_or(if options.quick { QUICK_ROUNDS } else { ROUNDS }, usize::from);
    // before anything makes a thread
    let bench = Bench::new(wholestack, directory.path(), rounds, options.quick)?;
    interrupt::catch()?;
    let conditions = machine::conditions(&bench.wholestack);
    let report = measure(bench, conditions)?;
    if options.json {
        println!("{}", serde_json::to_string_pretty(&report)?);
    } else {
        print!("{}", report.markdown());
    }
    Ok(())
}

fn series(bench: &Bench) -> Conditions {
    let rounds = format!("{}{}", bench.rounds, if bench.quick { ", quick" } else { "" });
    vec![("rounds", rounds), ("begun", format!("{}, load average {}", machine::date(), machine::load()))]
}

fn chosen<'a, B>(all: &'a [Measure<B>], names: &[String]) -> Result<Vec<&'a Measure<B>>> {
    if let Some(unknown) = names.iter().find(|name| all.iter().all(|measure| measure.name != name.as_str())) {
        let known: Vec<&str> = all.iter().map(|measure| measure.name).collect();
        bail!("no measure is named {unknown:?}; there are {}", known.join(", "));
    }
    Ok(all.iter().filter(|measure| names.is_empty() || names.iter().any(|name| name == measure.name)).collect())
}

fn take<B>(bench: &B, measures: &[&Measure<B>], mut conditions: Conditions) -> Result<Report> {
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
    use clap::CommandFactory;

    #[test]
    fn measures_are_chosen_by_name() {
        assert_eq!(chosen(&RECORD, &[]).expect("all").len(), RECORD.len());
        let two = chosen(&RECORD, &["finish".to_owned(), "bpf".to_owned()]).expect("there are");
        assert_eq!(two.iter().map(|measure| measure.name).collect::<Vec<_>>(), ["bpf", "finish"]);
        assert!(chosen(&PYTHON, &["bpf".to_owned()]).is_err());
    }

    #[test]
    fn the_command_line_names_all_measures() {
        let command = Arguments::command();
        command.clone().debug_assert();
        for (name, measures) in
            [("record", RECORD.map(|one| one.name).join(", ")), ("python", PYTHON.map(|one| one.name).join(", "))]
        {
            let command = command.find_subcommand(name).expect("a subcommand");
            let only = command.get_arguments().find(|argument| argument.get_id() == "only").expect("an option");
            assert_eq!(only.get_help().expect("a text").to_string(), format!("Only these measures: {measures}"));
        }
    }
}
