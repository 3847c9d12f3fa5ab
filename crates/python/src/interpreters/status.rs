//! What came of it, in a line.

use std::fmt;

use super::Found;
use crate::code::{KeyOf, Location, Place};
use crate::layout::LayoutRefusal;
use crate::{Ready, Refusal, Version};

/// Bytes from the beginning of a `Py_tss_t` to its key (Include/pythread.h). The table of a version has the beginning.
const KEY_IN_TSS: u64 = 4;

/// `python 3.12.1 libpython3.12.so.1.0: key 0 at _PyRuntime+0x608 [code, table, live]`, or why it is refused.
impl fmt::Display for Found {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.path.rsplit('/').next().unwrap_or_default();
        let runtime = if self.runtime == super::CPYTHON { "python" } else { self.runtime };
        formatter.write_str(runtime)?;
        if let Some(version) = self.version {
            let free_threaded = match &self.result {
                Ok(found) => found.ready.layout.free_threaded,
                Err(refusal) => matches!(refusal, Refusal::Layout(LayoutRefusal::FreeThreaded(_))),
            };
            write!(formatter, " {}", Named { version, free_threaded })?;
        }
        write!(formatter, " {}: ", name.escape_debug())?;
        match &self.result {
            Ok(found) => match &found.eval_loop {
                Ok(_) => write!(formatter, "{} [{}]", PlaceOf(&found.ready), found.ready.sources().join(", ")),
                Err(refusal) => write!(formatter, "refused: {refusal}"),
            },
            Err(refusal) => write!(formatter, "refused: {refusal}"),
        }
    }
}

struct Named {
    version: Version,
    free_threaded: bool,
}

impl fmt::Display for Named {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = if self.free_threaded { "t" } else { "" };
        write!(formatter, "{}{kind}", self.version)
    }
}

/// Where states are found: `key 0 at _PyRuntime+0x608`.
struct PlaceOf<'a>(&'a Ready);

impl fmt::Display for PlaceOf<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (at, of) = match self.0.place {
            Place::Key { at, of } => (at, of),
            Place::ThreadLocal(variable) => {
                return write!(formatter, "thread-local variable at {:#x} of the file's block", variable.in_block);
            }
        };
        if let Some(key) = self.0.key {
            write!(formatter, "key {key} at ")?;
        }
        let before = if of == KeyOf::Tss { KEY_IN_TSS } else { 0 };
        match at {
            Location::File { in_runtime: Some(offset), .. } | Location::Runtime { offset } => {
                write!(formatter, "_PyRuntime+{:#x}", offset.wrapping_sub(before))
            }
            Location::File { address, in_runtime: None } => write!(formatter, "{:#x}", address.wrapping_sub(before)),
        }
    }
}

impl Ready {
    /// What says where states are kept, once it is proven: the code; the table of the version; the live threads.
    pub fn sources(&self) -> Vec<&'static str> {
        let table = self.place_in_table.then_some("table");
        ["code"].into_iter().chain(table).chain(["live"]).collect()
    }
}
