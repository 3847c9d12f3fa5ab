//! wholestack: a whole-system, whole-stack sampling profiler for Linux.

mod check;
mod cli;
mod exit;
mod explain;
mod generate;
mod launcher;
mod record;
mod say;
mod sigbus;
mod signals;

use clap::Parser;

use crate::cli::{Arguments, Command};
use crate::exit::Failure;

fn main() -> std::process::ExitCode {
    let arguments = Arguments::parse();
    let result = match arguments.command {
        Command::Record(options) => record::run(&options),
        Command::Explain(options) => explain::run(&options),
        Command::Check(options) => check::run(&options),
        Command::Completions { shell } => generate::completions(shell),
        Command::Manual { directory } => generate::manual(directory.as_deref()),
        Command::Launch { command } => launcher::launch(&command),
    };
    match result {
        Ok(code) => code,
        Err(failure) => failure.report(),
    }
}

/// What a subcommand ends with.
type Outcome = Result<std::process::ExitCode, Failure>;
