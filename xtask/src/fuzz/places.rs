//! Where fuzzing keeps its files.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use super::build::Sanitizer;
use crate::tree;

/// Directories below the target directory, and those that are committed.
pub struct Places {
    target: PathBuf,
    build: PathBuf,
}

impl Places {
    /// The places of this checkout. Each way of building has its own directory: with other flags, all is built anew.
    pub fn new(sanitizer: Sanitizer) -> Result<Places> {
        let target = tree::target()?.join("fuzz");
        let build = target.join(if sanitizer == Sanitizer::Address { "asan" } else { "plain" });
        Ok(Places { target, build })
    }

    /// Where cargo builds.
    pub fn build(&self) -> &Path {
        &self.build
    }

    /// The program of a target.
    pub fn program(&self, host: &str, target: &str) -> PathBuf {
        self.build.join(host).join("release").join(target)
    }

    /// Inputs that reached new code in earlier runs.
    pub fn finds(&self, target: &str) -> Result<PathBuf> {
        self.made(&format!("finds/{target}"))
    }

    /// Inputs that made a target crash.
    pub fn crashes(&self, target: &str) -> Result<PathBuf> {
        self.made(&format!("crashes/{target}"))
    }

    /// What a process of a target printed.
    pub fn log(&self, target: &str, number: usize) -> Result<PathBuf> {
        Ok(self.made("logs")?.join(format!("{target}-{number}.log")))
    }

    fn made(&self, name: &str) -> Result<PathBuf> {
        let directory = self.target.join(name);
        std::fs::create_dir_all(&directory).with_context(|| format!("{} cannot be made", directory.display()))?;
        Ok(directory)
    }
}

/// The manifest of the targets.
pub fn manifest() -> PathBuf {
    tree::root().join("fuzz/Cargo.toml")
}

/// Inputs of a target that are committed.
pub fn corpus(target: &str) -> PathBuf {
    tree::root().join("fuzz/corpus").join(target)
}

/// A directory for what a target itself writes, in memory where there is such a place; gone with the value.
pub fn scratch() -> Result<tempfile::TempDir> {
    let memory = Path::new("/dev/shm");
    let made = tempfile::tempdir_in(memory).or_else(|_| tempfile::tempdir());
    made.context("no temporary directory can be made")
}
