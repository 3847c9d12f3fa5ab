//! The files that a process maps with execute permission.

use std::collections::HashMap;
use std::fs::File;
use std::sync::Arc;

use processes::MappedRange;
use processes::object_file::open_mapped_file;

use super::{Cache, FileFacts, FileKey};
use crate::slot::{FoundSlots, SlotRefusal};

/// Copies of a file that are looked at, at most.
const MAX_COPIES: usize = 8;

/// A file of a process.
pub(super) struct Mapped<'a> {
    pub(super) key: FileKey,
    pub(super) facts: Arc<FileFacts>,
    pid: u32,
    ranges: Vec<&'a MappedRange>,
}

/// Those of a process, in the order of addresses, each once.
pub(super) fn mapped_files<'a>(cache: &Cache, pid: u32, ranges: &'a [MappedRange]) -> Vec<Mapped<'a>> {
    let mut files: Vec<Option<Mapped<'a>>> = Vec::new();
    let mut known = HashMap::new();
    for range in ranges.iter().filter(|range| range.executable && range.kind().has_file()) {
        let index = *known.entry((range.identity, &*range.path)).or_insert_with(|| {
            let facts = cache.of_mapping(pid, range);
            files.push(facts.map(|(key, facts)| Mapped { key, facts, pid, ranges: Vec::new() }));
            files.len() - 1
        });
        if let Some(Some(mapped)) = files.get_mut(index) {
            mapped.ranges.push(range);
        }
    }
    files.into_iter().flatten().collect()
}

impl Mapped<'_> {
    /// The path as the process sees it, or a name in brackets.
    pub(super) fn path(&self) -> String {
        let path = self.ranges.first().map(|range| range.file_path().to_string_lossy().into_owned());
        path.unwrap_or_default()
    }

    /// Where it is mapped.
    pub(super) fn begin(&self) -> u64 {
        self.ranges.first().map_or(0, |range| range.start)
    }

    /// Addresses in the process less addresses in the file; several if it is mapped several times. The one by which most is
    /// mapped comes first.
    pub(super) fn biases(&self) -> Vec<u64> {
        let mut biases: Vec<(u64, u64)> = Vec::new();
        for range in &self.ranges {
            let Some(bias) = self.facts.bias(range.start, range.file_offset) else { continue };
            match biases.iter_mut().find(|(known, _)| *known == bias) {
                Some((_, bytes)) => *bytes += range.length(),
                None => biases.push((bias, range.length())),
            }
        }
        biases.sort_by_key(|(_, bytes)| std::cmp::Reverse(*bytes));
        biases.into_iter().map(|(bias, _)| bias).take(MAX_COPIES).collect()
    }

    /// Where threads' values lie by this file.
    pub(super) fn slots(&self) -> Option<&Result<FoundSlots, SlotRefusal>> {
        let open = |range: &&MappedRange| -> Option<File> { Some(open_mapped_file(self.pid, range).ok()?.file) };
        self.facts.slots(|| self.ranges.first().and_then(open))
    }
}
