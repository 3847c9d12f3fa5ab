//! Finished tables on disk, one file each, named by what its executable is known by ([`CacheKey`]).
//!
//! The directory is ours alone, but nothing in it is trusted: a file that is damaged, cut off, of another version or
//! made up is as good as none.

mod format;
mod key;
#[cfg(fuzzing)]
pub(crate) use format::{decode_body, encode_body};
pub use key::CacheKey;

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, SystemTime};

use crate::error::CacheError;
use crate::table::UnwindTable;

/// A directory of tables.
#[derive(Debug)]
pub struct Cache {
    directory: PathBuf,
}

/// What [`Cache::prune`] did.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Pruned {
    /// Files that were removed.
    pub removed: usize,
    /// Bytes of the tables that are left.
    pub kept_bytes: u64,
}

const TABLE_EXTENSION: &str = "table";
const UNFINISHED_EXTENSION: &str = "unfinished";
/// A file that was not finished within this time belongs to a process that died.
const UNFINISHED_AGE: Duration = Duration::from_secs(3600);

/// `/var/cache/wholestack` for root; for others `$XDG_CACHE_HOME/wholestack`, or `~/.cache/wholestack` where that is not
/// an absolute path. `None` if there is no home directory either.
pub fn default_directory() -> Option<PathBuf> {
    directory_for(user(), std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from), std::env::home_dir())
}

fn directory_for(user: u32, xdg: Option<PathBuf>, home: Option<PathBuf>) -> Option<PathBuf> {
    if user == 0 {
        return Some(PathBuf::from("/var/cache/wholestack"));
    }
    let home = home.filter(|path| path.is_absolute()).map(|path| path.join(".cache"));
    // the XDG Base Directory Specification has relative paths ignored
    xdg.filter(|path| path.is_absolute()).or(home).map(|path| path.join("wholestack"))
}

/// The effective user id.
fn user() -> u32 {
    // SAFETY: takes nothing, changes nothing, cannot fail.
    unsafe { libc::geteuid() }
}

impl Cache {
    /// Opens a directory, or makes it with mode 700 (and those above it).
    ///
    /// # Errors
    /// A [`CacheError`] if it cannot be made, is no directory, belongs to another user, or may be written by others.
    pub fn open(directory: &Path) -> Result<Cache, CacheError> {
        Cache::open_as(directory, user())
    }

    fn open_as(directory: &Path, us: u32) -> Result<Cache, CacheError> {
        let path = directory.to_path_buf();
        let failed = |action| move |source| CacheError::Io { action, path: directory.to_path_buf(), source };
        DirBuilder::new().recursive(true).mode(0o700).create(directory).map_err(failed("create"))?;
        let metadata = fs::symlink_metadata(directory).map_err(failed("inspect"))?;
        if !metadata.is_dir() {
            return Err(CacheError::NotADirectory(path));
        }
        if metadata.uid() != us {
            return Err(CacheError::NotOurs { path, owner: metadata.uid(), us });
        }
        if metadata.mode() & 0o022 != 0 {
            return Err(CacheError::Writable { path, mode: metadata.mode() & 0o7777 });
        }
        Ok(Cache { directory: path })
    }

    fn path(&self, key: &CacheKey) -> PathBuf {
        self.directory.join(format!("{}.{TABLE_EXTENSION}", key.file_name()))
    }

    /// The table for a key, if there is a sound one; it then counts as the newest.
    pub fn load(&self, key: &CacheKey) -> Option<UnwindTable> {
        let path = self.path(key);
        let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK;
        let mut file = OpenOptions::new().read(true).custom_flags(flags).open(path).ok()?;
        let metadata = file.metadata().ok()?;
        if !metadata.is_file() || metadata.len() > format::MAX_BYTES {
            return None;
        }
        let mut bytes = Vec::with_capacity(metadata.len() as usize);
        Read::by_ref(&mut file).take(format::MAX_BYTES).read_to_end(&mut bytes).ok()?;
        let table = format::decode(key, &bytes)?;
        // only the order of removal depends on it; a read-only directory still serves
        let _ = file.set_modified(SystemTime::now());
        Some(table)
    }

    /// Keeps a table. Readers see the old file or the new one, never a part.
    ///
    /// # Errors
    /// [`CacheError::Io`]; nothing is left behind then.
    pub fn store(&self, key: &CacheKey, table: &UnwindTable) -> Result<(), CacheError> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let unfinished = self.directory.join(format!("{}-{number}.{UNFINISHED_EXTENSION}", std::process::id()));
        let path = self.path(key);
        let failed = |action, path: &Path| {
            let path = path.to_path_buf();
            move |source| CacheError::Io { action, path, source }
        };
        let stored = write_new(&unfinished, &format::encode(key, table))
            .map_err(failed("write", &unfinished))
            .and_then(|()| fs::rename(&unfinished, &path).map_err(failed("rename to", &path)));
        if stored.is_err() {
            // the first failure is the one to report
            let _ = fs::remove_file(&unfinished);
        }
        stored
    }

    /// Removes the tables that were not used for longest until at most `max_bytes` are left, and what processes that
    /// died did not finish.
    ///
    /// # Errors
    /// [`CacheError::Io`] if the directory cannot be read. A file that cannot be removed is counted as kept.
    pub fn prune(&self, max_bytes: u64) -> Result<Pruned, CacheError> {
        let mut tables = Vec::new();
        let mut pruned = Pruned::default();
        let failed = |source| CacheError::Io { action: "list", path: self.directory.clone(), source };
        for entry in fs::read_dir(&self.directory).map_err(failed)? {
            let path = entry.map_err(failed)?.path();
            // a file that another process has removed meanwhile is none of ours
            let Ok(metadata) = fs::symlink_metadata(&path) else { continue };
            let used = metadata.modified().unwrap_or(SystemTime::UNIX_EPOCH);
            match path.extension().and_then(|e| e.to_str()) {
                Some(TABLE_EXTENSION) => tables.push((used, metadata.len(), path)),
                Some(UNFINISHED_EXTENSION) if used.elapsed().is_ok_and(|age| age > UNFINISHED_AGE) => {
                    pruned.removed += usize::from(fs::remove_file(path).is_ok());
                }
                _ => {}
            }
        }
        tables.sort();
        pruned.kept_bytes = tables.iter().map(|(_, size, _)| size).sum();
        for (_, size, path) in tables {
            if pruned.kept_bytes <= max_bytes {
                break;
            }
            if fs::remove_file(path).is_ok() {
                pruned.removed += 1;
                pruned.kept_bytes -= size;
            }
        }
        Ok(pruned)
    }
}

fn write_new(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file: File = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    file.write_all(bytes)
}

#[cfg(test)]
mod tests;
