//! Symbols of a file, by name and by address.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::{Mutex, OnceLock, PoisonError};

use object::LittleEndian as LE;
use object::elf;
use object::elf::{FileHeader64, Sym64};
use object::pod;
use object::read::elf::{GnuHashTable, HashTable};

use super::elf::{Layout, name};

/// Symbols of one table that are looked at. The largest browsers have about a million.
const MAX_SYMBOLS: usize = 4 << 20;
/// Names of one address that are looked at.
const MAX_ALIASES: usize = 16;

/// What a symbol stands for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SymbolKind {
    /// Code.
    Function,
    /// Data.
    Object,
    /// A thread-local variable; its address is an offset in the module's block.
    ThreadLocal,
    /// Something else.
    Other,
}

/// A symbol that the file defines.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Symbol<'a> {
    /// Its name, without a version.
    pub name: &'a [u8],
    /// Its address before relocation.
    pub address: u64,
    /// Bytes of what it stands for; 0 if nobody says.
    pub size: u64,
    /// What it stands for.
    pub kind: SymbolKind,
    /// Whether other objects can see it.
    pub global: bool,
}

#[derive(Clone, Copy, Debug)]
struct Table<'a> {
    symbols: &'a [Sym64<LE>],
    strings: &'a [u8],
}

/// Where a function's symbol is found again.
#[derive(Clone, Copy, Debug)]
struct Place {
    address: u64,
    dynamic: bool,
    index: u32,
}

/// The symbol tables.
#[derive(Debug)]
pub(super) struct Symbols<'a> {
    dynamic: Table<'a>,
    full: Table<'a>,
    by_address: OnceLock<Vec<Place>>,
    /// What was asked for. The names are ours, and few.
    asked: Mutex<HashMap<Box<[u8]>, Option<Symbol<'a>>>>,
}

impl<'a> Symbols<'a> {
    pub(super) fn new(layout: &Layout<'a>) -> Symbols<'a> {
        let by_section = |kind| section_table(layout, kind).unwrap_or(Table { symbols: &[], strings: &[] });
        let dynamic = dynamic_table(layout).unwrap_or_else(|| by_section(elf::SHT_DYNSYM));
        Symbols { dynamic, full: by_section(elf::SHT_SYMTAB), by_address: OnceLock::new(), asked: Mutex::default() }
    }

    pub(super) fn find(&self, wanted: &[u8]) -> Option<Symbol<'a>> {
        let mut asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(found) = asked.get(wanted) {
            return *found;
        }
        let mut tables = [self.dynamic, self.full].into_iter();
        let found = tables.find_map(|table| {
            let mut named = table.symbols.iter().filter(|symbol| table.is_named(symbol, wanted));
            named.find_map(|symbol| table.symbol(symbol))
        });
        asked.insert(wanted.into(), found);
        found
    }

    pub(super) fn mentions(&self, wanted: &[u8]) -> bool {
        [self.dynamic, self.full].iter().any(|table| table.symbols.iter().any(|symbol| table.is_named(symbol, wanted)))
    }

    /// A dynamic symbol, also one that is not defined here, and whether it is.
    pub(super) fn dynamic(&self, index: u32) -> Option<(Symbol<'a>, bool)> {
        self.dynamic.describe(self.dynamic.symbols.get(index as usize)?)
    }

    /// The functions at an address.
    pub(super) fn at(&self, address: u64) -> impl Iterator<Item = Symbol<'a>> {
        let places = self.places();
        let first = places.partition_point(|place| place.address < address);
        let here = places.iter().skip(first).take_while(move |place| place.address == address);
        here.take(MAX_ALIASES).filter_map(|place| {
            let table = if place.dynamic { self.dynamic } else { self.full };
            table.symbol(table.symbols.get(place.index as usize)?)
        })
    }

    /// From the last function symbol at or before an address to the next behind it.
    pub(super) fn around(&self, address: u64) -> Range<u64> {
        let places = self.places();
        let next = places.partition_point(|place| place.address <= address);
        let (before, behind) = places.split_at(next);
        before.last().map_or(0, |place| place.address)..behind.first().map_or(u64::MAX, |place| place.address)
    }

    /// All function symbols, by address.
    pub(super) fn functions(&self) -> impl Iterator<Item = Symbol<'a>> {
        self.places().iter().filter_map(|place| {
            let table = if place.dynamic { self.dynamic } else { self.full };
            table.symbol(table.symbols.get(place.index as usize)?)
        })
    }

    fn places(&self) -> &[Place] {
        self.by_address.get_or_init(|| {
            let mut places = Vec::new();
            for (dynamic, table) in [(true, self.dynamic), (false, self.full)] {
                for (index, symbol) in table.symbols.iter().enumerate() {
                    let Some(symbol) = table.symbol(symbol) else { continue };
                    if symbol.kind == SymbolKind::Function {
                        places.push(Place { address: symbol.address, dynamic, index: index as u32 });
                    }
                }
            }
            places.sort_unstable_by_key(|place| (place.address, place.dynamic, place.index));
            places
        })
    }
}

impl<'a> Table<'a> {
    fn is_named(&self, symbol: &Sym64<LE>, wanted: &[u8]) -> bool {
        let rest = self.strings.get(symbol.st_name.get(LE) as usize..).unwrap_or_default();
        rest.strip_prefix(wanted).is_some_and(|rest| rest.first() == Some(&0))
    }

    fn symbol(&self, symbol: &Sym64<LE>) -> Option<Symbol<'a>> {
        self.describe(symbol).filter(|(_, defined)| *defined).map(|(symbol, _)| symbol)
    }

    fn describe(&self, symbol: &Sym64<LE>) -> Option<(Symbol<'a>, bool)> {
        let kind = match symbol.st_type() {
            elf::STT_FUNC | elf::STT_GNU_IFUNC => SymbolKind::Function,
            elf::STT_OBJECT | elf::STT_COMMON => SymbolKind::Object,
            elf::STT_TLS => SymbolKind::ThreadLocal,
            _ => SymbolKind::Other,
        };
        let described = Symbol {
            name: name(self.strings, symbol.st_name.get(LE) as usize)?,
            address: symbol.st_value.get(LE),
            size: symbol.st_size.get(LE),
            kind,
            global: symbol.st_bind() != elf::STB_LOCAL,
        };
        Some((described, symbol.st_shndx.get(LE) != elf::SHN_UNDEF))
    }
}

/// The table that the dynamic linker uses. Only its hash tables tell how many symbols it has.
fn dynamic_table<'a>(layout: &Layout<'a>) -> Option<Table<'a>> {
    let dynamic = layout.dynamic.filter(|dynamic| dynamic.symbols != 0)?;
    let by_hash = || match dynamic.hash {
        0 => None,
        hash => {
            HashTable::<FileHeader64<LE>>::parse(LE, layout.bytes(hash)).ok().map(|hash| hash.symbol_table_length())
        }
    };
    let by_gnu_hash = || match dynamic.gnu_hash {
        0 => None,
        hash => GnuHashTable::<FileHeader64<LE>>::parse(LE, layout.bytes(hash)).ok()?.symbol_table_length(LE),
    };
    // a file that only imports has an empty GNU hash table, which tells nothing; its section header may
    let by_section = || {
        let section = layout.section_of_kind(elf::SHT_DYNSYM)?;
        Some((section.bytes.len() / size_of::<Sym64<LE>>()) as u32)
    };
    let count = by_hash().or_else(by_gnu_hash).or_else(by_section)?;
    let bytes = layout.bytes(dynamic.symbols);
    let count = (count as usize).min(MAX_SYMBOLS).min(bytes.len() / size_of::<Sym64<LE>>());
    let (symbols, _) = pod::slice_from_bytes(bytes, count).ok()?;
    Some(Table { symbols, strings: layout.table(dynamic.strings, dynamic.strings_size) })
}

fn section_table<'a>(layout: &Layout<'a>, kind: u32) -> Option<Table<'a>> {
    let section = layout.section_of_kind(kind)?;
    let count = (section.bytes.len() / size_of::<Sym64<LE>>()).min(MAX_SYMBOLS);
    let (symbols, _) = pod::slice_from_bytes(section.bytes, count).ok()?;
    Some(Table { symbols, strings: layout.sections.get(section.link)?.bytes })
}
