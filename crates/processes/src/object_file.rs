//! Opening the file behind a mapping, and only that file.
//!
//! Three ways, best first: the kernel's own link to the mapped file (also for files that were deleted, replaced or are
//! not visible from here), the path within the process's root, the path within our root. A path may lead anywhere, so
//! a file found by it is believed only if its inode or build-id is that of the mapping.
//!
//! Files are first opened with `O_PATH`, which has no effect on what they are, and then for reading if they are
//! regular: a device or a FIFO that a process puts in the way is never opened. What cannot be avoided is a file system
//! that does not answer (FUSE, NFS): open files where nobody waits for it.

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use rustix::fs::{CWD, FileType, Mode, OFlags, Stat, fstat, major, minor, openat};

use crate::maps::{self, Wanted};
use crate::{BuildId, FileIdentity, MAX_RANGES, MappedRange, Proc, build_id};

/// How a file was reached.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum How {
    /// /proc/PID/map_files.
    MapFiles,
    /// The mapping's path within /proc/PID/root.
    Root,
    /// The mapping's path within our own root.
    OwnRoot,
}

/// An open file that is the one that was mapped.
#[derive(Debug)]
pub struct OpenedFile {
    /// Open for reading.
    pub file: File,
    /// How it was reached.
    pub how: How,
    /// Device, as `stat` has it.
    pub device: u64,
    /// Inode number, as `stat` has it.
    pub inode: u64,
    /// Bytes.
    pub size: u64,
    /// Last change of the content, nanoseconds since the epoch.
    pub modified_ns: i128,
}

/// Why a mapped file could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenFileError {
    /// There is no file behind the mapping.
    #[error("no file is mapped at {start:#x}")]
    NoFile {
        /// First address of the mapping.
        start: u64,
    },
    /// None of the ways led to the file.
    #[error(
        "cannot open {path:?}, mapped by process {pid}: {map_files} (map_files), {root} (its root), {own_root} (our root)"
    )]
    NotFound {
        /// The process.
        pid: u32,
        /// The path of the mapping.
        path: PathBuf,
        /// Why not through /proc/PID/map_files.
        map_files: WayError,
        /// Why not within the process's root.
        root: WayError,
        /// Why not within our root.
        own_root: WayError,
    },
}

/// Why one way did not lead to the file.
#[derive(Debug, thiserror::Error)]
pub enum WayError {
    /// The kernel's error.
    #[error(transparent)]
    Os(#[from] io::Error),
    /// CAP_SYS_PTRACE for other users' processes; CAP_CHECKPOINT_RESTORE (Linux 5.9) or CAP_SYS_ADMIN for map_files.
    #[error("not permitted")]
    NotPermitted,
    /// Nothing is there: the process or the file is gone.
    #[error("not there")]
    Missing,
    /// A device, FIFO, directory.
    #[error("not a regular file")]
    NotRegular,
    /// Another file has this name now.
    #[error("another file")]
    OtherFile,
    /// The path is not absolute.
    #[error("no path")]
    NoPath,
}

/// Opens the file that process `pid` has mapped at `range`, also if the process is gone, as long as its path leads to
/// the same file.
///
/// # Errors
/// If there is no file, or none of the ways leads to it; each with its reason.
pub fn open_mapped_file(pid: u32, range: &MappedRange) -> Result<OpenedFile, OpenFileError> {
    open_mapped_file_in(&Proc::system(), pid, range)
}

/// [`open_mapped_file`] with another /proc.
///
/// # Errors
/// As there.
pub fn open_mapped_file_in(proc: &Proc, pid: u32, range: &MappedRange) -> Result<OpenedFile, OpenFileError> {
    if range.identity == FileIdentity::None {
        return Err(OpenFileError::NoFile { start: range.start });
    }
    let map_files = match by_map_files(proc, pid, range) {
        Ok(opened) => return Ok(opened),
        Err(error) => error,
    };
    let root = match by_path(proc.path(pid, "root"), range, How::Root) {
        Ok(opened) => return Ok(opened),
        Err(error) => error,
    };
    let own_root = match by_path(PathBuf::from("/"), range, How::OwnRoot) {
        Ok(opened) => return Ok(opened),
        Err(error) => error,
    };
    Err(OpenFileError::NotFound { pid, path: PathBuf::from(&range.path), map_files, root, own_root })
}

/// Through the kernel's link, whose name is that of the whole mapping as the kernel has it.
fn by_map_files(proc: &Proc, pid: u32, range: &MappedRange) -> Result<OpenedFile, WayError> {
    let link = |start: u64, end: u64| proc.path(pid, &format!("map_files/{start:x}-{end:x}"));
    let exact = open_regular(link(range.start, range.end)).and_then(|(file, stat)| {
        if !agrees(&file, &stat, range) {
            return Err(WayError::OtherFile);
        }
        Ok(opened(file, &stat, How::MapFiles))
    });
    if !matches!(exact, Err(WayError::Missing | WayError::OtherFile)) {
        return exact;
    }
    // The mapping may be split or joined otherwise than the range is, or have another inode number in /proc than in
    // stat; ask the kernel what is there now.
    let (now, _) = maps::read(proc, pid, Wanted::Executable, MAX_RANGES);
    let now = now.iter().find(|now| now.contains(range.start)).ok_or(WayError::Missing)?;
    let (file, stat) = open_regular(link(now.start, now.end))?;
    let same = match now.identity.same_file(&range.identity) {
        Some(same) => same,
        None => agrees(&file, &stat, range),
    };
    if same { Ok(opened(file, &stat, How::MapFiles)) } else { Err(WayError::OtherFile) }
}

/// By the path in the mapping, from `root` on.
fn by_path(root: PathBuf, range: &MappedRange, how: How) -> Result<OpenedFile, WayError> {
    let mut result = Err(WayError::NoPath);
    for path in [range.file_path(), &*range.path] {
        let Some(relative) = path.as_bytes().strip_prefix(b"/") else { return Err(WayError::NoPath) };
        result = open_regular(root.join(OsStr::from_bytes(relative))).and_then(|(file, stat)| {
            if agrees(&file, &stat, range) { Ok(opened(file, &stat, how)) } else { Err(WayError::OtherFile) }
        });
        if result.is_ok() || !range.is_deleted() {
            break;
        }
    }
    result
}

/// Opens for reading if it is a regular file; has no effect on anything else.
fn open_regular(path: PathBuf) -> Result<(File, Stat), WayError> {
    let place = openat(CWD, &path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty()).map_err(way_error)?;
    let stat = fstat(&place).map_err(way_error)?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
        return Err(WayError::NotRegular);
    }
    let reopen = format!("/proc/self/fd/{}", place.as_raw_fd());
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
    let file: OwnedFd = openat(CWD, reopen, flags, Mode::empty()).map_err(way_error)?;
    Ok((File::from(file), stat))
}

fn way_error(error: rustix::io::Errno) -> WayError {
    use rustix::io::Errno;
    match error {
        Errno::ACCESS | Errno::PERM => WayError::NotPermitted,
        Errno::NOENT | Errno::SRCH | Errno::NOTDIR => WayError::Missing,
        error => WayError::Os(error.into()),
    }
}

/// Whether the file is the one that is mapped.
fn agrees(file: &File, stat: &Stat, range: &MappedRange) -> bool {
    match range.identity {
        FileIdentity::BuildId(expected) => build_id::of_file(file) == Some(expected),
        // The device is not compared: overlayfs and btrfs give stat another one than the mapping has. The inode
        // number under the very path of the mapping is enough.
        FileIdentity::Inode { inode, .. } => stat.st_ino == inode,
        FileIdentity::None => false,
    }
}

fn opened(file: File, stat: &Stat, how: How) -> OpenedFile {
    OpenedFile {
        file,
        how,
        device: stat.st_dev,
        inode: stat.st_ino,
        size: u64::try_from(stat.st_size).unwrap_or(0),
        modified_ns: i128::from(stat.st_mtime) * 1_000_000_000 + i128::from(stat.st_mtime_nsec),
    }
}

impl OpenedFile {
    /// Major and minor number of the device, as `stat` has them.
    pub fn device_numbers(&self) -> (u32, u32) {
        (major(self.device), minor(self.device))
    }

    /// The build-id in the file.
    pub fn build_id(&self) -> Option<BuildId> {
        build_id::of_file(&self.file)
    }
}
