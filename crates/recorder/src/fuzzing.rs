//! Doors for the fuzz targets, of which nothing else knows.

use crate::ring::{Record, decode};

/// What a record of the ring buffer holds.
pub enum Decoded {
    /// Words of a new stack.
    Stack(Vec<u64>),
    /// Memory that was given away.
    GivenAway,
    /// A code object of Python: its address, its check, and pieces of memory with theirs.
    Code {
        /// Address of the code object.
        address: u64,
        /// Its check.
        check: u32,
        /// Addresses and bytes.
        pieces: Vec<(u64, Vec<u8>)>,
    },
    /// A deferred sample: its kernel words, and its copy of the stack.
    Deferred {
        /// Kernel words.
        kernel: Vec<u64>,
        /// Where the copy begins.
        sp: u64,
        /// The copy.
        stack: Vec<u8>,
        /// What the walk reads at addresses that were asked for.
        read: Vec<Option<u64>>,
    },
}

/// Decodes a record, and reads the copied stack at each distance from the stack pointer.
pub fn record(bytes: &[u8], distances: &[u64]) -> Option<Decoded> {
    Some(match decode(bytes)? {
        Record::GivenAway(_) => Decoded::GivenAway,
        Record::Code(code) => Decoded::Code { address: code.code, check: code.check, pieces: code.pieces },
        Record::Stack(stack) => Decoded::Stack(stack.words),
        Record::Deferred(sample) => {
            let sp = sample.registers.sp;
            let read = distances.iter().map(|distance| sample.word(sp.wrapping_add(*distance))).collect();
            Decoded::Deferred { kernel: sample.kernel, sp, stack: sample.stack, read }
        }
    })
}
