//! What is known of a file that processes map.

use std::fs::{File, Metadata};
use std::os::unix::fs::MetadataExt;
use std::sync::OnceLock;

use objects::{Image, Segment, load_bias};
use processes::{BuildId, build_id};

use crate::facts::Implementation;
use crate::slot::{self, FoundSlots, SlotRefusal};

/// A state of a file, as `stat` has it. A file that is replaced under the same path has another inode, one that is written another
/// change time, which no system call sets to anything but the present.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct FileKey {
    /// Device.
    pub device: u64,
    /// Inode number.
    pub inode: u64,
    /// Bytes.
    pub size: u64,
    /// Last change of the content, nanoseconds since the epoch.
    pub modified_ns: i128,
    /// Last change of content, owner, mode or name, nanoseconds since the epoch.
    pub changed_ns: i128,
}

impl FileKey {
    pub(super) fn of(data: &Metadata) -> FileKey {
        let time = |seconds: i64, nanoseconds: i64| i128::from(seconds) * 1_000_000_000 + i128::from(nanoseconds);
        FileKey {
            device: data.dev(),
            inode: data.ino(),
            size: data.size(),
            modified_ns: time(data.mtime(), data.mtime_nsec()),
            changed_ns: time(data.ctime(), data.ctime_nsec()),
        }
    }
}

/// What a file is. Most are no Python, which is all that is kept of them.
#[derive(Debug, Default)]
pub struct FileFacts {
    python: Option<PythonPart>,
    slots: OnceLock<Result<FoundSlots, SlotRefusal>>,
}

#[derive(Debug)]
struct PythonPart {
    implementation: Implementation,
    build_id: Option<BuildId>,
    segments: Vec<Segment>,
}

impl FileFacts {
    /// Reads a file.
    pub(super) fn read(file: &File) -> FileFacts {
        let part = || {
            let image = Image::open(file).ok()?;
            let implementation = Implementation::of(image.bytes())?;
            Some(PythonPart { implementation, build_id: build_id::of_file(file), segments: image.segments().to_vec() })
        };
        FileFacts { python: part(), slots: OnceLock::new() }
    }

    /// Which Python it is.
    pub fn implementation(&self) -> Option<&Implementation> {
        self.python.as_ref().map(|part| &part.implementation)
    }

    /// The build-id of a Python.
    pub fn build_id(&self) -> Option<BuildId> {
        self.python.as_ref()?.build_id
    }

    /// What is added to a Python's addresses by a mapping of it.
    pub(super) fn bias(&self, begin: u64, file_offset: u64) -> Option<u64> {
        load_bias(&self.python.as_ref()?.segments, begin, file_offset)
    }

    /// Where threads' values lie, if the file is the C library, or a static program. `open` opens the file if that is not known
    /// yet; `None` if it has to and cannot.
    pub(super) fn slots(&self, open: impl FnOnce() -> Option<File>) -> Option<&Result<FoundSlots, SlotRefusal>> {
        if let Some(known) = self.slots.get() {
            return Some(known);
        }
        let said = match Image::open(&open()?) {
            Ok(image) => slot::read(image.bytes()),
            Err(_) => Err(SlotRefusal::NoLibrary),
        };
        Some(self.slots.get_or_init(|| said))
    }
}
