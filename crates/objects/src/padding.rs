//! What compilers and linkers fill the space between functions with.

use iced_x86::{Decoder, DecoderOptions, Mnemonic};

use crate::architecture::Architecture;

/// `nop` of aarch64.
const NOP: u32 = 0xd503_201f;
/// `brk` of aarch64 without its number, and the mask of that.
const BRK: (u32, u32) = (0xd420_0000, 0xffe0_001f);

/// Whether code does nothing, or traps. Zeros are a filling, too.
pub fn is_padding(architecture: Architecture, code: &[u8]) -> bool {
    match architecture {
        Architecture::X86_64 => is_padding_of_x86_64(code),
        Architecture::Aarch64 => code.chunks(4).all(|word| match <[u8; 4]>::try_from(word).map(u32::from_le_bytes) {
            Ok(word) => word == 0 || word == NOP || word & BRK.1 == BRK.0,
            Err(_) => word.iter().all(|byte| *byte == 0),
        }),
    }
}

fn is_padding_of_x86_64(code: &[u8]) -> bool {
    // most of it, without decoding
    if code.iter().all(|byte| *byte == 0xcc) || code.iter().all(|byte| *byte == 0x90) {
        return true;
    }
    let mut decoder = Decoder::new(64, code, DecoderOptions::NONE);
    while decoder.can_decode() {
        if code[decoder.position()..].iter().all(|byte| *byte == 0) {
            return true;
        }
        if !matches!(decoder.decode().mnemonic(), Mnemonic::Nop | Mnemonic::Int3 | Mnemonic::Ud2 | Mnemonic::Hlt) {
            return false;
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn padding_of_x86_64() {
        let is = |code: &[u8]| is_padding(Architecture::X86_64, code);
        // data16 cs nop word [rax+rax]; nop dword [rax]; int3; zeros
        assert!(is(&[0x66, 0x2e, 0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0]));
        assert!(is(&[0x0f, 0x1f, 0, 0xcc, 0xcc]) && is(&[0; 7]) && is(&[0x90, 0, 0, 0]) && is(&[]));
        // endbr64; ret; the system call of clone
        assert!(!is(&[0xf3, 0x0f, 0x1e, 0xfa]) && !is(&[0xc3]) && !is(&[0x0f, 0x05, 0x48, 0x85, 0xc0, 0xc3]));
    }

    #[test]
    fn padding_of_aarch64() {
        let is = |words: &[u32]| {
            let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
            is_padding(Architecture::Aarch64, &bytes)
        };
        assert!(is(&[0xd503_201f, 0, 0xd420_7d00]));
        // ret; svc #0
        assert!(!is(&[0xd65f_03c0]) && !is(&[0xd503_201f, 0xd400_0001]));
    }
}
