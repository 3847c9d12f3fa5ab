//! Threads that make unwind tables, so that reading the sampler's output never waits for one.

use std::sync::Arc;
use std::thread::JoinHandle;

use crossbeam_channel::{Receiver, Sender, unbounded};
use objects::{BuildError, Cache, CacheKey, Image, UnwindTable};
use rustix::event::{EventfdFlags, eventfd};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use symbols::ObjectFile;

/// Tables on disk at most, in bytes; a whole system has some hundred MB.
const CACHE_BYTES: u64 = 512 << 20;

/// A table to be made.
struct Job {
    object: u32,
    file: Arc<ObjectFile>,
    cached: bool,
}

/// A table that was asked for.
pub(crate) struct Built {
    /// The object.
    pub(crate) object: u32,
    /// Its table, or why there is none.
    pub(crate) table: Result<UnwindTable, String>,
}

/// The threads and their queues.
pub(crate) struct Builders {
    jobs: Option<Sender<Job>>,
    results: Receiver<Built>,
    /// Readable when there are results.
    ready: Arc<OwnedFd>,
    threads: Vec<JoinHandle<()>>,
    waiting: usize,
}

impl Builders {
    /// Starts `threads` threads that share the cache of tables on disk, if there is one.
    pub(crate) fn start(threads: usize, cache: Option<Cache>) -> std::io::Result<Builders> {
        let (jobs, todo) = unbounded::<Job>();
        let (done, results) = unbounded();
        let ready = Arc::new(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?);
        let cache = cache.map(Arc::new);
        let mut handles = Vec::new();
        for number in 0..threads.max(1) {
            let (todo, done, ready, cache) = (todo.clone(), done.clone(), ready.clone(), cache.clone());
            let work = move || {
                hurry();
                if let Some(cache) = cache.as_deref().filter(|_| number == 0) {
                    // what cannot be removed now may be the next time
                    let _ = cache.prune(CACHE_BYTES);
                }
                for job in todo {
                    let table = make(&job.file, cache.as_deref().filter(|_| job.cached));
                    if done.send(Built { object: job.object, table }).is_err() {
                        break;
                    }
                    // the counter cannot overflow: one is added per table
                    let _ = rustix::io::write(&*ready, &1u64.to_ne_bytes());
                }
            };
            handles.push(std::thread::Builder::new().name(format!("tables-{number}")).spawn(work)?);
        }
        Ok(Builders { jobs: Some(jobs), results, ready, threads: handles, waiting: 0 })
    }

    /// Asks for a table. One may be `cached`, and taken from the cache, if the file is what its build-id says and only
    /// those can write it who can write the cache.
    pub(crate) fn ask(&mut self, object: u32, file: Arc<ObjectFile>, cached: bool) {
        if let Some(jobs) = &self.jobs
            && jobs.send(Job { object, file, cached }).is_ok()
        {
            self.waiting += 1;
        }
    }

    /// Becomes readable when there are results.
    pub(crate) fn ready(&self) -> BorrowedFd<'_> {
        self.ready.as_fd()
    }

    /// Whether tables are being made.
    pub(crate) fn busy(&self) -> bool {
        self.waiting > 0
    }

    /// The next finished table.
    pub(crate) fn take(&mut self) -> Option<Built> {
        let built = self.results.try_recv().ok()?;
        self.waiting -= 1;
        Some(built)
    }

    /// Resets the signal that there are results; call it before [`Builders::take`].
    pub(crate) fn acknowledge(&self) {
        let mut count = [0; 8];
        let _ = rustix::io::read(&*self.ready, &mut count);
    }
}

impl Drop for Builders {
    fn drop(&mut self) {
        self.jobs = None;
        self.threads.drain(..).for_each(|thread| drop(thread.join()));
    }
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
