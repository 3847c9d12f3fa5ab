//! Names of native, kernel and JIT code.
//!
//! [`NativeNamer`] names offsets in an executable file: functions, the functions inlined into them, files and
//! lines. [`KernelNamer`] names kernel addresses. [`PerfMap`] names code that a runtime made while it ran and
//! listed in `/tmp/perf-PID.map`. What could not be named says why: [`Reason`], [`PerfMapError`].
//!
//! Everything read here may be hostile: files are read by copy, not mapped, where somebody else could truncate
//! them, decompression and names are bounded, and files below another process's root are opened so that neither
//! a symbolic link nor a FIFO leads astray.
//!
//! ```
//! use symbols::{NativeNamer, ObjectFile};
//! let file = ObjectFile::open("/proc/self/exe".as_ref())?;
//! let found = NativeNamer::new().name(&file, &[0x1000]);
//! assert_eq!(found.named.len(), 1);
//! # Ok::<(), symbols::Reason>(())
//! ```

mod contents;
mod debug_file;
mod demangle;
mod dwarf;
#[cfg(fuzzing)]
#[doc(hidden)]
pub mod fuzzing;
mod intervals;
mod kernel;
mod layout;
mod loaded;
mod mini;
mod native;
mod object_file;
mod perf_map;
mod plt;
mod reason;
mod root;
mod symtab;
mod table;

pub use demangle::{MAX_NAME, demangle};
pub use kernel::{KernelName, KernelNamer};
pub use native::{Function, Named, NamedFile, NativeNamer};
pub use object_file::ObjectFile;
pub use perf_map::{PerfMap, PerfMapError};
pub use reason::Reason;
