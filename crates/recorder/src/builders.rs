//! Threads that make unwind tables.

use std::sync::Arc;

use objects::{BuildError, Cache, CacheKey, Image, UnwindTable};
use symbols::ObjectFile;

use crate::workers::Workers;

/// Tables on disk at most, in bytes; a whole system has some hundred MB.
const CACHE_BYTES: u64 = 512 << 20;

/// A table to be made.
pub(crate) struct Job {
    /// The object.
    pub(crate) object: u32,
    /// Its file.
    pub(crate) file: Arc<ObjectFile>,
    /// It may be taken from the cache: the file is what its build-id says, and only those can write it who can write the cache.
    pub(crate) cached: bool,
}

/// A table that was asked for.
pub(crate) struct Built {
    /// The object.
    pub(crate) object: u32,
    /// Its table, or why there is none.
    pub(crate) table: Result<UnwindTable, String>,
}

/// Makes tables.
pub(crate) type Builders = Workers<Job, Built>;

/// Starts `threads` threads that share the cache of tables on disk, if there is one.
pub(crate) fn start(threads: usize, cache: Option<Cache>) -> std::io::Result<Builders> {
    let cache = cache.map(Arc::new);
    Workers::start("tables", threads, move |number| {
        hurry();
        let cache = cache.clone();
        if let Some(cache) = cache.as_deref().filter(|_| number == 0) {
            // what cannot be removed now may be the next time
            let _ = cache.prune(CACHE_BYTES);
        }
        move |job: Job| {
            let table = make(&job.file, cache.as_deref().filter(|_| job.cached));
            Built { object: job.object, table }
        }
    })
}

/// A table takes a fraction of a second of CPU time, and samples wait for it: on a machine that is busy with what is
/// recorded it goes first. Without the right to that it waits its turn.
fn hurry() {
    const NICE: i32 = -10;
    let _ = rustix::process::setpriority_process(Some(rustix::thread::gettid()), NICE);
}

fn make(file: &ObjectFile, cache: Option<&Cache>) -> Result<UnwindTable, String> {
    let image = Image::open(file.file()).map_err(|error| error.to_string())?;
    let key = cache.and_then(|_| CacheKey::of_file(&image, file.file()));
    if let (Some(cache), Some(key)) = (cache, &key)
        && let Some(table) = cache.load(key)
    {
        return Ok(table);
    }
    let table = UnwindTable::build(&image).map_err(|error: BuildError| error.to_string())?;
    if let (Some(cache), Some(key)) = (cache, &key)
        // the file may have been written to while it was read
        && CacheKey::of_file(&image, file.file()).as_ref() == Some(key)
    {
        // a cache that cannot be written costs time at the next start, nothing now
        let _ = cache.store(key, &table);
    }
    Ok(table)
}
