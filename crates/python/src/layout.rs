//! Where CPython keeps what leads from a thread to its frames and their names, by version.
//!
//! A [`Layout`] is measured; from 3.13 on the interpreter also says it itself ([`debug_offsets`]), and both must agree. It
//! is confirmed by what types say of their objects ([`confirm`]), and proven on the live process: by its lists of
//! interpreters and threads ([`process`]) and by the frames of a thread ([`frames`]).
//!
//! Who sees it if an offset is wrong:
//!
//! | offsets | by |
//! |---|---|
//! | `code.*`, `type.*`, `object.*`, `text.compact`, `text.bytes`; `frame.code`, `frame.back`, `frame.lasti` up to 3.9 or 3.10 | [`confirm`] |
//! | `runtime.*` | [`process::check_runtime`]; the key also by the slot that it leads to |
//! | `interpreter.*`, `thread.prev`, `thread.next`, `thread.interp` | [`process::Census`], if there are several interpreters and threads |
//! | `interpreter.threads_head`, `thread.thread_id`, `thread.native_thread_id` | [`process::check_thread_state`] |
//! | `thread.current`, `thread.cframe_current`, `thread.base_frame`, `frame.*`, `text.*` | [`frames::check_frames`] |

pub mod confirm;
pub mod debug_offsets;
pub mod frames;
mod measured;
mod naming;
pub mod process;
mod refusal;

pub use measured::{Code, Frame, Interpreter, Object, Runtime, Text, Thread, Type};
pub use refusal::LayoutRefusal;

pub use crate::lines::lasti::Lasti;

use abi::python::{NONE, Python, Slot, flags, run};
use objects::Architecture;

use crate::Version;
use crate::version::Level;

/// The minor version whose builds without a GIL are known. Later ones execute copies of the code that each thread has of its own.
const FREE_THREADED: u8 = 13;
/// Bytes that the header of an object is longer without a GIL.
const FREE_THREADED_HEADER: u32 = 16;

/// On what the interpreter runs, as far as its structures depend on it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Platform {
    /// The architecture.
    pub architecture: Architecture,
    /// The C library is musl, whose `pthread_mutex_t` has 40 bytes on aarch64, too (bits/alltypes.h).
    pub musl: bool,
    /// Built with `--disable-gil`, as [`debug_offsets::is_free_threaded`] tells.
    pub free_threaded: bool,
}

/// Offsets of a version's structures, in bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Layout {
    /// The version.
    pub version: Version,
    /// Built with `--disable-gil`.
    pub free_threaded: bool,
    /// `_PyRuntime`.
    pub runtime: Runtime,
    /// `PyInterpreterState`.
    pub interpreter: Interpreter,
    /// `PyThreadState`.
    pub thread: Thread,
    /// Frames.
    pub frame: Frame,
    /// Code objects.
    pub code: Code,
    /// Objects.
    pub object: Object,
    /// Types.
    pub types: Type,
    /// Strings and bytes objects.
    pub text: Text,
    /// What a frame notes of its current instruction.
    pub lasti: Lasti,
    /// Bits of the code object's address in a frame that are not part of it.
    pub tags: u16,
}

impl Layout {
    /// The layout of a version, from the table of those that were measured.
    ///
    /// # Errors
    /// Pre-releases, and versions that were not measured.
    pub fn measured(version: Version, platform: Platform) -> Result<Layout, LayoutRefusal> {
        if version.level != Level::Final {
            return Err(LayoutRefusal::PreRelease(version));
        }
        if version.major != 3 || !(measured::FIRST..=measured::LAST).contains(&version.minor) {
            return Err(LayoutRefusal::UnknownVersion(version));
        }
        // until 3.7.4 `_PyRuntime` had less in front of its gilstate
        if version.minor == 7 && version.micro < 4 {
            return Err(LayoutRefusal::UnknownRelease(version));
        }
        if platform.free_threaded && version.minor != FREE_THREADED {
            return Err(LayoutRefusal::FreeThreaded(version));
        }
        let column = usize::from(version.minor - measured::FIRST);
        let wide = platform.architecture == Architecture::Aarch64 && !platform.musl;
        let mut layout = Layout {
            version,
            free_threaded: platform.free_threaded,
            runtime: Runtime::measured(column, wide),
            interpreter: Interpreter::measured(column, wide),
            thread: Thread::measured(column, wide),
            frame: Frame::measured(column, wide),
            code: Code::measured(column, wide),
            object: Object::measured(column, wide),
            types: Type::measured(column, wide),
            text: Text::measured(column, wide),
            lasti: match version.minor {
                ..=9 => Lasti::ByteOffset,
                10 => Lasti::UnitIndex,
                11 | 12 => Lasti::PreviousUnit,
                _ => Lasti::InstructionPointer,
            },
            tags: if version.minor >= 14 { 3 } else { 0 },
        };
        if layout.free_threaded {
            layout.widen_headers();
        }
        Ok(layout)
    }

    /// Without a GIL all objects have 16 bytes more in front; nothing else differs in 3.13 (measured by `offsetof` on 3.13.15
    /// for both architectures, and on a live process).
    fn widen_headers(&mut self) {
        let mut visit = |_: &'static str, offset: &mut u32| *offset += FREE_THREADED_HEADER;
        self.code.each_mut(&mut visit);
        self.object.each_mut(&mut visit);
        self.types.each_mut(&mut visit);
        self.text.each_mut(&mut visit);
    }

    /// Every offset that this version has, with its name.
    pub fn offsets(&self) -> Vec<(&'static str, u32)> {
        let mut all = Vec::new();
        let mut visit = |name, value| all.push((name, value));
        self.runtime.each(&mut visit);
        self.interpreter.each(&mut visit);
        self.thread.each(&mut visit);
        self.frame.each(&mut visit);
        self.code.each(&mut visit);
        self.object.each(&mut visit);
        self.types.each(&mut visit);
        self.text.each(&mut visit);
        all
    }

    /// The offset with this name.
    pub fn offset(&self, name: &str) -> Option<u32> {
        self.offsets().into_iter().find(|(field, _)| *field == name).map(|(_, value)| value)
    }

    /// The same layout with another value of one offset, if this version has it.
    #[must_use]
    pub fn with(mut self, name: &str, value: u32) -> Layout {
        let mut visit = |field: &'static str, offset: &mut u32| {
            if field == name {
                *offset = value;
            }
        };
        self.runtime.each_mut(&mut visit);
        self.interpreter.each_mut(&mut visit);
        self.thread.each_mut(&mut visit);
        self.frame.each_mut(&mut visit);
        self.code.each_mut(&mut visit);
        self.object.each_mut(&mut visit);
        self.types.each_mut(&mut visit);
        self.text.each_mut(&mut visit);
        self
    }

    /// How a run of frames ends: an [`abi::python::run`] kind.
    pub fn run(&self) -> u16 {
        match self.version.minor {
            ..=10 => run::EVERY,
            11 => run::ENTRY,
            _ => run::SHIM,
        }
    }

    /// What the walker must know, of a process with `PyCode_Type` at this address.
    pub fn facts(&self, code_type: u64, slot: Slot) -> Python {
        let short = |offset: u32| u16::try_from(offset).unwrap_or(NONE);
        let optional = |offset: Option<u32>| offset.map_or(NONE, short);
        let is_index = matches!(self.lasti, Lasti::ByteOffset | Lasti::UnitIndex);
        Python {
            code_type,
            slot,
            thread_id: short(self.thread.thread_id),
            native_thread_id: optional(self.thread.native_thread_id),
            current: short(self.thread.current),
            cframe_current: optional(self.thread.cframe_current),
            base_frame: optional(self.thread.base_frame),
            code: short(self.frame.code),
            back: short(self.frame.back),
            lasti: short(self.frame.lasti),
            owner: optional(self.frame.owner),
            object_type: short(self.object.ob_type),
            run: self.run(),
            flags: if is_index { flags::LASTI_IS_INDEX } else { 0 },
            tags: self.tags,
            reserved: [0; 3],
        }
    }
}

#[cfg(test)]
mod tests;
