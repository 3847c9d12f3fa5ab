//! Interpreters that no package has, built from Debian's source package: without the GIL, and with musl.

use std::fmt::{Display, Formatter};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use super::apt::Apt;
use super::require;
use crate::command::{output, shown};

/// A released suite, whose source packages stay where they are.
const SUITE: &str = "trixie";
const PACKAGE: &str = "python3.13";

/// What is built.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Variant {
    /// Free-threaded, as a shared library.
    FreeThreaded,
    /// For musl, with the library in the program.
    Musl,
}

/// Modules that take long to compile and that nothing here imports.
const LEFT_OUT: [&str; 14] = [
    "_bz2",
    "_codecs_cn",
    "_codecs_hk",
    "_codecs_iso2022",
    "_codecs_jp",
    "_codecs_kr",
    "_codecs_tw",
    "_curses",
    "_decimal",
    "_hashlib",
    "_lzma",
    "_ssl",
    "_tkinter",
    "readline",
];

impl Variant {
    /// Builds it, to be run where it is built; gives its version. Takes minutes.
    pub fn build(self, place: &Path, workshop: &Path) -> Result<Vec<String>> {
        require(&["tar", "make", "cc"], "install tar, make and gcc")?;
        if self == Variant::Musl {
            require(&["musl-gcc"], "install musl-tools")?;
        }
        let tarball = Apt::new(SUITE, native()?, workshop)?.fetch_source(PACKAGE)?;
        let log = place.join("build.log");
        let step = |command: &mut Command| logged(command.current_dir(place), &log);
        let mut tar = Command::new("tar");
        tar.args(["--extract", "--strip-components=1", "--exclude=*/Doc", "--exclude=*/Lib/test", "--file"]);
        step(tar.arg(tarball))?;
        step(&mut self.configure(place)?)?;
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        println!("  building with {cores} processes; {} tells more", log.display());
        step(Command::new("make").args(["--silent", &format!("--jobs={cores}")]))?;
        step(Command::new("find").args([".", "-name", "*.o", "-delete"]))?;
        let version =
            output(Command::new(place.join("python")).args(["-c", "import sys; print(sys.version.split()[0])"]))?;
        Ok(vec![format!("python{} {self}", version.trim())])
    }

    fn configure(self, place: &Path) -> Result<Command> {
        let mut command = Command::new("./configure");
        command.args(["--quiet", "--disable-test-modules", "--with-ensurepip=no", "CFLAGS=-O1 -g0"]);
        command.args(LEFT_OUT.map(|module| format!("py_cv_module_{module}=n/a")));
        match self {
            Variant::FreeThreaded => {
                command.args(["--disable-gil", "--enable-shared"]);
                command.arg(format!("LDFLAGS=-Wl,-rpath,{}", place.display()));
            }
            Variant::Musl => {
                // what pkg-config knows of is glibc's
                command.arg(format!("CC={}", musl_compiler(place)?.display())).arg("PKG_CONFIG=false");
            }
        }
        Ok(command)
    }
}

impl Display for Variant {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(match self {
            Variant::FreeThreaded => "free-threaded, built from Debian's source",
            Variant::Musl => "with musl, built from Debian's source",
        })
    }
}

/// A compiler that does not tell where Debian keeps glibc's libraries, which `configure` would hold against musl.
fn musl_compiler(place: &Path) -> Result<PathBuf> {
    let file = place.join("musl-cc");
    let script = "#!/bin/sh\ncase \"$*\" in *--print-multiarch*) exit ;; esac\nexec musl-gcc \"$@\"\n";
    std::fs::write(&file, script)
        .and_then(|()| std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755)))
        .with_context(|| format!("{} cannot be written", file.display()))?;
    Ok(file)
}

/// Runs a command, with all that it prints in a file.
fn logged(command: &mut Command, log: &Path) -> Result<()> {
    let file = std::fs::File::options().create(true).append(true).open(log);
    let file = file.with_context(|| format!("{} cannot be written", log.display()))?;
    let errors = file.try_clone().context("no second descriptor")?;
    let status = command.stdin(Stdio::null()).stdout(file).stderr(errors).status();
    let status = status.with_context(|| format!("{} does not start", shown(command)))?;
    if !status.success() {
        bail!("{status}: {}; {} tells more", shown(command), log.display());
    }
    Ok(())
}

/// This machine's architecture, as Debian calls it.
fn native() -> Result<&'static str> {
    match std::env::consts::ARCH {
        "x86_64" => Ok("amd64"),
        "aarch64" => Ok("arm64"),
        other => bail!("nothing is built for {other}"),
    }
}
