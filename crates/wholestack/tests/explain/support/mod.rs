//! Interpreters and programs that have one, parked, and what they say of themselves.

// what is there for one test need not be used by another
#![allow(dead_code)]

pub(crate) mod embedded;
pub(crate) mod interpreters;
pub(crate) mod parked;
pub(crate) mod programs;

use std::path::{Path, PathBuf};
use std::process::Command;

/// The workloads beside this directory.
pub(crate) fn workloads() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/explain/workloads")
}

/// Runs a command that has to succeed; gives its standard output, or what it complained.
pub(crate) fn output(command: &mut Command) -> Result<String, String> {
    let output = command.output().map_err(|error| format!("{}: {error}", command.get_program().display()))?;
    if !output.status.success() {
        return Err(format!("{command:?}: {}: {}", output.status, String::from_utf8_lossy(&output.stderr)));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Compiles one of the workloads.
pub(crate) fn compile(source: &str, program: &Path, options: &[impl AsRef<std::ffi::OsStr>]) -> Result<(), String> {
    let mut cc = Command::new("cc");
    cc.args(["-O2", "-pthread", "-o"]).arg(program).arg(workloads().join(source)).args(options);
    output(&mut cc).map(drop)
}

/// Says what is not here. It need not be: what is here must not be left out. With `WHOLESTACK_REQUIRE_INTERPRETERS=1` it is a
/// failure.
pub(crate) fn skip(reasons: &[String]) {
    for reason in reasons {
        println!("NOT HERE: {reason}");
    }
    let required = std::env::var_os("WHOLESTACK_REQUIRE_INTERPRETERS").is_some_and(|value| value == "1");
    assert!(!required || reasons.is_empty(), "required, but {}", reasons.join("; "));
}
