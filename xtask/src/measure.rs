//! `cargo xtask verify` and `cargo xtask bench`: programs of their own, built with optimisation and run as root.

use std::ffi::OsString;

use anyhow::{Context, Result};

use crate::command::{self, cargo};
use crate::install::Privilege;
use crate::tree;

/// Options: those of the program.
#[derive(clap::Args, Debug)]
#[command(disable_help_flag = true)]
pub struct Arguments {
    /// What is run, and its options; --help tells
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "ARGUMENTS")]
    arguments: Vec<OsString>,
}

/// Builds wholestack and the program of this package, and runs it.
pub fn run(package: &str, arguments: &Arguments) -> Result<()> {
    let privilege = Privilege::here()
        .context("this records live programs, which needs root: run it as root, or where sudo is allowed to you")?;
    let mut build = cargo("build");
    command::run(build.args(["--release", "--package=wholestack"]).arg(format!("--package={package}")))?;
    let mut program = privilege.command(tree::target()?.join("release").join(package), &[]);
    command::run(program.args(&arguments.arguments))
}
