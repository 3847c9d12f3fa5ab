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
    /// In a `_PyCFrame` (3.11, 3.12): address of the current frame; else [`NONE`].
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
}

const _: () = {
    assert!(size_of::<Slot>() == 24);
    assert!(size_of::<Python>() == 64);
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
