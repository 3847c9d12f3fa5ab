//! Tables of aarch64: hand-made call frame information, against what it means.

mod common;

use abi::table::{Rule, cfa, fp, ra};
use common::assert_consistent;
use common::elf::{AARCH64, Elf, Frames, TEXT};
use objects::{Architecture, Image, UnwindTable};

/// CFA = sp, everything still in registers.
const ENTRY: Rule = Rule { cfa: cfa::SP, ra: ra::LINK_REGISTER, ..Rule::NONE };

fn build(elf: &Elf) -> UnwindTable {
    let image = Image::from_bytes(elf.bytes()).unwrap();
    assert_eq!(image.architecture(), Architecture::Aarch64);
    let table = UnwindTable::build(&image).unwrap();
    assert_consistent(&table);
    table
}

/// The CIE of all aarch64 compilers: code alignment 4, return address in x30, CFA = sp.
fn frames(augmentation: &str) -> Frames {
    let mut frames = Frames::default();
    frames.cie(augmentation, 4, 30, &[0x0c, 31, 0]);
    frames
}

/// What gcc writes for `paciasp; stp x29, x30, [sp, #-32]!; mov x29, sp; ...; ldp; autiasp; ret`.
const FUNCTION: [u8; 16] = [
    0x41, 0x2d, // advance_loc 1 (4 bytes); AARCH64_negate_ra_state
    0x41, 0x0e, 32, 0x9d, 4, 0x9e, 3, // advance; def_cfa_offset 32; x29 at cfa-32, x30 at cfa-24
    0x42, 0x0d, 29, // def_cfa_register x29
    0x42, 0xdd, 0xde, // restore x29, restore x30
    0x2d,
];

fn check_function(table: &UnwindTable) {
    let saved =
        Rule { cfa: cfa::SP, cfa_offset: 32, fp: fp::AT_CFA, fp_offset: -32, ra: ra::SAVED, extra: -24, ..Rule::NONE };
    let expected = [
        (0, ENTRY),
        (4, ENTRY),
        (8, saved),
        (12, saved),
        (16, Rule { cfa: cfa::FP, ..saved }),
        (24, Rule { cfa: cfa::FP, cfa_offset: 32, ..ENTRY }),
    ];
    for (at, rule) in expected {
        assert_eq!(table.lookup(TEXT + at), rule, "at {at}");
    }
    assert_eq!(table.explain(TEXT + 8), "CFA=sp+32, x29 at CFA-32, return address at CFA-24");
    assert_eq!(table.explain(TEXT), "CFA=sp+0, return address in x30");
}

#[test]
fn a_function_with_signed_return_address() {
    // B: signed with key B; G: its stack is tagged
    for augmentation in ["zR", "zRB", "zRBG", "zRGB"] {
        let mut frames = frames(augmentation);
        frames.fde(TEXT, 0x20, &FUNCTION);
        check_function(&build(&Elf::new(AARCH64, 0x100, frames.bytes)));
    }
}

#[test]
fn the_end_of_the_stack_and_odd_return_addresses() {
    let mut frames = frames("zR");
    frames.fde(TEXT, 0x10, &[0x07, 30]).fde(TEXT + 0x10, 0x10, &[0x09, 30, 17]);
    let table = build(&Elf::new(AARCH64, 0x100, frames.bytes));
    assert_eq!(table.lookup(TEXT), Rule::END);
    assert_eq!(table.lookup(TEXT + 0x10), Rule::unsupported(abi::table::unsupported::RETURN_ADDRESS));
}

#[test]
fn signal_frames_are_not_unwound_by_the_vdsos_own_words() {
    let mut frames = frames("zRS");
    // CFA = x29, x29 at cfa+0, x30 at cfa+8
    frames.fde(TEXT, 0x10, &[0x0c, 29, 0, 0x9d, 0, 0x11, 30, 0x7f]);
    let table = build(&Elf::new(AARCH64, 0x100, frames.bytes));
    assert_eq!(table.lookup(TEXT), Rule::SIGNAL);
}

#[test]
fn a_trampoline_without_frames() {
    let mut elf = Elf::new(AARCH64, 0x100, Vec::new());
    elf.text[0x40..0x48].copy_from_slice(&[0x68, 0x11, 0x80, 0xd2, 0x01, 0x00, 0x00, 0xd4]);
    elf.section_headers = false;
    let table = build(&elf);
    for at in 0x3f..0x48 {
        assert_eq!(table.lookup(TEXT + at), Rule::SIGNAL, "at {at:#x}");
    }
    assert_eq!(table.lookup(TEXT + 0x3e), Rule::NONE);
    assert_eq!(table.lookup(TEXT + 0x48), Rule::NONE);
}

#[test]
fn the_entry_point_has_no_caller() {
    let mut elf = Elf::new(AARCH64, 0x100, Vec::new());
    elf.entry = TEXT + 0x20;
    elf.text[0x40..0x48].copy_from_slice(&[0x68, 0x11, 0x80, 0xd2, 0x01, 0x00, 0x00, 0xd4]);
    let table = build(&elf);
    assert_eq!(table.lookup(TEXT + 0x1f), Rule::NONE);
    assert_eq!(table.lookup(TEXT + 0x20), Rule::END);
    assert_eq!(table.lookup(TEXT + 0x3e), Rule::END);
    assert_eq!(table.lookup(TEXT + 0x3f), Rule::SIGNAL, "what follows is something else");
    assert_eq!(table.lookup(TEXT + 0x48), Rule::NONE);
}

#[test]
fn registers_of_the_other_architecture_mean_other_things() {
    let mut frames = frames("zR");
    // on x86_64, 6 is the frame pointer and 7 the stack pointer; 0x2d is no instruction there
    frames.fde(TEXT, 0x10, &[0x0c, 7, 8, 0x86, 2]);
    let table = build(&Elf::new(AARCH64, 0x100, frames.bytes.clone()));
    assert_eq!(table.lookup(TEXT), Rule { cfa: cfa::REGISTER, register: 7, cfa_offset: 8, ..ENTRY });
    assert_eq!(table.explain(TEXT), "CFA=x7+8, return address in x30");
}
