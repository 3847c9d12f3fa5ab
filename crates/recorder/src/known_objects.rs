//! Executable files of a recording: each once, whatever processes map it, with the state of its unwind table.
//!
//! A file stays open until the end, so that it can be named when its processes are gone and it was deleted.

use std::ffi::OsStr;
use std::fs::File;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use abi::process::code;
use abi::word::OBJECT_BITS;
use processes::object_file::open_mapped_file;
use processes::{BuildId, FileIdentity, MappedRange, RangeKind};
use rustc_hash::{FxHashMap, FxHashSet};
use rustix::fs::fstatfs;
use symbols::ObjectFile;

use crate::tables::Installed;

/// What makes two files one. Not the build-id: anybody can write a file with the build-id of another one.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Canonical {
    File { device: u64, inode: u64, size: u64, modified_ns: i128 },
    Unopened(FileIdentity),
}

/// The unwind table of an object.
#[derive(Debug)]
pub(crate) enum TableState {
    /// Nobody has needed it.
    Unasked,
    /// Being made.
    Asked,
    /// In place.
    Installed(Installed),
    /// There is none; why.
    None(String),
}

/// An executable file.
#[derive(Debug)]
pub(crate) struct KnownObject {
    /// Path as its first process saw it, or a name in brackets.
    pub(crate) path: String,
    /// Its build-id.
    pub(crate) build_id: Option<BuildId>,
    /// The open file; `None` if it could not be opened.
    pub(crate) file: Option<Arc<ObjectFile>>,
    /// See [`is_trusted`].
    pub(crate) trusted: bool,
    /// Its table.
    pub(crate) table: TableState,
    /// Processes that map it now.
    pub(crate) users: FxHashSet<u32>,
}

/// All of them; numbers start at 1, so that 0 is none.
pub(crate) struct KnownObjects {
    list: Vec<KnownObject>,
    canonical: FxHashMap<Canonical, u32>,
    /// By what the kernel says of a mapping: inode, or build-id and path.
    by_identity: FxHashMap<(FileIdentity, Arc<OsStr>), u32>,
    vdso: Option<u32>,
}

impl KnownObjects {
    /// None but the vDSO, whose image is read from this process: the kernel maps the same one into each.
    pub(crate) fn new() -> KnownObjects {
        let mut objects = KnownObjects {
            list: Vec::new(),
            canonical: FxHashMap::default(),
            by_identity: FxHashMap::default(),
            vdso: None,
        };
        if let Ok(file) = processes::memory::vdso_file(std::process::id()) {
            objects.vdso = objects.push("[vdso]".to_owned(), None, Some(ObjectFile::new(file, "[vdso]".into(), None)));
        }
        objects
    }

    /// The object with this number.
    pub(crate) fn get(&self, number: u32) -> Option<&KnownObject> {
        self.list.get(number.checked_sub(1)? as usize)
    }

    /// The object with this number.
    pub(crate) fn get_mut(&mut self, number: u32) -> Option<&mut KnownObject> {
        self.list.get_mut(number.checked_sub(1)? as usize)
    }

    /// All.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &KnownObject> {
        self.list.iter()
    }

    /// The object behind a range, and what lies there as a [`code`] kind. Opens the file when it is new; the process
    /// may be gone by then.
    pub(crate) fn of_range(&mut self, pid: u32, range: &MappedRange) -> (u32, u32) {
        let number = match range.kind() {
            RangeKind::File | RangeKind::Memfd => self.of_file(pid, range),
            RangeKind::Vdso => self.vdso,
            RangeKind::Anonymous | RangeKind::Special => None,
        };
        let Some(number) = number else { return (0, code::ANONYMOUS) };
        let kind = match self.get(number).map(|object| &object.table) {
            Some(TableState::Installed(_)) => code::TABLE,
            Some(TableState::Unasked | TableState::Asked) => code::PENDING,
            Some(TableState::None(_)) | None => code::NO_TABLE,
        };
        (number, kind)
    }

    fn of_file(&mut self, pid: u32, range: &MappedRange) -> Option<u32> {
        let said = (range.identity, range.path.clone());
        if let Some(number) = self.by_identity.get(&said) {
            return Some(*number);
        }
        let Ok(opened) = open_mapped_file(pid, range) else {
            let build_id = match range.identity {
                FileIdentity::BuildId(build_id) => Some(build_id),
                _ => None,
            };
            // not remembered: another process may lead to the file
            return self.known_or_new(Canonical::Unopened(range.identity), pid, range, build_id, None);
        };
        let build_id = processes::build_id::of_file(&opened.file);
        let canonical = Canonical::File {
            device: opened.device,
            inode: opened.inode,
            size: opened.size,
            modified_ns: opened.modified_ns,
        };
        let number = self.known_or_new(canonical, pid, range, build_id, Some(opened.file))?;
        let exact = matches!(range.identity, FileIdentity::Inode { .. });
        if exact || self.get(number).is_some_and(|object| object.trusted) {
            self.by_identity.insert(said, number);
        }
        Some(number)
    }

    fn known_or_new(
        &mut self,
        canonical: Canonical,
        pid: u32,
        range: &MappedRange,
        build_id: Option<BuildId>,
        file: Option<File>,
    ) -> Option<u32> {
        if let Some(number) = self.canonical.get(&canonical) {
            return Some(*number);
        }
        let path = String::from_utf8_lossy(range.file_path().as_bytes()).into_owned();
        let root = Some(PathBuf::from(format!("/proc/{pid}/root")));
        let file = file.map(|file| ObjectFile::new(file, PathBuf::from(&path), root));
        let number = self.push(path, build_id, file)?;
        self.canonical.insert(canonical, number);
        Some(number)
    }

    /// Adds an object; `None` when all numbers are used.
    fn push(&mut self, path: String, build_id: Option<BuildId>, file: Option<ObjectFile>) -> Option<u32> {
        if self.list.len() + 1 >= 1 << OBJECT_BITS {
            return None;
        }
        let table = match file {
            Some(_) => TableState::Unasked,
            None => TableState::None("the file could not be opened".to_owned()),
        };
        let trusted = file.as_ref().is_some_and(|file| is_trusted(file.file(), file.path()));
        let file = file.map(Arc::new);
        self.list.push(KnownObject { path, build_id, file, trusted, table, users: FxHashSet::default() });
        Some(self.list.len() as u32)
    }
}

/// `FUSE_SUPER_MAGIC` of include/uapi/linux/magic.h.
const FUSE_MAGIC: rustix::fs::FsWord = 0x6573_5546;

/// Whether a file is what its build-id says, as far as root can be trusted: it is root's or ours, nobody else may write it,
/// and it lies under its path in our own file system, not only in that of a container.
fn is_trusted(file: &File, path: &Path) -> bool {
    let (Ok(open), Ok(there)) = (file.metadata(), std::fs::metadata(path)) else { return false };
    let own = rustix::process::geteuid().as_raw();
    let same = (open.dev(), open.ino()) == (there.dev(), there.ino());
    // a user's own file system says what that user likes of owners
    let told_by_a_user = fstatfs(file).is_ok_and(|system| system.f_type == FUSE_MAGIC);
    same && !told_by_a_user && (open.uid() == 0 || open.uid() == own) && open.mode() & 0o022 == 0
}
