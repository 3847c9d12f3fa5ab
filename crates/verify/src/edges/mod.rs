//! Every instruction of a run: small programs are single-stepped, and at each instruction the walk is compared with the
//! calls that were made and have not returned.
//!
//! The truth is a stack of calls that is kept while stepping ([`Shadow`]): an executed call pushes, a return pops, the delivery
//! of a signal and its end push and pop what was interrupted, and whatever the stack pointer leaves behind is gone, as
//! after `longjmp` or an exception. Neither tables nor frame pointers take part in it. Signals are also sent by the judge
//! itself, before instructions that it has not seen yet, so that handlers interrupt every kind of place.
//!
//! x86_64 only.

#[cfg(target_arch = "x86_64")]
pub(crate) mod stepping;

#[cfg(target_arch = "x86_64")]
pub use stepping::*;

/// Options.
#[derive(clap::Args, Debug, Default)]
pub struct Arguments {
    /// Step only programs whose name, or name and variant, begin with this
    #[arg(long, value_name = "NAME")]
    pub program: Option<String>,
    /// Compare at most so many states of each run
    #[arg(long, value_name = "N", default_value_t = 150_000)]
    pub states: u64,
    /// List the programs and their variants, and step none
    #[arg(long)]
    pub list: bool,
}

/// Steps the programs and prints what was found; false: a walk was wrong.
///
/// # Errors
/// If nothing could be stepped, or a target did what the judge cannot follow.
#[cfg(not(target_arch = "x86_64"))]
pub fn run(_arguments: &Arguments, _json: bool) -> anyhow::Result<bool> {
    anyhow::bail!("single-stepping is implemented on x86_64 only")
}
