//! Where functions begin.

use std::collections::{BTreeMap, BTreeSet};

use super::space::Space;
use crate::image::{Image, Section};
use crate::limits::{MAX_DERIVED_FUNCTIONS, MAX_SYMBOLS};

const SHT_SYMTAB: u32 = 2;
const SHT_RELA: u32 = 4;
const SHT_DYNSYM: u32 = 11;
/// Bytes of a symbol and of a relocation (System V ABI, chapter 4).
const SYMBOL: usize = 24;
const RELOCATION: usize = 24;
/// Kinds of symbols that are functions: `STT_FUNC`, `STT_GNU_IFUNC`.
const FUNCTIONS: [u8; 2] = [2, 10];
/// `R_X86_64_RELATIVE` (AMD64 supplement, table 4.10).
const RELATIVE: u32 = 8;

/// What tells that a function begins at a place.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(super) struct Beginning {
    /// A symbol of a function.
    pub symbol: bool,
    /// The symbol's size in bytes; 0 if it has none.
    pub size: u64,
    /// A direct call.
    pub called: bool,
    /// A return that fits.
    pub returns: bool,
    /// First instructions such as functions have.
    pub looks_like_one: bool,
}

impl Beginning {
    /// Whether more than its address tells that it is a function.
    pub(super) fn is_certain(&self) -> bool {
        self.symbol || self.called
    }

    /// Whether a function begins there, so that no other goes on there.
    pub(super) fn is_function(&self) -> bool {
        self.symbol || self.called || self.returns || self.looks_like_one
    }
}

/// Functions by their symbols.
pub(super) fn symbols(image: &Image, space: &Space<'_>) -> BTreeMap<u64, Beginning> {
    let mut found: BTreeMap<u64, Beginning> = BTreeMap::new();
    let tables = image.sections().filter(|section| [SHT_SYMTAB, SHT_DYNSYM].contains(&section.kind));
    let symbols = tables.flat_map(|section| section.bytes.chunks_exact(SYMBOL)).take(MAX_SYMBOLS);
    for symbol in symbols {
        let (vaddr, size) = (word(symbol, 8), word(symbol, 16));
        let defined = symbol[6..8] != [0, 0];
        if found.len() >= MAX_DERIVED_FUNCTIONS {
            break;
        }
        if defined && FUNCTIONS.contains(&(symbol[4] & 15)) && space.contains(vaddr) {
            let beginning = found.entry(vaddr).or_default();
            beginning.symbol = true;
            beginning.size = beginning.size.max(size);
        }
    }
    end_before_next(&mut found);
    found
}

/// No function reaches into the next one, whatever its symbol says.
fn end_before_next(found: &mut BTreeMap<u64, Beginning>) {
    let mut next = u64::MAX;
    for (vaddr, beginning) in found.iter_mut().rev() {
        beginning.size = beginning.size.min(next - vaddr);
        next = *vaddr;
    }
}

/// Addresses of code in the data of a file that is loaded anywhere.
pub(super) fn relocated(image: &Image, space: &Space<'_>) -> BTreeSet<u64> {
    let tables = image.sections().filter(|section: &Section<'_>| section.kind == SHT_RELA);
    let all = tables.flat_map(|section| section.bytes.chunks_exact(RELOCATION)).take(MAX_SYMBOLS);
    let relative = all.filter(|relocation| word(relocation, 8) as u32 == RELATIVE);
    relative.map(|relocation| word(relocation, 16)).filter(|vaddr| space.contains(*vaddr)).collect()
}

fn word(bytes: &[u8], at: usize) -> u64 {
    bytes.get(at..).and_then(<[u8]>::first_chunk).map_or(0, |word| u64::from_le_bytes(*word))
}
