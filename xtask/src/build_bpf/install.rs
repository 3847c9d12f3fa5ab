//! Installs what compiles and links BPF programs, in the versions that made the committed objects where they can be had.

use std::process::Command;

use anyhow::{Result, bail};

use super::record::Record;
use super::toolchain::{self, BPF_LINKER};
use crate::command::{asked, cargo, program, run};
use crate::install::Apt;

/// Debian's packages of a compiler that is newer than the distribution, and of the source of its libraries. The last is
/// a dependency that apt would else take in another version than asked of the others.
const PACKAGES: [&str; 3] = ["rustc-web", "rust-web-src", "libstd-rust-web-dev"];

/// Installs the linker, unless it is here in the right version.
pub fn linker() -> Result<()> {
    let version = toolchain::linker().and_then(|path| asked(path, &["--version"]));
    if version.is_some_and(|version| version.trim() == format!("bpf-linker {BPF_LINKER}")) {
        return Ok(());
    }
    run(cargo("install").args(["bpf-linker", "--version", BPF_LINKER, "--locked", "--force"]))
}

/// Installs a compiler: of Debian if possible, else of rustup; the wanted one if possible, else the newest.
pub fn compiler(wanted: Option<&Record>) -> Result<()> {
    let wanted = wanted.and_then(Record::rustc_release);
    if let Some(apt) = Apt::here() {
        let exact = wanted.map(|release| PACKAGES.map(|name| format!("{name}={release}*")));
        if exact.is_some_and(|packages| apt.install(&packages).is_ok()) || apt.install(&PACKAGES).is_ok() {
            return Ok(());
        }
    }
    if program("rustup").is_none() {
        bail!("neither Debian's {} nor rustup can be had here", PACKAGES[0]);
    }
    for release in wanted.into_iter().chain(["nightly"]) {
        let arguments = ["toolchain", "install", release, "--profile", "minimal", "--component", "rust-src"];
        if run(Command::new("rustup").args(arguments)).is_ok() {
            return Ok(());
        }
    }
    bail!("rustup installs no toolchain with rust-src")
}
