//! Chores of wholestack's developers: `cargo xtask help`.

mod build_bpf;
mod command;
mod demo;
mod fuzz;
mod install;
mod interpreters;
mod measure;
mod test;
mod tree;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Chores of wholestack's developers
#[derive(Parser, Debug)]
#[command(name = "cargo xtask", bin_name = "cargo xtask", subcommand_required = true, arg_required_else_help = true)]
struct Arguments {
    #[command(subcommand)]
    chore: Chore,
}

/// Subcommands.
#[derive(Subcommand, Debug)]
enum Chore {
    /// Build wholestack and record five seconds of this machine into flamegraph.html
    Demo(demo::Arguments),
    /// Format, lint, build, test and document everything, and check the BPF objects
    Test(test::Arguments),
    /// Hold stacks against independent judges: `cargo xtask verify native`
    Verify(measure::Arguments),
    /// Measure what recordings cost: `cargo xtask bench record`, `cargo xtask bench python`
    Bench(measure::Arguments),
    /// Build the BPF programs into bpf/prebuilt
    BuildBpf(build_bpf::Arguments),
    /// Run random inputs against everything that reads what others have written
    Fuzz(fuzz::Arguments),
    /// Get the builds of CPython that tests explain
    Interpreters(interpreters::Arguments),
}

fn main() -> ExitCode {
    if let Some(code) = build_bpf::as_compiler() {
        return code;
    }
    let done = match Arguments::parse().chore {
        Chore::Demo(arguments) => demo::run(&arguments),
        Chore::Test(arguments) => test::run(&arguments),
        Chore::Verify(arguments) => measure::run("wholestack-verify", &arguments),
        Chore::Bench(arguments) => measure::run("wholestack-bench", &arguments),
        Chore::BuildBpf(arguments) => build_bpf::run(&arguments),
        Chore::Fuzz(arguments) => fuzz::run(&arguments),
        Chore::Interpreters(arguments) => interpreters::run(&arguments),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        Arguments::command().debug_assert();
    }
}
