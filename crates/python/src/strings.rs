//! `str` and `bytes` objects: their types are checked, their lengths bounded, their characters decoded.
//!
//! A `str` holds code points in the narrowest of three widths, behind its header (*compact*) or where a pointer says. The latter are
//! instances of subclasses of `str`, which file names may be, and up to 3.11 also what the C API made without knowing its
//! characters: until such a string is first looked at, it holds `wchar_t` only. Source: Include/cpython/unicodeobject.h of
//! 3.6 to 3.15.

use std::fmt;

use crate::{Memory, Unreadable};

/// Characters of a string that are read; what follows is cut off.
pub const MAX_CHARACTERS: u64 = 4096;
/// Classes on the way from a subclass of `str` or `bytes` to these.
const MAX_BASES: usize = 64;
/// No object is larger: user space of 52 bits, the most that Linux gives.
const MAX_OBJECT_SIZE: u64 = 1 << 52;
/// Bytes of a `wchar_t` on Linux.
const WCHAR_SIZE: u64 = 4;
/// What stands for a lone surrogate, which UTF-8 cannot hold. Names of files that are not UTF-8 have them.
const REPLACEMENT: char = char::REPLACEMENT_CHARACTER;

/// Where the fields of `str` and `bytes` objects and of their types lie, in bytes from the object's address.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct StringLayout {
    /// Address of `PyUnicode_Type`; where it is not known, a type must say itself that its instances are strings.
    pub str_type: Option<u64>,
    /// Address of `PyBytes_Type`, likewise.
    pub bytes_type: Option<u64>,
    /// `ob_type` of any object.
    pub ob_type: u64,
    /// `tp_flags` of a type.
    pub tp_flags: u64,
    /// `tp_base` of a type.
    pub tp_base: u64,
    /// `length`, in characters.
    pub length: u64,
    /// `state`, 4 bytes.
    pub state: u64,
    /// Bits below `kind` in `state`: 2, in free-threaded builds from 3.14 on 8.
    pub kind_shift: u32,
    /// Size of `PyASCIIObject`, behind which compact ASCII characters lie.
    pub ascii_data: u64,
    /// Size of `PyCompactUnicodeObject`, behind which other compact characters lie.
    pub compact_data: u64,
    /// The pointer to characters that are not compact.
    pub data: u64,
    /// Of strings that only hold `wchar_t` yet; there are none from 3.12 on.
    pub wide: Option<WideLayout>,
    /// `ob_size` of `bytes`.
    pub bytes_size: u64,
    /// `ob_sval`.
    pub bytes_data: u64,
}

/// Where a `str` of 3.6 to 3.11 keeps its `wchar_t`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WideLayout {
    /// The pointer `wstr`.
    pub wstr: u64,
    /// `wstr_length`, in `wchar_t`.
    pub wstr_length: u64,
}

/// What a string says. Shown with an ellipsis at its end if it was cut.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Text {
    /// At most [`MAX_CHARACTERS`].
    pub text: String,
    /// Whether there was more.
    pub is_cut: bool,
}

impl fmt::Display for Text {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.text)?;
        formatter.write_str(if self.is_cut { "…" } else { "" })
    }
}

/// What bytes say.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Bytes {
    /// At most as many as were asked for.
    pub bytes: Vec<u8>,
    /// Whether there were more.
    pub is_cut: bool,
}

/// What should be a `str` or `bytes` object is none.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum GarbledString {
    /// A null pointer stands in its place, or in that of its characters.
    #[error("a null pointer")]
    Null,
    /// Part of it, or of its type, is not in memory.
    #[error(transparent)]
    Unreadable(#[from] Unreadable),
    /// It is of another type.
    #[error("an object of the type at {found:#x}")]
    Type {
        /// Address of that type.
        found: u64,
    },
    /// Its state names no width of characters, or contradicts itself.
    #[error("a string in the impossible state {state:#x}")]
    State {
        /// The state.
        state: u32,
    },
    /// It claims to be larger than user space.
    #[error("a string of the impossible length {length}")]
    Length {
        /// In characters.
        length: u64,
    },
    /// No zero follows it.
    #[error("a string without a zero behind it")]
    Unterminated,
    /// There is no such character, or none in a string of its kind.
    #[error("a string with the impossible character {character:#x}")]
    Character {
        /// The number.
        character: u32,
    },
}

impl StringLayout {
    /// What the `str` object at `address` says.
    ///
    /// # Errors
    /// If it is no `str` object, or cannot be read.
    pub fn text(&self, memory: &impl Memory, address: u64) -> Result<Text, GarbledString> {
        self.check_type(memory, address, Builtin { address: self.str_type, flag: UNICODE_SUBCLASS })?;
        let characters = self.characters(memory, address)?;
        let count = characters.count.min(MAX_CHARACTERS);
        let bytes = characters.read(memory, count)?;
        let text = match characters.width {
            Width::Ascii => decode(bytes.iter().map(|byte| u32::from(*byte)), i8::MAX as u32),
            Width::Latin1 => decode(bytes.iter().map(|byte| u32::from(*byte)), u32::from(u8::MAX)),
            Width::Ucs2 => decode(units(&bytes, u16::from_le_bytes).map(u32::from), u32::from(u16::MAX)),
            Width::Ucs4 => decode(units(&bytes, u32::from_le_bytes), u32::from(char::MAX)),
        };
        Ok(Text { text: text?, is_cut: characters.count > count })
    }

    /// The first bytes, up to `limit`, of the `bytes` object at `address`.
    ///
    /// # Errors
    /// If it is no `bytes` object, or cannot be read.
    pub fn bytes(&self, memory: &impl Memory, address: u64, limit: u64) -> Result<Bytes, GarbledString> {
        self.check_type(memory, address, Builtin { address: self.bytes_type, flag: BYTES_SUBCLASS })?;
        let count = memory.u64(address.wrapping_add(self.bytes_size))?;
        let contents = Characters { width: Width::Latin1, at: address.wrapping_add(self.bytes_data), count };
        let bytes = contents.read(memory, count.min(limit))?;
        Ok(Bytes { bytes, is_cut: count > limit })
    }

    /// How many bytes the `bytes` object at `address` has.
    ///
    /// # Errors
    /// If it is no `bytes` object, or cannot be read.
    pub fn bytes_length(&self, memory: &impl Memory, address: u64) -> Result<u64, GarbledString> {
        self.bytes(memory, address, 0)?;
        Ok(memory.u64(address.wrapping_add(self.bytes_size))?)
    }

    fn check_type(&self, memory: &impl Memory, address: u64, builtin: Builtin) -> Result<(), GarbledString> {
        if address == 0 {
            return Err(GarbledString::Null);
        }
        let found = memory.u64(address.wrapping_add(self.ob_type))?;
        let is_one = match builtin.address {
            Some(expected) => self.derives(memory, found, expected)?,
            None => memory.u64(found.wrapping_add(self.tp_flags))? & builtin.flag != 0,
        };
        if is_one { Ok(()) } else { Err(GarbledString::Type { found }) }
    }

    /// Whether a class is `expected` or inherits its layout: `tp_base` is the base that the layout comes from.
    fn derives(&self, memory: &impl Memory, class: u64, expected: u64) -> Result<bool, Unreadable> {
        let mut class = class;
        for _ in 0..MAX_BASES {
            if class == expected || class == 0 {
                break;
            }
            class = memory.u64(class.wrapping_add(self.tp_base))?;
        }
        Ok(class == expected)
    }

    fn characters(&self, memory: &impl Memory, address: u64) -> Result<Characters, GarbledString> {
        let state = memory.u32(address.wrapping_add(self.state))?;
        let bits = state.unbounded_shr(self.kind_shift);
        let (kind, is_compact, is_ascii) = (bits & 7, bits & 8 != 0, bits & 16 != 0);
        let width = match (kind, is_ascii) {
            (0, false) if !is_compact => return self.wide_characters(memory, address, state),
            (1, true) => Width::Ascii,
            (1, false) => Width::Latin1,
            (2, false) => Width::Ucs2,
            (4, false) => Width::Ucs4,
            _ => return Err(GarbledString::State { state }),
        };
        let at = match (is_compact, width) {
            (true, Width::Ascii) => address.wrapping_add(self.ascii_data),
            (true, _) => address.wrapping_add(self.compact_data),
            (false, _) => memory.u64(address.wrapping_add(self.data))?,
        };
        Ok(Characters { width, at, count: memory.u64(address.wrapping_add(self.length))? })
    }

    fn wide_characters(&self, memory: &impl Memory, address: u64, state: u32) -> Result<Characters, GarbledString> {
        let wide = self.wide.ok_or(GarbledString::State { state })?;
        let at = memory.u64(address.wrapping_add(wide.wstr))?;
        Ok(Characters { width: Width::Ucs4, at, count: memory.u64(address.wrapping_add(wide.wstr_length))? })
    }
}

/// A built-in type whose subclasses have its layout.
struct Builtin {
    address: Option<u64>,
    /// The bit of `tp_flags` that it and its subclasses have, in every version.
    flag: u64,
}

/// `Py_TPFLAGS_UNICODE_SUBCLASS`.
const UNICODE_SUBCLASS: u64 = 1 << 28;
/// `Py_TPFLAGS_BYTES_SUBCLASS`.
const BYTES_SUBCLASS: u64 = 1 << 27;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Width {
    Ascii,
    Latin1,
    Ucs2,
    Ucs4,
}

impl Width {
    fn size(self) -> u64 {
        match self {
            Width::Ascii | Width::Latin1 => 1,
            Width::Ucs2 => 2,
            Width::Ucs4 => WCHAR_SIZE,
        }
    }
}

struct Characters {
    width: Width,
    at: u64,
    count: u64,
}

impl Characters {
    /// The first `count`, after a look at the zero that CPython writes behind the last of all.
    fn read(&self, memory: &impl Memory, count: u64) -> Result<Vec<u8>, GarbledString> {
        let size = self.width.size();
        let all = self.count.checked_mul(size).filter(|all| *all <= MAX_OBJECT_SIZE);
        let all = all.ok_or(GarbledString::Length { length: self.count })?;
        if self.at == 0 {
            return Err(GarbledString::Null);
        }
        let mut terminator = [0; WCHAR_SIZE as usize];
        let terminator = &mut terminator[..size as usize];
        memory.read(self.at.wrapping_add(all), terminator)?;
        if terminator.iter().any(|byte| *byte != 0) {
            return Err(GarbledString::Unterminated);
        }
        let mut bytes = vec![0; (count * size) as usize];
        memory.read(self.at, &mut bytes)?;
        Ok(bytes)
    }
}

fn units<const N: usize, T>(bytes: &[u8], decode: fn([u8; N]) -> T) -> impl Iterator<Item = T> {
    bytes.as_chunks().0.iter().map(move |unit| decode(*unit))
}

/// The characters, none of which may be above `max`.
fn decode(characters: impl Iterator<Item = u32>, max: u32) -> Result<String, GarbledString> {
    let decode = |character: u32| match char::from_u32(character) {
        _ if character > max => Err(GarbledString::Character { character }),
        Some(decoded) => Ok(decoded),
        None => Ok(REPLACEMENT),
    };
    characters.map(decode).collect()
}
