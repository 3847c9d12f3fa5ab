//! The user registers of a sample: those of the interrupted instruction, or those that the kernel saved on entry.

use abi::record::Registers;
use aya_ebpf::helpers::generated::{bpf_get_current_task_btf, bpf_probe_read_kernel, bpf_task_pt_regs};
use aya_ebpf::programs::PerfEventContext;
use core::ffi::c_void;

/// Whose registers the sample has.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    User,
    Kernel,
}

/// What was found.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Found {
    Whole,
    /// The task is in `execve`: the registers may belong to an image that is gone.
    Execing,
    /// A 32-bit task.
    Compat32,
    Nothing,
}

#[cfg(bpf_target_arch = "x86_64")]
mod arch {
    /// 64-bit words of `struct pt_regs` (arch/x86/include/uapi/asm/ptrace.h).
    pub const SAVED_WORDS: usize = 21;
    use walk::X86_64_PT_REGS as DWARF;

    const RIP: usize = 16;
    /// The word that says in which mode the code was.
    pub const MODE: usize = 17;
    /// `__USER32_CS` (arch/x86/include/asm/segment.h); the word also holds what the kernel keeps above 16 bits.
    const USER32_CS: u64 = 0x23;
    /// The system call's number; for interrupts and exceptions a negative number or an error code, which for page
    /// faults has no such bits together.
    const ORIG_RAX: usize = 15;
    /// `execve` and `execveat` (arch/x86/entry/syscalls/syscall_64.tbl).
    const EXEC: [u64; 2] = [59, 322];

    pub fn is_user(mode: u64) -> bool {
        mode & 3 != 0
    }
    pub fn is_32_bit(mode: u64) -> bool {
        mode & 0xffff == USER32_CS
    }
    pub fn is_exec(words: &[u64; SAVED_WORDS]) -> bool {
        words[ORIG_RAX] == EXEC[0] || words[ORIG_RAX] == EXEC[1]
    }
    #[inline(always)]
    pub fn take(words: &[u64; SAVED_WORDS], to: &mut abi::record::Registers) {
        let mut number = 0;
        while number < DWARF.len() {
            to.all[number] = words[DWARF[number]];
            number += 1;
        }
        (to.pc, to.sp, to.fp, to.lr) = (words[RIP], words[DWARF[7]], words[DWARF[6]], 0);
    }
}

#[cfg(bpf_target_arch = "aarch64")]
mod arch {
    /// 64-bit words of what the kernel saves: `struct user_pt_regs` (arch/arm64/include/uapi/asm/ptrace.h: x0..x30, sp,
    /// pc, pstate), then `orig_x0` and the system call's number (asm/ptrace.h).
    pub const SAVED_WORDS: usize = 36;
    const SYSCALL: usize = 35;
    /// `execve` and `execveat` (include/uapi/asm-generic/unistd.h).
    const EXEC: [u32; 2] = [221, 281];
    const SP: usize = 31;
    const PC: usize = 32;
    /// The word that says in which mode the code was.
    pub const MODE: usize = 33;

    pub fn is_user(mode: u64) -> bool {
        mode & 0xf == 0
    }
    /// `PSR_MODE32_BIT`.
    pub fn is_32_bit(mode: u64) -> bool {
        mode & 0x10 != 0
    }
    pub fn is_exec(words: &[u64; SAVED_WORDS]) -> bool {
        let number = words[SYSCALL] as u32;
        number == EXEC[0] || number == EXEC[1]
    }
    #[inline(always)]
    pub fn take(words: &[u64; SAVED_WORDS], to: &mut abi::record::Registers) {
        let mut number = 0;
        while number < 32 {
            to.all[number] = words[number];
            number += 1;
        }
        (to.pc, to.sp, to.fp, to.lr) = (words[PC], words[SP], words[29], words[30]);
    }
}

pub use arch::SAVED_WORDS;

/// Fills `to` with the user registers of the current task. Whatever brought the task into the kernel saved them: a system
/// call, or the interrupt that is the tick itself. `saved` is memory to work in.
#[inline(always)]
pub fn read(context: &PerfEventContext, saved: &mut [u64; SAVED_WORDS], to: &mut Registers) -> (Mode, Found) {
    let interrupted = context.ctx as *const u64;
    // SAFETY: the context begins with the interrupted registers; a whole aligned word, as the verifier asks.
    let in_user = arch::is_user(unsafe { core::ptr::read_volatile(interrupted.add(arch::MODE)) });
    let mode = if in_user { Mode::User } else { Mode::Kernel };
    // SAFETY: the task is the current one; the read is of the size of the destination.
    let read = unsafe {
        let from = bpf_task_pt_regs(bpf_get_current_task_btf() as *mut _) as *const c_void;
        !from.is_null() && bpf_probe_read_kernel(saved.as_mut_ptr() as *mut c_void, (SAVED_WORDS * 8) as u32, from) == 0
    };
    if !read || !arch::is_user(saved[arch::MODE]) {
        return (mode, Found::Nothing);
    }
    if arch::is_32_bit(saved[arch::MODE]) {
        return (mode, Found::Compat32);
    }
    arch::take(saved, to);
    let execing = mode == Mode::Kernel && arch::is_exec(saved);
    (mode, if execing { Found::Execing } else { Found::Whole })
}
