//! Tables of hand-made files: framing, overlaps, gaps, damage.

mod common;

use abi::table::{Rule, cfa, fp, unsupported};
use common::assert_consistent;
use common::elf::{EH_FRAME, Elf, Frames, TEXT, X86_64};
use objects::{BuildError, Image, UnwindTable};
use proptest::prelude::*;

const SP_8: Rule = Rule { cfa: cfa::SP, cfa_offset: 8, ..Rule::NONE };

fn sp(offset: i32) -> Rule {
    Rule { cfa_offset: offset, ..SP_8 }
}

fn build(elf: &Elf) -> UnwindTable {
    let table = UnwindTable::build(&Image::from_bytes(elf.bytes()).unwrap()).unwrap();
    assert_consistent(&table);
    table
}

fn from_frames(frames: &Frames) -> UnwindTable {
    build(&Elf::new(X86_64, 0x1800, frames.bytes.clone()))
}

/// `DW_CFA_def_cfa_offset`.
fn offset(bytes: u8) -> [u8; 2] {
    [0x0e, bytes]
}

#[test]
fn two_functions_with_padding_and_a_gap() {
    let mut frames = Frames::x86_64();
    // push rbp; mov rsp, rbp; ...; pop rbp
    frames.fde(TEXT, 0x20, &[0x41, 0x0e, 16, 0x86, 2, 0x43, 0x0d, 6, 0x5b, 0x0c, 7, 8, 0xc6]);
    frames.fde(TEXT + 0x2f, 0x11, &[0x44, 0x0e, 32]);
    frames.fde(TEXT + 0x50, 0x10, &[]);
    let table = from_frames(&frames);
    let saved = |cfa, cfa_offset| Rule { cfa, cfa_offset, fp: fp::AT_CFA, fp_offset: -16, ..Rule::NONE };
    let expected = [
        (0x00, SP_8),
        (0x01, saved(cfa::SP, 16)),
        (0x03, saved(cfa::SP, 16)),
        (0x04, saved(cfa::FP, 16)),
        (0x1e, saved(cfa::FP, 16)),
        (0x1f, SP_8),
        (0x2e, SP_8), // 15 bytes of padding
        (0x2f, SP_8),
        (0x33, sp(32)),
        (0x3f, sp(32)),
        (0x40, Rule::NONE), // a gap of 16
        (0x50, SP_8),
        (0x5f, SP_8),
        (0x60, Rule::NONE),
    ];
    for (at, rule) in expected {
        assert_eq!(table.lookup(TEXT + at), rule, "at {at:#x}");
    }
    assert_eq!(table.lookup(TEXT - 1), Rule::NONE);
    assert_eq!(table.lookup(u64::MAX), Rule::NONE);
    assert_eq!(table.explain(TEXT + 4), "CFA=rbp+16, rbp at CFA-16");
    assert_eq!((table.stats.fdes, table.stats.paddings, table.stats.gaps), (3, 1, 2));
    assert_eq!((table.first_page, table.pages.len()), (1, 2));
    assert_eq!(table.pages[1].rows, 0, "nothing is described there");
}

#[test]
fn a_function_over_several_pages() {
    let mut frames = Frames::x86_64();
    frames.fde(TEXT + 0x10, 0x1700, &[0x48, 0x0e, 16]);
    let table = from_frames(&frames);
    assert_eq!(table.lookup(TEXT + 0x0f), Rule::NONE);
    assert_eq!(table.lookup(TEXT + 0x17), SP_8);
    assert_eq!(table.lookup(TEXT + 0xfff), sp(16));
    assert_eq!(table.lookup(TEXT + 0x1000), sp(16));
    assert_eq!(table.lookup(TEXT + 0x170f), sp(16));
    assert_eq!(table.lookup(TEXT + 0x1710), Rule::NONE);
    assert_eq!(table.pages.iter().map(|page| page.rows).collect::<Vec<_>>(), [3, 2]);
}

#[test]
fn of_overlapping_functions_the_later_begin_counts() {
    let mut frames = Frames::x86_64();
    // a remain from the first byte on, in front of all others
    frames.fde(TEXT, 0x1000, &offset(96));
    frames.fde(TEXT + 0x40, 0x20, &offset(16));
    frames.fde(TEXT + 0x80, 0x20, &offset(24));
    let table = from_frames(&frames);
    for (at, rule) in [
        (0, sp(96)),
        (0x3f, sp(96)),
        (0x40, sp(16)),
        (0x5f, sp(16)),
        (0x60, Rule::NONE),
        (0x80, sp(24)),
        (0xa0, Rule::NONE),
        (0x500, Rule::NONE),
    ] {
        assert_eq!(table.lookup(TEXT + at), rule, "at {at:#x}");
    }
}

#[test]
fn of_functions_with_the_same_begin_the_first_counts() {
    let mut frames = Frames::x86_64();
    frames.fde(TEXT + 0x40, 0x20, &offset(16)).fde(TEXT, 0x10, &offset(32)).fde(TEXT + 0x40, 0x40, &offset(24));
    let table = from_frames(&frames);
    assert_eq!(table.lookup(TEXT + 0x40), sp(16));
    assert_eq!(table.lookup(TEXT + 0x70), Rule::NONE);
    assert_eq!((table.stats.fdes, table.stats.duplicate_fdes), (2, 1));
}

#[test]
fn ranges_that_are_empty_outside_or_wrap() {
    let mut frames = Frames::x86_64();
    frames.fde(TEXT, 0, &[]).fde(0, 0x10, &[]).fde(0x100_0000, 0x10, &[]);
    frames.fde(TEXT + 0x20, 0xffff_ff00, &[]).fde(0u64.wrapping_sub(0x10), 0x20, &[]);
    frames.fde(TEXT + 0x17f0, 0x7fff_0000, &offset(16));
    let table = from_frames(&frames);
    assert_eq!(table.lookup(TEXT), Rule::NONE);
    assert_eq!(table.lookup(TEXT + 0x20), Rule::NONE);
    assert_eq!(table.lookup(TEXT + 0x17ff), sp(16), "the end of the segment ends it");
    assert_eq!(table.lookup(TEXT + 0x2000), Rule::NONE);
    let stats = table.stats;
    assert_eq!((stats.fdes, stats.outside_fdes, stats.lost_fdes), (1, 3, 2));
}

#[test]
fn a_terminator_inside_ends_nothing() {
    let mut frames = Frames::x86_64();
    frames.fde(TEXT, 0x10, &[]).terminator().terminator();
    frames.fde(TEXT + 0x10, 0x10, &offset(16)).terminator();
    assert_eq!(from_frames(&frames).lookup(TEXT + 0x10), sp(16));
}

#[test]
fn without_section_headers_a_terminator_ends_it() {
    let mut frames = Frames::x86_64();
    frames.fde(TEXT, 0x10, &[]).terminator().fde(TEXT + 0x10, 0x10, &offset(16));
    let mut elf = Elf::new(X86_64, 0x1000, frames.bytes.clone());
    elf.section_headers = false;
    let table = build(&elf);
    assert_eq!(table.lookup(TEXT), SP_8);
    assert_eq!(table.stats.fdes, 1);
    assert_eq!(table.stats.broken_framing, 0);
}

#[test]
fn nonsense_section_headers_are_ignored() {
    let mut frames = Frames::x86_64();
    frames.fde(TEXT, 0x10, &[]).terminator();
    let good = Elf::new(X86_64, 0x1000, frames.bytes.clone()).bytes();
    let headers = u64::from_le_bytes(good[40..48].try_into().unwrap()) as usize;
    // a wrong size of .eh_frame that is not zero cannot be told from a right one
    let size = headers + 64 + 32..headers + 64 + 40;
    let mut empty = good.clone();
    empty[size.clone()].fill(0);
    let table = UnwindTable::build(&Image::from_bytes(empty).unwrap()).unwrap();
    assert_eq!(table.lookup(TEXT), SP_8);
    for at in (40..48).chain(58..64).chain(headers..good.len()).filter(|at| !size.contains(at)) {
        for value in [0, 1, 0x7f, 0xff] {
            let mut bad = good.clone();
            bad[at] = value;
            let table = UnwindTable::build(&Image::from_bytes(bad).unwrap()).unwrap();
            assert_eq!(table.lookup(TEXT), SP_8, "byte {at:#x} = {value:#x}");
        }
    }
}

/// But for what is derived from code: the section headers lead to the symbols that tell where functions begin.
#[test]
fn a_real_file_without_section_headers_has_the_same_functions() {
    let directory = tempfile::tempdir().unwrap();
    // not a static program: gcc gives it no .eh_frame_hdr, and nothing else leads to .eh_frame
    for flags in [&["-O2"][..], &["-O2", "-static-pie"], &["-O2", "-Wl,-z,noseparate-code"]] {
        let path = common::compile(directory.path(), "realign.c", flags);
        let (_, table) = common::table(&path);
        let mut bytes = std::fs::read(&path).unwrap();
        bytes[40..48].fill(0);
        bytes[60..64].fill(0);
        let size = bytes.len() as u64;
        let without = UnwindTable::build(&Image::from_bytes(bytes).unwrap()).unwrap();
        assert_eq!((without.stats.fdes, without.stats.bad_fdes), (table.stats.fdes, 0), "{flags:?}");
        let lost = |at: &u64| without.lookup(*at) == Rule::NONE;
        let other = (0..size).filter(|at| without.lookup(*at) != table.lookup(*at) && !lost(at)).count();
        let described = (0..size).filter(|at| !lost(at)).count();
        assert!(other == 0 && described > 100, "{flags:?}: {other} other, {described} described");
    }
}

/// The frames of `elf`, which begin at [`EH_FRAME`], in a sparse file of `size` bytes that are all of a segment.
fn sparse(elf: &Elf, header: usize, size: u64) -> Result<UnwindTable, BuildError> {
    let mut bytes = elf.bytes();
    bytes[64 + 56 * header + 32..][..8].copy_from_slice(&size.to_le_bytes());
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), bytes).unwrap();
    file.as_file().set_len(size).unwrap();
    UnwindTable::build(&Image::open(file.as_file()).unwrap())
}

#[test]
fn limits_are_named() {
    let mut elf = Elf::new(X86_64, 0x100, Frames::x86_64().bytes);
    elf.section_headers = false;
    assert!(matches!(sparse(&elf, 0, 5 << 30), Err(BuildError::CodeTooLarge { pages }) if pages == (5 << 18) - 1));
    assert!(matches!(sparse(&elf, 1, 2 << 30), Err(BuildError::FramesTooLarge { bytes }) if bytes > 1 << 30));
    assert!(sparse(&elf, 1, 1 << 30).is_ok());
    let mut frames = Frames::default();
    for _ in 0..=objects::limits::MAX_CIES {
        frames.cie("zR", 1, 16, &[]);
    }
    let image = Image::from_bytes(Elf::new(X86_64, 0x100, frames.bytes).bytes()).unwrap();
    assert!(matches!(UnwindTable::build(&image), Err(BuildError::TooManyCies)));
}

/// As readelf 2.40 and libgcc's unwinder have it.
#[test]
fn a_register_behind_an_expression_gets_the_offset_before_it() {
    let mut frames = Frames::x86_64();
    // CFA = rsp+16; CFA = *(rsp+24)+8; CFA = rbp
    let expression = [0x0f, 5, 0x77, 24, 0x06, 0x23, 8];
    frames.fde(TEXT, 0x20, &[&[0x0e, 16, 0x44][..], &expression, &[0x44, 0x0d, 6]].concat());
    let table = from_frames(&frames);
    assert_eq!(table.lookup(TEXT), sp(16));
    assert_eq!(table.lookup(TEXT + 4), Rule { cfa: cfa::DEREF_SP, cfa_offset: 24, extra: 8, ..Rule::NONE });
    assert_eq!(table.lookup(TEXT + 8), Rule { cfa: cfa::FP, cfa_offset: 16, ..Rule::NONE });
}

#[test]
fn a_bad_function_costs_only_itself() {
    let mut frames = Frames::x86_64();
    frames.fde(TEXT, 0x10, &offset(16));
    // an unknown operation; a state that was never remembered; an operand that is cut off; a CFA offset without register
    for (i, bad) in [&[0x44, 0x3f][..], &[0x0b], &[0x0e, 0x80, 0x80], &[0x0f, 1, 0x57, 0x0e, 8]].iter().enumerate() {
        frames.fde(TEXT + 0x100 * (i as u64 + 1), 0x20, bad);
    }
    frames.fde(TEXT + 0x800, 0x10, &offset(24));
    let table = from_frames(&frames);
    for i in 1..=4 {
        assert_eq!(table.lookup(TEXT + 0x100 * i), Rule::unsupported(unsupported::BAD_FDE), "{i}");
        assert_eq!(table.lookup(TEXT + 0x100 * i + 0x1f), Rule::unsupported(unsupported::BAD_FDE));
        assert_eq!(table.lookup(TEXT + 0x100 * i + 0x20), Rule::NONE);
    }
    assert_eq!(table.lookup(TEXT), sp(16));
    assert_eq!(table.lookup(TEXT + 0x800), sp(24));
    assert_eq!(table.stats.bad_fdes, 4);
    assert_eq!(table.stats.unsupported_rows[usize::from(unsupported::BAD_FDE)], 4);
}

#[test]
fn a_bad_cie_costs_only_its_functions() {
    let mut frames = Frames::default();
    // its instructions are bad: the code is known
    frames.cie("zR", 1, 16, &[0x3f]).fde(TEXT, 0x10, &[]);
    // an augmentation that cannot be skipped: the code is not known
    frames.cie("eh", 1, 16, &[]).fde(TEXT + 0x20, 0x10, &[]);
    frames.cie("zXR", 1, 16, &[]).fde(TEXT + 0x40, 0x10, &[]);
    // one that can
    frames.cie("zRX", 1, 16, &[0x0c, 7, 8, 0x90, 1]).fde(TEXT + 0x60, 0x10, &[]);
    let table = from_frames(&frames);
    assert_eq!(table.lookup(TEXT), Rule::unsupported(unsupported::BAD_FDE));
    assert_eq!(table.lookup(TEXT + 0x20), Rule::NONE);
    assert_eq!(table.lookup(TEXT + 0x40), Rule::NONE);
    assert_eq!(table.lookup(TEXT + 0x60), SP_8);
    assert_eq!((table.stats.bad_fdes, table.stats.lost_fdes), (1, 2));
}

#[test]
fn offsets_that_do_not_fit() {
    let mut frames = Frames::x86_64();
    // def_cfa_offset 0xffffffff; 8 * -2^31 behind it for rbp; -8 as linkers of LLVM write it, as an unsigned number
    frames.fde(TEXT, 0x10, &[0x0e, 0xff, 0xff, 0xff, 0xff, 0x0f]);
    frames.fde(TEXT + 0x10, 0x10, &[0x11, 6, 0x80, 0x80, 0x80, 0x80, 0x78]);
    frames.fde(TEXT + 0x20, 0x10, &[0x0e, 0xf8, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1]);
    let table = from_frames(&frames);
    assert_eq!(table.lookup(TEXT), Rule::unsupported(unsupported::OFFSET));
    assert_eq!(table.lookup(TEXT + 0x10), Rule::unsupported(unsupported::OFFSET));
    assert_eq!(table.lookup(TEXT + 0x20), sp(-8));
}

#[test]
fn states_are_remembered_deeply_but_not_endlessly() {
    let nested = |depth: usize| {
        let mut instructions = vec![0x0a; depth];
        instructions.extend([0x41, 0x0e, 16, 0x41]);
        instructions.extend(vec![0x0b; depth]);
        let mut frames = Frames::x86_64();
        frames.fde(TEXT, 0x10, &instructions);
        from_frames(&frames)
    };
    let table = nested(objects::limits::MAX_REMEMBERED);
    assert_eq!((table.lookup(TEXT + 1), table.lookup(TEXT + 2)), (sp(16), SP_8));
    let table = nested(objects::limits::MAX_REMEMBERED + 1);
    assert_eq!(table.lookup(TEXT + 1), Rule::unsupported(unsupported::BAD_FDE));
}

#[test]
fn too_many_rules_are_named() {
    let mut frames = Frames::x86_64();
    // a function of one byte for each rule: CFA = rsp + 16 + its number
    let count = objects::limits::MAX_RULES as u64 + 100;
    for i in 0..count {
        let cfa = 16 + i;
        frames.fde(TEXT + i, 1, &[0x0e, cfa as u8 | 0x80, (cfa >> 7) as u8 | 0x80, (cfa >> 14) as u8]);
    }
    let table = build(&Elf::new(X86_64, (EH_FRAME - TEXT - 8) as usize, frames.bytes));
    assert_eq!(table.rules.len(), objects::limits::MAX_RULES);
    // the first rule is "nothing", the last one "too many"
    let last = objects::limits::MAX_RULES as u64 - 3;
    assert_eq!(table.lookup(TEXT + last), sp(16 + last as i32));
    assert_eq!(table.lookup(TEXT + last + 1), Rule::unsupported(unsupported::TOO_MANY_RULES));
    assert_eq!(table.lookup(TEXT + count - 1), Rule::unsupported(unsupported::TOO_MANY_RULES));
    assert_eq!(table.lookup(TEXT + count), Rule::NONE);
}

#[test]
fn a_file_without_frames_has_an_empty_table() {
    let table = from_frames(&Frames::default());
    assert_eq!((table.rows.len(), &table.rules[..], table.pages.len()), (0, &[Rule::NONE][..], 2));
    assert_eq!(table.lookup(TEXT), Rule::NONE);
}

#[test]
fn a_file_without_code_is_refused() {
    let mut bytes = Elf::new(X86_64, 0x100, Vec::new()).bytes();
    bytes[64 + 4] = 4;
    assert!(matches!(UnwindTable::build(&Image::from_bytes(bytes).unwrap()), Err(BuildError::NoCode)));
}

#[test]
fn code_that_claims_to_be_huge_has_the_size_of_the_file() {
    let mut bytes = Elf::new(X86_64, 0x200, Frames::x86_64().fde(TEXT, 0x10, &[]).bytes.clone()).bytes();
    bytes[64 + 32..64 + 40].copy_from_slice(&u64::MAX.to_le_bytes());
    let table = UnwindTable::build(&Image::from_bytes(bytes.clone()).unwrap()).unwrap();
    assert_eq!(table.lookup(TEXT), SP_8);
    assert_eq!(table.pages.len(), (bytes.len() - TEXT as usize).div_ceil(4096));
}

#[test]
fn trampolines_without_frames_are_found() {
    let directory = tempfile::tempdir().unwrap();
    let path = common::compile(directory.path(), "trampolines.s", &["-shared", "-nostdlib"]);
    let (image, table) = common::table(&path);
    let symbols = common::output("nm", &[path.to_str().unwrap()]);
    let place = |name: &str| {
        let line = symbols.lines().find(|line| line.ends_with(&format!(" {name}"))).unwrap();
        image.vaddr_to_file_offset(u64::from_str_radix(&line[..16], 16).unwrap()).unwrap()
    };
    let at = |name: &str, offset: i64| table.lookup(place(name).wrapping_add_signed(offset));
    assert_eq!(at("described", 0), SP_8);
    // the byte before counts, since a walk looks up the byte before a return address
    for (name, size) in [("bare_long", 9), ("bare_short", 7)] {
        for offset in -1..size {
            assert_eq!(at(name, offset), Rule::SIGNAL, "{name}{offset:+}");
        }
        assert_eq!(at(name, size), Rule::NONE, "{name}");
    }
    assert_eq!(at("undescribed", 0), Rule::NONE);
    assert_eq!(at("deep", 100), sp(8 + 8 * 100));
    assert_eq!(at("after", 0), Rule::END);
    assert_eq!(table.stats.trampolines, 2);
}

/// A file of three functions; the middle one is what damage should not spread from.
fn sample() -> (Elf, [(u64, Rule); 4]) {
    let mut frames = Frames::x86_64();
    frames.fde(TEXT, 0x20, &[0x44, 0x0e, 16, 0x86, 2, 0x48, 0x0d, 6]);
    frames.fde(TEXT + 0x40, 0x20, &[0x0a, 0x44, 0x0f, 3, 0x76, 0x78, 0x06, 0x10, 6, 2, 0x76, 0, 0x44, 0x0b]);
    frames.fde(TEXT + 0x80, 0x20, &offset(32));
    let saved = Rule { fp: fp::AT_CFA, fp_offset: -16, ..sp(16) };
    let loaded = Rule { cfa: cfa::DEREF_FP, cfa_offset: -8, fp: fp::AT_FP, ..Rule::NONE };
    let expected = [(0x4, saved), (0xc, Rule { cfa: cfa::FP, ..saved }), (0x44, loaded), (0x80, sp(32))];
    (Elf::new(X86_64, 0x200, frames.bytes), expected)
}

#[test]
fn every_damaged_byte_of_the_frames() {
    let (elf, expected) = sample();
    let table = build(&elf);
    for (at, rule) in expected {
        assert_eq!(table.lookup(TEXT + at), rule);
    }
    let length = |at: usize| u32::from_le_bytes(elf.eh_frame[at..at + 4].try_into().unwrap()) as usize + 4;
    let starts: Vec<usize> = (0..3).fold(vec![0], |mut starts, i| {
        starts.push(starts[i] + length(starts[i]));
        starts
    });
    // the FDE, counted from 1, that each expectation is of
    let owners = [1, 1, 2, 3];
    for at in 0..elf.eh_frame.len() {
        for bit in 0..8 {
            let mut bad = Elf { eh_frame: elf.eh_frame.clone(), text: elf.text.clone(), ..elf };
            bad.eh_frame[at] ^= 1 << bit;
            let table = build(&bad);
            let hit = starts.iter().rposition(|&start| at >= start).unwrap();
            // behind its length, CIE, address, size: no other function depends on it
            if hit == 0 || at - starts[hit] < 16 {
                continue;
            }
            for ((place, rule), owner) in expected.iter().zip(owners) {
                if owner != hit {
                    assert_eq!(table.lookup(TEXT + place), *rule, "byte {at} bit {bit}");
                }
            }
        }
    }
}

proptest! {
    #[test]
    fn random_frames(bytes in proptest::collection::vec(any::<u8>(), 0..400), headers: bool) {
        let mut elf = Elf::new(X86_64, 0x1000, bytes);
        elf.section_headers = headers;
        build(&elf);
    }

    /// Instructions that decode more often than noise does.
    #[test]
    fn random_instructions(
        codes in proptest::collection::vec(prop_oneof![0u8..0x18, 0x40u8..0x48, Just(0x86), Just(0x90), any::<u8>()], 0..60),
        aarch64: bool,
    ) {
        let mut frames = Frames::x86_64();
        frames.fde(TEXT, 0x100, &codes).fde(TEXT + 0x200, 0x10, &offset(16));
        let mut elf = Elf::new(X86_64, 0x1000, frames.bytes);
        let table = build(&elf);
        prop_assert_eq!(table.lookup(TEXT + 0x200), sp(16));
        if aarch64 {
            elf.machine = common::elf::AARCH64;
            build(&elf);
        }
    }

    #[test]
    fn random_entries_among_good_ones(
        edits in proptest::collection::vec((0usize..200, any::<u8>()), 1..6),
    ) {
        let (mut elf, _) = sample();
        for (at, value) in edits {
            let at = at % elf.eh_frame.len();
            elf.eh_frame[at] = value;
        }
        build(&elf);
    }

    #[test]
    fn random_headers(edits in proptest::collection::vec((0usize..0x140, any::<u8>()), 1..12)) {
        let (elf, _) = sample();
        let mut bytes = elf.bytes();
        let sections = u64::from_le_bytes(bytes[40..48].try_into().unwrap()) as usize;
        for (at, value) in edits {
            // file header and program headers, or section headers
            let at = if at < 64 + 3 * 56 { at } else { sections + at - 64 - 3 * 56 };
            bytes[at] = value;
        }
        if let Ok(image) = Image::from_bytes(bytes) {
            image.build_id();
            image.load_bias(0x7000_0000_0000, 0x1000);
            if let Ok(table) = UnwindTable::build(&image) {
                assert_consistent(&table);
            }
        }
    }
}
