//! What differs between the architectures: signal frames, return addresses, address space.

/// Facts about an architecture.
pub trait Architecture {
    /// Offset of the saved pc from the stack pointer of a signal frame.
    const SIGNAL_PC: u64;
    /// Offset of the saved stack pointer.
    const SIGNAL_SP: u64;
    /// Offset of the saved frame pointer.
    const SIGNAL_FP: u64;
    /// Offset of the saved link register; `None` where there is none.
    const SIGNAL_LR: Option<u64>;
    /// DWARF number of the one register besides stack and frame pointer that is followed from frame to frame; see
    /// [`abi::table::Rule::bx_offset`].
    const FOLLOWED: Option<u8>;
    /// Whether a call leaves the return address at CFA-8; else the rule says where it is.
    const CALL_PUSHES: bool;

    /// Offset of the register with DWARF number `register` from the stack pointer of a signal frame.
    fn signal_register(register: u8) -> u64;
}

/// x86_64: `struct rt_sigframe` of arch/x86/include/asm/sigframe.h after the return address was popped: `ucontext`
/// lies at the stack pointer, its `gregs` 40 bytes in (sys/ucontext.h of glibc, `REG_R8` = 0 ... `REG_RIP` = 16).
pub struct X86_64;

impl Architecture for X86_64 {
    const SIGNAL_PC: u64 = 40 + 16 * 8;
    const SIGNAL_SP: u64 = 40 + 15 * 8;
    const SIGNAL_FP: u64 = 40 + 10 * 8;
    const SIGNAL_LR: Option<u64> = None;
    const FOLLOWED: Option<u8> = Some(3);
    const CALL_PUSHES: bool = true;

    #[inline(always)]
    fn signal_register(register: u8) -> u64 {
        // DWARF numbers 0..8 are rax rdx rcx rbx rsi rdi rbp rsp, four bits of gregs index each; r8..r15 come first there
        const GREGS: u64 = 0xfa89_becd;
        let index = if register & 15 < 8 { GREGS >> ((register & 7) * 4) & 15 } else { (register & 7) as u64 };
        40 + index * 8
    }
}

/// Where in x86_64's `struct pt_regs`, in 64-bit words, the registers with DWARF numbers 0 to 15 are.
pub const X86_64_PT_REGS: [usize; 16] = [10, 12, 11, 5, 13, 14, 4, 19, 9, 8, 7, 6, 3, 2, 1, 0];

/// aarch64: `struct rt_sigframe` of arch/arm64/kernel/signal.c: `siginfo` (128 bytes), `ucontext` with its
/// `sigcontext` at 176, whose `regs` follow `fault_address`.
pub struct Aarch64;

impl Architecture for Aarch64 {
    const SIGNAL_PC: u64 = 312 + 32 * 8;
    const SIGNAL_SP: u64 = 312 + 31 * 8;
    const SIGNAL_FP: u64 = 312 + 29 * 8;
    const SIGNAL_LR: Option<u64> = Some(312 + 30 * 8);
    const FOLLOWED: Option<u8> = None;
    const CALL_PUSHES: bool = false;

    #[inline(always)]
    fn signal_register(register: u8) -> u64 {
        312 + (register & 31) as u64 * 8
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `struct user_regs_struct`, which ptrace gives, has the layout of `struct pt_regs`; DWARF numbers are those of the
    /// psABI, figure 3.36.
    #[cfg(target_arch = "x86_64")]
    #[test]
    fn x86_64_registers_that_the_kernel_saves() {
        use core::mem::offset_of;
        use libc::user_regs_struct as Saved;
        let by_number = [
            offset_of!(Saved, rax),
            offset_of!(Saved, rdx),
            offset_of!(Saved, rcx),
            offset_of!(Saved, rbx),
            offset_of!(Saved, rsi),
            offset_of!(Saved, rdi),
            offset_of!(Saved, rbp),
            offset_of!(Saved, rsp),
            offset_of!(Saved, r8),
            offset_of!(Saved, r9),
            offset_of!(Saved, r10),
            offset_of!(Saved, r11),
            offset_of!(Saved, r12),
            offset_of!(Saved, r13),
            offset_of!(Saved, r14),
            offset_of!(Saved, r15),
        ];
        assert_eq!(X86_64_PT_REGS.map(|word| word * 8), by_number);
    }

    /// The order of glibc's sys/ucontext.h: `REG_R8` = 0, ..., and the DWARF numbers of the psABI.
    #[test]
    fn x86_64_registers_in_a_signal_frame() {
        let gregs = [13, 12, 14, 11, 9, 8, 10, 15, 0, 1, 2, 3, 4, 5, 6, 7];
        for (register, index) in gregs.iter().enumerate() {
            assert_eq!(X86_64::signal_register(register as u8), 40 + index * 8, "DWARF register {register}");
        }
        assert_eq!(X86_64::signal_register(7), X86_64::SIGNAL_SP);
        assert_eq!(X86_64::signal_register(6), X86_64::SIGNAL_FP);
    }
}
