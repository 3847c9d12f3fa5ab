//! A stack as words of 64 bits, innermost frame first.
//!
//! | top byte | word |
//! |---|---|
//! | `0xff` | kernel address, as it is |
//! | kind (low nibble), flags (high nibble) | the other kinds below |
//!
//! An object frame names the file and the offset in it, so a stack means the same after the process has
//! exited, was replaced by exec or has unmapped the library. The last word of a user stack is [`kind::END`].

/// The top byte starts at this bit.
pub const TAG_SHIFT: u32 = 56;
/// Mask of the payload.
pub const PAYLOAD: u64 = (1 << TAG_SHIFT) - 1;
/// Bits of a file offset within the payload (64 GiB).
pub const OFFSET_BITS: u32 = 36;
/// Bits of an object number within the payload.
pub const OBJECT_BITS: u32 = 20;
/// Top byte of a kernel address on x86_64 and aarch64.
pub const KERNEL: u8 = 0xff;

/// Kinds of words: low nibble of the top byte.
pub mod kind {
    /// Object number and file offset.
    pub const OBJECT: u8 = 1;
    /// An address outside all files: JIT code, or unknown.
    pub const RAW: u8 = 2;
    /// A Python frame: address of its code object. [`PYTHON_AT`] follows.
    pub const PYTHON: u8 = 3;
    /// Second word of a Python frame: check of the code object, and instruction.
    pub const PYTHON_AT: u8 = 4;
    /// There are no Python frames here, or from here on: the payload is why.
    pub const PYTHON_FAULT: u8 = 5;
    /// Words were left out here; the payload is their number.
    pub const CUT: u8 = 13;
    /// The end of the user stack: reason and detail.
    pub const END: u8 = 14;
}

/// Flags: high nibble of the top byte.
pub mod flag {
    /// The address is that of an interrupted instruction; else it is a return address, and the call lies before it.
    pub const EXACT: u8 = 0x10;
    /// The frame was reached by a frame pointer, not by unwind information.
    pub const BY_FRAME_POINTER: u8 = 0x20;
}

/// A frame in object `object` at file offset `offset`.
#[inline(always)]
pub const fn object(flags: u8, object: u32, offset: u64) -> u64 {
    ((kind::OBJECT | flags) as u64) << TAG_SHIFT
        | (object as u64 & ((1 << OBJECT_BITS) - 1)) << OFFSET_BITS
        | offset & ((1 << OFFSET_BITS) - 1)
}

/// A frame at an address outside all files.
#[inline(always)]
pub const fn raw(flags: u8, address: u64) -> u64 {
    ((kind::RAW | flags) as u64) << TAG_SHIFT | address & PAYLOAD
}

/// The end of a user stack. `detail` is an object number or 0, `more` depends on the reason.
#[inline(always)]
pub const fn end(stop: u8, detail: u32, more: u8) -> u64 {
    (kind::END as u64) << TAG_SHIFT | (stop as u64) << 48 | (more as u64) << 40 | detail as u64
}

/// The reason of an end's word.
#[inline(always)]
pub const fn stop_of(end: u64) -> u8 {
    (end >> 48) as u8
}

/// Bits of an instruction in the second word of a Python frame.
pub const INSTRUCTION_BITS: u32 = 24;
/// What stands for an instruction that does not fit.
pub const NO_INSTRUCTION: u32 = (1 << INSTRUCTION_BITS) - 1;

/// First word of a Python frame.
#[inline(always)]
pub const fn python(code: u64) -> u64 {
    (kind::PYTHON as u64) << TAG_SHIFT | code & PAYLOAD
}

/// Second word of a Python frame; `instruction` has [`INSTRUCTION_BITS`].
#[inline(always)]
pub const fn python_at(check: u32, instruction: u32) -> u64 {
    (kind::PYTHON_AT as u64) << TAG_SHIFT | (check as u64) << INSTRUCTION_BITS | (instruction & NO_INSTRUCTION) as u64
}

/// No Python frames, for a [`Fault`](crate::python::Fault).
#[inline(always)]
pub const fn python_fault(fault: u8) -> u64 {
    (kind::PYTHON_FAULT as u64) << TAG_SHIFT | fault as u64
}

/// `left_out` words are missing here.
#[inline(always)]
pub const fn cut(left_out: u64) -> u64 {
    (kind::CUT as u64) << TAG_SHIFT | left_out & PAYLOAD
}

/// A decoded word.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Word {
    /// A kernel address.
    Kernel(u64),
    /// A frame in a file.
    Object {
        /// Object number.
        object: u32,
        /// Offset in the file.
        offset: u64,
        /// Interrupted instruction, not a return address.
        exact: bool,
        /// Found through a frame pointer.
        by_frame_pointer: bool,
    },
    /// A frame outside all files.
    Raw {
        /// Address in the process.
        address: u64,
        /// Interrupted instruction, not a return address.
        exact: bool,
        /// Found through a frame pointer.
        by_frame_pointer: bool,
    },
    /// A Python frame's code object, by its address.
    Python(u64),
    /// The rest of a Python frame.
    PythonAt {
        /// Check of its code object.
        check: u32,
        /// Its instruction, see [`NO_INSTRUCTION`].
        instruction: u32,
    },
    /// No Python frames, for a [`Fault`](crate::python::Fault).
    PythonFault(u8),
    /// Words were left out.
    Cut(u64),
    /// The user stack ends.
    End {
        /// The reason, see [`crate::stop::Stop::from_code`].
        stop: u8,
        /// An object number, or 0.
        detail: u32,
        /// Depends on the reason.
        more: u8,
    },
    /// No word that this version writes.
    Unknown(u64),
}

impl Word {
    /// Decodes `word`.
    pub const fn decode(word: u64) -> Word {
        let tag = (word >> TAG_SHIFT) as u8;
        if tag == KERNEL {
            return Word::Kernel(word);
        }
        let exact = tag & flag::EXACT != 0;
        let by_frame_pointer = tag & flag::BY_FRAME_POINTER != 0;
        match tag & 0x0f {
            kind::OBJECT => Word::Object {
                object: (word >> OFFSET_BITS) as u32 & ((1 << OBJECT_BITS) - 1),
                offset: word & ((1 << OFFSET_BITS) - 1),
                exact,
                by_frame_pointer,
            },
            kind::RAW => Word::Raw { address: word & PAYLOAD, exact, by_frame_pointer },
            kind::PYTHON => Word::Python(word & PAYLOAD),
            kind::PYTHON_AT => {
                Word::PythonAt { check: (word >> INSTRUCTION_BITS) as u32, instruction: word as u32 & NO_INSTRUCTION }
            }
            kind::PYTHON_FAULT => Word::PythonFault(word as u8),
            kind::CUT => Word::Cut(word & PAYLOAD),
            kind::END => Word::End { stop: (word >> 48) as u8, detail: word as u32, more: (word >> 40) as u8 },
            _ => Word::Unknown(word),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_round_trip() {
        let top = (1 << OFFSET_BITS) - 1;
        for (object_number, offset) in [(0, 0), (1, 4096), ((1 << OBJECT_BITS) - 1, top)] {
            let word = object(flag::EXACT, object_number, offset);
            let expected = Word::Object { object: object_number, offset, exact: true, by_frame_pointer: false };
            assert_eq!(Word::decode(word), expected);
        }
        let address = 0x7fff_ffff_ffff;
        let expected = Word::Raw { address, exact: false, by_frame_pointer: true };
        assert_eq!(Word::decode(raw(flag::BY_FRAME_POINTER, address)), expected);
        assert_eq!(Word::decode(python(address)), Word::Python(address));
        let (check, instruction) = (u32::MAX - 5, NO_INSTRUCTION - 1);
        assert_eq!(Word::decode(python_at(check, instruction)), Word::PythonAt { check, instruction });
        assert_eq!(Word::decode(python_fault(7)), Word::PythonFault(7));
        assert_eq!(Word::decode(cut(70_000)), Word::Cut(70_000));
        assert_eq!(Word::decode(end(5, 77, 3)), Word::End { stop: 5, detail: 77, more: 3 });
    }

    #[test]
    fn kernel_addresses_are_no_other_word() {
        for address in [0xffff_ffff_8100_0000, 0xffff_8000_0000_0000, 0xff00_0000_0000_0000_u64] {
            assert_eq!(Word::decode(address), Word::Kernel(address));
        }
    }
}
