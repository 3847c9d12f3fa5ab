//! What the tests of bad input, of `check` and of what is left behind share.

// each test program uses a part of it
#![allow(dead_code)]

pub mod bpf;
pub mod recorder;
pub mod target;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use tempfile::TempDir;

/// After this time something hangs. Nothing is measured by it.
pub const HANG: Duration = Duration::from_secs(240);

/// The user `nobody`, as every distribution has it.
pub const NOBODY: u32 = 65_534;

/// Whether this runs as root; if not, says so, or fails where `WHOLESTACK_REQUIRE_LIVE=1` asks for it.
pub fn is_root() -> bool {
    if rustix::process::geteuid().is_root() {
        return true;
    }
    let required = std::env::var_os("WHOLESTACK_REQUIRE_LIVE").is_some_and(|value| value == "1");
    assert!(!required, "WHOLESTACK_REQUIRE_LIVE=1 and not root");
    println!("SKIPPED: needs root");
    false
}

/// Waits until `ready` says so.
pub fn wait_for(what: &str, mut ready: impl FnMut() -> bool) {
    let started = Instant::now();
    while !ready() {
        assert!(started.elapsed() < HANG, "hangs: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// A directory that every user may enter and write to.
pub fn open_directory() -> TempDir {
    use std::os::unix::fs::PermissionsExt;
    let directory = tempfile::tempdir().expect("a temporary directory");
    std::fs::set_permissions(directory.path(), PermissionsExt::from_mode(0o777)).expect("permissions");
    directory
}

/// Names of the files in a directory, hidden ones too.
pub fn names_in(directory: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(directory).expect("a directory");
    let mut names: Vec<String> =
        entries.map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

/// Compiles one of the programs beside this file, once for each directory.
pub fn compile(directory: &Path, name: &str) -> PathBuf {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/common/programs").join(format!("{name}.c"));
    let program = directory.join(name);
    let done = std::process::Command::new("cc")
        .args(["-O1", "-g", "-Wall", "-Werror", "-pthread", "-o"])
        .arg(&program)
        .arg(&source)
        .status()
        .expect("cc");
    assert!(done.success(), "{} does not compile", source.display());
    program
}
