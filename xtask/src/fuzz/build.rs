//! Building the targets with coverage counters.
//!
//! rustc's own option for that needs nightly, but `-C passes` and `-C llvm-args` do not: they run LLVM's pass and choose
//! the counters that libFuzzer reads. libFuzzer itself, in C++, comes with the crate libfuzzer-sys and is compiled by it.

use std::process::Command;

use anyhow::{Context, Result, bail};

use super::places::{self, Places};
use super::targets::Targets;
use crate::command::{self, asked, cargo, program};

/// What else is checked while a target runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sanitizer {
    /// Only what Rust checks: bounds, overflows, assertions.
    None,
    /// Uses of memory in unsafe code.
    Address,
}

/// The pass, counters of edges, and what is compared with what, so that magic numbers are found.
const COVERAGE: &[&str] = &[
    "-Cpasses=sancov-module",
    "-Cllvm-args=-sanitizer-coverage-level=4",
    "-Cllvm-args=-sanitizer-coverage-inline-8bit-counters",
    "-Cllvm-args=-sanitizer-coverage-pc-table",
    "-Cllvm-args=-sanitizer-coverage-trace-compares",
    FUZZING,
];
/// Opens inner doors of the crates to the targets.
const FUZZING: &str = "--cfg=fuzzing";
/// An unstable option, though its library comes with stable toolchains.
const ADDRESS: &str = "-Zsanitizer=address";

/// Builds the programs of the targets.
pub fn build(targets: &Targets, places: &Places, sanitizer: Sanitizer) -> Result<()> {
    compiler()?;
    let mut command = compiling("build", places)?;
    command.args(targets.iter().map(|target| format!("--bin={target}")));
    command.env("RUSTFLAGS", flags(sanitizer).join(" "));
    if sanitizer == Sanitizer::Address {
        command.env("RUSTC_BOOTSTRAP", "1");
    }
    command::run(&mut command)
}

/// Checks format and style of the targets, which are no part of the workspace.
pub fn lint() -> Result<()> {
    command::run(cargo("fmt").args(["--check", "--manifest-path"]).arg(places::manifest()))?;
    let mut clippy = compiling("clippy", &Places::new(Sanitizer::None)?)?;
    clippy.args(["--", "--deny=warnings"]).env("RUSTFLAGS", FUZZING);
    command::run(&mut clippy)
}

/// A cargo that compiles the targets. With a machine named, the flags are not those of build scripts and macros.
fn compiling(subcommand: &str, places: &Places) -> Result<Command> {
    let mut command = cargo(subcommand);
    command.args(["--release", "--manifest-path"]).arg(places::manifest());
    command.arg("--target").arg(host()?).arg("--target-dir").arg(places.build());
    command.env_remove("CARGO_ENCODED_RUSTFLAGS");
    Ok(command)
}

/// Whether the compiler that libfuzzer-sys calls is there; if not, what to do.
pub fn compiler() -> Result<()> {
    let named = std::env::var("CXX").ok().filter(|name| !name.is_empty());
    let name = named.as_deref().unwrap_or("c++");
    if program(name).is_none() {
        bail!("libFuzzer is compiled by {name}, which is not there (Debian: package g++)");
    }
    Ok(())
}

/// The machine that this is, as rustc calls it.
pub fn host() -> Result<String> {
    let version = asked("rustc", &["-vV"]).context("rustc does not start")?;
    let host = version.lines().find_map(|line| line.strip_prefix("host: "));
    host.map(str::to_owned).context("rustc does not say which machine this is")
}

fn flags(sanitizer: Sanitizer) -> Vec<&'static str> {
    let address = (sanitizer == Sanitizer::Address).then_some(ADDRESS);
    COVERAGE.iter().copied().chain(address).collect()
}
