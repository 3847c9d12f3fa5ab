//! Code at the entry point: nothing called it.

use iced_x86::{Code, Decoder, DecoderOptions};

use crate::architecture::Architecture;

/// Where the first function begins that this code calls and that lies behind the call, if it lies within.
pub(crate) fn first_called(architecture: Architecture, code: &[u8]) -> Option<usize> {
    if architecture != Architecture::X86_64 {
        return None;
    }
    let calls = Decoder::with_ip(64, code, 0, DecoderOptions::NONE);
    let calls = calls.into_iter().filter(|instruction| instruction.code() == Code::Call_rel32_64);
    let targets = calls.filter(|call| call.near_branch_target() >= call.next_ip());
    let first = targets.map(|call| call.near_branch_target()).min()?;
    usize::try_from(first).ok().filter(|first| *first < code.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `_start` of musl, and the beginning of `_start_c`, which it calls.
    #[test]
    fn the_first_function_that_is_called() {
        let start = [0x31, 0xed, 0x48, 0x89, 0xe7, 0x48, 0x83, 0xe4, 0xf0, 0xe8, 3, 0, 0, 0, 0xf4, 0x90, 0x90, 0x55];
        assert_eq!(first_called(Architecture::X86_64, &start), Some(17));
        assert_eq!(first_called(Architecture::X86_64, &start[..17]), None, "it lies elsewhere");
        assert_eq!(first_called(Architecture::Aarch64, &start), None);
    }
}
