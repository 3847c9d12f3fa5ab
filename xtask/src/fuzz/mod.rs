//! `cargo xtask fuzz`: random inputs for everything that reads what a target, a file or the kernel has written.
//!
//! The targets are programs in `fuzz/targets`, built on stable Rust with LLVM's coverage counters and libFuzzer
//! ([`build`]), and run one after the other or several at once ([`session`]). What they find that reaches new code stays
//! in the target directory for the next run; `fuzz/corpus` changes only by `--keep` ([`keep`]).

mod build;
mod cover;
mod keep;
mod log;
mod places;
mod session;
mod targets;

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, bail};

use build::Sanitizer;
pub use build::{compiler, lint};
use places::Places;
use session::{Ended, Session};
use targets::Targets;

/// Options of `fuzz`.
#[derive(clap::Args, Debug)]
pub struct Arguments {
    /// A target in fuzz/targets, or `all`
    target: String,
    /// How long each target runs; 0 runs only what is in the corpus
    #[arg(long, value_name = "N", default_value_t = 60)]
    seconds: u32,
    /// How many processes run at once: targets, or where there is only one, several of it
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=256))]
    jobs: u32,
    /// With AddressSanitizer, which finds wrong uses of memory in unsafe code; about half as fast
    #[arg(long)]
    asan: bool,
    /// Afterwards, put the few inputs that reach most of what was reached into fuzz/corpus
    #[arg(long)]
    keep: bool,
    /// Run this input only, as after a crash
    #[arg(long, value_name = "FILE", conflicts_with_all = ["seconds", "jobs", "keep"])]
    input: Option<PathBuf>,
}

/// Builds, runs, and says what came of it; fails if an input made a target crash.
pub fn run(arguments: &Arguments) -> Result<()> {
    let targets = Targets::find()?.chosen(&arguments.target)?;
    let sanitizer = if arguments.asan { Sanitizer::Address } else { Sanitizer::None };
    let places = Places::new(sanitizer)?;
    build::build(&targets, &places, sanitizer)?;
    if let Some(input) = &arguments.input {
        return one_input(&targets, &places, input);
    }
    let time = Duration::from_secs(arguments.seconds.into());
    let sessions = targets.sessions(arguments.jobs as usize, time);
    let ended = session::run_all(&sessions, &places, arguments.jobs as usize)?;
    if arguments.keep {
        for target in targets.iter() {
            keep::keep(target, &places)?;
        }
    }
    verdict(&sessions, &ended, arguments)
}

/// Runs one input in the foreground.
fn one_input(targets: &Targets, places: &Places, input: &std::path::Path) -> Result<()> {
    let [target] = &targets.iter().collect::<Vec<_>>()[..] else { bail!("an input is for one target, not for all") };
    let input = input.canonicalize().with_context(|| format!("there is no {}", input.display()))?;
    crate::command::run(session::command(places, target)?.arg(input))
}

/// Prints a line for each session; fails if one did.
fn verdict(sessions: &[Session], ended: &[Ended], arguments: &Arguments) -> Result<()> {
    println!("\n{:<14} {:>12} {:>9} {:>9} {:>7} {:>9}", "target", "runs", "runs/s", "coverage", "new", "peak MB");
    for (session, ended) in sessions.iter().zip(ended) {
        println!("{:<14} {}", session.target, ended.statistics);
    }
    let mut crashes = 0;
    for (session, ended) in sessions.iter().zip(ended) {
        let Some(crash) = &ended.crash else { continue };
        crashes += 1;
        println!("\n{}: {}", session.target, crash.what);
        match &crash.input {
            Some(input) => {
                let asan = if arguments.asan { " --asan" } else { "" };
                println!("  input:  {}", input.display());
                println!("  repeat: cargo xtask fuzz {}{asan} --input {}", session.target, input.display());
            }
            None => println!("  no input was written"),
        }
        println!("  log:    {}", ended.log.display());
    }
    if crashes > 0 {
        bail!("{crashes} of {} runs ended in a crash", sessions.len());
    }
    Ok(())
}
