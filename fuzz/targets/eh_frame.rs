//! `.eh_frame`: the interpreter of call frame instructions, in a file where all else is as it should be.
//!
//! The first byte chooses the machine and whether the rest is the section itself, or pieces ([`fuzz::parts`]) of which
//! entries are made, so that lengths and places are right and the instructions are reached.
#![no_main]

use fuzz::elf::{self, AARCH64, CODE, DATA, Section, TEXT, X86_64};
use fuzz::parts;
use libfuzzer_sys::fuzz_target;

/// Bytes of code.
const CODE_SIZE: usize = 0x1800;
/// No instruction begins so on x86_64: code between functions is not decoded any further.
const NO_INSTRUCTION: u8 = 0x06;
/// A piece that is what follows the id of a CIE; others are functions.
const CIE: u8 = 0;
/// `DW_EH_PE_absptr`: addresses of eight bytes, as they are.
const ABSOLUTE: u8 = 0;

fuzz_target!(|input: &[u8]| {
    let Some((flags, rest)) = input.split_first() else { return };
    let machine = if flags & 1 == 0 { X86_64 } else { AARCH64 };
    let name = if flags & 4 == 0 { ".eh_frame" } else { ".debug_frame" };
    let section = if flags & 2 == 0 { rest.to_vec() } else { entries(machine, rest, flags & 4 != 0) };
    let text = vec![NO_INSTRUCTION; CODE_SIZE];
    let sections = [Section::new(".text", CODE, &text), Section::new(name, DATA, &section)];
    fuzz::table::build_and_check(&elf::file(machine, 0, &sections));
});

/// Entries, each function with the CIE before it; a usual one if there is none.
fn entries(machine: u16, input: &[u8], is_debug_frame: bool) -> Vec<u8> {
    let mut section = Vec::new();
    let mut cie = None;
    for (kind, mut piece) in parts::of(input) {
        if kind == CIE {
            cie = Some(section.len());
            entry(&mut section, if is_debug_frame { u32::MAX } else { 0 }, piece);
            continue;
        }
        let cie = *cie.get_or_insert_with(|| usual_cie(&mut section, machine, is_debug_frame));
        let begin = TEXT + u64::from(parts::take_u16(&mut piece));
        let size = u64::from(parts::take_u16(&mut piece));
        let mut body = [begin.to_le_bytes(), size.to_le_bytes()].concat();
        body.extend(piece);
        let id = if is_debug_frame { cie } else { section.len() + 4 - cie };
        entry(&mut section, id as u32, &body);
    }
    section
}

fn usual_cie(section: &mut Vec<u8>, machine: u16, is_debug_frame: bool) -> usize {
    let at = section.len();
    let (return_register, initial) =
        if machine == X86_64 { (16, [0x0c, 7, 8, 0x90, 1]) } else { (30, [0x0c, 31, 0, 0, 0]) };
    let augmentation: &[u8] = if is_debug_frame { b"\0" } else { b"zR\0" };
    let data: &[u8] = if is_debug_frame { &[] } else { &[1, ABSOLUTE] };
    let body = [&[1], augmentation, &[1, 0x78, return_register], data, &initial].concat();
    entry(section, if is_debug_frame { u32::MAX } else { 0 }, &body);
    at
}

fn entry(section: &mut Vec<u8>, id: u32, body: &[u8]) {
    section.extend((body.len() as u32 + 4).to_le_bytes());
    section.extend(id.to_le_bytes());
    section.extend(body);
}
