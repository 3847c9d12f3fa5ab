//! What can be wrong with a file, a table or the cache.

use std::path::PathBuf;

use crate::limits;

/// Why a file is not an [`Image`](crate::Image).
#[derive(Debug, thiserror::Error)]
pub enum ImageError {
    /// The file cannot be read or mapped.
    #[error("cannot read the executable")]
    Io(#[from] std::io::Error),
    /// A directory, device, pipe or socket.
    #[error("not a regular file")]
    NotAFile,
    /// No ELF magic.
    #[error("not an ELF file")]
    NotElf,
    /// A 32-bit file (x32 too).
    #[error("a 32-bit ELF file; only 64-bit ones are supported")]
    Bits32,
    /// A big-endian file.
    #[error("a big-endian ELF file; only little-endian ones are supported")]
    BigEndian,
    /// Code of another architecture.
    #[error("ELF machine {0}; only x86_64 (62) and aarch64 (183) are supported")]
    Machine(u16),
    /// The headers lie beyond the end of the file.
    #[error("the file ends before its {0}")]
    Truncated(&'static str),
    /// Program headers of another size than the specification's.
    #[error("program headers of {0} bytes; the specification has 56")]
    ProgramHeaderSize(u16),
    /// More program headers than the kernel would load.
    #[error("{0} program headers; the kernel loads at most {max}", max = limits::MAX_PROGRAM_HEADERS)]
    TooManyProgramHeaders(u16),
}

/// Why there is no table for an image.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    /// No segment is executable: a data file or a file of debug information.
    #[error("no executable segment")]
    NoCode,
    /// First and last executable byte are too far apart.
    #[error("executable segments span {pages} pages; at most {max} are supported", max = limits::MAX_PAGES)]
    CodeTooLarge {
        /// 4 KiB pages of the file.
        pages: u64,
    },
    /// `.eh_frame` is too large.
    #[error("{bytes} bytes of unwind information; at most {max} are supported", max = limits::MAX_FRAME_BYTES)]
    FramesTooLarge {
        /// Size of the section.
        bytes: usize,
    },
    /// Too many common information entries.
    #[error("more than {max} common information entries", max = limits::MAX_CIES)]
    TooManyCies,
    /// Too many functions.
    #[error("more than {max} frame description entries", max = limits::MAX_FDES)]
    TooManyFdes,
    /// Too many rows.
    #[error("more than {max} unwind rows", max = limits::MAX_ROWS)]
    TooManyRows,
}

/// Why the cache cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum CacheError {
    /// A file operation failed.
    #[error("cannot {action} {path}")]
    Io {
        /// What was tried.
        action: &'static str,
        /// On what.
        path: PathBuf,
        /// Why not.
        source: std::io::Error,
    },
    /// The path is a file or a symbolic link.
    #[error("{0} is not a directory")]
    NotADirectory(PathBuf),
    /// The directory belongs to somebody else, who could plant tables.
    #[error("{path} belongs to user {owner}, not to user {us}")]
    NotOurs {
        /// The directory.
        path: PathBuf,
        /// Its owner.
        owner: u32,
        /// Our effective user id.
        us: u32,
    },
    /// Others may write to the directory, and could plant tables.
    #[error("{path} may be written by others (mode {mode:o}); it should have mode 700")]
    Writable {
        /// The directory.
        path: PathBuf,
        /// Its permission bits.
        mode: u32,
    },
}
