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

    /// Whether these 8 bytes of code, the last one first in the number's upper half, end in a call.
    fn ends_in_call(code: u64) -> bool;
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

    /// `call rel32` is E8; all others are FF with 2 in the middle of the byte behind it, whose other bits say what follows:
    /// nothing, a byte, four bytes, and another byte before those where the lowest are 4 (Intel SDM, volume 2, CALL).
    ///
    /// One comparison after the other, since the verifier follows each of two that are joined both ways.
    #[inline(always)]
    fn ends_in_call(code: u64) -> bool {
        // FF and the byte behind it, if the instruction has so many bytes
        let at = |length: u32| (code >> (64 - 8 * length)) & 0xffff;
        if (code >> 24) & 0xff == 0xe8 {
            return true;
        }
        if at(2) & 0xf8ff == 0xd0ff {
            return true;
        }
        if at(2) & 0xf8ff == 0x10ff && at(2) & 0xfeff != 0x14ff {
            return true;
        }
        if at(3) == 0x14ff {
            return true;
        }
        if at(3) & 0xf8ff == 0x50ff && at(3) != 0x54ff {
            return true;
        }
        if at(4) == 0x54ff || at(6) == 0x15ff {
            return true;
        }
        if at(6) & 0xf8ff == 0x90ff && at(6) != 0x94ff {
            return true;
        }
        at(7) == 0x94ff || at(7) == 0x14ff
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

    /// `BL`, `BLR`, and the latter's forms with pointer authentication (Arm ARM, C6.2).
    #[inline(always)]
    fn ends_in_call(code: u64) -> bool {
        let instruction = (code >> 32) as u32;
        let direct = instruction >> 26 == 0b10_0101;
        let by_register = instruction & 0xffff_fc1f == 0xd63f_0000;
        let authenticated = instruction & 0xfeff_f800 == 0xd63f_0800;
        direct || by_register || authenticated
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

    fn x86_64_call(code: &[u8]) -> bool {
        let mut bytes = [0x90; 8];
        bytes[8 - code.len()..].copy_from_slice(code);
        X86_64::ends_in_call(u64::from_le_bytes(bytes))
    }

    #[test]
    fn calls_of_x86_64() {
        for call in [
            &[0xe8, 1, 2, 3, 4][..],                  // call rel32
            &[0xff, 0xd0],                            // call rax
            &[0x41, 0xff, 0xd3],                      // call r11
            &[0xff, 0x13],                            // call [rbx]
            &[0xff, 0x14, 0xc8],                      // call [rax+rcx*8]
            &[0xff, 0x50, 0x18],                      // call [rax+0x18]
            &[0x41, 0xff, 0x54, 0x24, 0x10],          // call [r12+0x10]
            &[0xff, 0x15, 1, 2, 3, 4],                // call [rip+disp32]
            &[0xff, 0x97, 0x30, 1, 0, 0],             // call [rdi+0x130]
            &[0x41, 0xff, 0x94, 0xc4, 0x40, 1, 0, 0], // call [r12+rax*8+0x140]
            &[0xff, 0x14, 0xc5, 0, 0x10, 0x40, 0],    // call [rax*8+0x401000]
        ] {
            assert!(x86_64_call(call), "{call:x?}");
        }
        for other in [&[0xff, 0xe0][..], &[0xff, 0x25, 1, 2, 3, 4], &[0xe9, 1, 2, 3, 4], &[0x55], &[0xff, 0x30]] {
            assert!(!x86_64_call(other), "{other:x?}");
        }
    }

    #[test]
    fn calls_of_aarch64() {
        let ends = |instruction: u32| Aarch64::ends_in_call(u64::from(instruction) << 32 | 0xd503_201f);
        // bl, blr x8, blraaz x8, blrab x8, x9
        assert!([0x9400_0010, 0x97ff_fff0, 0xd63f_0100, 0xd63f_091f, 0xd73f_0d09].into_iter().all(ends));
        // b, br x8, ret, nop
        assert!(![0x1400_0010, 0xd61f_0100, 0xd65f_03c0, 0xd503_201f].into_iter().any(ends));
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
