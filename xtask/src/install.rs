//! Installing packages, and saying what to do where that is not possible.

use std::cell::Cell;
use std::ffi::OsStr;
use std::io::IsTerminal;
use std::process::Command;

use anyhow::Result;

use crate::command::{asked, is_root, program, run};

/// How commands become root's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Privilege {
    /// This program is root's.
    Root,
    /// There is sudo, which either asks nothing or has a terminal to ask at.
    Sudo,
}

impl Privilege {
    /// What this program has, if anything.
    pub fn here() -> Option<Privilege> {
        if is_root() {
            return Some(Privilege::Root);
        }
        let answers = || std::io::stdin().is_terminal() || asked("sudo", &["-n", "true"]).is_some();
        (program("sudo").is_some() && answers()).then_some(Privilege::Sudo)
    }

    /// A command that runs as root with additional variables; sudo is told to keep the others, `PATH` among them.
    pub fn command(self, program: impl AsRef<OsStr>, variables: &[(&str, &str)]) -> Command {
        match self {
            Privilege::Root => {
                let mut command = Command::new(program);
                command.envs(variables.iter().copied());
                command
            }
            Privilege::Sudo => {
                let path = std::env::var("PATH").unwrap_or_default();
                let mut command = Command::new("sudo");
                command.args(["-E", "env"]).arg(format!("PATH={path}"));
                command.args(variables.iter().map(|(name, value)| format!("{name}={value}"))).arg(program);
                command
            }
        }
    }
}

/// Debian's package manager, where this program may use it.
pub struct Apt {
    privilege: Privilege,
    updated: Cell<bool>,
}

impl Apt {
    /// The one of this machine.
    pub fn here() -> Option<Apt> {
        program("apt-get")?;
        Some(Apt { privilege: Privilege::here()?, updated: Cell::new(false) })
    }

    /// Installs packages, after an update of the lists on the first call.
    pub fn install(&self, packages: &[impl AsRef<str>]) -> Result<()> {
        if !self.updated.replace(true) {
            self.run(&["update", "--quiet"])?;
        }
        let packages = packages.iter().map(AsRef::as_ref);
        self.run(
            &["install", "--quiet", "--yes", "--no-install-recommends"].into_iter().chain(packages).collect::<Vec<_>>(),
        )
    }

    fn run(&self, arguments: &[&str]) -> Result<()> {
        let mut command = self.privilege.command("apt-get", &[("DEBIAN_FRONTEND", "noninteractive")]);
        run(command.args(arguments).stdin(std::process::Stdio::null()))
    }
}
