//! `cargo xtask verify`: the profiler's stacks held against independent judges.

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Holds wholestack's stacks against independent judges
#[derive(Parser, Debug)]
#[command(name = "cargo xtask verify", bin_name = "cargo xtask verify")]
struct Arguments {
    #[command(subcommand)]
    what: What,
    /// Print one JSON document instead of text
    #[arg(long, global = true)]
    json: bool,
}

/// Subcommands.
#[derive(Subcommand, Debug)]
enum What {
    /// Native stacks: the rows of files, then whole stacks of live programs
    Native(verify::native::Arguments),
    /// Compare the unwind table of each file, row by row, with framehop
    Rows(verify::rows::Arguments),
    /// Record running programs and compare whole stacks with framehop's
    Live(verify::live::Arguments),
    /// Single-step programs and compare the walk at each instruction with the calls that were made
    Edges(verify::edges::Arguments),
    /// Single-step CPython interpreters and hold the Python frames at each instruction against those before
    Frames(verify::frames::Arguments),
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let done = match &arguments.what {
        What::Native(native) => verify::native::run(native, arguments.json),
        What::Rows(rows) => verify::rows::run(rows, arguments.json),
        What::Live(live) => verify::live::run(live, arguments.json),
        What::Edges(edges) => verify::edges::run(edges, arguments.json),
        What::Frames(frames) => verify::frames::run(frames, arguments.json),
    };
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
