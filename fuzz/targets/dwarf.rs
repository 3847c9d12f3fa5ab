//! Names of code in a file whose headers are right and whose sections are not.
//!
//! Pieces ([`fuzz::parts`]) are sections.
#![no_main]

use fuzz::elf::{self, AARCH64, CODE, Section, TEXT_OFFSET, X86_64};
use fuzz::parts;
use libfuzzer_sys::fuzz_target;

/// Name, type, flags, and the section whose strings it uses, by the number of a piece.
const SECTIONS: [(&str, u32, u64, &str); 20] = [
    (".text", 1, CODE, ""),
    (".plt", 1, CODE, ""),
    (".symtab", 2, 0, ".strtab"),
    (".strtab", 3, 0, ""),
    (".dynsym", 11, 2, ".dynstr"),
    (".dynstr", 3, 2, ""),
    (".rela.plt", 4, 2, ""),
    (".rela.dyn", 4, 2, ""),
    (".debug_info", 1, 0, ""),
    (".debug_abbrev", 1, 0, ""),
    (".debug_line", 1, 0, ""),
    (".debug_str", 1, 0, ""),
    (".debug_line_str", 1, 0, ""),
    (".debug_ranges", 1, 0, ""),
    (".debug_rnglists", 1, 0, ""),
    (".debug_addr", 1, 0, ""),
    (".debug_str_offsets", 1, 0, ""),
    (".debug_aranges", 1, 0, ""),
    (".gnu_debuglink", 1, 0, ""),
    (".gnu_debugdata", 1, 0, ""),
];
/// Flag of a piece: the section is compressed, and says so.
const COMPRESSED: u8 = 0x80;
/// `SHF_COMPRESSED`.
const SHF_COMPRESSED: u64 = 0x800;

fuzz_target!(init: fuzz::panics::allow_those_of_dependencies(), |input: &[u8]| {
    let Some((flags, rest)) = input.split_first() else { return };
    let machine = if flags & 1 == 0 { X86_64 } else { AARCH64 };
    let mut sections: Vec<Section<'_>> = parts::of(rest).map(|(kind, piece)| section(kind, piece)).collect();
    sections.sort_by_key(|section| section.flags != CODE);
    let number = |name: &str| sections.iter().position(|section| section.name == name).map_or(0, |at| at as u32 + 1);
    let links: Vec<u32> = sections.iter().map(|section| number(strings_of(section.name))).collect();
    sections.iter_mut().zip(links).for_each(|(section, link)| section.link = link);
    let offsets = [0, 4, 16, 0x20, 0x33, 0x100].map(|into| TEXT_OFFSET + into);
    fuzz::names::check(&elf::file(machine, 0, &sections), &offsets);
});

fn section(kind: u8, piece: &[u8]) -> Section<'_> {
    let (name, type_, flags, _) = SECTIONS[usize::from(kind & !COMPRESSED) % SECTIONS.len()];
    let compressed = if kind & COMPRESSED != 0 && flags == 0 { SHF_COMPRESSED } else { 0 };
    Section { kind: type_, ..Section::new(name, flags | compressed, piece) }
}

fn strings_of(name: &str) -> &'static str {
    SECTIONS.iter().find(|section| section.0 == name).map_or("", |section| section.3)
}
