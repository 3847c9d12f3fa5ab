//! A stretch of mapped memory.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;

use crate::FileIdentity;

/// A stretch of a process's memory and what is mapped there.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct MappedRange {
    /// First address.
    pub start: u64,
    /// First address behind it; above `start`.
    pub end: u64,
    /// Offset in the file of the byte at `start`; 0 where there is no file.
    pub file_offset: u64,
    /// PROT_EXEC.
    pub executable: bool,
    /// PROT_READ.
    pub readable: bool,
    /// The file behind it.
    pub identity: FileIdentity,
    /// The path as the kernel gives it, empty for anonymous memory. From records it is seen from the process's
    /// root, from /proc/PID/maps from the reader's. A file that was unlinked has ` (deleted)` at its end.
    pub path: Arc<OsStr>,
}

/// What kind of memory a range is.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum RangeKind {
    /// A file with a name in some file system, maybe unlinked since.
    File,
    /// A memfd: a file without a name; JIT code mostly, sometimes a library.
    Memfd,
    /// Anonymous memory: private, shared, huge pages, System V shared memory.
    Anonymous,
    /// The vDSO: an ELF image that the kernel maps.
    Vdso,
    /// Any other memory without a file: heap, stack, uprobes.
    Special,
}

/// What the kernel appends to the path of an unlinked file.
const DELETED: &[u8] = b" (deleted)";

impl MappedRange {
    /// Bytes.
    pub fn length(&self) -> u64 {
        self.end.saturating_sub(self.start)
    }

    /// Whether the byte at `address` lies in it.
    pub fn contains(&self, address: u64) -> bool {
        (self.start..self.end).contains(&address)
    }

    /// What kind of memory it is, by its path.
    pub fn kind(&self) -> RangeKind {
        RangeKind::of(self.path.as_bytes())
    }

    /// Whether the path ends like that of an unlinked file. A file may have such a name of its own.
    pub fn is_deleted(&self) -> bool {
        self.path.as_bytes().ends_with(DELETED)
    }

    /// The path without the mark of an unlinked file.
    pub fn file_path(&self) -> &OsStr {
        let bytes = self.path.as_bytes();
        OsStr::from_bytes(bytes.strip_suffix(DELETED).unwrap_or(bytes))
    }

    /// The part of it from `start` to `end`, which must lie within.
    pub(crate) fn part(&self, start: u64, end: u64) -> MappedRange {
        let skipped = start - self.start;
        let file_offset = if self.identity == FileIdentity::None { 0 } else { self.file_offset.wrapping_add(skipped) };
        MappedRange { start, end, file_offset, path: self.path.clone(), ..*self }
    }

    /// Whether `next` lies directly behind and goes on with the same memory, as the kernel would merge the two.
    pub(crate) fn continues_in(&self, next: &MappedRange) -> bool {
        self.end == next.start
            && self.executable == next.executable
            && self.readable == next.readable
            && self.identity == next.identity
            && self.path == next.path
            && (self.identity == FileIdentity::None || self.file_offset.wrapping_add(self.length()) == next.file_offset)
            && self.kind() != RangeKind::Vdso
    }
}

impl RangeKind {
    /// By the name that the kernel gives a mapping.
    fn of(path: &[u8]) -> RangeKind {
        match path {
            b"" | b"//anon" | b"/dev/zero" | b"/dev/zero (deleted)" => RangeKind::Anonymous,
            b"[vdso]" => RangeKind::Vdso,
            _ if path.starts_with(b"[anon:") || path.starts_with(b"[anon_shmem:") => RangeKind::Anonymous,
            _ if path.starts_with(b"/anon_hugepage") || path.starts_with(b"/SYSV") => RangeKind::Anonymous,
            _ if path.starts_with(b"/memfd:") => RangeKind::Memfd,
            [b'/', b'/', ..] => RangeKind::Special,
            [b'/', ..] => RangeKind::File,
            _ => RangeKind::Special,
        }
    }

    /// Whether there is a file that can be opened.
    pub fn has_file(self) -> bool {
        matches!(self, RangeKind::File | RangeKind::Memfd)
    }
}

/// Path, file offset and identity as one: without a file, there is no identity and no offset, and memory that the
/// kernel calls `//anon` in records and nothing in /proc has the same, empty path.
pub(crate) fn normalize(path: &[u8], file_offset: u64, identity: FileIdentity) -> (Arc<OsStr>, u64, FileIdentity) {
    let path = if path == b"//anon" { b"" } else { path };
    let shared = Arc::from(OsStr::from_bytes(path));
    match RangeKind::of(path).has_file() {
        true => (shared, file_offset, identity),
        // a path that was too long for the kernel's buffer: the file is there all the same
        false if path.starts_with(b"//") && identity != FileIdentity::None => (shared, file_offset, identity),
        false => (shared, 0, FileIdentity::None),
    }
}
