//! Fields of one object, read at once.
//!
//! What a read of another process's memory costs is the call, not the bytes. In the kernel, eight reads of a word made a frame of
//! CPython 3.12 take 670 ns; two reads of up to 96 bytes, 200 ns (x86_64, Linux 6.18 with return thunks, `cargo xtask bench
//! python`, 999 Hz).

use abi::python::{CodeFacts, NONE, Python};

use super::Memory;

/// Words of a block; a power of two, and the last one is never used.
pub const WORDS: usize = 16;
/// Bytes that are read at once, at most: the highest multiple of 8 below 128, which is a mask of bits.
pub const MOST: u32 = 120;
const WORD: u16 = 8;

/// Where an object's fields lie: from the word of the first one to that of the last one.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Span {
    /// Distance of the first word from the object's begin, in bytes.
    begin: u16,
    /// Bytes from there to the end of the last word; a multiple of 8.
    bytes: u16,
    /// Bit `i`: word `i` has a field.
    wanted: u16,
    reserved: u16,
}

impl Span {
    /// Of nothing.
    pub const ZERO: Span = Span { begin: 0, bytes: 0, wanted: 0, reserved: 0 };

    /// Of what is read of each frame.
    #[inline(always)]
    pub fn of_frame(python: &Python) -> Span {
        Span::over([python.code, python.back, python.lasti, python.owner])
    }

    /// Of what is compared of code objects.
    #[inline(always)]
    pub fn of_code(facts: &CodeFacts) -> Span {
        Span::over(facts.checked)
    }

    /// Of the words around these bytes of an object, except [`NONE`].
    #[inline(always)]
    fn over<const COUNT: usize>(offsets: [u16; COUNT]) -> Span {
        let (mut first, mut last) = (NONE, 0);
        for offset in offsets {
            if offset != NONE {
                let word = offset & !(WORD - 1);
                first = if word < first { word } else { first };
                last = if word > last { word } else { last };
            }
        }
        let mut wanted = 0;
        for offset in offsets {
            if offset != NONE {
                wanted |= 1 << index_of(first, offset);
            }
        }
        Span { begin: first, bytes: last.wrapping_sub(first).wrapping_add(WORD), wanted, reserved: 0 }
    }

    /// Of so many words from this byte on.
    #[inline(always)]
    pub fn of_words(begin: u16, count: u16) -> Span {
        Span { begin, bytes: count * 8, wanted: (1 << count) - 1, ..Span::ZERO }
    }

    /// Whether the fields are near enough to each other.
    #[inline(always)]
    pub fn fits(self) -> bool {
        self.bytes as u32 <= MOST
    }

    /// How many bytes lie between the begin of the first word and the end of the last one.
    #[inline(always)]
    pub fn bytes(self) -> u32 {
        self.bytes as u32
    }

    /// Address of a word of the object at `object`.
    #[inline(always)]
    pub fn address(self, object: u64, index: usize) -> u64 {
        object.wrapping_add(self.begin as u64).wrapping_add(index as u64 * WORD as u64)
    }

    /// Whether this word has a field.
    #[inline(always)]
    pub fn wants(self, index: usize) -> bool {
        self.wanted >> (index & (WORDS - 1)) & 1 != 0
    }

    /// Reads each word that has a field by itself. False: one cannot be read.
    #[inline(always)]
    pub fn read_by_words(self, object: u64, into: &mut [u64; WORDS], mut read: impl FnMut(u64) -> Option<u64>) -> bool {
        for (index, word) in into.iter_mut().enumerate() {
            if self.wants(index) {
                let Some(value) = read(self.address(object, index)) else { return false };
                *word = value;
            }
        }
        true
    }
}

#[inline(always)]
fn index_of(begin: u16, offset: u16) -> usize {
    (offset.wrapping_sub(begin) / WORD) as usize & (WORDS - 1)
}

/// Words of an object.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Block {
    words: [u64; WORDS],
}

impl Block {
    /// All 0.
    pub const ZERO: Block = Block { words: [0; WORDS] };

    /// Reads the fields of the object at `object`. False: they cannot be read, or lie too far from each other.
    #[inline(always)]
    pub fn read<M: Memory>(&mut self, memory: &mut M, object: u64, span: Span) -> bool {
        span.fits() && memory.read_span(object, span, &mut self.words)
    }

    /// The word around this byte of the object that was read with this span.
    #[inline(always)]
    pub fn word(&self, span: Span, offset: u16) -> u64 {
        self.words[index_of(span.begin, offset)]
    }

    /// The word with this number of those that were read.
    #[inline(always)]
    pub fn first(&self, number: usize) -> u64 {
        self.words[number & (WORDS - 1)]
    }

    /// What that word has from this byte on.
    #[inline(always)]
    pub fn from(&self, span: Span, offset: u16) -> u64 {
        self.word(span, offset) >> ((offset & (WORD - 1)) * 8)
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;
    use std::vec::Vec;

    const OBJECT: u64 = 0x7000_1000;

    /// Memory that has a word of its own at each of these offsets of the object, and nothing else.
    fn memory(offsets: &[u16]) -> BTreeMap<u64, u64> {
        let words = offsets.iter().filter(|offset| **offset != NONE).map(|offset| OBJECT + u64::from(offset & !7));
        words.map(|address| (address, address.wrapping_mul(0x9e37_79b9_7f4a_7c15))).collect()
    }

    proptest! {
        /// The oracle is a read of each word by itself.
        #[test]
        fn a_block_has_each_field(begin in 0..1000u16, near in prop::collection::vec(0..112u16, 4), none in 0..4usize) {
            let mut offsets: Vec<u16> = near.iter().map(|offset| begin + offset).collect();
            offsets[none] = NONE;
            let span = Span::over::<4>(offsets.clone().try_into().unwrap());
            prop_assert!(span.fits(), "{span:?}");
            let mut words = memory(&offsets);
            let mut block = Block::ZERO;
            prop_assert!(block.read(&mut words, OBJECT, span));
            for offset in offsets.into_iter().filter(|offset| *offset != NONE) {
                let word = words[&(OBJECT + u64::from(offset & !7))];
                prop_assert_eq!(block.word(span, offset), word);
                prop_assert_eq!(block.from(span, offset) as u8, word.to_le_bytes()[usize::from(offset & 7)]);
            }
        }

        /// Whatever a span and an offset are, nothing lies outside of a block.
        #[test]
        fn no_offset_leads_out(offsets: [u16; 4], other: u16, object: u64) {
            let span = Span::over(offsets);
            let mut block = Block::ZERO;
            let read = block.read(&mut memory(&offsets), object, span);
            prop_assert!(!read || span.bytes() <= MOST);
            let _ = block.from(span, other);
        }
    }

    #[test]
    fn a_field_that_cannot_be_read_is_told() {
        let offsets = [0, 8, 56, 70];
        let span = Span::over(offsets);
        assert_eq!((span.begin, span.bytes), (0, 72));
        for gone in offsets {
            let mut words = memory(&offsets);
            words.remove(&(OBJECT + u64::from(gone & !7)));
            assert!(!Block::ZERO.clone().read(&mut words, OBJECT, span), "{gone}");
        }
    }

    #[test]
    fn fields_far_from_each_other_are_refused() {
        let offsets = [16, 128, NONE];
        assert!(Span::over(offsets).fits());
        assert!(Block::ZERO.clone().read(&mut memory(&offsets), OBJECT, Span::over(offsets)));
        let offsets = [15, 128, NONE];
        assert!(!Span::over(offsets).fits());
        assert!(!Block::ZERO.clone().read(&mut memory(&offsets), OBJECT, Span::over(offsets)));
    }
}
