//! Reading /proc, which changes while it is read.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use crate::Comm;
use crate::stat::Stat;

/// A mounted proc file system.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Proc {
    root: PathBuf,
}

/// Bytes of a command line that are kept.
const COMMAND_LINE: usize = 4096;
/// Bytes of `stat` and the like: they are a few hundred.
const SMALL: usize = 4 * 1024;

impl Proc {
    /// The system's: /proc.
    pub fn system() -> Proc {
        Proc::at("/proc")
    }

    /// One that is mounted elsewhere, or a directory that looks like one.
    pub fn at(root: impl Into<PathBuf>) -> Proc {
        Proc { root: root.into() }
    }

    /// Where it is.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Path of a file of a process.
    pub fn path(&self, pid: u32, name: &str) -> PathBuf {
        self.root.join(pid.to_string()).join(name)
    }

    /// All processes that are there now.
    ///
    /// # Errors
    /// If the directory cannot be read.
    pub fn pids(&self) -> io::Result<Vec<u32>> {
        numbers_in(&self.root)
    }

    /// The threads of a process that are there now.
    ///
    /// # Errors
    /// If there is no such process.
    pub fn tids(&self, pid: u32) -> io::Result<Vec<u32>> {
        numbers_in(&self.path(pid, "task"))
    }

    /// Status of a process.
    ///
    /// # Errors
    /// If there is no such process, or its status makes no sense.
    pub fn stat(&self, pid: u32) -> io::Result<Stat> {
        let bytes = self.read(pid, "stat", SMALL)?;
        Stat::parse(&bytes).ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "not a process status"))
    }

    /// Name of a thread.
    ///
    /// # Errors
    /// If there is no such thread.
    pub fn comm(&self, pid: u32, tid: u32) -> io::Result<Comm> {
        let bytes = self.read(pid, &format!("task/{tid}/comm"), SMALL)?;
        Ok(Comm::new(bytes.strip_suffix(b"\n").unwrap_or(&bytes)))
    }

    /// The command line, at most 4 KB of it, each argument ended by a NUL. Empty for kernel threads, for zombies,
    /// and for a moment after exec.
    ///
    /// # Errors
    /// If there is no such process.
    pub fn command_line(&self, pid: u32) -> io::Result<Vec<u8>> {
        self.read(pid, "cmdline", COMMAND_LINE)
    }

    /// At most `limit` bytes of a file of a process, with as few reads as there can be.
    pub(crate) fn read(&self, pid: u32, name: &str, limit: usize) -> io::Result<Vec<u8>> {
        let mut file = File::open(self.path(pid, name))?;
        let mut bytes = vec![0; limit];
        let mut filled = 0;
        while filled < limit {
            match file.read(&mut bytes[filled..]) {
                Ok(0) => break,
                Ok(count) => filled += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        bytes.truncate(filled);
        Ok(bytes)
    }
}

/// Names in a directory that are numbers.
fn numbers_in(directory: &Path) -> io::Result<Vec<u32>> {
    let mut numbers = Vec::new();
    for entry in std::fs::read_dir(directory)? {
        if let Some(number) = entry?.file_name().to_str().and_then(|name| name.parse().ok()) {
            numbers.push(number);
        }
    }
    Ok(numbers)
}
