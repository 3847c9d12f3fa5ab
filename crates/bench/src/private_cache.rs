//! A cache of unwind tables of our own, so that no figure depends on what this machine's cache has.
//!
//! wholestack keeps root's tables in a fixed place. There, in a mount namespace that only this process and its children
//! are in, lies a directory of ours.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use rustix::mount::{MountPropagationFlags, mount_bind, mount_change};
use rustix::thread::{UnshareFlags, unshare_unsafe};

/// The cache that profilers started from here use.
#[derive(Clone, Debug)]
pub struct PrivateCache {
    directory: PathBuf,
}

impl PrivateCache {
    /// Puts an empty directory under `parent` in the place of the cache. Call it while there is one thread.
    ///
    /// # Errors
    /// If the kernel refuses, as it does without root's rights.
    pub fn install(parent: &Path) -> Result<PrivateCache> {
        let directory = parent.join("cache");
        fs::create_dir(&directory)?;
        let place = objects::default_directory().context("there is no place for a cache")?;
        fs::create_dir_all(&place).with_context(|| place.display().to_string())?;
        // SAFETY: no other thread shares the file system information that is given up, and no descriptor is.
        unsafe { unshare_unsafe(UnshareFlags::NEWNS) }.context("no mount namespace of our own")?;
        let private = MountPropagationFlags::PRIVATE | MountPropagationFlags::REC;
        mount_change("/", private).context("the mount namespace stays shared")?;
        mount_bind(&directory, &place).with_context(|| format!("cannot mount over {}", place.display()))?;
        // what objects::Cache asks of its directory
        objects::Cache::open(&place).context("the cache in its place")?;
        Ok(PrivateCache { directory })
    }

    /// Removes all tables.
    ///
    /// # Errors
    /// If one cannot be removed.
    pub fn clear(&self) -> Result<()> {
        for entry in fs::read_dir(&self.directory)? {
            fs::remove_file(entry?.path())?;
        }
        ensure!(self.bytes()? == 0, "the cache is not empty");
        Ok(())
    }

    /// Bytes of all tables.
    ///
    /// # Errors
    /// If the directory cannot be read.
    pub fn bytes(&self) -> Result<u64> {
        let sizes = fs::read_dir(&self.directory)?.map(|entry| Ok(entry?.metadata()?.len()));
        sizes.sum()
    }
}
