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
    pub library: Arc<OsStr>,
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
    #[error("process {pid} has no C library that keeps values of threads{}", list(.unopened))]
    NoLibrary {
        /// The process.
        pid: u32,
        /// Files that could not be opened or are no executables, and why; one of them may be it.
        unopened: Vec<String>,
    },
    /// One is, but it was not understood.
    #[error("{}: {refusal}", .library.display())]
    Refused {
        /// The library's path, as the process has it.
        library: Arc<OsStr>,
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
    let mut search = Search::default();
    for (index, range) in ranges.iter().enumerate() {
        let is_known = ranges[..index].iter().any(|known| known.identity == range.identity);
        if range.kind().has_file() && !is_known {
            search.look_at(pid, range);
        }
    }
    search.result(pid)
}

/// What the files of a process gave.
#[derive(Default)]
struct Search {
    found: Vec<ProcessSlots>,
    refused: Option<(Arc<OsStr>, SlotRefusal)>,
    unopened: Vec<String>,
}

impl Search {
    fn look_at(&mut self, pid: u32, range: &MappedRange) {
        let library = range.path.clone();
        let image = match open_mapped_file(pid, range).map(|opened| Image::open(&opened.file)) {
            Ok(Ok(image)) => image,
            Ok(Err(error)) => return self.unopened.push(format!("{} ({error})", library.display())),
            Err(error) => return self.unopened.push(error.to_string()),
        };
        match read(image.bytes()) {
            Ok(found) => self.found.push(ProcessSlots { found, library }),
            Err(SlotRefusal::NoLibrary) => {}
            Err(refusal) => self.refused = Some((library, refusal)),
        }
    }

    /// A library that describes itself is believed before others, which may only have a function of that name.
    fn result(mut self, pid: u32) -> Result<ProcessSlots, ProcessSlotRefusal> {
        if self.found.iter().any(ProcessSlots::describes_itself) {
            self.found.retain(ProcessSlots::describes_itself);
        } else if let Some((library, refusal)) = self.refused {
            return Err(ProcessSlotRefusal::Refused { library, refusal });
        }
        let Some(first) = self.found.pop() else {
            return Err(ProcessSlotRefusal::NoLibrary { pid, unopened: self.unopened });
        };
        match self.found.into_iter().find(|other| other.found.layout != first.found.layout) {
            Some(other) => Err(ProcessSlotRefusal::Ambiguous { first: first.library, second: other.library }),
            None => Ok(first),
        }
    }
}

impl ProcessSlots {
    fn describes_itself(&self) -> bool {
        matches!(self.found.evidence, SlotEvidence::DescriptorsAndCode | SlotEvidence::DescriptorsAndMeasured)
    }
}
