//! What the dynamic linker writes, and where: `DT_RELA`, `DT_JMPREL`, `DT_RELR`.
//!
//! Numbers of relocations are those of the processor supplements of the System V ABI (AMD64 1.0, AArch64 2023Q3).

use std::ops::Range;
use std::sync::OnceLock;

use object::LittleEndian as LE;
use object::elf;
use object::elf::Rela64;
use object::pod;

use super::Architecture;
use super::elf::Layout;
use super::symbols::{SymbolKind, Symbols};

/// Relocations of one table that are read. CPython's files have up to 60,000; a file with more than this has no slot whose
/// contents are known.
const MAX_RELOCATIONS: usize = 1 << 20;

/// What a word of eight bytes holds in a process that has loaded the file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Slot {
    /// An address in this file, and the symbol that the file names for it: an index for [`super::PythonFile::import_name`].
    Address {
        /// Before relocation.
        address: u64,
        /// The dynamic symbol, if it is by a symbol.
        symbol: Option<u32>,
    },
    /// The address of a symbol of another file, and bytes added to it.
    Import {
        /// For [`super::PythonFile::import_name`].
        symbol: u32,
        /// Bytes added.
        addend: i64,
    },
    /// The number of the module whose thread-local variables are meant, before the offset in its block: an argument of
    /// `__tls_get_addr`. The module is this file.
    ThreadModule {
        /// Offset of the variable in this file's block, without what the code adds.
        offset: u64,
    },
    /// The distance of a thread-local variable of this file from the thread pointer.
    ThreadDistance {
        /// Offset of the variable in this file's block.
        offset: u64,
    },
    /// A descriptor of a thread-local variable of this file: a function and its argument.
    ThreadDescriptor {
        /// Offset of the variable in this file's block.
        offset: u64,
    },
    /// Nobody writes to it, and this is there.
    Constant(u64),
    /// Nothing that can be known from the file.
    Variable,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    /// Symbol and addend, in a table of addresses.
    Symbol,
    /// The same, maybe in a variable.
    Initial,
    /// The addend is the address.
    Relative,
    /// What lies there is the address.
    RelativeInPlace,
    Module,
    OffsetInBlock,
    Distance,
    Descriptor,
    Other,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Relocation {
    at: u64,
    kind: Kind,
    symbol: u32,
    addend: i64,
}

/// All relocations of a file, by the address of what they change; read when first asked for.
#[derive(Debug)]
pub(super) struct Relocations(OnceLock<Table>);

#[derive(Debug)]
struct Table {
    sorted: Vec<Relocation>,
    /// Whether no more were there than are read.
    complete: bool,
}

impl Relocations {
    pub(super) fn new() -> Relocations {
        Relocations(OnceLock::new())
    }

    /// What the slot at an address holds; `None` if no relocation changes it.
    pub(super) fn slot(&self, layout: &Layout<'_>, symbols: &Symbols<'_>, address: u64) -> Option<Slot> {
        let relocation = match self.at(layout, address) {
            [] if !self.table(layout).complete => return Some(Slot::Variable),
            [] => return None,
            [relocation] => *relocation,
            // who wrote last is not worth knowing
            _ => return Some(Slot::Variable),
        };
        let own_offset = |symbol: u32, addend: i64| match symbol {
            0 => u64::try_from(addend).ok(),
            symbol => {
                let (symbol, defined) = symbols.dynamic(symbol)?;
                let own = defined && symbol.kind == SymbolKind::ThreadLocal;
                own.then(|| symbol.address.wrapping_add_signed(addend))
            }
        };
        let (symbol, addend) = (relocation.symbol, relocation.addend);
        if matches!(relocation.kind, Kind::Initial | Kind::Relative | Kind::RelativeInPlace)
            && !layout.is_constant(&(address..address.saturating_add(8)))
        {
            return Some(Slot::Variable);
        }
        let slot = match relocation.kind {
            Kind::Symbol | Kind::Initial => symbols.dynamic(symbol).map(|(found, defined)| match defined {
                true => Slot::Address { address: found.address.wrapping_add_signed(addend), symbol: Some(symbol) },
                false => Slot::Import { symbol, addend },
            }),
            Kind::Relative => Some(Slot::Address { address: addend as u64, symbol: None }),
            Kind::RelativeInPlace => {
                let there = layout.table(address, 8).first_chunk().map(|bytes| u64::from_le_bytes(*bytes));
                there.map(|address| Slot::Address { address, symbol: None })
            }
            Kind::Module => {
                let second = self.at(layout, address.wrapping_add(8));
                let offset = match second {
                    // the module is this one, and the linker knew the offset; lld names the symbol all the same
                    [] if symbol == 0 || symbols.dynamic(symbol).is_some_and(|(_, defined)| defined) => {
                        let there = layout.table(address.wrapping_add(8), 8).first_chunk();
                        there.map(|bytes| u64::from_le_bytes(*bytes))
                    }
                    [second] if second.kind == Kind::OffsetInBlock && second.symbol == symbol && symbol != 0 => {
                        own_offset(symbol, second.addend)
                    }
                    _ => None,
                };
                offset.map(|offset| Slot::ThreadModule { offset })
            }
            Kind::Distance => own_offset(symbol, addend).map(|offset| Slot::ThreadDistance { offset }),
            Kind::Descriptor => own_offset(symbol, addend).map(|offset| Slot::ThreadDescriptor { offset }),
            Kind::OffsetInBlock | Kind::Other => None,
        };
        Some(slot.unwrap_or(Slot::Variable))
    }

    /// The address in this file that a word of eight bytes holds when the file has been loaded, also one that is written to
    /// later; `None` if no relocation makes it one.
    pub(super) fn initial(&self, layout: &Layout<'_>, symbols: &Symbols<'_>, address: u64) -> Option<u64> {
        let &[relocation] = self.at(layout, address) else { return None };
        match relocation.kind {
            Kind::Relative => Some(relocation.addend as u64),
            Kind::RelativeInPlace => layout.table(address, 8).first_chunk().map(|bytes| u64::from_le_bytes(*bytes)),
            Kind::Symbol | Kind::Initial => {
                let (symbol, defined) = symbols.dynamic(relocation.symbol)?;
                defined.then(|| symbol.address.wrapping_add_signed(relocation.addend))
            }
            _ => None,
        }
    }

    /// Whether a relocation changes any of these bytes.
    pub(super) fn touches(&self, layout: &Layout<'_>, range: &Range<u64>) -> bool {
        let Table { sorted, complete } = self.table(layout);
        let next = sorted.partition_point(|relocation| relocation.at < range.end);
        !complete || sorted[..next].last().is_some_and(|relocation| relocation.at.saturating_add(8) > range.start)
    }

    fn at(&self, layout: &Layout<'_>, address: u64) -> &[Relocation] {
        let all = &self.table(layout).sorted;
        let begin = all.partition_point(|relocation| relocation.at < address);
        let length = all[begin..].partition_point(|relocation| relocation.at == address);
        &all[begin..begin + length]
    }

    fn table(&self, layout: &Layout<'_>) -> &Table {
        self.0.get_or_init(|| {
            let dynamic = layout.dynamic.unwrap_or_default();
            let (mut all, mut complete) = (Vec::new(), true);
            for (address, size) in [(dynamic.rela, dynamic.rela_size), (dynamic.plt_rela, dynamic.plt_rela_size)] {
                let bytes = layout.table(address, size);
                let there = bytes.len() / size_of::<Rela64<LE>>();
                let count = there.min(MAX_RELOCATIONS);
                complete &= count == there;
                let entries = pod::slice_from_bytes::<Rela64<LE>>(bytes, count).map_or(&[][..], |(entries, _)| entries);
                all.extend(entries.iter().map(|entry| Relocation {
                    at: entry.r_offset.get(LE),
                    kind: kind(layout.architecture, entry.r_type(LE, false)),
                    symbol: entry.r_sym(LE, false),
                    addend: entry.r_addend.get(LE),
                }));
            }
            complete &= packed(layout.table(dynamic.relr, dynamic.relr_size), &mut all);
            all.sort_unstable_by_key(|relocation| relocation.at);
            // DT_RELA may cover DT_JMPREL
            all.dedup();
            Table { sorted: all, complete }
        })
    }
}

/// `DT_RELR`: an even word is an address, an odd one says which of the next 63 words are meant, too. `false`
/// if there are too many.
fn packed(bytes: &[u8], into: &mut Vec<Relocation>) -> bool {
    let mut next = 0u64;
    let limit = into.len() + MAX_RELOCATIONS;
    for word in bytes.chunks_exact(8) {
        let word = word.first_chunk().map_or(0, |word| u64::from_le_bytes(*word));
        let mut push = |at| into.push(Relocation { at, kind: Kind::RelativeInPlace, symbol: 0, addend: 0 });
        if word & 1 == 0 {
            push(word);
            next = word.wrapping_add(8);
        } else {
            (0..63).filter(|bit| word >> (bit + 1) & 1 == 1).for_each(|bit| push(next.wrapping_add(8 * bit)));
            next = next.wrapping_add(63 * 8);
        }
        if into.len() > limit {
            return false;
        }
    }
    true
}

fn kind(architecture: Architecture, number: u32) -> Kind {
    match (architecture, number) {
        (Architecture::X86_64, elf::R_X86_64_GLOB_DAT | elf::R_X86_64_JUMP_SLOT) => Kind::Symbol,
        (Architecture::X86_64, elf::R_X86_64_64) => Kind::Initial,
        (Architecture::X86_64, elf::R_X86_64_RELATIVE) => Kind::Relative,
        (Architecture::X86_64, elf::R_X86_64_DTPMOD64) => Kind::Module,
        (Architecture::X86_64, elf::R_X86_64_DTPOFF64) => Kind::OffsetInBlock,
        (Architecture::X86_64, elf::R_X86_64_TPOFF64) => Kind::Distance,
        (Architecture::X86_64, elf::R_X86_64_TLSDESC) => Kind::Descriptor,
        (Architecture::Aarch64, elf::R_AARCH64_GLOB_DAT | elf::R_AARCH64_JUMP_SLOT) => Kind::Symbol,
        (Architecture::Aarch64, elf::R_AARCH64_ABS64) => Kind::Initial,
        (Architecture::Aarch64, elf::R_AARCH64_RELATIVE) => Kind::Relative,
        (Architecture::Aarch64, elf::R_AARCH64_TLS_DTPMOD) => Kind::Module,
        (Architecture::Aarch64, elf::R_AARCH64_TLS_DTPREL) => Kind::OffsetInBlock,
        (Architecture::Aarch64, elf::R_AARCH64_TLS_TPREL) => Kind::Distance,
        (Architecture::Aarch64, elf::R_AARCH64_TLSDESC) => Kind::Descriptor,
        _ => Kind::Other,
    }
}
