//! Reading `.symtab` and `.dynsym`.

use object::elf::{
    SHN_ABS, SHN_LORESERVE, SHN_UNDEF, SHT_DYNSYM, SHT_SYMTAB, STB_LOCAL, STB_WEAK, STT_FUNC, STT_GNU_IFUNC, STT_NOTYPE,
};

use crate::Reason;
use crate::contents::Input;
use crate::layout::{Layout, Section};
use crate::table::{Candidate, Name, TableBuilder};

/// The most that is read of a symbol or string table, in bytes.
const MAX_TABLE: u64 = 1 << 30;
/// How far a symbol of `.dynsym` without a size reaches, in bytes: the table leaves out so much that a longer reach
/// would name other functions.
const DYNAMIC_REACH: u64 = 64;

/// How much of a name tells which of several is preferred, in bytes: ten bits of the rank.
const RANKED: u16 = 1023;

/// Which symbol table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    /// `.symtab`: all symbols.
    Full,
    /// `.dynsym`: what is exported or imported.
    Dynamic,
}

/// A symbol as the file has it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Symbol {
    pub(crate) name: u32,
    info: u8,
    section: u16,
    value: u64,
    size: u64,
}

/// A symbol table and its strings.
pub(crate) struct Symbols {
    bytes: Vec<u8>,
    is_64: bool,
    pub(crate) strings: Vec<u8>,
}

impl Symbols {
    /// Reads the table of a kind; `None` if the file has none.
    pub(crate) fn read(input: &Input<'_>, layout: &Layout, kind: Kind) -> Result<Option<Symbols>, Reason> {
        let wanted = if kind == Kind::Full { SHT_SYMTAB } else { SHT_DYNSYM };
        let table = layout.sections.iter().find(|section| section.kind == wanted && section.has_contents());
        let Some(table) = table else { return Ok(None) };
        let Some(strings) = layout.sections.get(table.link as usize).filter(|strings| strings.has_contents()) else {
            return Ok(None);
        };
        Ok(Some(Symbols {
            bytes: input.section(layout, table, MAX_TABLE)?,
            is_64: layout.is_64,
            strings: input.section(layout, strings, MAX_TABLE)?,
        }))
    }

    /// The symbol of an index.
    pub(crate) fn get(&self, index: usize) -> Option<Symbol> {
        let size = if self.is_64 { 24 } else { 16 };
        let bytes = self.bytes.get(index.checked_mul(size)?..)?.get(..size)?;
        Some(parse(bytes, self.is_64))
    }

    fn iter(&self) -> impl Iterator<Item = Symbol> {
        let size = if self.is_64 { 24 } else { 16 };
        self.bytes.chunks_exact(size).map(|bytes| parse(bytes, self.is_64))
    }

    /// The raw name of a symbol, or as much of it as `most` bytes.
    pub(crate) fn name(&self, symbol: Symbol, most: usize) -> &[u8] {
        string_at(&self.strings, symbol.name, most)
    }
}

/// The string at an offset of a string table, or as much of it as `most` bytes: a table may hold one endless string, to
/// which millions of symbols point.
pub(crate) fn string_at(strings: &[u8], offset: u32, most: usize) -> &[u8] {
    let rest = strings.get(offset as usize..).unwrap_or_default();
    let rest = rest.get(..most).unwrap_or(rest);
    rest.split(|byte| *byte == 0).next().unwrap_or_default()
}

/// Parses a symbol; `bytes` has the size of one.
fn parse(bytes: &[u8], is_64: bool) -> Symbol {
    let half = |at: usize| u16::from_le_bytes([bytes[at], bytes[at + 1]]);
    let word = |at: usize| u32::from(half(at)) | u32::from(half(at + 2)) << 16;
    let long = |at: usize| u64::from(word(at)) | u64::from(word(at + 4)) << 32;
    if is_64 {
        Symbol { name: word(0), info: bytes[4], section: half(6), value: long(8), size: long(16) }
    } else {
        Symbol { name: word(0), info: bytes[12], section: half(14), value: word(4).into(), size: word(8).into() }
    }
}

/// Adds the functions of a symbol table; whether it has any, wanted or not.
pub(crate) fn add(builder: &mut TableBuilder, input: &Input<'_>, layout: &Layout, kind: Kind) -> Result<bool, Reason> {
    let Some(mut symbols) = Symbols::read(input, layout, kind)? else { return Ok(false) };
    let strings = builder.strings(Vec::new());
    let mut any = false;
    for symbol in symbols.iter() {
        // first what takes no look at the name: it is in another place of the file for each symbol
        if any && !builder.is_open_to(symbol.value, symbol.size) {
            continue;
        }
        if let Some(candidate) = candidate(symbol, &symbols, layout, kind, strings) {
            builder.add(candidate);
            any = true;
        }
    }
    builder.fill(strings, std::mem::take(&mut symbols.strings));
    Ok(any)
}

/// What a symbol may name; `None` if it is no function.
fn candidate(symbol: Symbol, symbols: &Symbols, layout: &Layout, kind: Kind, strings: u16) -> Option<Candidate> {
    let (type_, section) = (symbol.info & 0xf, symbol.section);
    let is_function = type_ == STT_FUNC || type_ == STT_GNU_IFUNC;
    if !is_function && type_ != STT_NOTYPE || section == SHN_UNDEF || section == SHN_ABS {
        return None;
    }
    let name = symbols.name(symbol, usize::from(RANKED));
    // local labels, mapping symbols ($x, $d) and notes of compilers are no functions
    if name.is_empty() || !is_function && matches!(name[0], b'.' | b'$') {
        return None;
    }
    let code = code_at(symbol, layout);
    if !code.is_some_and(|section| section.code().contains(&symbol.value)) && (!is_function || symbol.size == 0) {
        return None;
    }
    let end = code.map_or(symbol.value, |section| section.code().end);
    let limit = if kind == Kind::Full { end } else { end.min(symbol.value.saturating_add(DYNAMIC_REACH)) };
    let name_at = Name { strings, offset: symbol.name };
    Some(Candidate {
        start: symbol.value,
        size: symbol.size,
        limit,
        rank: rank(symbol, is_function, name),
        name: name_at,
    })
}

/// The section that a symbol is in.
fn code_at(symbol: Symbol, layout: &Layout) -> Option<&Section> {
    if symbol.section < SHN_LORESERVE {
        return layout.sections.get(usize::from(symbol.section));
    }
    layout.sections.iter().find(|section| section.code().contains(&symbol.value))
}

/// Which of several names of one place people expect: a function, visible from outside, without leading underscores
/// (`write`, not `__write`), short.
fn rank(symbol: Symbol, is_function: bool, name: &[u8]) -> u16 {
    let underscores = name.iter().take_while(|byte| **byte == b'_').count().min(7) as u16;
    // the mangled names of C++ and Rust begin with one
    let underscores = if name.starts_with(b"_Z") || name.starts_with(b"_R") { 0 } else { underscores };
    let binding = symbol.info >> 4;
    u16::from(!is_function) << 15
        | u16::from(binding == STB_LOCAL) << 14
        | underscores << 11
        | u16::from(binding == STB_WEAK) << 10
        | name.len().min(usize::from(RANKED)) as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_are_read_to_their_end_or_not_far() {
        let strings = b"\0main\0endless";
        assert_eq!(string_at(strings, 1, 100), b"main");
        assert_eq!(string_at(strings, 3, 100), b"in");
        assert_eq!(string_at(strings, 1, 2), b"ma");
        assert_eq!(string_at(strings, 6, 3), b"end");
        assert_eq!(string_at(strings, 6, 100), b"endless");
        for outside in [0, strings.len() as u32, u32::MAX] {
            assert_eq!(string_at(strings, outside, 100), b"");
        }
    }
}
