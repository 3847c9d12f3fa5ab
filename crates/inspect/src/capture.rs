//! Taking a thread's registers and stack while it is held.

use std::time::{Duration, Instant};

use abi::record::{REGISTERS, Registers};
use processes::MappedRange;
use processes::memory::ProcessMemory;
use processes::thread_pointer::{Held, Patience, ThreadProblem, ThreadRegisters, with_stopped};

use crate::ThreadStack;

/// Bytes of stack that are taken at most, from the innermost frame on.
pub const MAX_STACK: u64 = 16 << 20;
/// A thread goes on after this time, whatever has been read by then.
const LONGEST: Duration = Duration::from_millis(50);
/// The caller's function has this much of it; what is left is for the stack.
const SHARE: Duration = Duration::from_millis(30);
/// Bytes below the stack pointer that a function may use without moving it (the red zone of the x86_64 ABI).
const RED_ZONE: u64 = 128;
/// Bytes that are read at once; where not all of them can be read, a page of the smallest size.
const PIECES: [usize; 2] = [256 << 10, 4 << 10];

/// What was taken of a thread.
pub struct Captured<R> {
    /// x86_64: base of FS; aarch64: TPIDR_EL0.
    pub thread_pointer: u64,
    /// Registers and stack.
    pub stack: ThreadStack,
    /// What the caller's function returned.
    pub value: R,
}

/// Holds a thread, calls `look` with its registers and the moment by which that must be done, and takes its registers and
/// stack before it lets the thread go. `ranges` are all mappings of the process, sorted.
///
/// # Errors
/// If it cannot be held; then nothing was done.
pub fn capture<R>(
    tid: u32,
    memory: &ProcessMemory,
    ranges: &[MappedRange],
    look: impl FnOnce(&ThreadRegisters, Instant) -> R,
) -> Result<Held<Captured<R>>, ThreadProblem> {
    with_stopped(tid, Patience::default(), LONGEST, |registers| {
        let value = look(registers, Instant::now() + SHARE);
        let stack_begin = registers.sp().saturating_sub(RED_ZONE) & !7;
        Captured {
            thread_pointer: registers.thread_pointer,
            stack: ThreadStack {
                registers: in_dwarf_order(registers),
                stack_begin,
                stack: stack(memory, ranges, stack_begin),
                code_mask: 0,
            },
            value,
        }
    })
}

/// The memory from `begin` to the end of its mapping, as far as it can be read. Stacks may lie in one mapping, with guard pages
/// between them that /proc does not show (`MADV_GUARD_INSTALL` of Linux 6.13, which glibc uses from 2.42 on).
fn stack(memory: &ProcessMemory, ranges: &[MappedRange], begin: u64) -> Vec<u8> {
    let after = ranges.partition_point(|range| range.start <= begin);
    let Some(range) = ranges[..after].last().filter(|range| begin < range.end) else { return Vec::new() };
    let length = (range.end - begin).min(MAX_STACK) as usize;
    let mut bytes = vec![0; length];
    let mut filled = 0;
    for piece in PIECES {
        while filled < length {
            // up to a page's end, since a guard begins with a page
            let at = begin + filled as u64;
            let end = length.min(filled + piece - at as usize % piece);
            if memory.read(at, &mut bytes[filled..end]).is_err() {
                break;
            }
            filled = end;
        }
    }
    bytes.truncate(filled);
    bytes
}

/// Where DWARF's registers are among the kernel's: rax rdx rcx rbx rsi rdi rbp rsp r8 to r15 (System V ABI, figure 3.36).
#[cfg(target_arch = "x86_64")]
const IN_WORDS: [usize; 16] = [10, 12, 11, 5, 13, 14, 4, 19, 9, 8, 7, 6, 3, 2, 1, 0];

#[cfg(target_arch = "x86_64")]
fn in_dwarf_order(registers: &ThreadRegisters) -> Registers {
    let mut all = [0; REGISTERS];
    for (to, from) in all.iter_mut().zip(IN_WORDS) {
        *to = registers.words().get(from).copied().unwrap_or(0);
    }
    Registers { pc: registers.pc(), sp: registers.sp(), fp: registers.fp(), lr: 0, all }
}

/// DWARF numbers them as the kernel does: x0 to x30, then the stack pointer.
#[cfg(target_arch = "aarch64")]
fn in_dwarf_order(registers: &ThreadRegisters) -> Registers {
    let mut all = [0; REGISTERS];
    for (to, from) in all.iter_mut().zip(registers.words()) {
        *to = *from;
    }
    let lr = registers.lr().unwrap_or(0);
    Registers { pc: registers.pc(), sp: registers.sp(), fp: registers.fp(), lr, all }
}
