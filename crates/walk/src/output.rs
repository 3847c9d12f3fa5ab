//! Where a walk puts its words, and their hash.

use abi::record::{HEAD, WORDS};
use abi::stop::Stop;
use abi::word;

use crate::Walk;

/// Adds a word to a hash. A multiplication and a shift: every bit of the word reaches the upper half, and the shift
/// brings it down again. Equal stacks of one process are told apart by 64 bits.
#[inline(always)]
pub fn mix(hash: u64, word: u64) -> u64 {
    let hash = (hash ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    hash ^ hash >> 29
}

/// An index that is below [`WORDS`]. The compiler finds out by itself that it is, and leaves the mask out which shows it to the
/// verifier.
#[inline(always)]
#[allow(unused_mut)]
fn in_words(mut index: usize) -> usize {
    #[cfg(target_arch = "bpf")]
    // SAFETY: a bitwise and.
    unsafe {
        core::arch::asm!("{0} &= {1}", inout(reg) index, const WORDS - 1, options(pure, nomem, nostack));
    }
    index
}

impl Walk {
    /// The output has `kernel` words so far, whose hash this is.
    #[inline(always)]
    pub(crate) fn begin_output(&mut self, kernel: u32, hash: u64) {
        self.kernel_hash = hash;
        self.stack.header.key.hash = hash;
        self.stack.header.kernel = kernel;
        self.stack.header.total = kernel;
    }

    /// Appends a word; beyond [`HEAD`] it goes into the ring of outermost words.
    #[inline(always)]
    pub fn push(&mut self, word: u64) {
        let total = self.stack.header.total;
        let at = if total < WORDS as u32 { total as usize } else { HEAD + (total as usize & (HEAD - 1)) };
        self.stack.words[in_words(at) & (WORDS - 1)] = word;
        self.stack.header.total = total.wrapping_add(1);
        self.stack.header.key.hash = mix(self.stack.header.key.hash, word);
    }
}

impl Walk {
    /// Code of the [`Stop`] of a walk that has ended; 0 if it has not.
    #[inline(always)]
    pub fn stop_code(&self) -> u8 {
        let last = (self.stack.header.total as usize).wrapping_sub(1);
        let index = if last < WORDS { last } else { HEAD + (last & (HEAD - 1)) };
        let word = self.stack.words[index & (WORDS - 1)];
        if word >> word::TAG_SHIFT == word::kind::END as u64 { (word >> 48) as u8 } else { 0 }
    }

    /// Ends the walk of a task that is in the middle of `execve`. Until the old image is gone, its stack can be walked.
    /// From then until the new one begins, the saved registers belong to neither: what was found is thrown away unless
    /// it is a whole stack of several frames.
    #[inline(always)]
    pub fn settle_exec(&mut self) {
        let kernel = self.stack.header.kernel;
        let frames = self.stack.header.total.wrapping_sub(kernel).wrapping_sub(1);
        if self.stop_code() != Stop::Root as u8 || frames < 2 {
            self.begin_output(kernel, self.kernel_hash);
            self.end(Stop::Execing);
        }
    }
}

/// The words of a stack of `total` words in order, as written by [`Walk::push`]; where it was cut, a
/// [`word::kind::CUT`] word says how many are missing. `emit` is called once per word.
pub fn unroll(words: &[u64], total: u32, mut emit: impl FnMut(u64)) {
    let total = total as usize;
    if total <= words.len().min(WORDS) {
        words[..total].iter().copied().for_each(emit);
    } else if words.len() >= WORDS {
        words[..HEAD].iter().copied().for_each(&mut emit);
        emit(word::cut((total - WORDS) as u64));
        (total - HEAD..total).for_each(|index| emit(words[HEAD + (index & (HEAD - 1))]));
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::boxed::Box;
    use std::vec::Vec;

    fn pushed(count: u64) -> Vec<u64> {
        let mut walk = crate::tests::blank();
        walk.begin(0, 0);
        (0..count).for_each(|index| walk.push(index));
        let mut got = Vec::new();
        unroll(&walk.stack.words, walk.stack.header.total, |word| got.push(word));
        got
    }

    #[test]
    fn both_ends_are_kept() {
        for count in [0, 1, HEAD as u64, WORDS as u64 - 1, WORDS as u64] {
            assert_eq!(pushed(count), (0..count).collect::<Vec<_>>());
        }
        for count in [WORDS as u64 + 1, WORDS as u64 + HEAD as u64, 100_000, 100_001] {
            let got = pushed(count);
            let left_out = count - WORDS as u64;
            assert_eq!(got.len(), WORDS + 1);
            assert_eq!(got[..HEAD], (0..HEAD as u64).collect::<Vec<_>>());
            assert_eq!(got[HEAD], word::cut(left_out));
            assert_eq!(got[HEAD + 1..], (count - HEAD as u64..count).collect::<Vec<_>>());
        }
    }

    #[test]
    fn hash_depends_on_order_and_kernel_words() {
        let hash = |words: &[u64], kernel: u32| {
            let mut walk: Box<Walk> = crate::tests::blank();
            walk.stack.words[..kernel as usize].copy_from_slice(&words[..kernel as usize]);
            walk.begin(kernel, 0);
            words[kernel as usize..].iter().for_each(|word| walk.push(*word));
            walk.stack.header.key.hash
        };
        assert_ne!(hash(&[1, 2, 3], 0), hash(&[1, 3, 2], 0));
        assert_ne!(hash(&[1, 2, 3], 0), hash(&[1, 2], 0));
        assert_eq!(hash(&[1, 2, 3], 0), hash(&[1, 2, 3], 2));
    }
}
