//! Where functions that realign their stack have given the frame pointer back.
//!
//! gcc (12.2) says of such a function that the caller's rbp is at rbp, and does not take it back where rbp is restored:
//!
//! ```text
//!   mov  -8(%rbp), %r10      CFA = r10, rbp at rbp
//!   leave                    CFA = r10, rbp at rbp      ◀── rbp is the caller's here
//!   lea  -8(%r10), %rsp      CFA = rsp+8, rbp at rbp    ◀── and here
//!   ret
//! ```
//! Who believes that reads the caller's frame record as if it were this function's, and leaves the caller's caller out.

use abi::table::{Rule, cfa, fp};
use iced_x86::{Code, Decoder, DecoderOptions, Register};

use crate::architecture::Architecture;
use crate::image::Image;

/// Corrects the rows of a function that ends at `end`.
pub(crate) fn correct(image: &Image, rows: &mut Vec<(u64, Rule)>, end: u64) {
    if image.architecture() != Architecture::X86_64 {
        return;
    }
    let mut index = 0;
    while let Some((begin, rule)) = rows.get(index).copied() {
        index += 1;
        let row_end = rows.get(index).map_or(end, |next| next.0);
        if (rule.fp, rule.fp_offset) != (fp::AT_FP, 0) {
            continue;
        }
        let given_back = Rule { fp: fp::SAME, ..rule };
        if rule.cfa == cfa::SP && rule.cfa_offset == 8 {
            // nothing but the return address is left on the stack
            rows[index - 1].1 = given_back;
        } else if rule.cfa == cfa::REGISTER
            && let Some(at) = behind_restore(image.file_bytes(begin, row_end - begin))
        {
            rows.insert(index, (begin + at, given_back));
            index += 1;
        }
    }
}

/// The place behind the first instruction that restores rbp, if there is more code.
fn behind_restore(code: &[u8]) -> Option<u64> {
    let mut instructions = Decoder::with_ip(64, code, 0, DecoderOptions::NONE).into_iter();
    let restore = instructions.find(|instruction| match instruction.code() {
        Code::Leaveq => true,
        Code::Pop_r64 => instruction.op0_register() == Register::RBP,
        _ => false,
    })?;
    Some(restore.next_ip()).filter(|at| *at < code.len() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ways_to_restore() {
        // mov -8(%rbp),%r10; leave; add %rcx,%rax; lea -8(%r10),%rsp
        let leave = [0x4c, 0x8b, 0x55, 0xf8, 0xc9, 0x48, 0x01, 0xc8, 0x49, 0x8d, 0x62, 0xf8];
        assert_eq!(behind_restore(&leave), Some(5));
        assert_eq!(behind_restore(&leave[..5]), None, "the row ends there");
        assert_eq!(behind_restore(&leave[..4]), None);
        // pop %r12; pop %rbp; lea -8(%r10),%rsp
        assert_eq!(behind_restore(&[0x41, 0x5c, 0x5d, 0x49, 0x8d, 0x62, 0xf8]), Some(3));
        assert_eq!(behind_restore(&[0x41, 0x5d, 0x49, 0x8d, 0x62, 0xf8]), None, "pop %r13");
        assert_eq!(behind_restore(&[0x41, 0x52]), None, "push %r10");
    }
}
