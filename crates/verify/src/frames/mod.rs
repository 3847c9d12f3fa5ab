//! Every instruction of an eval loop: a running CPython is single-stepped, and the stack with its Python frames is walked at each
//! instruction.
//!
//! The truth is continuity. One instruction pushes a frame, or pops one, or does neither; whatever a program does, Python frames do
//! not change places, or vanish and come back ([`continuity`]). Nothing that the walk rests on takes part in it: neither
//! the layout of structures, nor where the code pushes and pops.
//!
//! x86_64 only.

pub mod continuity;
pub mod stack;

#[cfg(target_arch = "x86_64")]
mod stepping;

#[cfg(target_arch = "x86_64")]
pub use stepping::*;

/// Options.
#[derive(clap::Args, Debug)]
pub struct Arguments {
    /// The interpreters' programs
    #[arg(value_name = "PROGRAM", required = true)]
    pub programs: Vec<std::path::PathBuf>,
    /// Judge at most so many stacks of each
    #[arg(long, value_name = "N", default_value_t = 1_000_000)]
    pub stacks: u64,
}

/// Steps the interpreters and prints what was found; false: a walk was wrong, or said of a frame that it is missing.
///
/// # Errors
/// If one cannot be stepped.
#[cfg(not(target_arch = "x86_64"))]
pub fn run(_arguments: &Arguments, _json: bool) -> anyhow::Result<bool> {
    anyhow::bail!("single-stepping is implemented on x86_64 only")
}
