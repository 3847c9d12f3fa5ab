//! From a pthread key to its slot: what `pthread_getspecific` does, done from outside.
//!
//! Where a C library keeps a thread's values is read from the library's own file, by two sources that must agree:
//!
//! * glibc describes itself to debuggers (`_thread_db_*` symbols of libc.so.6; before 2.34 of libpthread.so.0; in static
//!   programs only in the symbol table, if there is one), see [`Descriptors`].
//! * The code of `pthread_getspecific` is run on symbols for every key (`slot::code`). musl describes nothing: there the
//!   code of `pthread_setspecific` must say the same. glibc without descriptors must be as it was measured.
//!
//! What was measured stands in for code that is not understood. No source is believed against another.

mod code;
mod descriptors;
mod file;
mod measured;
mod process;
#[cfg(test)]
mod tests;

use objects::Architecture;

use crate::memory::{Memory, Unreadable};
use crate::snapshot::Snapshot;
use code::Function;
pub use code::Misread;
pub use descriptors::Descriptors;
use file::LibraryFile;
pub use process::{LibrarySearch, ProcessSlotRefusal, ProcessSlots, of_process};

/// Where a thread's values lie, for all keys. Plain numbers, so that BPF can have it.
///
/// The value of a key lies at `inline + key * stride` from the thread pointer if the key is less than `inline_keys`. Else
/// `blocks + key / keys_per_block * 8` from the thread pointer lies a pointer to a block, in which the value is at
/// `key % keys_per_block * stride + data`; no block, no value.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct SlotLayout {
    /// Bytes from the thread pointer to the value of key 0; 0 if `inline_keys` is 0.
    pub inline: i32,
    /// Bytes from the thread pointer to the pointer to the first block.
    pub blocks: i32,
    /// Bytes from a key to the next.
    pub stride: u16,
    /// Bytes from the beginning of a block to the first value.
    pub data: u16,
    /// Keys whose values lie at a fixed distance from the thread pointer.
    pub inline_keys: u16,
    /// Keys of a block; not 0.
    pub keys_per_block: u16,
    /// How many keys there can be.
    pub keys: u16,
}

/// A key that no thread can have a value of.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("key {key} is out of range: this C library has {keys}")]
pub struct KeyOutOfRange {
    /// The key.
    pub key: u32,
    /// How many there are.
    pub keys: u16,
}

/// Where a value lies.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SlotPlace {
    /// At this address.
    At(u64),
    /// `offset` bytes behind the pointer that lies at this address; nowhere if it is null.
    Behind {
        /// Address of the pointer.
        pointer: u64,
        /// Bytes.
        offset: u64,
    },
}

/// Why a key's value cannot be read from a thread.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum SlotProblem {
    /// The key makes no sense.
    #[error(transparent)]
    Key(#[from] KeyOutOfRange),
    /// The slot or the pointer to its block.
    #[error(transparent)]
    Memory(#[from] Unreadable),
}

impl SlotLayout {
    /// Where the value of a key lies for a thread.
    ///
    /// # Errors
    /// If there can be no such key.
    pub fn place(&self, thread_pointer: u64, key: u32) -> Result<SlotPlace, KeyOutOfRange> {
        let out_of_range = KeyOutOfRange { key, keys: self.keys };
        let key = u16::try_from(key).ok().filter(|key| *key < self.keys).ok_or(out_of_range)?;
        let from_pointer =
            |offset: i32, more: u64| thread_pointer.wrapping_add_signed(offset.into()).wrapping_add(more);
        let stride = u64::from(self.stride);
        if key < self.inline_keys {
            return Ok(SlotPlace::At(from_pointer(self.inline, u64::from(key) * stride)));
        }
        let block = key.checked_div(self.keys_per_block).ok_or(out_of_range)?;
        let index = key.checked_rem(self.keys_per_block).ok_or(out_of_range)?;
        Ok(SlotPlace::Behind {
            pointer: from_pointer(self.blocks, u64::from(block) * 8),
            offset: u64::from(index) * stride + u64::from(self.data),
        })
    }

    /// The address of a key's slot; `None` if the thread has no slot for it, as it never had a value.
    ///
    /// # Errors
    /// If there can be no such key, or the pointer to the block cannot be read.
    pub fn address(
        &self,
        memory: &(impl Memory + ?Sized),
        thread_pointer: u64,
        key: u32,
    ) -> Result<Option<u64>, SlotProblem> {
        Ok(match self.place(thread_pointer, key)? {
            SlotPlace::At(address) => Some(address),
            SlotPlace::Behind { pointer, offset } => match memory.u64(pointer)? {
                0 => None,
                block => Some(block.wrapping_add(offset)),
            },
        })
    }

    /// The value of a key; 0 if the thread has none.
    ///
    /// glibc hides values of a key that was deleted and given out again; this does not.
    ///
    /// # Errors
    /// As [`SlotLayout::address`], and if the slot cannot be read.
    pub fn value(&self, memory: &(impl Memory + ?Sized), thread_pointer: u64, key: u32) -> Result<u64, SlotProblem> {
        match self.address(memory, thread_pointer, key)? {
            Some(address) => Ok(memory.u64(address)?),
            None => Ok(0),
        }
    }

    /// All keys of which a thread has a value that is not 0, and those values; what cannot be read is left out. A few reads,
    /// where one for each key would take a thousand.
    pub fn values(&self, memory: &impl Memory, thread_pointer: u64) -> Vec<(u32, u64)> {
        let memory = Snapshot::new(memory);
        let values = (0..u32::from(self.keys)).map(|key| (key, self.value(&memory, thread_pointer, key)));
        values.filter_map(|(key, value)| Some((key, value.ok()?))).filter(|(_, value)| *value != 0).collect()
    }
}

/// On what a layout rests.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum SlotEvidence {
    /// glibc's descriptors and its code say the same.
    DescriptorsAndCode,
    /// glibc's descriptors say what was measured; the code was not there or not understood.
    DescriptorsAndMeasured,
    /// The code of a glibc without descriptors says what was measured.
    CodeAndMeasured,
    /// The code that reads values and the code that writes them say the same: musl.
    GetAndSet,
    /// The code that reads values says what was measured of musl; that which writes them was not there or not understood.
    GetAndMeasured,
}

/// A layout, and on what it rests.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FoundSlots {
    /// The layout.
    pub layout: SlotLayout,
    /// Its sources.
    pub evidence: SlotEvidence,
}

/// Why a file does not tell where values lie.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum SlotRefusal {
    /// It has neither descriptors nor `pthread_getspecific`.
    #[error("this file is no C library that keeps values of threads")]
    NoLibrary,
    /// glibc's descriptors are incomplete or make no sense.
    #[error("the descriptors (_thread_db_*) of this glibc make no sense")]
    Descriptors,
    /// Two sources say different things.
    #[error("the descriptors of this glibc say {described:?}, its pthread_getspecific says {read:?}")]
    Contradiction {
        /// By the descriptors.
        described: SlotLayout,
        /// By the code.
        read: SlotLayout,
    },
    /// The two functions say different things.
    #[error("pthread_getspecific says {read:?}, pthread_setspecific says {written:?}")]
    GetAndSetDiffer {
        /// By the code that reads.
        read: SlotLayout,
        /// By the code that writes.
        written: SlotLayout,
    },
    /// The only source that was understood says something that was not measured, so it would need a second one.
    #[error("{said:?} is no layout that is known, and nothing confirms it: {why}")]
    Unconfirmed {
        /// By the descriptors, or by the code that reads values.
        said: SlotLayout,
        /// Why the code that reads values, or that which writes them, does not confirm it.
        why: CodeProblem,
    },
    /// The only source was not understood.
    #[error("{0}")]
    Code(#[from] CodeProblem),
    /// The code was understood, but no library is known that keeps values so.
    #[error("pthread_getspecific says {read:?}, which is no layout of a C library that is known")]
    UnknownLibrary {
        /// By the code.
        read: SlotLayout,
    },
}

/// Why the code of `pthread_getspecific` or `pthread_setspecific` says nothing.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum CodeProblem {
    /// The file has no such symbol.
    #[error("it has no symbol of the function")]
    NoSymbol,
    /// What stood in the way.
    #[error("{function} at {address:#x} is not understood: {misread}; it begins with {bytes:02x?}")]
    Misread {
        /// Its name.
        function: &'static str,
        /// Where it is, as the file has it.
        address: u64,
        /// The step that failed.
        misread: Misread,
        /// Its first bytes.
        bytes: Vec<u8>,
    },
}

/// The functions' names; C11's come last, since glibc's only jump to the others.
const GET: [&str; 3] = ["pthread_getspecific", "__pthread_getspecific", "tss_get"];
const SET: [&str; 3] = ["pthread_setspecific", "__pthread_setspecific", "tss_set"];

/// Reads from a file's bytes where threads' values lie: libc.so.6, libpthread.so.0, musl's libc, or a static program.
///
/// # Errors
/// Each reason by name.
pub fn read(bytes: &[u8]) -> Result<FoundSlots, SlotRefusal> {
    read_with(bytes, None)
}

/// The same, where another source tells the address of `pthread_getspecific` within the file: static programs without a symbol
/// table, whose callers are known.
///
/// # Errors
/// Each reason by name.
pub fn read_at(bytes: &[u8], entry: u64) -> Result<FoundSlots, SlotRefusal> {
    read_with(bytes, Some(entry))
}

fn read_with(bytes: &[u8], entry: Option<u64>) -> Result<FoundSlots, SlotRefusal> {
    let file = LibraryFile::parse(bytes).ok_or(SlotRefusal::NoLibrary)?;
    let first = |names| file.addresses(names).into_iter().flatten().next();
    let sources = Sources {
        architecture: file.architecture,
        descriptors: descriptors::read(&file),
        get: read_code(&file, Function::Get, entry.or_else(|| first(&GET))),
    };
    sources.decide(|| read_code(&file, Function::Set, first(&SET)))
}

fn read_code(file: &LibraryFile, function: Function, entry: Option<u64>) -> Result<SlotLayout, CodeProblem> {
    let address = entry.ok_or(CodeProblem::NoSymbol)?;
    code::layout(file, file.architecture, function, address).map_err(|misread| CodeProblem::Misread {
        function: function.name(),
        address,
        misread,
        bytes: file.beginning(address).to_vec(),
    })
}

/// What the sources say.
struct Sources {
    architecture: Architecture,
    descriptors: Option<Option<Descriptors>>,
    get: Result<SlotLayout, CodeProblem>,
}

impl Sources {
    /// Weighs them; `set` reads the code that writes values, if it is needed.
    fn decide(self, set: impl FnOnce() -> Result<SlotLayout, CodeProblem>) -> Result<FoundSlots, SlotRefusal> {
        let (layout, evidence) = match (self.descriptors, self.get) {
            (None, Err(CodeProblem::NoSymbol)) => return Err(SlotRefusal::NoLibrary),
            (None, get) => without_descriptors(get?, self.architecture, set)?,
            (Some(descriptors), get) => {
                with_descriptors(descriptors.ok_or(SlotRefusal::Descriptors)?, get, self.architecture)?
            }
        };
        Ok(FoundSlots { layout, evidence })
    }
}

fn with_descriptors(
    descriptors: Descriptors,
    get: Result<SlotLayout, CodeProblem>,
    architecture: Architecture,
) -> Result<(SlotLayout, SlotEvidence), SlotRefusal> {
    let described = descriptors.layout(architecture).ok_or(SlotRefusal::Descriptors)?;
    match get {
        Ok(read) if read == described => Ok((described, SlotEvidence::DescriptorsAndCode)),
        Ok(read) => Err(SlotRefusal::Contradiction { described, read }),
        Err(_) if descriptors.are_as_measured(architecture) => Ok((described, SlotEvidence::DescriptorsAndMeasured)),
        Err(why) => Err(SlotRefusal::Unconfirmed { said: described, why }),
    }
}

fn without_descriptors(
    read: SlotLayout,
    architecture: Architecture,
    set: impl FnOnce() -> Result<SlotLayout, CodeProblem>,
) -> Result<(SlotLayout, SlotEvidence), SlotRefusal> {
    if read.inline_keys > 0 {
        return match measured::is_glibc(&read, architecture) {
            true => Ok((read, SlotEvidence::CodeAndMeasured)),
            false => Err(SlotRefusal::UnknownLibrary { read }),
        };
    }
    match set() {
        Ok(written) if written == read => Ok((read, SlotEvidence::GetAndSet)),
        Ok(written) => Err(SlotRefusal::GetAndSetDiffer { read, written }),
        Err(_) if measured::is_musl(&read, architecture) => Ok((read, SlotEvidence::GetAndMeasured)),
        Err(why) => Err(SlotRefusal::Unconfirmed { said: read, why }),
    }
}
