//! What the walker must know of a CPython interpreter in a process.
//!
//! | version | a thread's frames begin at | a run of one native eval loop's frames ends with |
//! |---|---|---|
//! | 3.6 to 3.10 | the thread state's frame | every frame: an eval loop runs one |
//! | 3.11 | the thread state's `_PyCFrame` | the frame that is marked as entry |
//! | 3.12 | the thread state's `_PyCFrame` | a shim behind it, a local variable of the eval loop |
//! | 3.13 to 3.15 | the thread state's frame | such a shim |
//!
//! In 3.15 the outermost shim is followed by a base frame, which looks like a shim and belongs to no eval loop.

/// An offset of something that a version does not have.
pub const NONE: u16 = u16::MAX;
/// Loads at most that lead from the thread pointer to the thread state.
pub const LOADS: usize = 3;
/// The lowest owner of a frame that is no Python frame: 3, `FRAME_OWNED_BY_CSTACK` of 3.12 and 3.13 and
/// `FRAME_OWNED_BY_INTERPRETER` of 3.14 and 3.15.
pub const FIRST_SHIM_OWNER: u8 = 3;
/// The highest owner that a version has: 4, `FRAME_OWNED_BY_CSTACK` of 3.14.
pub const LAST_OWNER: u8 = 4;

/// Interpreters that the sampler knows at a time.
pub const ENTRIES: usize = 4096;
/// Eval loops that it knows at a time, one for each file.
pub const EVAL_LOOPS: usize = 256;
/// Pieces of native code that an eval loop may be in.
pub const PIECES: usize = 512;
/// Moments that an eval loop may have.
pub const MOMENTS: usize = 64;
/// Words of a code object that are compared, at most.
pub const CHECKS: usize = 6;
/// Python frames of a stack at most; as many words as a stack may have.
pub const FRAMES: u32 = 4096;

/// All that the sampler knows of the interpreter in a process: an element of the map of interpreters, where the process's
/// entry says which. Element 0 is all zeros, no interpreter. 160 bytes.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Entry {
    /// How to get to frames, and from frame to frame.
    pub python: Python,
    /// What to read of code objects.
    pub code: CodeFacts,
    /// Unique in a recording; 0 = no interpreter.
    pub id: u32,
    /// Number of the object that has the eval loop.
    pub object: u32,
    /// Index of that in the map of eval loops.
    pub eval_loop: u32,
    /// 1: native frames of eval loops are kept beside the Python frames that stand for them.
    pub keeps_native: u32,
}

impl Entry {
    /// No interpreter.
    pub const NONE: Entry =
        Entry { python: Python::NONE, code: CodeFacts::NONE, id: 0, object: 0, eval_loop: 0, keeps_native: 0 };
}

/// The native code of a file's eval loop: an element of the map of eval loops. 4,936 bytes.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct EvalLoop {
    /// How many pieces there are.
    pub pieces: u32,
    /// How many moments there are.
    pub moments: u32,
    /// Bit `i & 63` of word `i >> 6`: piece `i` is a function of its own, called by the one whose frame links Python frames to it.
    pub parts: [u64; PIECES / u64::BITS as usize],
    /// The pieces, sorted and disjoint.
    pub piece: [Piece; PIECES],
    /// The moments, sorted and disjoint.
    pub moment: [Moment; MOMENTS],
}

impl EvalLoop {
    /// No piece.
    pub const NONE: EvalLoop = EvalLoop {
        pieces: 0,
        moments: 0,
        parts: [0; PIECES / u64::BITS as usize],
        piece: [Piece { begin: 0, end: 0 }; PIECES],
        moment: [Moment { begin: 0, end: 0, what: 0 }; MOMENTS],
    };
}

/// A stretch of an eval loop's code, in bytes of its file. 8 bytes.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Piece {
    /// First byte.
    pub begin: u32,
    /// First byte behind it.
    pub end: u32,
}

/// A stretch of an eval loop's code, in bytes of its file, and what is true of a thread that is interrupted in it. 12 bytes.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Moment {
    /// First byte.
    pub begin: u32,
    /// First byte behind it.
    pub end: u32,
    /// One of [`moment`].
    pub what: u32,
}

/// What is true of an eval loop whose code is interrupted at some place. 0: nothing special.
pub mod moment {
    /// The eval loop has no frame in the thread's chain.
    pub const UNLINKED: u32 = 1;
    /// The chain's first frame does not lead to its caller.
    pub const NO_CALLER: u32 = 2;
    /// The same, but the register with the DWARF number in the low bits ([`REGISTER`]) holds the caller's address.
    pub const CALLER: u32 = 0x40;
    /// The same if what the frame leads to is 0.
    pub const CALLER_IF_NONE: u32 = 0x80;
    /// The bits that are a register's number.
    pub const REGISTER: u32 = 0x1f;
}

/// What a sample tells apart code objects by, and what names are made from; offsets in a code object in bytes. 80 bytes.
///
/// A code object may be freed, and another one come to lie at its address, with its name and its line table where those of the
/// first one lay. So a sample carries a check of those fields that never change while it lives, and of what tells names and tables
/// apart; and names are made of one with the same check.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct CodeFacts {
    /// Which bits of those words count: others may change.
    pub masks: [u64; CHECKS],
    /// Words that never change; [`NONE`] behind the last.
    pub checked: [u16; CHECKS],
    /// Bytes of a code object before its bytecode.
    pub size: u16,
    /// Address of the name that is shown.
    pub name: u16,
    /// Address of the file name.
    pub path: u16,
    /// Address of the line table.
    pub lines: u16,
    /// Address of the bytecode; [`NONE`] where it is part of the code object.
    pub bytecode: u16,
    /// In a `bytes` object: how many there are.
    pub bytes_size: u16,
    /// In a `bytes` object: where they begin.
    pub bytes_data: u16,
    /// In a string: how many characters it has, which its hash follows. 0 where no two code objects have the same words: from
    /// 3.12 on one of them is a number of its own (`co_version`).
    pub text_length: u16,
    /// Not used.
    pub reserved: [u16; 2],
}

impl CodeFacts {
    /// Nothing is known.
    pub const NONE: CodeFacts = CodeFacts {
        masks: [0; CHECKS],
        checked: [NONE; CHECKS],
        size: 0,
        name: 0,
        path: 0,
        lines: 0,
        bytecode: NONE,
        bytes_size: 0,
        bytes_data: 0,
        text_length: 0,
        reserved: [0; 2],
    };
}

/// Facts about an interpreter in a process; offsets in bytes. 64 bytes.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Python {
    /// Address of `PyCode_Type`: what code objects have as type.
    pub code_type: u64,
    /// From the thread pointer to the thread state.
    pub slot: Slot,
    /// In the thread state: what `pthread_self` gives in its thread.
    pub thread_id: u16,
    /// In the thread state: the thread's number in its pid namespace; [`NONE`] before 3.11.
    pub native_thread_id: u16,
    /// In the thread state: address of the current frame, or of the `_PyCFrame` where there is one.
    pub current: u16,
    /// In a `_PyCFrame` (3.11, 3.12): address of the current frame, behind which that of the `_PyCFrame` before lies
    /// (Include/cpython/pystate.h); else [`NONE`].
    pub cframe_current: u16,
    /// In the thread state: address of the base frame (3.15); else [`NONE`].
    pub base_frame: u16,
    /// In a frame: address of the code object, tagged in its [`Python::tags`].
    pub code: u16,
    /// In a frame: address of the caller's.
    pub back: u16,
    /// In a frame: the current instruction, see [`flags::LASTI_IS_INDEX`].
    pub lasti: u16,
    /// In a frame: the byte that tells how a run ends, see [`Python::run`]; [`NONE`] where every frame ends one.
    pub owner: u16,
    /// In an object: address of its type.
    pub object_type: u16,
    /// A [`run`] kind.
    pub run: u16,
    /// A set of [`flags`].
    pub flags: u16,
    /// Bits of the code object's address that are not part of it (3.14 and later: 3, `Py_TAG_BITS`).
    pub tags: u16,
    /// Not used.
    pub reserved: [u16; 3],
}

impl Python {
    /// Nothing is known.
    pub const NONE: Python = Python {
        code_type: 0,
        slot: Slot { loads: 0, steps: [0; LOADS], thread_self: 0, reserved: 0 },
        thread_id: 0,
        native_thread_id: 0,
        current: 0,
        cframe_current: 0,
        base_frame: 0,
        code: 0,
        back: 0,
        lasti: 0,
        owner: 0,
        object_type: 0,
        run: 0,
        flags: 0,
        tags: 0,
        reserved: [0; 3],
    };
}

/// How to get from a thread to its thread state: `loads` times, what lies at the address plus the next step is taken as
/// address, beginning with the thread pointer. 24 bytes.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Slot {
    /// How many of the steps count; 0 = not known.
    pub loads: u32,
    /// Distances in bytes.
    pub steps: [i32; LOADS],
    /// Distance from the thread pointer to what `pthread_self` gives.
    pub thread_self: i32,
    /// Not used.
    pub reserved: u32,
}

/// How a run of Python frames ends, which one native eval loop executes.
pub mod run {
    /// With every frame.
    pub const EVERY: u16 = 0;
    /// With the frame whose byte at [`owner`](super::Python::owner) is 1.
    pub const ENTRY: u16 = 1;
    /// With a frame of its own, whose owner is [`FIRST_SHIM_OWNER`](super::FIRST_SHIM_OWNER) or more.
    pub const SHIM: u16 = 2;
}

/// Facts about an interpreter.
pub mod flags {
    /// The current instruction is a signed number of 32 bits, counted from the code's begin; -1 = not started. Else it is an address.
    pub const LASTI_IS_INDEX: u16 = 1;
}

macro_rules! faults {
    ($($(#[$doc:meta])* $name:ident = $code:literal, $text:literal;)*) => {
        /// Why a chain of Python frames cannot be walked, or not to its end.
        #[repr(u8)]
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
        pub enum Fault {
            $($(#[$doc])* $name = $code,)*
        }

        impl Fault {
            /// Every fault.
            pub const ALL: &'static [Fault] = &[$(Fault::$name),*];

            /// The fault with this code.
            pub const fn from_code(code: u8) -> Option<Fault> {
                match code {
                    $($code => Some(Fault::$name),)*
                    _ => None,
                }
            }

            /// What a user reads.
            pub const fn text(self) -> &'static str {
                match self {
                    $(Fault::$name => $text,)*
                }
            }
        }
    };
}

faults! {
    /// The thread has no thread state: it has not run Python yet, or not since the state was deleted.
    NoState = 1, "thread without Python state";
    /// The slot, or what leads to it, could not be read.
    SlotUnreadable = 2, "unreadable slot of the Python state";
    /// What the slot holds is not the state of this thread.
    OtherThread = 3, "Python state of another thread";
    /// The thread state could not be read.
    StateUnreadable = 4, "unreadable Python state";
    /// A frame could not be read.
    FrameUnreadable = 5, "unreadable Python frame";
    /// The address of a frame is none that a frame can have.
    FrameMisaligned = 6, "misaligned Python frame";
    /// A frame has an owner that does not exist, or a base frame has a caller.
    BadFrame = 7, "implausible Python frame";
    /// What a frame executes is not a code object.
    NotCode = 8, "Python frame without a code object";
    /// The chain leads back into itself.
    Loop = 9, "Python frames in a circle";
    /// More frames than the caller wants.
    TooMany = 10, "deeper than a walk may go";
    /// Up to 3.10 nothing but their number ties frames to eval loops, and the stack does not show all eval loops.
    Unproven = 11, "Python frames that cannot be told to eval loops";
    /// The sample was taken before the interpreter was found, or proven.
    NotYet = 12, "interpreter not proven yet";
    /// A frame was being pushed or popped, and does not lead to its caller: those of its eval loop are missing.
    HalfPushed = 13, "frame that is just being pushed or popped";
    /// The thread's chain has no frames of this eval loop: another thread state's has (sub-interpreters, greenlets).
    OtherChain = 14, "eval loop of another interpreter or greenlet";
}

const _: () = {
    assert!(size_of::<Slot>() == 24);
    assert!(size_of::<Python>() == 64);
    assert!(size_of::<CodeFacts>() == 80 && size_of::<Entry>() == 160);
    assert!(size_of::<EvalLoop>() == 8 + PIECES / 8 + PIECES * 8 + MOMENTS * 12);
    assert!(MOMENTS.is_power_of_two());
    assert!(PIECES.is_power_of_two() && ENTRIES.is_power_of_two() && EVAL_LOOPS.is_power_of_two());
    assert!(FRAMES as usize * 2 <= crate::record::WORDS);
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_round_trip() {
        for fault in Fault::ALL {
            assert_eq!(Fault::from_code(*fault as u8), Some(*fault));
        }
        assert_eq!(Fault::from_code(0), None);
        assert_eq!(Fault::from_code(200), None);
    }
}
