//! The C library of a live process: found by what its files are.

use std::ffi::OsStr;
use std::sync::Arc;

use objects::Image;
use processes::maps::{self, MapsEnd, Wanted};
use processes::object_file::open_mapped_file;
use processes::{MAX_RANGES, MappedRange, Proc};

use super::{FoundSlots, SlotEvidence, SlotRefusal, read};

/// Where the threads of a process keep their values.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ProcessSlots {
    /// The layout, and on what it rests.
    pub found: FoundSlots,
    /// The C library's path, as the process has it.
    pub path: Arc<OsStr>,
}

/// Why it is not known where the threads of a process keep their values.
#[derive(Debug, thiserror::Error)]
pub enum ProcessSlotRefusal {
    /// Its mappings cannot be read: it is gone, has no memory, or it is not permitted.
    #[error("the mappings of process {pid} cannot be read: {end:?}")]
    Mappings {
        /// The process.
        pid: u32,
        /// How reading them ended.
        end: MapsEnd,
    },
    /// None of its files is a C library.
    #[error("no file of the process is a C library that keeps values of threads{}", list(.unopened))]
    NoLibrary {
        /// Files that could not be opened or are no executables, and why; one of them may be it.
        unopened: Vec<String>,
    },
    /// One is, but it was not understood.
    #[error("{}: {refusal}", .path.display())]
    Refused {
        /// The library's path, as the process has it.
        path: Arc<OsStr>,
        /// Why.
        refusal: SlotRefusal,
    },
    /// It has two, which keep values in different places.
    #[error("{} and {} keep values of threads in different places", .first.display(), .second.display())]
    Ambiguous {
        /// Path of the one.
        first: Arc<OsStr>,
        /// Path of the other.
        second: Arc<OsStr>,
    },
}

fn list(files: &[String]) -> String {
    match files {
        [] => String::new(),
        files => format!("; not looked at: {}", files.join(", ")),
    }
}

/// Finds the C library of a process, and where it keeps values of threads.
///
/// # Errors
/// Each reason by name.
pub fn of_process(pid: u32) -> Result<ProcessSlots, ProcessSlotRefusal> {
    let (ranges, end) = maps::read(&Proc::system(), pid, Wanted::Executable, MAX_RANGES);
    if ranges.is_empty() || !matches!(end, MapsEnd::Complete) {
        return Err(ProcessSlotRefusal::Mappings { pid, end });
    }
    let mut search = LibrarySearch::default();
    for (index, range) in ranges.iter().enumerate() {
        let is_known = ranges[..index].iter().any(|known| known.identity == range.identity);
        if range.kind().has_file() && !is_known {
            search.open(pid, range);
        }
    }
    search.result()
}

/// A search among the files of a process.
#[derive(Default)]
pub struct LibrarySearch {
    found: Vec<ProcessSlots>,
    refused: Option<(Arc<OsStr>, SlotRefusal)>,
    unopened: Vec<String>,
}

impl LibrarySearch {
    fn open(&mut self, pid: u32, range: &MappedRange) {
        match open_mapped_file(pid, range).map(|opened| Image::open(&opened.file)) {
            Ok(Ok(image)) => self.look_at(&range.path, image.bytes()),
            Ok(Err(error)) => self.unopened.push(format!("{} ({error})", range.path.display())),
            Err(error) => self.unopened.push(error.to_string()),
        }
    }

    /// Looks at a file's bytes.
    pub fn look_at(&mut self, path: &OsStr, bytes: &[u8]) {
        self.note(path, read(bytes));
    }

    /// Takes what [`read`] said of a file.
    pub fn note(&mut self, path: &OsStr, said: Result<FoundSlots, SlotRefusal>) {
        match said {
            Ok(found) => self.found.push(ProcessSlots { found, path: path.into() }),
            Err(SlotRefusal::NoLibrary) => {}
            Err(refusal) => self.refused = Some((path.into(), refusal)),
        }
    }

    /// What was found. A library that describes itself is believed before others, which may only have a function of that
    /// name.
    ///
    /// # Errors
    /// None was found, or not understood, or several differ.
    pub fn result(mut self) -> Result<ProcessSlots, ProcessSlotRefusal> {
        if self.found.iter().any(ProcessSlots::describes_itself) {
            self.found.retain(ProcessSlots::describes_itself);
        } else if let Some((path, refusal)) = self.refused {
            return Err(ProcessSlotRefusal::Refused { path, refusal });
        }
        let Some(first) = self.found.pop() else {
            return Err(ProcessSlotRefusal::NoLibrary { unopened: self.unopened });
        };
        match self.found.into_iter().find(|other| other.found.layout != first.found.layout) {
            Some(other) => Err(ProcessSlotRefusal::Ambiguous { first: first.path, second: other.path }),
            None => Ok(first),
        }
    }
}

impl ProcessSlots {
    fn describes_itself(&self) -> bool {
        matches!(self.found.evidence, SlotEvidence::DescriptorsAndCode | SlotEvidence::DescriptorsAndMeasured)
    }
}
