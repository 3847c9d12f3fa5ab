//! The programs that tests run: what they are compared with, and what they sample.

use anyhow::{Result, bail};

use crate::command::program;
use crate::install::Apt;

/// A program, and how to get it.
#[derive(Debug)]
pub struct Need {
    /// Names in `PATH`, or paths, of which one is enough.
    pub programs: &'static [&'static str],
    /// Debian's packages.
    pub packages: &'static [&'static str],
    /// What it is for.
    pub purpose: &'static str,
}

const fn need(programs: &'static [&'static str], packages: &'static [&'static str], purpose: &'static str) -> Need {
    Need { programs, packages, purpose }
}

/// All of them; coreutils and util-linux are taken for granted.
const NEEDS: &[Need] = &[
    need(&["cc"], &["gcc", "libc6-dev"], "programs to sample and to read"),
    need(&["g++"], &["g++"], "programs to sample and to read"),
    need(&["readelf"], &["binutils"], "what it says of files is compared with what we say"),
    need(&["xz"], &["xz-utils"], "compressed symbol tables"),
    need(&["dwz"], &["dwz"], "shared debug information"),
    need(&["python3"], &["python3"], "its XML parser reads SVG files"),
    need(&["/usr/bin/python3"], &["python3"], "a real program to sample"),
    need(&["gdb"], &["gdb"], "its Python is explained"),
    need(&["uwsgi_python3"], &["uwsgi-core", "uwsgi-plugin-python3"], "its Python is explained"),
    need(&["pypy3"], &["pypy3"], "it is no CPython, and so refused"),
    need(&["musl-gcc"], &["musl-tools"], "another C library"),
    need(&["clang"], &["clang"], "another compiler's code is evaluated"),
    need(&["ld.lld"], &["lld"], "another linker's files are read"),
    need(
        &["aarch64-linux-gnu-gcc"],
        &["gcc-aarch64-linux-gnu", "libc6-dev-arm64-cross"],
        "code and structures of the other architecture",
    ),
    need(&["qemu-aarch64"], &["qemu-user"], "programs of the other architecture"),
    need(&["java"], &["default-jdk-headless"], "a real program to sample"),
    need(&["node"], &["nodejs"], "a real program to sample"),
    need(&["go"], &["golang-go"], "its programs are sampled, and its pprof reads our profiles"),
    need(&["sqlite3"], &["sqlite3"], "a real program to sample"),
    need(&["setcap"], &["libcap2-bin"], "recording without root"),
    need(
        &["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"],
        &["chromium"],
        "the HTML page is driven in it",
    ),
];

/// The needs that this machine does not meet.
pub fn missing() -> Vec<&'static Need> {
    NEEDS.iter().filter(|need| need.programs.iter().all(|name| program(name).is_none())).collect()
}

/// Installs what is missing, where there is apt and the right to use it; else leaves it at that.
pub fn install() -> Result<()> {
    let packages: Vec<_> = missing().iter().flat_map(|need| need.packages).copied().collect();
    if packages.is_empty() {
        println!("all programs that tests run are here");
        return Ok(());
    }
    match Apt::here() {
        Some(apt) => apt.install(&packages)?,
        None => println!("nothing can be installed here; tests will lack {}", packages.join(", ")),
    }
    let left: Vec<_> = missing().iter().map(|need| need.programs[0]).collect();
    if Apt::here().is_some() && !left.is_empty() {
        bail!("still missing after the installation: {}", left.join(", "));
    }
    Ok(())
}
