//! The stack walkers, compiled into the BPF programs and into user space.
//!
//! The world is a [`Target`]: read a word of the process, find the mapping of a pc, find the rule of a place in a
//! file. The whole state of a walk is one [`Walk`], plain data that can lie in a BPF map. [`turn`] does one bounded
//! piece of work, one frame, and says whether there is more; the caller owns the loop (`bpf_loop` in the kernel,
//! a `while` in user space). There is no loop in here whose length a target could choose, no allocation, no panic.
//!
//! A walk leaves words ([`abi::word`]), innermost first, and always ends them with a reason ([`abi::stop`]).
#![no_std]

mod architecture;
mod native;
mod output;

pub use architecture::{Aarch64, Architecture, X86_64, X86_64_PT_REGS};
pub use output::{mix, unroll};

use abi::process::Mapping;
use abi::record::{Registers, Stack};
use abi::stop::Stop;
use abi::table::Rule;

/// What the walkers ask of the process they walk.
pub trait Target {
    /// The 8 bytes at `address`, if they can be read.
    fn read_u64(&mut self, address: u64) -> Option<u64>;
    /// The executable mapping around `pc`.
    fn mapping(&mut self, pc: u64) -> Option<Mapping>;
    /// The rule at a file offset of a mapping with a table; [`Rule::NONE`] where the table has none.
    fn rule(&mut self, mapping: &Mapping, offset: u64) -> Rule;
}

/// The state of a walk.
///
/// Most frames find their caller from the stack pointer alone, and save registers that nobody asks for. So a saved
/// register is not read when it is passed: the walk notes where it lies and reads it when a rule needs its value.
#[repr(C)]
pub struct Walk {
    /// Registers of the frame to be walked next; `fp` and all others as long as they were not saved by a callee.
    pub registers: Registers,
    /// Address of the frame pointer's value; 0 = in `registers`.
    pub fp_at: u64,
    /// Address of the value of [`Architecture::FOLLOWED`]; 0 = in `registers`.
    pub bx_at: u64,
    /// Where the interrupted registers are saved on the stack when a signal frame was passed; 0 = in `registers`.
    pub signal_frame: u64,
    /// Bits of a return address that are not part of it (pointer authentication; 0 on x86_64).
    pub code_mask: u64,
    /// A set of [`state`] bits.
    pub state: u32,
    /// The stack so far.
    pub stack: Stack,
}

/// What is known of the frame to be walked next.
pub mod state {
    /// Its pc is an interrupted instruction, not a return address.
    pub const EXACT: u32 = 1;
    /// A frame pointer led to it.
    pub const BY_FRAME_POINTER: u32 = 2;
    /// The frame pointer was saved in a form that is not supported: its value is not known.
    pub const FRAME_POINTER_LOST: u32 = 4;
    /// The same of [`Architecture::FOLLOWED`](crate::Architecture::FOLLOWED).
    pub const FOLLOWED_LOST: u32 = 8;
}

impl Walk {
    /// Starts with the user registers. The `kernel` words before the user stack are in place; they are hashed here.
    #[inline(always)]
    pub fn begin(&mut self, kernel: u32, code_mask: u64) {
        self.fp_at = 0;
        self.bx_at = 0;
        self.signal_frame = 0;
        self.code_mask = code_mask;
        self.state = state::EXACT;
        self.begin_output(kernel);
    }

    /// Ends the walk without a user frame.
    #[inline(always)]
    pub fn end(&mut self, stop: Stop) {
        self.push(abi::word::end(stop as u8, 0, 0));
    }
}

/// Walks one frame. True: call again. False: the last word says why it ended.
#[inline(always)]
pub fn turn<A: Architecture, T: Target>(target: &mut T, walk: &mut Walk) -> bool {
    match native::turn::<A, T>(target, walk) {
        Ok(()) => true,
        Err(end) => {
            walk.push(end);
            false
        }
    }
}

#[cfg(test)]
mod tests;
