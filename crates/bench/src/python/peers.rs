//! Other profilers of Python, from the package index: in a virtual environment that is kept. One that cannot be had is left
//! out by name.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail, ensure};

/// Where to get them, in the order of what is wanted: the newest need a newer C library than some machines have.
const PY_SPY: [&str; 1] = ["py-spy"];
const AUSTIN: [&str; 2] = ["austin-dist>=3,<4", "austin-dist"];

/// What there is.
#[derive(Debug)]
pub struct Peers {
    /// py-spy.
    pub py_spy: Result<PathBuf>,
    /// austin.
    pub austin: Result<PathBuf>,
}

impl Peers {
    /// Those in `directory`, installed there if they are not.
    pub fn get(directory: &Path) -> Peers {
        Peers { py_spy: get(directory, "py-spy", &PY_SPY), austin: get(directory, "austin", &AUSTIN) }
    }

    /// Their versions, and what is missing, why.
    pub fn describe(&self) -> String {
        let one = |name: &str, found: &Result<PathBuf>| match found {
            Ok(path) => version(path).unwrap_or_else(|error| format!("{name}: {error:#}")),
            Err(error) => format!("{name} left out: {error:#}"),
        };
        format!("{}; {}", one("py-spy", &self.py_spy), one("austin", &self.austin))
    }
}

fn get(directory: &Path, name: &str, requirements: &[&str]) -> Result<PathBuf> {
    // a profiler is started by its path, from whatever directory
    let directory = std::path::absolute(directory)?;
    let path = directory.join("bin").join(name);
    if version(&path).is_ok() {
        return Ok(path);
    }
    let python = directory.join("bin/python");
    if !python.exists() {
        run(Command::new("python3").args(["-m", "venv"]).arg(&directory))?;
    }
    for requirement in requirements {
        run(Command::new(&python).args(["-m", "pip", "install", "-q", "--disable-pip-version-check", requirement]))?;
        if version(&path).is_ok() {
            return Ok(path);
        }
    }
    bail!("it does not run here")
}

fn run(command: &mut Command) -> Result<()> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command.stdin(Stdio::null()).output().with_context(|| format!("cannot start {name}"))?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{}", said.lines().last().unwrap_or("pip fails without a word"));
    Ok(())
}

fn version(path: &Path) -> Result<String> {
    let output = Command::new(path).arg("--version").stdin(Stdio::null()).output()?;
    ensure!(output.status.success(), "it does not run here");
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_had_is_named() {
        let directory = tempfile::tempdir().expect("a directory");
        std::fs::create_dir(directory.path().join("bin")).expect("a directory");
        std::os::unix::fs::symlink("/bin/false", directory.path().join("bin/python")).expect("a link");
        std::os::unix::fs::symlink("/bin/true", directory.path().join("bin/austin")).expect("a link");
        let peers = Peers::get(directory.path());
        assert!(peers.py_spy.is_err() && peers.austin.is_ok());
        assert!(peers.describe().starts_with("py-spy left out: "), "{}", peers.describe());
    }
}
