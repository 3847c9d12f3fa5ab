//! Names of Python code: `str`, `bytes` and code objects in memory that may say anything, and line tables.
//!
//! The first byte chooses the layout; pieces ([`fuzz::parts`]) are objects that lie a fixed distance apart, so that what
//! points to an object is a small number. A piece of no known kind is raw memory.
#![no_main]

use fuzz::parts;
use libfuzzer_sys::fuzz_target;
use python::code_object::{Bytecode, CodeLayout, CodeObject, MAX_LINE_TABLE};
use python::lines::lasti::{Lasti, Position};
use python::lines::{self, CODE_UNIT, Line, LineFormat};
use python::strings::{MAX_CHARACTERS, StringLayout, WideLayout};
use python::{Memory, Unreadable};

/// Address of the first object.
const BASE: u64 = 0x7f00_0000_0000;
/// From one object to the next.
const STRIDE: u64 = 1 << 16;
/// Objects that are read; a loop takes no more.
const MOST: usize = 32;

/// Pieces that are objects.
const STRING: u8 = 0;
const BYTES: u8 = 1;
const CODE: u8 = 2;
const CLASS: u8 = 3;
/// The types of the first three, where their addresses are known: the first objects of all.
const TYPES: [u64; 3] = [BASE, BASE + STRIDE, BASE + 2 * STRIDE];

/// Offsets of fields that not every layout has.
const WIDE: WideLayout = WideLayout { wstr: 40, wstr_length: 64 };
const OB_SIZE: u64 = 16;
const POSITIONAL: u64 = 60;
const QUALIFIED_NAME: u64 = 128;
const CODE_BYTES: u64 = 152;

/// Objects, each with nothing behind it.
struct Objects(Vec<Vec<u8>>);

impl Memory for Objects {
    fn read(&self, address: u64, into: &mut [u8]) -> Result<(), Unreadable> {
        let unreadable = Unreadable { address, length: into.len() };
        let distance = address.checked_sub(BASE).ok_or(unreadable)?;
        let object = usize::try_from(distance / STRIDE).ok().and_then(|index| self.0.get(index)).ok_or(unreadable)?;
        let begin = (distance % STRIDE) as usize;
        let end = begin.checked_add(into.len()).ok_or(unreadable)?;
        into.copy_from_slice(object.get(begin..end).ok_or(unreadable)?);
        Ok(())
    }
}

fuzz_target!(|input: &[u8]| {
    let Some((flags, rest)) = input.split_first() else { return };
    let (strings, codes) = layouts(*flags);
    let objects =
        Objects(parts::of(rest).take(MOST).map(|(kind, piece)| object(kind, piece, &strings, &codes)).collect());
    for index in 0..objects.0.len() as u64 {
        check_object(&objects, BASE + index * STRIDE, &strings, &codes);
    }
    if let Some((first_line, table)) = rest.split_first_chunk() {
        check_lines(codes.line_format, table, i32::from_le_bytes(*first_line));
    }
});

/// A layout like that of 3.11, with what differs between versions chosen.
fn layouts(flags: u8) -> (StringLayout, CodeLayout) {
    let known = |index: usize| (flags & 1 == 0).then_some(TYPES[index]);
    let strings = StringLayout {
        str_type: known(0),
        bytes_type: known(1),
        ob_type: 8,
        tp_flags: 168,
        tp_base: 256,
        length: 16,
        state: 32,
        kind_shift: if flags & 2 == 0 { 2 } else { 8 },
        ascii_data: 48,
        compact_data: 72,
        data: 72,
        wide: (flags & 4 == 0).then_some(WIDE),
        bytes_size: 16,
        bytes_data: 32,
    };
    let bytecode = if flags & 8 == 0 {
        Bytecode::Inline { ob_size: OB_SIZE, co_code_adaptive: 184 }
    } else {
        Bytecode::Object { co_code: CODE_BYTES }
    };
    let codes = CodeLayout {
        code_type: known(2),
        ob_type: 8,
        co_argcount: 56,
        co_posonlyargcount: Some(POSITIONAL),
        co_kwonlyargcount: 64,
        co_flags: 48,
        co_firstlineno: 72,
        co_filename: 112,
        co_name: 120,
        co_qualname: (flags & 4 == 0).then_some(QUALIFIED_NAME),
        co_linetable: 136,
        bytecode,
        line_format: [LineFormat::Locations, LineFormat::Lnotab, LineFormat::Pairs, LineFormat::Locations]
            [usize::from(flags >> 4 & 3)],
        lasti: [Lasti::InstructionPointer, Lasti::ByteOffset, Lasti::UnitIndex, Lasti::PreviousUnit]
            [usize::from(flags >> 6)],
    };
    (strings, codes)
}

fn object(kind: u8, mut piece: &[u8], strings: &StringLayout, codes: &CodeLayout) -> Vec<u8> {
    match kind {
        STRING => string(&mut piece, strings),
        BYTES => bytes(&mut piece, strings),
        CODE => code(&mut piece, codes),
        CLASS => class(&mut piece, strings),
        _ => piece.to_vec(),
    }
}

/// Characters lie where the state says, with a zero behind; the length is what the piece says.
fn string(piece: &mut &[u8], layout: &StringLayout) -> Vec<u8> {
    let mut object = vec![0; 80];
    put(&mut object, layout.ob_type, type_of(piece, 0));
    let state = parts::take_u8(piece);
    put(&mut object, layout.state, u64::from(state) << layout.kind_shift);
    let (length, at) = (size(piece), pointer(piece));
    put(&mut object, layout.length, length);
    put(&mut object, WIDE.wstr, at);
    put(&mut object, WIDE.wstr_length, length);
    match state >> 3 & 3 {
        0b11 => object.truncate(layout.ascii_data as usize),
        0b01 => object.truncate(layout.compact_data as usize),
        _ => put(&mut object, layout.data, at),
    }
    object.extend(piece.iter().chain(&[0; 4]));
    object
}

fn bytes(piece: &mut &[u8], layout: &StringLayout) -> Vec<u8> {
    let mut object = vec![0; layout.bytes_data as usize];
    put(&mut object, layout.ob_type, type_of(piece, 1));
    put(&mut object, layout.bytes_size, size(piece));
    object.extend(piece.iter().chain(&[0]));
    object
}

fn code(piece: &mut &[u8], layout: &CodeLayout) -> Vec<u8> {
    let mut object = vec![0; 192];
    put(&mut object, layout.ob_type, type_of(piece, 2));
    put(&mut object, OB_SIZE, size(piece));
    for offset in [layout.co_filename, layout.co_name, QUALIFIED_NAME, layout.co_linetable, CODE_BYTES] {
        put(&mut object, offset, pointer(piece));
    }
    for offset in [layout.co_flags, layout.co_argcount, POSITIONAL, layout.co_kwonlyargcount, layout.co_firstlineno] {
        let number = i32::from(parts::take_u16(piece).cast_signed());
        object[offset as usize..][..4].copy_from_slice(&number.to_le_bytes());
    }
    object
}

fn class(piece: &mut &[u8], layout: &StringLayout) -> Vec<u8> {
    let mut object = vec![0; 264];
    put(&mut object, layout.tp_flags, u64::from(parts::take_u8(piece)) << 24);
    put(&mut object, layout.tp_base, pointer(piece));
    object
}

fn put(object: &mut [u8], offset: u64, word: u64) {
    object[offset as usize..][..8].copy_from_slice(&word.to_le_bytes());
}

/// What the object is: most often what it should be.
fn type_of(piece: &mut &[u8], usual: usize) -> u64 {
    match parts::take_u8(piece) {
        0 => TYPES[usual],
        index => BASE + u64::from(index) * STRIDE,
    }
}

/// An object, a place within one, or none.
fn pointer(piece: &mut &[u8]) -> u64 {
    match parts::take_u8(piece) {
        255 => 0,
        index => BASE + u64::from(index & 63) * STRIDE + if index & 64 == 0 { 0 } else { 48 },
    }
}

/// A small number, or one that is far too large.
fn size(piece: &mut &[u8]) -> u64 {
    let number = u64::from(parts::take_u16(piece));
    if number & 0x8000 == 0 { number } else { 1u64.rotate_left((number & 63) as u32).wrapping_sub(number >> 6 & 3) }
}

fn check_object(objects: &Objects, address: u64, strings: &StringLayout, codes: &CodeLayout) {
    if let Ok(text) = strings.text(objects, address) {
        let length = text.text.chars().count() as u64;
        assert!(length <= MAX_CHARACTERS && (length == MAX_CHARACTERS || !text.is_cut));
        let claims = [strings.length, WIDE.wstr_length].map(|offset| objects.u64(address + offset));
        assert!(text.is_cut || claims.contains(&Ok(length)), "{claims:?}");
    }
    if let Ok(bytes) = strings.bytes(objects, address, 64) {
        let length = strings.bytes_length(objects, address).expect("it has been read");
        assert_eq!(bytes.bytes.len() as u64, length.min(64));
        assert_eq!(bytes.is_cut, length > 64);
    }
    if let Ok(code) = CodeObject::read(objects, address, codes, strings) {
        check_code(&code);
    }
}

fn check_code(code: &CodeObject) {
    assert!(code.positional_only <= code.arguments);
    assert!(code.line_table.bytes.len() as u64 <= MAX_LINE_TABLE);
    for offset in (0..code.code_size.min(256)).step_by(CODE_UNIT as usize) {
        let raw = match code.lasti {
            Lasti::ByteOffset => u64::from(offset),
            Lasti::UnitIndex => u64::from(offset / CODE_UNIT),
            Lasti::PreviousUnit | Lasti::InstructionPointer => code.code_begin.wrapping_add(u64::from(offset)),
        };
        assert_eq!(code.position(raw), Some(Position::At(offset)));
        assert_eq!(code.line_of(raw), code.line_at(offset));
    }
    let behind = code.code_begin.wrapping_add(u64::from(code.code_size));
    if matches!(code.lasti, Lasti::PreviousUnit | Lasti::InstructionPointer) {
        assert_eq!(code.line_of(behind), Line::Unknown);
    }
}

/// Ranges lie one behind the other from 0 on, and each is found again by the offsets of its ends.
fn check_lines(format: LineFormat, table: &[u8], first_line: i32) {
    let mut behind = 0;
    for (index, range) in lines::ranges(format, table, first_line).enumerate() {
        assert!(range.begin == behind && range.begin < range.end);
        behind = range.end;
        // Looking up takes time in proportion to the table.
        if index < 64 {
            for offset in [range.begin, range.end - 1] {
                assert_eq!(lines::line_at(format, table, first_line, offset), range.line);
            }
        }
    }
    if format != LineFormat::Lnotab {
        assert_eq!(lines::line_at(format, table, first_line, behind), Line::Unknown);
    }
}
