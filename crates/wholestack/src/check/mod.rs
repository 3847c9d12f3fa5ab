//! `wholestack check`: what this machine and this user's rights allow, what is missing, and what to type about it.
//!
//! What decides whether recording is possible is tried and not guessed from settings: see [`attempts`]. Settings are
//! shown beside it, to explain.

mod attempts;
mod capabilities;
mod container;
mod facts;
mod item;
mod kernel;
mod limits;
mod perf;
mod print;
mod visibility;

use std::io::{IsTerminal, Write, stdout};
use std::process::ExitCode;

use crate::Outcome;
use crate::check::attempts::Attempts;
use crate::check::facts::Facts;
use crate::check::item::Report;
use crate::cli::Check;
use crate::exit::{self, Failure};

/// Prints what this machine allows.
pub(crate) fn run(options: &Check) -> Outcome {
    let report = report(&Facts::gather(), &Attempts::make());
    let text = match options.json {
        true => print::json(&report).map_err(Failure::failed)?,
        false => print::text(&report, print::Style::of_stdout(stdout().is_terminal())),
    };
    match stdout().lock().write_all(text.as_bytes()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => return Err(Failure::failed(error)),
        _ => {}
    }
    Ok(if report.possible { ExitCode::SUCCESS } else { ExitCode::from(exit::NOT_ALLOWED) })
}

fn report(facts: &Facts, attempts: &Attempts) -> Report {
    let items = [
        kernel::items(facts, attempts),
        capabilities::items(facts),
        perf::items(facts, attempts),
        visibility::items(facts),
        container::items(facts, attempts),
        limits::items(facts),
    ];
    Report { possible: attempts.recording_possible(facts), items: items.into_iter().flatten().collect() }
}
