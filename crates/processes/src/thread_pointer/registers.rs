//! Registers of a stopped thread.

use std::io;

use super::ThreadProblem;
use super::tracee::request;

/// Words of `struct user_regs_struct` (arch/x86/include/asm/user_64.h).
#[cfg(target_arch = "x86_64")]
const WORDS: usize = 27;
/// Words of `struct user_pt_regs` (arch/arm64/include/uapi/asm/ptrace.h).
#[cfg(target_arch = "aarch64")]
const WORDS: usize = 34;

/// Register sets by their ELF note types (include/uapi/linux/elf.h).
const NT_PRSTATUS: usize = 1;
#[cfg(target_arch = "aarch64")]
const NT_ARM_TLS: usize = 0x401;

/// The thread pointer and the general registers of a thread. Of one that was in a system call they are those with which it
/// will go on: on aarch64 the pc may be that of the call itself, which is made again.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ThreadRegisters {
    /// x86_64: the base of FS. aarch64: TPIDR_EL0. 0 before the C library has set it.
    pub thread_pointer: u64,
    words: [u64; WORDS],
}

impl ThreadRegisters {
    /// The general registers in the kernel's order: x86_64 r15 r14 r13 r12 rbp rbx r11 r10 r9 r8 rax rcx rdx rsi rdi orig_rax
    /// rip cs eflags rsp ss, as in `struct pt_regs`; aarch64 x0 to x30, sp, pc, pstate.
    pub fn words(&self) -> &[u64] {
        &self.words
    }

    /// Reads them from a thread that is stopped by the calling thread.
    pub(super) fn of_stopped(tid: u32) -> Result<ThreadRegisters, ThreadProblem> {
        let mut words = [0; WORDS];
        if !read_set(tid, NT_PRSTATUS, &mut words)? {
            return Err(ThreadProblem::ThirtyTwoBit { tid });
        }
        Ok(ThreadRegisters { thread_pointer: thread_pointer(tid, &words)?, words })
    }
}

#[cfg(target_arch = "x86_64")]
impl ThreadRegisters {
    /// The instruction that comes next.
    pub fn pc(&self) -> u64 {
        self.words[16]
    }

    /// The stack pointer.
    pub fn sp(&self) -> u64 {
        self.words[19]
    }

    /// The frame pointer's register, rbp.
    pub fn fp(&self) -> u64 {
        self.words[4]
    }

    /// The register that holds the return address, where there is one.
    pub fn lr(&self) -> Option<u64> {
        None
    }
}

#[cfg(target_arch = "aarch64")]
impl ThreadRegisters {
    /// The instruction that comes next.
    pub fn pc(&self) -> u64 {
        self.words[32]
    }

    /// The stack pointer.
    pub fn sp(&self) -> u64 {
        self.words[31]
    }

    /// The frame pointer's register, x29.
    pub fn fp(&self) -> u64 {
        self.words[29]
    }

    /// The register that holds the return address, where there is one.
    pub fn lr(&self) -> Option<u64> {
        Some(self.words[30])
    }
}

/// `fs_base` is word 21.
#[cfg(target_arch = "x86_64")]
fn thread_pointer(_tid: u32, words: &[u64; WORDS]) -> Result<u64, ThreadProblem> {
    Ok(words[21])
}

#[cfg(target_arch = "aarch64")]
fn thread_pointer(tid: u32, _words: &[u64; WORDS]) -> Result<u64, ThreadProblem> {
    let mut pointer = [0; 1];
    match read_set(tid, NT_ARM_TLS, &mut pointer)? {
        true => Ok(pointer[0]),
        false => Err(ThreadProblem::ThirtyTwoBit { tid }),
    }
}

/// Fills `words` from a register set; false if the thread's set is smaller, as that of 32-bit code is.
fn read_set(tid: u32, set: usize, words: &mut [u64]) -> Result<bool, ThreadProblem> {
    let length = size_of_val(words);
    let mut vector = libc::iovec { iov_base: words.as_mut_ptr().cast(), iov_len: length };
    // SAFETY: the kernel writes at most `iov_len` bytes to `words`, and the length into `vector`.
    let result = unsafe { request(libc::PTRACE_GETREGSET as _, tid, set, (&raw mut vector) as usize) };
    match result {
        Ok(()) => Ok(vector.iov_len == length),
        Err(source) => Err(problem(tid, source)),
    }
}

/// A thread that is not stopped any more was killed: nobody else can wake it.
fn problem(tid: u32, source: io::Error) -> ThreadProblem {
    match source.raw_os_error() {
        Some(libc::ESRCH) => ThreadProblem::Ended { tid },
        _ => ThreadProblem::System { tid, source },
    }
}
