//! `cargo xtask build-bpf`: the BPF programs, compiled for each architecture into `bpf/prebuilt`.
//!
//! The objects are committed, so that building wholestack needs no more than cargo. The same sources and the same
//! toolchain make the same bytes, wherever the checkout, cargo's home and the target directory are ([`compile`]);
//! `bpf/prebuilt/TOOLCHAIN` ([`record`]) says which toolchain made the committed ones.

mod compare;
mod compile;
mod compiler;
mod install;
mod record;
mod strip;
mod toolchain;

use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use clap::ValueEnum;

use crate::tree;
use compare::Verdict;
pub use compiler::as_compiler;
use record::Record;
use toolchain::Toolchain;

/// Options of `build-bpf`.
#[derive(clap::Args, Debug)]
pub struct Arguments {
    /// Compare with the committed objects and write nothing
    #[arg(long)]
    check: bool,
    /// With --check: fail where another toolchain than that of the committed objects is all there is
    #[arg(long, requires = "check")]
    require_same_toolchain: bool,
    /// Architecture of the kernel that runs the object; without it, all
    #[arg(long, value_name = "ARCH")]
    arch: Vec<Architecture>,
    /// Install the toolchain if it is missing: by apt or rustup, and cargo
    #[arg(long)]
    install: bool,
}

/// Architectures of kernels.
#[derive(ValueEnum, Debug, Clone, Copy, PartialEq, Eq)]
#[value(rename_all = "snake_case")]
enum Architecture {
    #[value(name = "x86_64")]
    X86_64,
    #[value(name = "aarch64")]
    Aarch64,
}

impl Architecture {
    /// As `bpf_target_arch` has it.
    fn name(self) -> &'static str {
        match self {
            Architecture::X86_64 => "x86_64",
            Architecture::Aarch64 => "aarch64",
        }
    }

    fn committed(self) -> PathBuf {
        prebuilt().join(format!("sampler-{}.o", self.name()))
    }
}

fn prebuilt() -> PathBuf {
    tree::root().join("bpf/prebuilt")
}

/// Whether there is a toolchain; if not, what to do.
pub fn toolchain() -> Result<()> {
    toolchain::find(None).map(drop)
}

/// Builds, then writes or compares.
pub fn run(arguments: &Arguments) -> Result<()> {
    let all = Architecture::value_variants();
    let architectures = if arguments.arch.is_empty() { all } else { &arguments.arch };
    let committed = Record::read(&prebuilt())?;
    let toolchain = find(arguments, committed.as_ref())?;
    println!("toolchain: {} at {}, {}", toolchain.record.rustc, toolchain.rustc.display(), toolchain.record.bpf_linker);
    let same = committed.as_ref() == Some(&toolchain.record);
    if let Some(committed) = &committed
        && !same
    {
        println!("the committed objects were made with another: {}, {}", committed.rustc, committed.bpf_linker);
        if arguments.require_same_toolchain {
            bail!("this is not the toolchain of the committed objects; --install gets it where it can be had");
        }
    }
    if arguments.check {
        check(&toolchain, architectures, same)
    } else {
        if !same && architectures.len() < all.len() {
            bail!("all objects must come from one toolchain: leave out --arch");
        }
        write(&toolchain, architectures)
    }
}

fn find(arguments: &Arguments, wanted: Option<&Record>) -> Result<Toolchain> {
    if !arguments.install {
        return toolchain::find(wanted);
    }
    install::linker()?;
    let found = toolchain::find(wanted);
    if let Ok(toolchain) = &found
        && wanted.is_none_or(|wanted| *wanted == toolchain.record)
    {
        return found;
    }
    match (install::compiler(wanted), found) {
        (Ok(()), _) => toolchain::find(wanted),
        // another one still compares what can be compared
        (Err(error), Ok(toolchain)) => {
            println!("the toolchain of the committed objects cannot be had: {error:#}");
            Ok(toolchain)
        }
        (Err(error), Err(_)) => Err(error),
    }
}

fn write(toolchain: &Toolchain, architectures: &[Architecture]) -> Result<()> {
    for architecture in architectures {
        let object = compile::object(toolchain, architecture.name(), false)?;
        let path = architecture.committed();
        std::fs::write(&path, &object).with_context(|| format!("{} cannot be written", path.display()))?;
        println!("{}: {} bytes", path.display(), object.len());
    }
    toolchain.record.write(&prebuilt())
}

fn check(toolchain: &Toolchain, architectures: &[Architecture], same_toolchain: bool) -> Result<()> {
    let mut stale = false;
    for architecture in architectures {
        let path = architecture.committed();
        let committed = std::fs::read(&path).with_context(|| format!("{} cannot be read", path.display()))?;
        let built = compile::object(toolchain, architecture.name(), true)?;
        let verdict = compare::compare(&committed, &built, same_toolchain)?;
        println!("{}: {verdict}", path.display());
        stale |= matches!(verdict, Verdict::Differs(_));
    }
    if stale {
        bail!(
            "the committed objects are not what the sources make: run `cargo xtask build-bpf` and commit bpf/prebuilt"
        );
    }
    Ok(())
}
