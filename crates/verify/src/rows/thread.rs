//! A made-up thread: registers and memory that follow from a seed, the same for both sides of a comparison.
//!
//! Two descriptions of one place are held to be the same if they give the same caller. The distances between stack
//! pointer, frame pointer and all other registers are random and far larger than any offset in a rule, and every word
//! of memory is another number, so that two different rules cannot give one caller by chance but with a probability of
//! about 2^-40 for each seed.

use abi::record::Registers;

/// DWARF number of rsp.
pub(crate) const RSP: u16 = 7;
/// DWARF number of rbp.
pub(crate) const RBP: u16 = 6;
/// DWARF number of the column of the return address, the caller's rip.
pub(crate) const RA: u16 = 16;

/// How the place was reached, which says by which byte it is looked up.
#[derive(Clone, Copy, PartialEq, Eq, Debug, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// The thread was interrupted at the place.
    Interrupted,
    /// A call that ends with the byte at the place has not returned yet.
    Called,
}

/// A thread at a place.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Thread {
    pub(crate) mode: Mode,
    /// Program counter: the place, or the return address behind it.
    pub(crate) pc: u64,
    seed: u64,
}

impl Thread {
    pub(crate) fn new(place: u64, mode: Mode, seed: u64) -> Thread {
        let pc = match mode {
            Mode::Interrupted => place,
            Mode::Called => place.wrapping_add(1),
        };
        Thread { mode, pc, seed }
    }

    /// The register with a DWARF number. All are aligned as a stack pointer is, and rise: rsp, rbp, the others.
    pub(crate) fn register(&self, number: u16) -> u64 {
        let random = scramble(self.seed ^ u64::from(number) << 8) & 0x1ff_ffff_fff0;
        match number {
            RA => self.pc,
            RSP => 0x1000_0000_0000 + random,
            RBP => 0x1400_0000_0000 + random,
            _ => 0x1800_0000_0000 + random,
        }
    }

    /// The 8 bytes at an address: a number that could be an address, above all registers and aligned.
    pub(crate) fn memory(&self, address: u64) -> u64 {
        0x2000_0000_0000 | scramble(address ^ self.seed << 1) & 0x0fff_ffff_fff8
    }

    /// The registers as a sample has them.
    pub(crate) fn registers(&self) -> Registers {
        let mut registers =
            Registers { pc: self.pc, sp: self.register(RSP), fp: self.register(RBP), ..Registers::ZERO };
        for (number, value) in registers.all.iter_mut().enumerate().take(16) {
            *value = self.register(number as u16);
        }
        registers
    }
}

/// SplitMix64 (Steele, Lea and Flood, 2014).
fn scramble(seed: u64) -> u64 {
    let z = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ z >> 31
}
