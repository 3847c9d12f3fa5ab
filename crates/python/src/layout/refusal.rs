//! Why a layout is not known, or not believed.

use crate::{Unreadable, Version};

/// A layout is refused.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum LayoutRefusal {
    /// Structures change between pre-releases.
    #[error("{0} is a pre-release: its structures were not measured")]
    PreRelease(Version),
    /// Older than 3.6, newer than 3.15, or another major version.
    #[error("the structures of {0} were not measured")]
    UnknownVersion(Version),
    /// A release whose `_PyRuntime` differs from that of the other releases of its minor version.
    #[error("the structures of {0} differ from those of the later releases that were measured")]
    UnknownRelease(Version),
    /// 3.13 and later begin `_PyRuntime` with `_Py_DebugOffsets`.
    #[error("no debug offsets at {address:#x}: found {found:02x?} instead of \"xdebugpy\"")]
    NoDebugOffsets {
        /// Address of `_PyRuntime`.
        address: u64,
        /// What lies there.
        found: [u8; 8],
    },
    /// They are of another version.
    #[error("the debug offsets are of version {found:#x}, not {expected}")]
    DebugOffsetsVersion {
        /// `PY_VERSION_HEX`, as they have it.
        found: u64,
        /// The version as it was found otherwise.
        expected: Version,
    },
    /// `--disable-gil`, in a version that is known with a GIL only.
    #[error("a free-threaded build of {0}: its structures were not measured")]
    FreeThreaded(Version),
    /// The layout is that of the other kind of build.
    #[error("the debug offsets are those of a build {} GIL", if *.0 { "without" } else { "with" })]
    OtherBuild(bool),
    /// The debug offsets contradict themselves.
    #[error("implausible debug offset {field}: {value}")]
    Implausible {
        /// Name in the debug offsets.
        field: &'static str,
        /// What they say.
        value: u64,
    },
    /// Two sources contradict each other.
    #[error("{field}: measured {expected}, but {source_name} says {found}")]
    Disagrees {
        /// Name of the field in the layout.
        field: &'static str,
        /// The layout's.
        expected: u64,
        /// The other's.
        found: u64,
        /// Who the other is.
        source_name: &'static str,
    },
    /// An offset that must be confirmed is not mentioned by the type.
    #[error("{field}: {type_name} has no member {member}")]
    NoMember {
        /// Name of the field in the layout.
        field: &'static str,
        /// The type.
        type_name: &'static str,
        /// What was looked for.
        member: &'static str,
    },
    /// Objects begin with something else: a build with `Py_TRACE_REFS`, or without a GIL.
    #[error("objects have {0} bytes before their reference count (a debug or a free-threaded build)")]
    ObjectHeader(u32),
    /// What should be a certain type is none.
    #[error("{type_name} at {address:#x} is not that type")]
    NotTheType {
        /// The type's name.
        type_name: &'static str,
        /// Where it should be.
        address: u64,
    },
    /// The runtime is not initialised, or not yet: try again.
    #[error("the interpreter is not initialised yet")]
    NotInitialised,
    /// A field of a live process does not hold what it must.
    #[error("{field} holds {found:#x}: {expected}")]
    Live {
        /// Name of the field in the layout.
        field: &'static str,
        /// What lies there.
        found: u64,
        /// What should.
        expected: &'static str,
    },
    /// A list of the live process has no end.
    #[error("more than {limit} {what}, or a list in a circle")]
    Endless {
        /// Of what.
        what: &'static str,
        /// Entries that were read.
        limit: usize,
    },
    /// The chain of frames cannot be walked.
    #[error("after {frames} frames: {}", fault.text())]
    Chain {
        /// Frames that were walked.
        frames: usize,
        /// Why not further.
        fault: abi::python::Fault,
    },
    /// The chain of frames ends in the middle of a run.
    #[error("the chain of {frames} frames ends without the end of a run")]
    ChainEnd {
        /// Its length.
        frames: usize,
    },
    /// Memory that must be readable is not.
    #[error("{what}: {error}")]
    Memory {
        /// What was read.
        what: &'static str,
        /// The failure.
        error: Unreadable,
    },
}

/// Names what was read.
pub(super) trait Reading<T> {
    fn of(self, what: &'static str) -> Result<T, LayoutRefusal>;
}

impl<T> Reading<T> for Result<T, Unreadable> {
    fn of(self, what: &'static str) -> Result<T, LayoutRefusal> {
        self.map_err(|error| LayoutRefusal::Memory { what, error })
    }
}
