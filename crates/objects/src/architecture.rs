//! The architectures, and the numbers that DWARF gives their registers.

use std::borrow::Cow;

/// An instruction set whose executables are understood.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Architecture {
    /// x86_64, 64-bit.
    X86_64,
    /// arm64, little-endian.
    Aarch64,
}

/// DWARF register numbers of the System V ABI, AMD64 supplement, figure 3.36.
const X86_64_NAMES: [&str; 17] = [
    "rax", "rdx", "rcx", "rbx", "rsi", "rdi", "rbp", "rsp", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15", "rip",
];

impl Architecture {
    /// The architecture with this `e_machine`.
    pub const fn from_machine(machine: u16) -> Option<Architecture> {
        match machine {
            62 => Some(Architecture::X86_64),
            183 => Some(Architecture::Aarch64),
            _ => None,
        }
    }

    /// `e_machine` of the architecture's ELF files.
    pub const fn machine(self) -> u16 {
        match self {
            Architecture::X86_64 => 62,
            Architecture::Aarch64 => 183,
        }
    }

    /// DWARF number of the stack pointer.
    pub const fn stack_pointer(self) -> u64 {
        match self {
            Architecture::X86_64 => 7,
            Architecture::Aarch64 => 31,
        }
    }

    /// DWARF number of the frame pointer.
    pub const fn frame_pointer(self) -> u64 {
        match self {
            Architecture::X86_64 => 6,
            Architecture::Aarch64 => 29,
        }
    }

    /// DWARF number of the column that holds the return address: a pseudo register on x86_64, x30 on aarch64.
    pub const fn return_address(self) -> u64 {
        match self {
            Architecture::X86_64 => 16,
            Architecture::Aarch64 => 30,
        }
    }

    /// Whether `register` is a general one that a CFA can be based on.
    pub(crate) const fn is_general(self, register: u64) -> bool {
        match self {
            Architecture::X86_64 => register < 16,
            Architecture::Aarch64 => register < 32,
        }
    }

    /// Assembler name of the register with this DWARF number; `register N` for one that is not general.
    pub fn register_name(self, register: u8) -> Cow<'static, str> {
        match (self, register) {
            (Architecture::X86_64, 0..=16) => Cow::Borrowed(X86_64_NAMES[register as usize]),
            (Architecture::Aarch64, 0..=30) => Cow::Owned(format!("x{register}")),
            (Architecture::Aarch64, 31) => Cow::Borrowed("sp"),
            _ => Cow::Owned(format!("register {register}")),
        }
    }
}

impl std::fmt::Display for Architecture {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Architecture::X86_64 => "x86_64",
            Architecture::Aarch64 => "aarch64",
        })
    }
}
