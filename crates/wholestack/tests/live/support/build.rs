//! Workloads compiled for a test.

use std::path::{Path, PathBuf};
use std::process::Command;

/// C and C++ without frame pointers, and with the calls as they are written.
const FLAGS: [&str; 3] = ["-O2", "-fomit-frame-pointer", "-fno-optimize-sibling-calls"];

/// A directory for the programs of one test.
pub(crate) struct Workshop {
    directory: tempfile::TempDir,
}

/// The sources.
pub(crate) fn source(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/workloads").join(name)
}

impl Workshop {
    pub(crate) fn new() -> Workshop {
        Workshop { directory: tempfile::tempdir().expect("a temporary directory") }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, contents: &str) -> PathBuf {
        let path = self.path(name);
        std::fs::write(&path, contents).expect("writing a source");
        path
    }

    /// A C program. Options that begin with `-l` come last, as the linker wants them.
    pub(crate) fn c(&self, program: &str, from: &str, options: &[&str]) -> PathBuf {
        self.compile("cc", program, &source(from), options)
    }

    /// A C++ program.
    pub(crate) fn cpp(&self, program: &str, from: &str, options: &[&str]) -> PathBuf {
        self.compile("c++", program, &source(from), options)
    }

    /// Runs a C or C++ compiler.
    pub(crate) fn compile(&self, compiler: &str, program: &str, from: &Path, options: &[&str]) -> PathBuf {
        let out = self.path(program);
        let (last, first): (Vec<&str>, Vec<&str>) = options.iter().partition(|option| option.starts_with("-l"));
        let include = source("");
        let mut command = Command::new(compiler);
        command.args(FLAGS).arg("-I").arg(include).args(first).arg("-o").arg(&out).arg(from).args(last);
        must(&mut command);
        out
    }

    /// A Rust program in release mode without frame pointers.
    pub(crate) fn rust(&self, program: &str, from: &str, options: &[&str]) -> PathBuf {
        let out = self.path(program);
        let mut command = Command::new("rustc");
        command.args(["--edition", "2024", "-C", "opt-level=3", "-C", "force-frame-pointers=no"]);
        must(command.args(options).arg("-o").arg(&out).arg(source(from)));
        out
    }

    /// A Go program without cgo.
    pub(crate) fn go(&self, program: &str, from: &str) -> PathBuf {
        let out = self.path(program);
        let mut command = Command::new("go");
        command.env("CGO_ENABLED", "0").env("GOFLAGS", "-mod=mod").args(["build", "-o"]).arg(&out).arg(source(from));
        must(&mut command);
        out
    }
}

/// Runs a command that has to succeed; gives its standard output.
pub(crate) fn must(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {}\n{errors}", output.status);
    String::from_utf8_lossy(&output.stdout).into_owned()
}
