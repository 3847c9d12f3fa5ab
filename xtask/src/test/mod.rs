//! `cargo xtask test`: everything that must be in order before a change goes in, and a summary of it.

mod binaries;
mod failure;
mod harness;
mod needs;
mod summary;

use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};

use crate::build_bpf;
use crate::command::{self, cargo, is_root, program};
use crate::fuzz;
use crate::install::Privilege;
use crate::interpreters;
use crate::tree;
use failure::Failure;
use harness::{Counts, Skip};
use summary::Summary;

/// Variables that make tests fail rather than skip their work, for want of root and of a browser.
const REQUIRED: &[(&str, &str)] = &[("WHOLESTACK_REQUIRE_LIVE", "1"), ("WHOLESTACK_REQUIRE_BROWSER", "1")];

/// Options of `test`.
#[derive(clap::Args, Debug)]
pub struct Arguments {
    /// Only format, lints and the tests that need neither root nor an installation
    #[arg(long)]
    fast: bool,
    /// Fail if a test was skipped
    #[arg(long)]
    deny_skips: bool,
    /// Install nothing
    #[arg(long)]
    no_install: bool,
    /// Only the tests of this package, and nothing else; may be given several times
    #[arg(short, long, value_name = "PACKAGE")]
    package: Vec<String>,
}

/// Runs all steps, whatever fails on the way, then fails if one did.
pub fn run(arguments: &Arguments) -> Result<()> {
    let mut summary = Summary::default();
    let privilege = if arguments.fast { None } else { Privilege::here() };
    if !arguments.fast && !arguments.no_install {
        step(&mut summary, "packages", needs::install);
        interpreters(&mut summary, arguments);
    }
    let missing = needs::missing();
    missing.iter().for_each(|need| summary.lacks(need));
    let has_browser = !missing.iter().any(|need| need.programs.contains(&"chromium"));
    let required = if has_browser { REQUIRED } else { &REQUIRED[..1] };
    if arguments.package.is_empty() {
        checks(&mut summary);
    }
    tests(&mut summary, arguments, privilege, required);
    if arguments.package.is_empty() && !arguments.fast {
        documentation(&mut summary);
        objects(&mut summary, arguments);
        fuzz(&mut summary);
    }
    println!("{summary}");
    match summary.verdict(arguments.deny_skips) {
        None => Ok(()),
        Some(why) => bail!("{why}"),
    }
}

/// Gets the newest interpreters for the tests of `explain`. Where that is not possible, as without a network, these use those
/// that are here.
fn interpreters(summary: &mut Summary, arguments: &Arguments) {
    let name = "interpreters";
    if !arguments.package.is_empty() && !arguments.package.iter().any(|package| package == "wholestack") {
        return;
    }
    println!("\n== {name}");
    let start = Instant::now();
    match interpreters::get_newest() {
        Ok(()) => summary.step(name, start.elapsed(), None),
        Err(error) => println!("note: {error:#}; tests use what is here"),
    }
}

/// Runs a step that is no test: it succeeds or fails.
fn step(summary: &mut Summary, name: &str, action: impl FnOnce() -> Result<()>) {
    println!("\n== {name}");
    let start = Instant::now();
    let error = action().err().map(|error| format!("{error:#}"));
    if let Some(error) = &error {
        eprintln!("error: {error}");
    }
    summary.step(name, start.elapsed(), error.as_deref());
}

fn checks(summary: &mut Summary) {
    step(summary, "format", || command::run(cargo("fmt").args(["--all", "--check"])));
    step(summary, "lints", || {
        command::run(cargo("clippy").args(["--workspace", "--all-targets", "--", "--deny=warnings"]))
    });
}

fn documentation(summary: &mut Summary) {
    step(summary, "documentation", || {
        command::run(
            cargo("doc")
                .args(["--workspace", "--no-deps", "--document-private-items"])
                .env("RUSTDOCFLAGS", "-Dwarnings"),
        )
    });
}

fn objects(summary: &mut Summary, arguments: &Arguments) {
    let name = "BPF objects";
    let may_install = !arguments.no_install && is_root() && program("apt-get").is_some();
    if !may_install && let Err(error) = build_bpf::toolchain() {
        let skipped = vec![Skip::new("", &format!("{error:#}"))];
        summary.tests(name, Duration::ZERO, Counts { skipped, ..Counts::default() });
        return;
    }
    // by cargo, since the tests may have built this program anew
    let mut build = cargo("run");
    build.args(["--quiet", "--package=xtask", "--", "build-bpf", "--check"]);
    if may_install {
        build.arg("--install");
    }
    step(summary, name, || command::run(&mut build));
}

/// A few seconds of each fuzz target, which also run the inputs that once made one fail.
fn fuzz(summary: &mut Summary) {
    let name = "fuzz";
    if let Err(error) = fuzz::compiler() {
        let skipped = vec![Skip::new("", &format!("{error:#}"))];
        summary.tests(name, Duration::ZERO, Counts { skipped, ..Counts::default() });
        return;
    }
    step(summary, "lints of the fuzz targets", fuzz::lint);
    let mut chore = cargo("run");
    chore.args(["--quiet", "--package=xtask", "--", "fuzz", "all", "--seconds=5"]);
    step(summary, name, || command::run(&mut chore));
}

fn tests(summary: &mut Summary, arguments: &Arguments, privilege: Option<Privilege>, required: &[(&str, &str)]) {
    let mut found = Vec::new();
    step(summary, "build of the tests", || {
        found = binaries::build(&arguments.package)?;
        Ok(())
    });
    for binary in &found {
        harness(summary, &binary.to_string(), binary.command(privilege, required));
    }
    if privilege == Some(Privilege::Sudo) {
        step(summary, "root's files in the target directory", give_back);
    }
    if arguments.package.is_empty() {
        let mut examples = cargo("test");
        examples.args(["--workspace", "--doc", "--", "--show-output"]);
        harness(summary, "examples in the documentation", examples);
    }
}

/// Makes the files that tests left as root those of whoever has this checkout.
fn give_back() -> Result<()> {
    let directory = tree::target()?.join("tmp");
    if !directory.exists() {
        return Ok(());
    }
    let mut chown = Privilege::Sudo.command("chown", &[]);
    command::run(chown.arg("--recursive").arg("--reference").arg(tree::root().join("Cargo.toml")).arg(directory))
}

/// Runs a step that is tests, and counts them.
fn harness(summary: &mut Summary, name: &str, mut command: Command) {
    println!("\n== {name}");
    let start = Instant::now();
    let counts = harness::run(&mut command).unwrap_or_else(|error| {
        eprintln!("error: {error:#}");
        Counts { failed: 1, failures: vec![Failure::new(&format!("{error:#}"), &[])], ..Counts::default() }
    });
    summary.tests(name, start.elapsed(), counts);
}
