//! The stack walkers, compiled into the BPF programs and into user space.
//!
//! The world is a [`Target`]: read a word of the process, find the mapping of a pc, find the rule of a place in a
//! file. The whole state of a walk is one [`Walk`], plain data that can lie in a BPF map. [`turn`] does one bounded
//! piece of work, one frame, and says whether there is more; the caller owns the loop (`bpf_loop` in the kernel,
//! a `while` in user space). There is no loop in here whose length a target could choose, no allocation, no panic.
//!
//! A walk leaves words ([`abi::word`]), innermost first, and always ends them with a reason ([`abi::stop`]).
#![no_std]
#![cfg_attr(target_arch = "bpf", feature(asm_experimental_arch))]

mod architecture;
pub mod cpython;
mod native;
mod output;
pub mod python;

pub use architecture::{Aarch64, Architecture, X86_64, X86_64_PT_REGS};
pub use output::{mix, unroll};
pub use python::EvalLoop;

use abi::process::Mapping;
use abi::python::Entry;
use abi::record::{Registers, Stack};
use abi::stop::Stop;
use abi::table::Rule;

/// What the walkers ask of the process they walk.
pub trait Target {
    /// The 8 bytes at `address`, if they can be read.
    fn read_u64(&mut self, address: u64) -> Option<u64>;
    /// The words of the object at `object` that have a field, at their places; what lies between may be written, too. False: they
    /// cannot be read. `span` fits.
    #[inline(always)]
    fn read_span(&mut self, object: u64, span: cpython::Span, into: &mut [u64; cpython::WORDS]) -> bool {
        span.read_by_words(object, into, |address| self.read_u64(address))
    }
    /// The executable mapping around `pc`.
    fn mapping(&mut self, pc: u64) -> Option<Mapping>;
    /// The rule at a file offset of a mapping with a table; [`Rule::NONE`] where the table has none.
    fn rule(&mut self, mapping: &Mapping, offset: u64) -> Rule;
    /// What code without unwind information says of its caller from `pc` on, which was interrupted or is where a call returns
    /// to; [`Rule::NONE`] if it says nothing, `None` if nobody has read it yet.
    fn exit(&mut self, mapping: &Mapping, pc: u64, interrupted: bool) -> Option<Rule>;
    /// The 8 bytes of code at `address`, if they can be read.
    fn read_code(&mut self, address: u64) -> Option<u64>;
    /// What of an eval loop is at a file offset of a mapping.
    fn eval_loop(&mut self, _mapping: &Mapping, _offset: u64) -> EvalLoop {
        EvalLoop::No
    }
    /// What is true of a thread that is interrupted at a file offset of the mapping, which is in an eval loop: an
    /// [`abi::python::moment`], or 0.
    fn moment(&mut self, _offset: u64) -> u32 {
        0
    }
    /// x86_64: base of FS; aarch64: TPIDR_EL0; 0 if it is not known.
    fn thread_pointer(&mut self) -> u64 {
        0
    }
}

/// The state of a walk.
///
/// Most frames find their caller from the stack pointer alone, and save registers that nobody asks for. So a saved
/// register is not read when it is passed: the walk notes where it lies and reads it when a rule needs its value.
///
/// Fields that begin as 0 do not lie side by side: the BPF compiler would clear them together, byte by byte.
#[repr(C)]
pub struct Walk {
    /// Bits of a return address that are not part of it (pointer authentication; 0 on x86_64).
    pub code_mask: u64,
    /// Registers of the frame to be walked next; `fp` and all others as long as they were not saved by a callee.
    pub registers: Registers,
    /// Address of the frame pointer's value; 0 = in `registers`.
    pub fp_at: u64,
    /// A set of [`state`] bits.
    pub state: u32,
    /// Address of the value of [`Architecture::FOLLOWED`]; 0 = in `registers`.
    pub bx_at: u64,
    /// Hash of the kernel words.
    pub kernel_hash: u64,
    /// Where the interrupted registers are saved on the stack when a signal frame was passed; 0 = in `registers`.
    pub signal_frame: u64,
    /// Python frames.
    pub python: python::Progress,
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
    /// All zero: memory for one walk after the other.
    pub const ZERO: Walk = Walk {
        code_mask: 0,
        registers: Registers::ZERO,
        fp_at: 0,
        state: 0,
        bx_at: 0,
        kernel_hash: 0,
        signal_frame: 0,
        python: python::Progress::ZERO,
        stack: Stack::ZERO,
    };

    /// Starts with the user registers. The `kernel` words before the user stack are in place.
    pub fn begin(&mut self, kernel: u32, code_mask: u64) {
        let words = &self.stack.words[..kernel as usize];
        let hash = words.iter().fold(0, |hash, word| mix(hash, *word));
        self.begin_hashed(kernel, hash, code_mask);
    }

    /// The same where the kernel words' hash is known, which is that of [`mix`] over them, from 0 on.
    #[inline(always)]
    pub fn begin_hashed(&mut self, kernel: u32, hash: u64, code_mask: u64) {
        self.fp_at = 0;
        self.bx_at = 0;
        self.signal_frame = 0;
        self.code_mask = code_mask;
        self.state = state::EXACT;
        self.python.clear();
        self.begin_output(kernel, hash);
    }

    /// Ends the walk without a user frame.
    #[inline(always)]
    pub fn end(&mut self, stop: Stop) {
        self.push(abi::word::end(stop as u8, 0, 0));
    }
}

/// Walks one frame of a process with this interpreter, or [`Entry::NONE`]. True: call again. False: the last word says why it
/// ended.
#[inline(always)]
pub fn turn<A: Architecture, T: Target>(target: &mut T, entry: &Entry, walk: &mut Walk) -> bool {
    if walk.python.state & python::state::RUN != 0 {
        python::turn(target, entry, walk);
        return true;
    }
    match native::turn::<A, T>(target, entry, walk) {
        Ok(()) => true,
        Err(end) => {
            python::finish(entry, walk, end);
            walk.push(end);
            false
        }
    }
}

/// Ends a walk that has had all the turns that it may have.
#[inline(always)]
pub fn give_up(entry: &Entry, walk: &mut Walk) {
    let end = abi::word::end(Stop::TooDeep as u8, 0, 0);
    python::finish(entry, walk, end);
    walk.push(end);
}

#[cfg(test)]
mod tests;
