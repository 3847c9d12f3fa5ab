//! PyInstaller in a virtual environment, with which tests make a program of one file that brings its interpreter along.

use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::Result;

use super::require;
use crate::command::{output, run};

/// What pip installs.
pub const REQUIREMENT: &str = "pyinstaller==6.22.3";

/// Installs it for the machine's own interpreter; gives the version of that too.
pub fn install(place: &Path) -> Result<Vec<String>> {
    require(&["python3", "objdump"], "install python3, python3-venv and binutils")?;
    run(Command::new("python3").args(["-m", "venv"]).arg(place).stdin(Stdio::null()))?;
    let mut pip = Command::new(place.join("bin/pip"));
    pip.args(["install", "--quiet", "--disable-pip-version-check", REQUIREMENT]);
    run(pip.stdin(Stdio::null()))?;
    let version = output(Command::new(place.join("bin/python3")).arg("--version"))?;
    Ok(vec![format!("{REQUIREMENT} for {}", version.trim())])
}
