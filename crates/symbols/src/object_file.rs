//! An executable file that stays open.

use std::fs::File;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::Reason;

/// An executable file, opened while its process lived. It may be deleted since, or lie in another mount namespace:
/// only the open file is read.
#[derive(Debug)]
pub struct ObjectFile {
    pub(crate) file: File,
    pub(crate) path: PathBuf,
    pub(crate) root: Option<PathBuf>,
    opened_as: Option<Identity>,
}

/// Tells one state of one file from every other. Not the change time: deleting a file changes it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Identity {
    device: u64,
    inode: u64,
    size: u64,
    modified: (i64, i64),
}

impl Identity {
    /// The identity that an open file has now.
    pub(crate) fn of(file: &File) -> std::io::Result<Identity> {
        let data = file.metadata()?;
        Ok(Identity {
            device: data.dev(),
            inode: data.ino(),
            size: data.size(),
            modified: (data.mtime(), data.mtime_nsec()),
        })
    }
}

impl ObjectFile {
    /// Takes an open file. `path` is where its process sees it; `root` is that process's root directory
    /// (`/proc/PID/root`), below which debug files are looked for too; `None` if it is that of this process.
    pub fn new(file: File, path: PathBuf, root: Option<PathBuf>) -> ObjectFile {
        let opened_as = Identity::of(&file).ok();
        ObjectFile { file, path, root, opened_as }
    }

    /// Opens a file of this process's own root.
    ///
    /// # Errors
    /// [`Reason::NotOpened`]: no such file, no right to read it, or not a regular file.
    pub fn open(path: &Path) -> Result<ObjectFile, Reason> {
        let file = crate::root::open_regular(path).map_err(|error| Reason::NotOpened(error.to_string()))?;
        Ok(ObjectFile::new(file, path.to_owned(), None))
    }

    /// The open file.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// Where its process sees the file; for display.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The identity, if it is still the one that the file was opened with.
    pub(crate) fn unchanged(&self) -> Result<Identity, Reason> {
        let now = Identity::of(&self.file).map_err(|error| Reason::NotReadable(error.to_string()))?;
        if self.opened_as.is_some_and(|then| then != now) { Err(Reason::Changed) } else { Ok(now) }
    }
}
