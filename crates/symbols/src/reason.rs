//! Why something has no names, or fewer than it could.

use std::path::PathBuf;

/// Why a file or the kernel has no names, or fewer than it could. Its text is for the user.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Reason {
    /// The file could not be opened.
    #[error("could not be opened: {0}")]
    NotOpened(String),
    /// The file is open but could not be read.
    #[error("could not be read: {0}")]
    NotReadable(String),
    /// The file is not an ELF file of this kind of machine, or a damaged one.
    #[error("not a readable ELF file: {0}")]
    NotElf(&'static str),
    /// The file's size or time is another than when it was opened: offsets would mean something else.
    #[error("file changed since its process was seen")]
    Changed,
    /// The file has no symbols at all, and no separate debug file was found.
    #[error("stripped: no symbols")]
    Stripped,
    /// The file names only the functions that it exports, and no separate debug file was found.
    #[error("stripped: only exported functions have names")]
    OnlyExported,
    /// A section cannot be used.
    #[error("{section}: {problem}")]
    BadSection {
        /// Name of the section.
        section: String,
        /// What is wrong with it.
        problem: String,
    },
    /// A section is larger than what is read.
    #[error("{section}: {size} bytes are more than the limit of {limit}")]
    TooLarge {
        /// Name of the section.
        section: String,
        /// Its size in bytes.
        size: u64,
        /// The most that is read, in bytes.
        limit: u64,
    },
    /// A separate debug file was found that belongs to another build.
    #[error("debug file {} belongs to another build", .0.display())]
    OtherBuild(PathBuf),
    /// Lines and inlined functions could not be read.
    #[error("debug information cannot be used: {0}")]
    BadDebugInfo(String),
    /// Names were made to be slow to demangle: those that came later are shown as the file has them.
    #[error("names take too long to demangle: they are shown as they are")]
    SlowNames,
    /// A library gave up on the file in a way that should not happen.
    #[error("reading the file failed unexpectedly ({0})")]
    Panicked(&'static str),
    /// `/proc/kallsyms` could not be read.
    #[error("/proc/kallsyms could not be read: {0}")]
    KernelUnreadable(String),
    /// `/proc/kallsyms` gives only zeros.
    #[error(
        "the kernel hides its addresses: run as root or with CAP_SYSLOG, and see that sysctl kernel.kptr_restrict is \
         0 or 1"
    )]
    KernelHidden,
}
