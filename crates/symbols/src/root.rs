//! Opening files below a root directory that somebody else may control.

use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, open, openat2};
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::Path;

/// A root directory.
#[derive(Debug)]
pub(crate) struct Root(OwnedFd);

impl Root {
    /// Opens a directory as a root.
    pub(crate) fn open(path: &Path) -> io::Result<Root> {
        Ok(Root(open(path, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?))
    }

    /// Opens a regular file for reading. Symbolic links in `path`, absolute ones too, stay below the root.
    pub(crate) fn open_regular(&self, path: &Path) -> io::Result<File> {
        self.open_with(path, OFlags::empty())
    }

    /// The same, but the last part of `path` must not be a symbolic link.
    pub(crate) fn open_regular_itself(&self, path: &Path) -> io::Result<File> {
        self.open_with(path, OFlags::NOFOLLOW)
    }

    fn open_with(&self, path: &Path, flags: OFlags) -> io::Result<File> {
        let resolve = ResolveFlags::IN_ROOT | ResolveFlags::NO_MAGICLINKS;
        let found = openat2(&self.0, path, OFlags::PATH | OFlags::CLOEXEC | flags, Mode::empty(), resolve)?;
        reopen(&found)
    }
}

/// Opens a regular file of this process's own root for reading.
pub(crate) fn open_regular(path: &Path) -> io::Result<File> {
    reopen(&open(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?)
}

/// Opens for reading what so far is only a place. Looking at it first opens no FIFO or device, which may block or
/// have effects.
fn reopen(found: &OwnedFd) -> io::Result<File> {
    let kind = rustix::fs::FileType::from_raw_mode(rustix::fs::fstat(found)?.st_mode);
    if !kind.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"));
    }
    let path = format!("/proc/self/fd/{}", found.as_raw_fd());
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOCTTY;
    Ok(rustix::fs::openat(CWD, path, flags, Mode::empty())?.into())
}
