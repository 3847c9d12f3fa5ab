//! A file that is being written: without a name until it is whole, so that nothing is left of it however the writing ends,
//! also when the program is killed.

use std::fs::{File, Permissions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, Mode, OFlags, linkat, openat};
use tempfile::NamedTempFile;

/// Mode of an ordinary file, before the umask.
const MODE: u32 = 0o666;

/// A file that is being written.
pub(crate) enum Unfinished {
    /// Without a name (`O_TMPFILE`).
    Unnamed { file: File, directory: PathBuf },
    /// With a name that nobody expects, where the file system knows no other way (NFS, FUSE, overlays of old kernels).
    Named(NamedTempFile),
}

impl Unfinished {
    /// A new file in a directory.
    pub(crate) fn new(directory: &Path) -> io::Result<Unfinished> {
        let flags = OFlags::TMPFILE | OFlags::WRONLY | OFlags::CLOEXEC;
        match openat(CWD, directory, flags, Mode::from_raw_mode(MODE)) {
            Ok(file) => Ok(Unfinished::Unnamed { file: file.into(), directory: directory.to_owned() }),
            // whatever is wrong with the directory is said by the second attempt
            Err(_) => named().tempfile_in(directory).map(Unfinished::Named),
        }
    }

    /// To be written to.
    pub(crate) fn file(&self) -> &File {
        match self {
            Unfinished::Unnamed { file, .. } => file,
            Unfinished::Named(named) => named.as_file(),
        }
    }

    /// Puts it in the place of what is at the path, which is in the directory.
    pub(crate) fn persist(self, path: &Path) -> io::Result<()> {
        match self {
            Unfinished::Named(named) => named.persist(path).map(drop).map_err(|error| error.error),
            Unfinished::Unnamed { file, directory } => {
                let itself = format!("/proc/self/fd/{}", file.as_raw_fd());
                match linkat(CWD, &itself, CWD, path, AtFlags::SYMLINK_FOLLOW) {
                    Ok(()) => Ok(()),
                    // a link does not replace; a file that is moved does, and is whole under either name
                    Err(rustix::io::Errno::EXIST) => {
                        let link = |name: &Path| Ok(linkat(CWD, &itself, CWD, name, AtFlags::SYMLINK_FOLLOW)?);
                        let whole = named().make_in(&directory, link)?;
                        whole.persist(path).map(drop).map_err(|error| error.error)
                    }
                    Err(error) => Err(error.into()),
                }
            }
        }
    }
}

fn named() -> tempfile::Builder<'static, 'static> {
    let mut builder = tempfile::Builder::new();
    builder.prefix(".wholestack-").suffix(".tmp").permissions(Permissions::from_mode(MODE));
    builder
}
