//! Naming of executable files on several threads.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use symbols::{NamedFile, NativeNamer, ObjectFile};

/// Threads at most: each has a file's symbols and debug information in memory.
const MAX_THREADS: usize = 4;
/// Files from this size on, in bytes, are read one at a time, so that the memory taken is that of the largest one and
/// not that of several.
const LARGE: u64 = 32 << 20;

/// Offsets that are wanted of a file.
pub(crate) struct Job<'a> {
    pub(crate) file: &'a ObjectFile,
    pub(crate) offsets: &'a [u64],
}

/// Names the offsets of each job, in the order of the jobs.
pub(crate) fn name_all(jobs: &[Job<'_>]) -> Vec<NamedFile> {
    let size = |job: &Job<'_>| job.file.file().metadata().map_or(0, |data| data.len());
    let mut order: Vec<(u64, usize)> = jobs.iter().map(size).zip(0..).collect();
    // what takes longest first, so that nobody waits for it at the end
    order.sort_by_key(|(size, _)| std::cmp::Reverse(*size));
    let (large, small) = order.split_at(order.partition_point(|(size, _)| *size >= LARGE));
    let (large, small) = (Queue::new(large), Queue::new(small));
    let found: Vec<OnceLock<NamedFile>> = jobs.iter().map(|_| OnceLock::new()).collect();
    let namer = NativeNamer::new();
    let work = |queue: &Queue<'_>| {
        while let Some(index) = queue.take() {
            let named = namer.name(jobs[index].file, jobs[index].offsets);
            // nobody else has this index
            let _ = found[index].set(named);
        }
    };
    let threads = thread::available_parallelism().map_or(1, usize::from).min(MAX_THREADS).min(jobs.len());
    thread::scope(|scope| {
        for _ in 1..threads {
            // without another thread, this one does all
            let _ = thread::Builder::new().name("names".to_owned()).spawn_scoped(scope, || work(&small));
        }
        work(&large);
        work(&small);
    });
    found.into_iter().map(|named| named.into_inner().unwrap_or_default()).collect()
}

/// Jobs that threads take, each once.
struct Queue<'a> {
    jobs: &'a [(u64, usize)],
    next: AtomicUsize,
}

impl<'a> Queue<'a> {
    fn new(jobs: &'a [(u64, usize)]) -> Queue<'a> {
        Queue { jobs, next: AtomicUsize::new(0) }
    }

    /// The index of a job.
    fn take(&self) -> Option<usize> {
        self.jobs.get(self.next.fetch_add(1, Ordering::Relaxed)).map(|(_, index)| *index)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Among many jobs of one file, each gets what it asked for.
    #[test]
    fn results_are_in_the_order_of_jobs() {
        let own = ObjectFile::open("/proc/self/exe".as_ref()).expect("can be opened");
        assert!(name_all(&[]).is_empty());
        let size = std::fs::metadata("/proc/self/exe").expect("is there").len();
        let offsets: Vec<u64> = (0..40).map(|index| index * size / 40).collect();
        let jobs: Vec<Job<'_>> = (0..40).map(|index| Job { file: &own, offsets: &offsets[..index] }).collect();
        let found = name_all(&jobs);
        let all = NativeNamer::new().name(&own, &offsets).named;
        assert!(all.iter().any(|named| !named.functions.is_empty()));
        assert!(found.iter().enumerate().all(|(index, found)| found.named == all[..index]));
    }
}
