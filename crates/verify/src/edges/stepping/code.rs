//! What instructions do to the stack of calls.

use iced_x86::{Code, Decoder, DecoderOptions, FastFormatter, Instruction};
use processes::memory::read_memory;
use rustc_hash::FxHashMap;

/// Bytes of the longest instruction.
const LONGEST: usize = 15;

/// What matters of an instruction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Effect {
    /// A call, and the address behind it.
    Call(u64),
    /// A return.
    Return,
    /// A pop, of whatever.
    Pop,
    /// A system call.
    Syscall,
    /// Anything else.
    None,
}

/// Instructions of a process, decoded once.
#[derive(Default)]
pub struct Instructions {
    known: FxHashMap<u64, Effect>,
}

impl Instructions {
    /// Code was mapped or unmapped.
    pub fn forget(&mut self) {
        self.known.clear();
    }

    /// What the instruction at `pc` does.
    pub fn effect(&mut self, pid: u32, pc: u64) -> Effect {
        *self
            .known
            .entry(pc)
            .or_insert_with(|| decode(pid, pc).map_or(Effect::None, |instruction| effect(&instruction)))
    }
}

/// The instruction at `pc` in words.
pub fn disassemble(pid: u32, pc: u64) -> String {
    let Some(instruction) = decode(pid, pc) else { return "(unreadable)".to_owned() };
    let mut text = String::new();
    FastFormatter::new().format(&instruction, &mut text);
    text
}

fn decode(pid: u32, pc: u64) -> Option<Instruction> {
    let mut bytes = [0; LONGEST];
    let count = read_memory(pid, pc, &mut bytes).ok()?;
    Some(Decoder::with_ip(64, &bytes[..count], pc, DecoderOptions::NONE).decode())
}

fn effect(instruction: &Instruction) -> Effect {
    match instruction.code() {
        Code::Call_rel32_64 | Code::Call_rm64 => Effect::Call(instruction.next_ip()),
        Code::Retnq | Code::Retnq_imm16 => Effect::Return,
        Code::Syscall => Effect::Syscall,
        Code::Pop_r64 | Code::Pop_rm64 => Effect::Pop,
        _ => Effect::None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(bytes: &[u8]) -> Effect {
        effect(&Decoder::with_ip(64, bytes, 0x1000, DecoderOptions::NONE).decode())
    }

    #[test]
    fn effects() {
        assert_eq!(of(&[0xe8, 0, 0, 0, 0]), Effect::Call(0x1005));
        assert_eq!(of(&[0xff, 0xd0]), Effect::Call(0x1002), "call *%rax");
        assert_eq!(of(&[0xf2, 0xff, 0x15, 0, 0, 0, 0]), Effect::Call(0x1007), "bnd call *GOT(%rip)");
        assert_eq!(of(&[0x3e, 0xff, 0xd2]), Effect::Call(0x1003), "notrack call *%rdx");
        assert_eq!(of(&[0xc3]), Effect::Return);
        assert_eq!(of(&[0xf2, 0xc3]), Effect::Return, "bnd ret");
        assert_eq!(of(&[0xc2, 8, 0]), Effect::Return);
        assert_eq!(of(&[0x5a]), Effect::Pop, "pop %rdx");
        assert_eq!(of(&[0x8f, 0x47, 0x40]), Effect::Pop, "pop 64(%rdi)");
        assert_eq!(of(&[0x0f, 0x05]), Effect::Syscall);
        assert_eq!(of(&[0xff, 0xe0]), Effect::None, "jmp *%rax");
        assert_eq!(of(&[0x90]), Effect::None);
    }
}
