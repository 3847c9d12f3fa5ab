//! Whether a file is a CPython, and which version: by what it defines and what its own code says.

use std::fmt;

use super::PythonFile;
use crate::code::texts;
use crate::version::Version;

/// Beginning of `_Py_DebugOffsets` (Include/internal/pycore_debug_offsets.h, 3.13).
const COOKIE: &[u8; 8] = b"xdebugpy";

/// What is told of a file that is a CPython.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Identity {
    /// Its version, or why it is not known.
    pub version: Result<Version, VersionRefusal>,
    /// Each source of the version, with what it says.
    pub evidence: Vec<VersionEvidence>,
    /// Address of `_PyRuntime`, if it has one (from 3.7 on) and the symbol was not stripped.
    pub runtime: Option<u64>,
}

/// What a version was read from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum VersionSource {
    /// The constant `Py_Version` (from 3.11 on).
    Constant,
    /// The version word of `_Py_DebugOffsets` at `_PyRuntime` (from 3.13 on).
    DebugOffsets,
    /// The text that `Py_GetVersion` formats.
    Text,
}

/// A source of the version.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct VersionEvidence {
    /// Which.
    pub source: VersionSource,
    /// Where it is, before relocation.
    pub address: u64,
    /// What it says.
    pub version: Version,
}

/// Why a version is not known.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum VersionRefusal {
    /// No source says anything.
    #[error("neither Py_Version, nor debug offsets, nor the code of Py_GetVersion tells the version")]
    Silent,
    /// Two sources say different things.
    #[error("{0} and {1} contradict each other")]
    Contradiction(VersionEvidence, VersionEvidence),
}

impl fmt::Display for VersionEvidence {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let source = match self.source {
            VersionSource::Constant => "Py_Version",
            VersionSource::DebugOffsets => "the debug offsets",
            VersionSource::Text => "the text of Py_GetVersion",
        };
        write!(formatter, "{source} at {:#x}: {}", self.address, self.version)
    }
}

impl PythonFile<'_> {
    /// Whether the file is a CPython (from 2.7 on), and which. A file that only imports CPython's functions, and PyPy, whose
    /// C API has names of its own, are none.
    pub fn identify(&self) -> Option<Identity> {
        let code = |name| self.symbol(name).filter(|symbol| self.is_code(symbol.address));
        let runtime = self.symbol("_PyRuntime").map(|symbol| symbol.address);
        let runs_code = code("_PyEval_EvalFrameDefault").or_else(|| code("PyEval_EvalFrameEx")).is_some();
        let tells_version = code("Py_GetVersion");
        if !runs_code || tells_version.is_none() || self.symbol("PyPy_GetVersion").is_some() {
            return None;
        }
        let mut evidence = Vec::new();
        let mut note = |source, address, version: Option<Version>| {
            evidence.extend(version.map(|version| VersionEvidence { source, address, version }));
        };
        if let Some(symbol) = self.symbol("Py_Version") {
            note(VersionSource::Constant, symbol.address, self.constant(symbol.address, 8).and_then(from_word));
        }
        if let Some(address) = runtime {
            let cookie = self.number(address, 8) == Some(u64::from_le_bytes(*COOKIE));
            let word = || self.number(address.checked_add(8)?, 8).and_then(from_word);
            note(VersionSource::DebugOffsets, address, if cookie { word() } else { None });
        }
        for (address, text) in tells_version.map_or_else(Vec::new, |symbol| texts(self, symbol.address)) {
            note(VersionSource::Text, address, whole_version(text));
        }
        let version = match evidence.split_first() {
            None => Err(VersionRefusal::Silent),
            Some((first, others)) => match others.iter().find(|other| other.version != first.version) {
                Some(other) => Err(VersionRefusal::Contradiction(*first, *other)),
                None => Ok(first.version),
            },
        };
        Some(Identity { version, evidence, runtime })
    }
}

fn from_word(word: u64) -> Option<Version> {
    Version::from_hex(u32::try_from(word).ok()?)
}

/// The version, if a text is one (`PY_VERSION`) and nothing else.
fn whole_version(text: &str) -> Option<Version> {
    let word = text.strip_suffix('+').unwrap_or(text);
    Version::parse(text).filter(|_| !word.contains([' ', '+']))
}
