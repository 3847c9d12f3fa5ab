//! Code that no unwind information describes: linkage stubs, start-up code, signal trampolines.
//!
//! The first byte chooses the machine and whether there is an entry point; pieces are sections.
#![no_main]

use fuzz::elf::{self, AARCH64, CODE, DATA, Section, TEXT, X86_64};
use fuzz::parts;
use libfuzzer_sys::fuzz_target;

/// Sections by the number of a piece.
const NAMES: [&str; 8] = [".init", ".text", ".plt", ".plt.sec", ".plt.got", ".iplt", ".fini", ".eh_frame"];

fuzz_target!(|input: &[u8]| {
    let Some(([flags, entry], rest)) = input.split_first_chunk() else { return };
    let machine = if flags & 1 == 0 { X86_64 } else { AARCH64 };
    let entry = if flags & 2 == 0 { 0 } else { TEXT + u64::from(*entry) };
    let mut sections: Vec<Section<'_>> = parts::of(rest).map(|(kind, piece)| section(kind, piece)).collect();
    sections.sort_by_key(|section| section.flags != CODE);
    fuzz::table::build_and_check(&elf::file(machine, entry, &sections));
});

fn section(kind: u8, piece: &[u8]) -> Section<'_> {
    let name = NAMES[usize::from(kind) % NAMES.len()];
    Section::new(name, if name == ".eh_frame" { DATA } else { CODE }, piece)
}
