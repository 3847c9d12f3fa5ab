//! Names of code in executable files.

use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;

use crate::loaded::Loaded;
use crate::object_file::Identity;
use crate::{ObjectFile, Reason};

/// How much memory the tables of all files may take before the oldest go, in bytes.
const MAX_KEPT: usize = 1 << 30;

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

/// Names offsets in executable files. Keeps what it read of a file for the next time, up to 1 GiB in all; dropping it
/// frees everything. Meant to be owned by one thread.
pub struct NativeNamer {
    directories: Vec<PathBuf>,
    files: HashMap<Identity, Result<Loaded, Reason>>,
    /// Oldest first.
    order: Vec<Identity>,
}

impl std::fmt::Debug for NativeNamer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("NativeNamer").field("directories", &self.directories).field("files", &self.order).finish()
    }
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
        NativeNamer { directories, files: HashMap::new(), order: Vec::new() }
    }

    /// Names the code at file offsets, one result each. For a return address the caller has taken 1 off, so that it
    /// is inside the call. If nothing has a name, [`reasons`](Self::reasons) says why.
    pub fn name(&mut self, file: &ObjectFile, offsets: &[u64]) -> Vec<Named> {
        let Ok(Ok(loaded)) = self.loaded(file) else { return vec![Named::default(); offsets.len()] };
        offsets.iter().map(|offset| name_one(loaded, *offset)).collect()
    }

    /// Why the file has no names, or fewer than it could; empty if all is well. Reads the file if that was not done.
    pub fn reasons(&mut self, file: &ObjectFile) -> Vec<Reason> {
        match self.loaded(file) {
            Ok(Ok(loaded)) => loaded.reasons.clone(),
            Ok(Err(reason)) => vec![reason.clone()],
            Err(reason) => vec![reason],
        }
    }

    fn loaded(&mut self, file: &ObjectFile) -> Result<&mut Result<Loaded, Reason>, Reason> {
        let identity = file.unchanged()?;
        if !self.files.contains_key(&identity) {
            self.make_room();
            let read = catch_unwind(AssertUnwindSafe(|| Loaded::read(file, &self.directories)));
            let read = read.unwrap_or(Err(Reason::Panicked("symbols")));
            // it may have been written to under our reading
            file.unchanged()?;
            self.files.insert(identity, read);
            self.order.push(identity);
        }
        self.files.get_mut(&identity).ok_or(Reason::Changed)
    }

    /// Drops the oldest files until the rest is within the limit.
    fn make_room(&mut self) {
        let size =
            |file: Option<&Result<Loaded, Reason>>| file.and_then(|file| file.as_ref().ok()).map_or(0, Loaded::bytes);
        let mut kept: usize = self.files.values().map(|file| size(Some(file))).sum();
        let mut oldest = 0;
        while kept > MAX_KEPT && oldest < self.order.len() {
            kept -= size(self.files.remove(&self.order[oldest]).as_ref());
            oldest += 1;
        }
        self.order.drain(..oldest);
    }
}

/// Names one offset. Debug information that fails is noted once; the symbols remain.
fn name_one(loaded: &mut Loaded, offset: u64) -> Named {
    let named = catch_unwind(AssertUnwindSafe(|| loaded.name(offset)));
    let panicked = named.is_err();
    named.unwrap_or(Err(Reason::Panicked("debug information"))).unwrap_or_else(|reason| {
        if panicked {
            loaded.debug_info = None;
        }
        if !loaded.reasons.contains(&reason) && loaded.reasons.len() < 16 {
            loaded.reasons.push(reason);
        }
        let symbol = catch_unwind(AssertUnwindSafe(|| loaded.symbol(offset)));
        Named { functions: symbol.ok().flatten().into_iter().collect() }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_namer_can_move_to_a_worker() {
        let mut namer = NativeNamer::new();
        let file = ObjectFile::open("/proc/self/exe".as_ref()).unwrap();
        assert_eq!(namer.reasons(&file), []);
        let named = std::thread::spawn(move || namer.name(&file, &[0])).join().unwrap();
        assert_eq!(named, [Named::default()]);
    }
}
