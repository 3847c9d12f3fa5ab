//! Names of code in executable files.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;

use crate::demangle::Demangler;
use crate::loaded::Loaded;
use crate::{ObjectFile, Reason};

/// A function at an address.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Function {
    /// Demangled name, at most [`MAX_NAME`](crate::MAX_NAME) bytes and an ellipsis; `malloc@plt` for a PLT stub.
    pub name: String,
    /// Full path of the source file of `line`, as the debug information gives it.
    pub file: Option<String>,
    /// Source line: where the code is, or for a function that others were inlined into, where they were called;
    /// 0 = not known.
    pub line: u32,
    /// Line at which the function is declared; 0 = not known.
    pub start_line: u32,
    /// It was inlined into the one that follows.
    pub inlined: bool,
}

/// The functions at an offset: what was inlined there, innermost first, and last the function as it was compiled.
/// Empty if nothing is known.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Named {
    /// The functions.
    pub functions: Vec<Function>,
}

/// What is known of the code of a file.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct NamedFile {
    /// What was asked for, one for each offset.
    pub named: Vec<Named>,
    /// Why the file has no names, or fewer than it could; empty if all is well.
    pub reasons: Vec<Reason>,
}

/// Names offsets in executable files. It keeps nothing: what a file's names take in memory is freed when they are found.
/// Several threads can use one.
#[derive(Debug)]
pub struct NativeNamer {
    directories: Vec<PathBuf>,
    demangler: Demangler,
}

impl Default for NativeNamer {
    fn default() -> NativeNamer {
        NativeNamer::new()
    }
}

impl NativeNamer {
    /// A namer that looks for separate debug files in `/usr/lib/debug`.
    pub fn new() -> NativeNamer {
        NativeNamer::with_debug_directories(vec!["/usr/lib/debug".into()])
    }

    /// A namer that looks for separate debug files in these directories, below the root directory of the process and
    /// then below our own.
    pub fn with_debug_directories(directories: Vec<PathBuf>) -> NativeNamer {
        NativeNamer { directories, demangler: Demangler::default() }
    }

    /// Names the code at file offsets. For a return address the caller has taken 1 off, so that it is inside the call.
    pub fn name(&self, file: &ObjectFile, offsets: &[u64]) -> NamedFile {
        self.read(file, offsets).map_or_else(
            |reason| NamedFile { named: vec![Named::default(); offsets.len()], reasons: vec![reason] },
            |mut loaded| NamedFile {
                named: offsets.iter().map(|offset| name_one(&mut loaded, *offset, &self.demangler)).collect(),
                reasons: loaded.reasons,
            },
        )
    }

    fn read(&self, file: &ObjectFile, offsets: &[u64]) -> Result<Loaded, Reason> {
        file.unchanged()?;
        let read = catch_unwind(AssertUnwindSafe(|| Loaded::read(file, offsets, &self.directories)));
        // it may have been written to under our reading
        file.unchanged()?;
        read.unwrap_or(Err(Reason::Panicked("symbols")))
    }
}

/// Names one offset. Debug information that fails is noted once; the symbols remain.
fn name_one(loaded: &mut Loaded, offset: u64, demangler: &Demangler) -> Named {
    let named = catch_unwind(AssertUnwindSafe(|| loaded.name(offset, demangler)));
    let panicked = named.is_err();
    let named = named.unwrap_or(Err(Reason::Panicked("debug information"))).unwrap_or_else(|reason| {
        if panicked {
            loaded.debug_info = None;
        }
        note(loaded, reason);
        let symbol = catch_unwind(AssertUnwindSafe(|| loaded.symbol(offset, demangler)));
        Named { functions: symbol.ok().flatten().into_iter().collect() }
    });
    if demangler.is_exhausted() && !named.functions.is_empty() {
        note(loaded, Reason::SlowNames);
    }
    named
}

/// Notes a reason once, and not too many.
fn note(loaded: &mut Loaded, reason: Reason) {
    if !loaded.reasons.contains(&reason) && loaded.reasons.len() < 16 {
        loaded.reasons.push(reason);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_share_a_namer() {
        let namer = NativeNamer::new();
        let file = ObjectFile::open("/proc/self/exe".as_ref()).unwrap();
        let expected = NamedFile { named: vec![Named::default()], reasons: Vec::new() };
        std::thread::scope(|scope| {
            let threads = [0; 3].map(|_| scope.spawn(|| namer.name(&file, &[0])));
            assert!(threads.into_iter().all(|thread| thread.join().unwrap() == expected));
        });
    }
}
