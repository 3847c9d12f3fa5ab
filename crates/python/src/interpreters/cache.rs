//! Facts of files, kept.

use std::collections::HashMap;
use std::fs::metadata;
use std::sync::{Arc, Mutex, PoisonError};

use processes::object_file::open_mapped_file;
use processes::{MappedRange, Proc};

use super::{FileFacts, FileKey};

/// Files that are kept. A machine that makes and runs new files all the time begins anew then.
const MOST_FILES: usize = 1 << 16;

/// What is known of files, for as long as it lives. Threads may share it.
#[derive(Debug, Default)]
pub struct Cache {
    files: Mutex<HashMap<FileKey, Arc<FileFacts>>>,
}

impl Cache {
    /// An empty one.
    pub fn new() -> Cache {
        Cache::default()
    }

    /// The facts of the file that a process has mapped; `None` if it cannot be opened. It is opened only if it is not known.
    pub fn of_mapping(&self, pid: u32, range: &MappedRange) -> Option<(FileKey, Arc<FileFacts>)> {
        // the link leads to the very file that is mapped, whatever lies under its path now
        let link = Proc::system().path(pid, &format!("map_files/{:x}-{:x}", range.start, range.end));
        if let Ok(data) = metadata(link) {
            let key = FileKey::of(&data);
            if let Some(facts) = self.get(&key) {
                return Some((key, facts));
            }
        }
        let file = open_mapped_file(pid, range).ok()?.file;
        let key = FileKey::of(&file.metadata().ok()?);
        if let Some(facts) = self.get(&key) {
            return Some((key, facts));
        }
        let facts = Arc::new(FileFacts::read(&file));
        // what was read while it was written is nothing to be kept
        if file.metadata().is_ok_and(|data| FileKey::of(&data) == key) {
            self.keep(key, &facts);
        }
        Some((key, facts))
    }

    /// How many files are known.
    pub fn len(&self) -> usize {
        self.files.lock().unwrap_or_else(PoisonError::into_inner).len()
    }

    /// Whether none is.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn get(&self, key: &FileKey) -> Option<Arc<FileFacts>> {
        self.files.lock().unwrap_or_else(PoisonError::into_inner).get(key).cloned()
    }

    fn keep(&self, key: FileKey, facts: &Arc<FileFacts>) {
        let mut files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        if files.len() >= MOST_FILES {
            files.clear();
        }
        files.insert(key, Arc::clone(facts));
    }
}
