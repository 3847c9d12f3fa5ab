//! Names of PLT stubs: the jumps through which calls go to other files.

use object::elf::{EM_AARCH64, EM_X86_64, SHT_REL, SHT_RELA};
use std::collections::HashMap;

use crate::Reason;
use crate::contents::Input;
use crate::demangle::MAX_NAME;
use crate::layout::{Layout, Section};
use crate::symtab::{Kind, Symbols};
use crate::table::{Candidate, Name, TableBuilder};

/// Sections of stubs.
const NAMES: [&str; 4] = [".plt", ".plt.sec", ".plt.got", ".iplt"];
/// The most that is read of a section of stubs or relocations, in bytes.
const MAX_SECTION: u64 = 128 << 20;
/// The most that the names of all stubs of a file may take, in bytes: many may have one long name.
const MAX_NAMES: usize = 64 << 20;
/// Behind every other name.
const RANK: u16 = u16::MAX;

/// Relocations: which symbol a slot of the GOT gets.
#[derive(Default)]
struct Slots {
    /// Symbol by the slot's address.
    symbols: HashMap<u64, u32>,
    /// Slots of `.rela.plt`, in its order.
    lazy: Vec<u64>,
}

/// Adds the PLT stubs of a file, each as `function@plt`. Sections of which nothing is wanted are not read, and a large
/// library's relocations, in which each stub's name is looked up, not either.
pub(crate) fn add(builder: &mut TableBuilder, input: &Input<'_>, layout: &Layout) -> Result<(), Reason> {
    // one of each name: a sound file has no two
    let mut stubs: Vec<&Section> = NAMES.iter().filter_map(|name| layout.section(name)).collect();
    stubs.retain(|section| section.has_contents() && builder.wants_any(&section.addresses()));
    if stubs.is_empty() || !layout.is_64 || ![EM_X86_64, EM_AARCH64].contains(&layout.machine) {
        return Ok(());
    }
    let Some(symbols) = Symbols::read(input, layout, Kind::Dynamic)? else { return Ok(()) };
    let slots = read_slots(input, layout)?;
    let mut names = Vec::new();
    let number = builder.strings(Vec::new());
    for section in stubs {
        let code = input.section(layout, section, MAX_SECTION)?;
        for (start, size, slot) in find_stubs(&code, section, layout.machine, &slots) {
            let Some(symbol) = slots.symbols.get(&slot).and_then(|index| symbols.get(*index as usize)) else {
                continue;
            };
            let name = symbols.name(symbol, MAX_NAME);
            let Some(offset) = u32::try_from(names.len()).ok().filter(|_| names.len() < MAX_NAMES) else { break };
            if name.is_empty() {
                continue;
            }
            names.extend_from_slice(name);
            names.extend_from_slice(b"@plt\0");
            let name = Name { strings: number, offset };
            builder.add(Candidate { start, size, limit: start, rank: RANK, name });
        }
    }
    builder.fill(number, names);
    Ok(())
}

fn read_slots(input: &Input<'_>, layout: &Layout) -> Result<Slots, Reason> {
    let mut slots = Slots::default();
    for section in [".rela.plt", ".rela.dyn", ".rel.plt", ".rel.dyn"].iter().filter_map(|name| layout.section(name)) {
        if ![SHT_RELA, SHT_REL].contains(&section.kind) || !section.has_contents() {
            continue;
        }
        let bytes = input.section(layout, section, MAX_SECTION)?;
        let size = if section.kind == SHT_RELA { 24 } else { 16 };
        for entry in bytes.chunks_exact(size) {
            let long = |at: usize| entry[at..at + 8].iter().rev().fold(0u64, |sum, byte| sum << 8 | u64::from(*byte));
            let (slot, symbol) = (long(0), (long(8) >> 32) as u32);
            if section.name.ends_with(".plt") {
                slots.lazy.push(slot);
            }
            if symbol != 0 {
                slots.symbols.insert(slot, symbol);
            }
        }
    }
    Ok(slots)
}

/// The stubs of a section: address, size, and the slot of the GOT that each jumps through.
fn find_stubs(code: &[u8], section: &Section, machine: u16, slots: &Slots) -> Vec<(u64, u64, u64)> {
    let size = match section.entry_size {
        size @ (8 | 16 | 24) => size,
        // PLT entries have 16 bytes everywhere; the linkers differ in whether they say so
        _ if section.name == ".plt.got" && !section.size.is_multiple_of(16) => 8,
        _ => 16,
    };
    let stub = |(index, bytes): (usize, &[u8])| {
        let start = section.address.checked_add(index as u64 * size)?;
        let slot = if machine == EM_X86_64 { slot_x86_64(bytes, start, slots) } else { slot_aarch64(bytes, start) };
        Some((start, size, slot?))
    };
    code.chunks_exact(size as usize).enumerate().filter_map(stub).collect()
}

/// `jmp *slot(%rip)`, or `push index; jmp` of a lazily bound stub.
fn slot_x86_64(stub: &[u8], start: u64, slots: &Slots) -> Option<u64> {
    let operand = |at: usize| Some(i32::from_le_bytes(stub.get(at..at + 4)?.try_into().ok()?));
    // past `endbr64`, `bnd`
    let code_at = if stub.starts_with(&[0xf3, 0x0f, 0x1e, 0xfa]) { 4 } else { 0 };
    let code = &stub[code_at..];
    let code_at = code_at + usize::from(code.first() == Some(&0xf2));
    match stub.get(code_at..)? {
        [0xff, 0x25, ..] => {
            let next = start.wrapping_add(code_at as u64 + 6);
            Some(next.wrapping_add_signed(i64::from(operand(code_at + 2)?)))
        }
        [0x68, ..] => slots.lazy.get(usize::try_from(operand(code_at + 1)?).ok()?).copied(),
        _ => None,
    }
}

/// `adrp x16, page; ldr x17, [x16, #offset]`, perhaps after `bti c`.
fn slot_aarch64(stub: &[u8], start: u64) -> Option<u64> {
    let word = |at: usize| Some(u32::from_le_bytes(stub.get(at..at + 4)?.try_into().ok()?));
    let first = usize::from(word(0)? == 0xd503_245f) * 4;
    let (page, load) = (word(first)?, word(first + 4)?);
    if page & 0x9f00_001f != 0x9000_0010 || load & 0xffc0_03ff != 0xf940_0211 {
        return None;
    }
    let pages = u64::from(page >> 29 & 3 | (page >> 5 & 0x7_ffff) << 2) << 12;
    // 33 bits, signed
    let pages = ((pages << 31) as i64) >> 31;
    let base = start.wrapping_add(first as u64) & !0xfff;
    Some(base.wrapping_add_signed(pages).wrapping_add(u64::from(load >> 10 & 0xfff) * 8))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn stubs_of_both_machines() {
        let slots = Slots { lazy: vec![0x10, 0x20], ..Slots::default() };
        let plain = [0xff, 0x25, 0xe2, 0x2f, 0, 0, 0x68, 0, 0, 0, 0, 0xe9, 0, 0, 0, 0];
        assert_eq!(slot_x86_64(&plain, 0x1030, &slots), Some(0x4018));
        let guarded = [0xf3, 0x0f, 0x1e, 0xfa, 0xf2, 0xff, 0x25, 0xbd, 0x2f, 0, 0, 0x0f, 0x1f, 0x44, 0, 0];
        assert_eq!(slot_x86_64(&guarded, 0x1050, &slots), Some(0x1050 + 11 + 0x2fbd));
        let lazy = [0xf3, 0x0f, 0x1e, 0xfa, 0x68, 1, 0, 0, 0, 0xf2, 0xe9, 0, 0, 0, 0, 0x90];
        assert_eq!(slot_x86_64(&lazy, 0x1020, &slots), Some(0x20));
        // adrp x16, 11000; ldr x17, [x16, #8] at 0x5d0 (as objdump shows them)
        let arm = [0x90, 0x00, 0x00, 0xb0, 0x11, 0x06, 0x40, 0xf9, 0x10, 0x22, 0x00, 0x91, 0x20, 0x02, 0x1f, 0xd6];
        assert_eq!(slot_aarch64(&arm, 0x5d0), Some(0x11008));
    }

    proptest! {
        #[test]
        fn any_code_is_read(
            code in prop::collection::vec(any::<u8>(), 0..64),
            address: u64,
            entry_size in 0u64..32,
            machine in prop::sample::select(vec![EM_X86_64, EM_AARCH64]),
        ) {
            let name = ".plt".to_owned();
            let section = Section { name, kind: 1, flags: 6, address, offset: 0, size: 64, link: 0, entry_size };
            let _ = find_stubs(&code, &section, machine, &Slots::default());
        }
    }
}
