//! `_Py_DebugOffsets`, which `_PyRuntime` begins with from 3.13 on: offsets as the interpreter's own build has them.
//!
//! Include/internal/pycore_runtime.h (3.13), pycore_debug_offsets.h (3.14, 3.15): a cookie of 8 bytes and words of 64 bits, in an
//! order that each minor version has of its own. Where the words lie was measured by `offsetof` on 3.13.18, 3.14.10 and
//! 3.15.2; 3.13.0 is the same.

use super::{Layout, LayoutRefusal, refusal::Reading};
use crate::{Memory, Version};

/// What it begins with.
pub const COOKIE: [u8; 8] = *b"xdebugpy";
/// Bytes of the longest.
const LONGEST: usize = 888;

/// Place of a word in 3.13, 3.14 and 3.15; 0 = not there.
type Places = [usize; 3];

const SIZES: Places = [584, 760, LONGEST];
/// These lie in the same place in all versions.
const VERSION: usize = 8;
const FREE_THREADED: usize = 16;

/// The words that speak of a field of the layout.
const FIELDS: [(&str, &str, Places); 30] = [
    ("runtime.interpreters_head", "runtime_state.size", [40, 40, 40]),
    ("interpreter.id", "interpreter_state.size", [56, 56, 56]),
    ("interpreter.next", "interpreter_state.size", [64, 64, 64]),
    ("interpreter.threads_head", "interpreter_state.size", [72, 72, 72]),
    ("thread.prev", "thread_state.size", [160, 184, 184]),
    ("thread.next", "thread_state.size", [168, 192, 192]),
    ("thread.interp", "thread_state.size", [176, 200, 200]),
    ("thread.current", "thread_state.size", [184, 208, 208]),
    ("thread.base_frame", "thread_state.size", [0, 0, 216]),
    ("thread.thread_id", "thread_state.size", [192, 216, 240]),
    ("thread.native_thread_id", "thread_state.size", [200, 224, 248]),
    ("frame.back", "interpreter_frame.size", [232, 256, 320]),
    ("frame.code", "interpreter_frame.size", [240, 264, 328]),
    ("frame.lasti", "interpreter_frame.size", [248, 272, 336]),
    ("frame.owner", "interpreter_frame.size", [264, 288, 352]),
    ("code.filename", "code_object.size", [280, 320, 384]),
    ("code.name", "code_object.size", [288, 328, 392]),
    ("code.qualname", "code_object.size", [296, 336, 400]),
    ("code.linetable", "code_object.size", [304, 344, 408]),
    ("code.firstlineno", "code_object.size", [312, 352, 416]),
    ("code.argcount", "code_object.size", [320, 360, 424]),
    ("code.code_adaptive", "code_object.size", [344, 384, 448]),
    ("object.ob_type", "pyobject.size", [360, 408, 472]),
    ("object.ob_size", "bytes_object.size", [520, 600, 696]),
    ("type.name", "type_object.size", [376, 424, 488]),
    ("type.basicsize", "type_object.size", [0, 0, 512]),
    ("text.bytes", "bytes_object.size", [528, 608, 704]),
    ("text.state", "unicode_object.size", [544, 624, 720]),
    ("text.length", "unicode_object.size", [552, 632, 728]),
    ("text.ascii", "unicode_object.size", [560, 640, 736]),
];
/// The same, where what the word says is a size; and only 3.15 has it.
const COMPACT: (&str, &str, Places) = ("text.compact", "unicode_object.size", [0, 0, 744]);

/// The words that give the sizes of structures, and what they are at most. Real ones: 346,576 (3.15.2, aarch64), 226,248,
/// 888, 88, 216, 16, 416, 40, 64 bytes.
const STRUCTURES: [(&str, Places, u64); 9] = [
    ("runtime_state.size", [24, 24, 24], 1 << 22),
    ("interpreter_state.size", [48, 48, 48], 1 << 22),
    ("thread_state.size", [152, 176, 176], 1 << 14),
    ("interpreter_frame.size", [224, 248, 312], 1 << 10),
    ("code_object.size", [272, 312, 376], 1 << 10),
    ("pyobject.size", [352, 400, 464], 1 << 8),
    ("type_object.size", [368, 416, 480], 1 << 12),
    ("bytes_object.size", [512, 592, 688], 1 << 8),
    ("unicode_object.size", [536, 616, 712], 1 << 8),
];

/// The debug offsets of a process.
struct Words {
    bytes: [u8; LONGEST],
    column: usize,
}

impl Words {
    fn word(&self, at: usize) -> u64 {
        let word = self.bytes.get(at..).and_then(|rest| rest.first_chunk::<8>());
        word.map_or(0, |bytes| u64::from_le_bytes(*bytes))
    }

    /// The word at its place in this version, if it has one.
    fn place(&self, places: Places) -> Option<u64> {
        let at = places[self.column];
        (at != 0).then(|| self.word(at))
    }

    fn size_of(&self, structure: &str) -> Option<u64> {
        STRUCTURES.iter().find(|(name, ..)| *name == structure).and_then(|(_, places, _)| self.place(*places))
    }
}

/// Compares a layout with the debug offsets of the runtime at `runtime`. Names of the offsets that both have, which
/// therefore agree; none before 3.13.
///
/// # Errors
/// If there are none, they are of another version or kind of build, or contradict themselves or the layout.
pub fn compare<M: Memory>(layout: &Layout, memory: &M, runtime: u64) -> Result<Vec<&'static str>, LayoutRefusal> {
    if layout.version.minor < 13 {
        return Ok(Vec::new());
    }
    let words = read(layout, memory, runtime)?;
    for (name, places, limit) in STRUCTURES {
        let size = words.place(places).unwrap_or(0);
        if size == 0 || size > limit || size % 8 != 0 {
            return Err(LayoutRefusal::Implausible { field: name, value: size });
        }
    }
    let mut agreed = Vec::new();
    for (field, structure, places) in FIELDS.into_iter().chain([COMPACT]) {
        let (Some(found), Some(expected)) = (words.place(places), layout.offset(field)) else { continue };
        if words.size_of(structure).is_none_or(|size| found > size) {
            return Err(LayoutRefusal::Implausible { field, value: found });
        }
        if found != u64::from(expected) {
            let expected = expected.into();
            return Err(LayoutRefusal::Disagrees {
                field,
                expected,
                found,
                source_name: "the runtime's debug offsets",
            });
        }
        agreed.push(field);
    }
    Ok(agreed)
}

fn read<M: Memory>(layout: &Layout, memory: &M, runtime: u64) -> Result<Words, LayoutRefusal> {
    let column = usize::from(layout.version.minor).saturating_sub(13).min(SIZES.len() - 1);
    let mut words = Words { bytes: [0; LONGEST], column };
    check_cookie(memory, runtime)?;
    memory.read(runtime, &mut words.bytes[..SIZES[column]]).of("debug offsets")?;
    let found = words.word(VERSION);
    let version = u32::try_from(found).ok().and_then(Version::from_hex);
    if version != Some(layout.version) {
        return Err(LayoutRefusal::DebugOffsetsVersion { found, expected: layout.version });
    }
    let free_threaded = flag(words.word(FREE_THREADED))?;
    if free_threaded != layout.free_threaded {
        return Err(LayoutRefusal::OtherBuild(free_threaded));
    }
    Ok(words)
}

/// Whether the runtime at `runtime` was built without a GIL; before 3.13 none is.
///
/// # Errors
/// If there are no debug offsets although the version must have them.
pub fn is_free_threaded<M: Memory>(version: Version, memory: &M, runtime: u64) -> Result<bool, LayoutRefusal> {
    if version.minor < 13 {
        return Ok(false);
    }
    check_cookie(memory, runtime)?;
    flag(memory.u64(runtime.wrapping_add(FREE_THREADED as u64)).of("debug offsets")?)
}

fn check_cookie<M: Memory>(memory: &M, runtime: u64) -> Result<(), LayoutRefusal> {
    let mut cookie = [0; 8];
    memory.read(runtime, &mut cookie).of("debug offsets")?;
    if cookie == COOKIE { Ok(()) } else { Err(LayoutRefusal::NoDebugOffsets { address: runtime, found: cookie }) }
}

fn flag(value: u64) -> Result<bool, LayoutRefusal> {
    match value {
        0 => Ok(false),
        1 => Ok(true),
        _ => Err(LayoutRefusal::Implausible { field: "free_threaded", value }),
    }
}

#[cfg(test)]
mod tests;
