//! Progress of large files, on standard error.

use std::time::{Duration, Instant};

/// Nothing is said of files that take less, and not more often.
const INTERVAL: Duration = Duration::from_secs(3);

/// Says how far one file is.
pub(crate) struct Progress {
    name: String,
    all: usize,
    said: Instant,
}

impl Progress {
    /// For `all` pieces of work on the file `name`.
    pub(crate) fn new(name: &str, all: usize) -> Progress {
        Progress { name: name.to_owned(), all, said: Instant::now() }
    }

    /// `done` pieces are done.
    pub(crate) fn at(&mut self, done: usize) {
        if done.is_multiple_of(256) && self.said.elapsed() > INTERVAL {
            self.said = Instant::now();
            eprintln!("{}: {} %", self.name, done * 100 / self.all.max(1));
        }
    }
}
