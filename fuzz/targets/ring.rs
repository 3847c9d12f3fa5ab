//! Records of the sampler's ring buffer: stacks, deferred samples, and pieces of code objects.
#![no_main]

use abi::record::{COPY_BYTES, FRAGMENTS, KERNEL_WORDS, WORDS};
use abi::word::Word;
use libfuzzer_sys::fuzz_target;
use recorder::fuzzing::{Decoded, record};

/// Distances from the stack pointer.
const DISTANCES: [u64; 8] = [0, 1, 8, 4089, 4096, 1 << 20, u64::MAX, u64::MAX - 7];

fuzz_target!(|bytes: &[u8]| match record(bytes, &DISTANCES) {
    None | Some(Decoded::GivenAway) => {}
    Some(Decoded::Code { pieces, .. }) => {
        assert!(pieces.len() <= FRAGMENTS);
        assert!(pieces.iter().map(|(_, piece)| piece.len()).sum::<usize>() <= bytes.len());
    }
    Some(Decoded::Stack(words)) => {
        assert!(words.len() <= WORDS + 1);
        words.iter().for_each(|word| _ = Word::decode(*word));
    }
    Some(Decoded::Deferred { kernel, sp, stack, read }) => {
        assert!(kernel.len() <= KERNEL_WORDS && stack.len() <= COPY_BYTES);
        for (distance, word) in DISTANCES.into_iter().zip(read) {
            let Some(word) = word else { continue };
            let at = sp.wrapping_add(distance).wrapping_sub(sp & !7) as usize;
            assert_eq!(stack[at..at + 8], word.to_ne_bytes());
        }
    }
});
