//! The command line.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::builder::ValueParser;
use clap::{Args, Parser, Subcommand, ValueHint};
use clap_complete::Shell;

use crate::exit;

const EXAMPLES: &str = "Examples:\n  \
    sudo wholestack record                     the whole machine, until Ctrl-C\n  \
    sudo wholestack record -p 4711 -d 10       a process and its children, for ten seconds\n  \
    sudo wholestack record -- make -j8         a command, until it ends\n  \
    wholestack explain 4711                    what a process does now, and how its stacks are read\n  \
    wholestack check                           what this machine allows";
const EXPLAIN_EXAMPLES: &str = "Examples:\n  \
    wholestack explain 4711                    evidence and stacks of all threads\n  \
    wholestack explain --no-stacks 4711        evidence only: which interpreters, how they were proven\n  \
    wholestack explain --json 4711 | jq .      for programs";
const RECORD_EXAMPLES: &str = "Examples:\n  \
    sudo wholestack record                              the whole machine, until Ctrl-C\n  \
    sudo wholestack record -p 4711 -d 10 -o out.html    a process and its children, for ten seconds\n  \
    sudo wholestack record -F 999 --lines -- ./a.out    a command, at 999 Hz, with source lines\n  \
    sudo wholestack record --python-native all -p 4711  with the native frames of Python's eval loop\n  \
    sudo wholestack record -o x.html -o x.pb.gz         several outputs of one recording";

/// A whole-system, whole-stack sampling profiler for Linux.
#[derive(Parser, Debug)]
#[command(
    name = "wholestack",
    version,
    about = "A whole-system, whole-stack sampling profiler for Linux",
    long_about = "wholestack samples what the CPUs of a machine do and shows it as a flame graph. It needs no frame pointers, no \
        restart, no agent and no flags in what it records. Stacks are walked in the kernel, by BPF: kernel and native code \
        by its own unwind information, and Python functions (CPython 3.6 to 3.15) in true order among them.",
    after_help = EXAMPLES,
    after_long_help = format!("{EXAMPLES}\n\n{}", exit::HELP),
    subcommand_required = true,
    arg_required_else_help = true
)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// Subcommands.
#[derive(Subcommand, Debug)]
pub(crate) enum Command {
    /// Record and write a flame graph
    Record(Record),
    /// Show what runs in a process now, and the evidence by which its stacks are read
    Explain(Explain),
    /// Say what this machine allows, what is missing, and what to do about it
    Check(Check),
    /// Print completions for a shell
    #[command(after_help = "Example:\n  wholestack completions bash > /etc/bash_completion.d/wholestack")]
    Completions {
        /// The shell
        shell: Shell,
    },
    /// Write the manual pages
    #[command(after_help = "Examples:\n  wholestack manual | man -l -\n  wholestack manual /usr/local/share/man/man1")]
    Manual {
        /// Directory for the pages of all subcommands; without it, the main page goes to standard output
        directory: Option<PathBuf>,
    },
    /// Start a command when a byte comes through standard input's stand-in; used by `record`
    #[command(hide = true)]
    Launch {
        /// The command
        #[arg(trailing_var_arg = true, required = true, allow_hyphen_values = true)]
        command: Vec<OsString>,
    },
}

/// Options of `record`.
#[derive(Args, Debug)]
#[command(
    long_about = "Record what runs and write it as a flame graph.\n\n\
        Without a process and without a command, the whole machine is recorded. Recording ends with Ctrl-C, with the \
        command, with the last recorded process, or after the given time.\n\n\
        Python interpreters are found and proven by themselves. The summary and the outputs have a line for each: what was \
        found, or why its frames are not shown; frames in brackets, [python: ...], say in a stack why there are none. \
        `wholestack explain PID` has the evidence.",
    after_help = RECORD_EXAMPLES,
    after_long_help = format!("{RECORD_EXAMPLES}\n\n{}", exit::HELP)
)]
pub(crate) struct Record {
    /// Process to record, with all its threads and the children that it makes from now on; may be given several times.
    /// Ends with the last of them
    #[arg(short, long = "pid", value_name = "PID", value_parser = ValueParser::from(clap::value_parser!(u32).range(1..)))]
    pub(crate) pid: Vec<u32>,

    /// Samples per second and CPU, 1 to 10000; 99 rather than 100, so as not to run in step with timers
    #[arg(short = 'F', long, value_name = "HZ", default_value_t = 99, value_parser = ValueParser::from(clap::value_parser!(u32).range(1..=10_000)))]
    pub(crate) frequency: u32,

    /// Stop after this time: seconds, or with a unit: 500ms, 10s, 5m, 1h. A command that has not ended goes on
    #[arg(short, long, value_name = "DURATION", value_parser = duration)]
    pub(crate) duration: Option<std::time::Duration>,

    /// Output, in the format that its name ends with: .html (interactive), .svg, .json (speedscope),
    /// .pb.gz (pprof), .folded; may be given several times [default: wholestack-NAME-TIME.html]
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) output: Vec<PathBuf>,

    /// Put (file:LINE) of the current line behind each function
    #[arg(long)]
    pub(crate) lines: bool,

    /// Which native frames of CPython's eval loop are shown: none of those that Python frames stand for, or all
    #[arg(long, value_name = "WHICH", value_enum, default_value_t = PythonNative::Other)]
    pub(crate) python_native: PythonNative,

    /// No progress and no summary, errors only
    #[arg(short, long)]
    pub(crate) quiet: bool,

    /// Command to start and record, with its arguments
    #[arg(last = true, value_name = "CMD", conflicts_with = "pid", value_hint = ValueHint::CommandWithArguments)]
    pub(crate) command: Vec<OsString>,
}

/// Native frames between Python frames.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
pub(crate) enum PythonNative {
    /// Those that no Python frame stands for: C functions that Python calls, and what calls Python
    Other,
    /// The eval loop's, too
    All,
}

/// Options of `check`.
#[derive(Args, Debug)]
#[command(after_help = "Exit code 0 if recording is possible, else 3.")]
pub(crate) struct Check {
    /// For programs: one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

/// Options of `explain`.
#[derive(Args, Debug)]
#[command(
    long_about = "Show the interpreters in a process, the evidence by which they were found and proven, and what each thread \
        does now: its native stack, and its Python stack.\n\n\
        What cannot be proven is refused, with the step, the cause and what to do. One's own processes need no root. Each \
        thread is held for a moment, one after the other, and its report says for how long.",
    after_help = EXPLAIN_EXAMPLES,
    after_long_help = format!("{EXPLAIN_EXAMPLES}\n\n{}", exit::HELP)
)]
pub(crate) struct Explain {
    /// Process
    #[arg(value_name = "PID", value_parser = ValueParser::from(clap::value_parser!(u32).range(1..)))]
    pub(crate) pid: u32,

    /// For programs: one JSON object
    #[arg(long)]
    pub(crate) json: bool,

    /// The evidence only, no stacks
    #[arg(long)]
    pub(crate) no_stacks: bool,
}

/// Seconds, or a number and a unit.
fn duration(text: &str) -> Result<std::time::Duration, String> {
    let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let number: f64 =
        number.parse().map_err(|_| format!("not a time: {text:?}; give seconds, or 500ms, 10s, 5m, 1h"))?;
    let seconds = match unit {
        "ms" => number / 1000.0,
        "" | "s" => number,
        "m" | "min" => number * 60.0,
        "h" => number * 3600.0,
        _ => return Err(format!("unknown unit {unit:?}; one of ms, s, m, h")),
    };
    match std::time::Duration::try_from_secs_f64(seconds) {
        Ok(duration) if !duration.is_zero() => Ok(duration),
        _ => Err("must be more than 0 and less than centuries".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;
    use std::time::Duration;

    #[test]
    fn the_command_line_is_consistent() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn both_helps_have_examples_and_the_long_one_exit_codes() {
        let mut command = Arguments::command();
        let record = command.find_subcommand_mut("record").expect("record");
        let (short, long) = (record.render_help().to_string(), record.render_long_help().to_string());
        assert!(short.contains("Examples:") && long.contains("Examples:") && long.contains("Exit codes:"));
        let long = command.render_long_help().to_string();
        assert!(long.contains("Examples:") && long.contains("Exit codes:"));
    }

    #[test]
    fn durations() {
        for (text, expected) in [("10", 10_000), ("0.5", 500), ("500ms", 500), ("2m", 120_000), ("1h", 3_600_000)] {
            assert_eq!(duration(text), Ok(Duration::from_millis(expected)), "{text}");
        }
        for text in ["", "0", "-1", "s", "1x", "1e99", "nan", "0ms", "999999999999999999999h"] {
            assert!(duration(text).is_err(), "{text}");
        }
    }
}
