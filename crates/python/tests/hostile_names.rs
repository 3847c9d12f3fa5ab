//! Objects that are none: memory in which everything may point anywhere.

mod interpreters;

use std::cell::Cell;

use interpreters::layouts::{self, Types};
use proptest::prelude::*;
use python::code_object::{Bytecode, CodeLayout, CodeObject, GarbledCode, MAX_LINE_TABLE};
use python::lines::lasti::{Lasti, Position};
use python::strings::{GarbledString, MAX_CHARACTERS, StringLayout};
use python::{Memory, Unreadable};

const BASE: u64 = 0x5555_0000_0000;
/// More is not read of a code object: its table, two strings of four bytes a character, and fields.
const MOST_READ: u64 = MAX_LINE_TABLE + 2 * 4 * MAX_CHARACTERS + 8 * 1024;

/// Where the planted objects lie: strings of two kinds, bytes, a code object, and the types of the three.
const PLACES: [u64; 7] = [BASE, BASE + 0x100, BASE + 0x200, BASE + 0x300, BASE + 0x600, BASE + 0x800, BASE + 0xa00];
const SIZE: usize = 0x1000;

/// Bytes at [`BASE`]; repeated over the whole address space if it is endless.
struct Image {
    bytes: Vec<u8>,
    is_endless: bool,
    read: Cell<u64>,
}

impl Memory for Image {
    fn read(&self, address: u64, into: &mut [u8]) -> Result<(), Unreadable> {
        let unreadable = Unreadable { address, length: into.len() };
        self.read.set(self.read.get() + into.len() as u64);
        assert!(self.read.get() <= MOST_READ, "more is read than there can be");
        let size = self.bytes.len() as u64;
        let begin = address.wrapping_sub(BASE);
        if !self.is_endless && begin.checked_add(into.len() as u64).is_none_or(|end| end > size) {
            return Err(unreadable);
        }
        for (offset, byte) in (0u64..).zip(into) {
            *byte = self.bytes[(begin.wrapping_add(offset) % size) as usize];
        }
        Ok(())
    }
}

impl Image {
    fn new(bytes: Vec<u8>, is_endless: bool) -> Image {
        Image { bytes, is_endless, read: Cell::new(0) }
    }

    fn put(&mut self, address: u64, bytes: &[u8]) {
        let at = (address - BASE) as usize;
        self.bytes[at..at + bytes.len()].copy_from_slice(bytes);
    }

    fn put_u32(&mut self, address: u64, word: u32) {
        self.put(address, &word.to_le_bytes());
    }

    fn put_u64(&mut self, address: u64, word: u64) {
        self.put(address, &word.to_le_bytes());
    }

    /// A compact string of ASCII.
    fn plant_ascii(&mut self, at: u64, layout: &StringLayout, text: &str) {
        self.put_u64(at + layout.ob_type, PLACES[4]);
        self.put_u64(at + layout.length, text.len() as u64);
        self.put_u32(at + layout.state, 0b11001 << layout.kind_shift);
        self.put(at + layout.ascii_data, text.as_bytes());
        self.put(at + layout.ascii_data + text.len() as u64, &[0]);
    }

    /// A string whose characters of two bytes lie elsewhere.
    fn plant_apart(&mut self, at: u64, layout: &StringLayout, units: &[u16]) {
        self.put_u64(at + layout.ob_type, PLACES[4]);
        self.put_u64(at + layout.length, units.len() as u64);
        self.put_u32(at + layout.state, 0b00010 << layout.kind_shift);
        self.put_u64(at + layout.data, BASE + 0xc00);
        let bytes: Vec<u8> = units.iter().chain(&[0]).flat_map(|unit| unit.to_le_bytes()).collect();
        self.put(BASE + 0xc00, &bytes);
    }

    fn plant_bytes(&mut self, at: u64, layout: &StringLayout, bytes: &[u8]) {
        self.put_u64(at + layout.ob_type, PLACES[5]);
        self.put_u64(at + layout.bytes_size, bytes.len() as u64);
        self.put(at + layout.bytes_data, bytes);
        self.put(at + layout.bytes_data + bytes.len() as u64, &[0]);
    }

    fn plant_code(&mut self, at: u64, layout: &CodeLayout) {
        self.put_u64(at + layout.ob_type, PLACES[6]);
        for (index, offset) in
            [Some(layout.co_name), layout.co_qualname, Some(layout.co_filename)].into_iter().enumerate()
        {
            offset.into_iter().for_each(|offset| self.put_u64(at + offset, PLACES[index % 2]));
        }
        self.put_u64(at + layout.co_linetable, PLACES[2]);
        self.put_u32(at + layout.co_argcount, 3);
        self.put_u32(at + layout.co_kwonlyargcount, 1);
        layout.co_posonlyargcount.into_iter().for_each(|offset| self.put_u32(at + offset, 2));
        match layout.bytecode {
            Bytecode::Object { co_code } => self.put_u64(at + co_code, PLACES[2]),
            Bytecode::Inline { ob_size, .. } => self.put_u64(at + ob_size, 20),
        }
    }
}

/// Objects of a version, whose types say what they are.
fn planted(bytes: Vec<u8>, is_endless: bool, strings: &StringLayout, codes: &CodeLayout, table: &[u8]) -> Image {
    let mut image = Image::new(bytes, is_endless);
    image.plant_ascii(PLACES[0], strings, "C.method");
    image.plant_apart(PLACES[1], strings, &[0x95a2, 0xd800, 0x61]);
    image.plant_bytes(PLACES[2], strings, table);
    image.plant_code(PLACES[3], codes);
    for (place, flag) in [(PLACES[4], 1 << 28), (PLACES[5], 1 << 27), (PLACES[6], 0)] {
        image.put_u64(place + strings.tp_flags, flag);
        image.put_u64(place + strings.tp_base, 0);
    }
    image
}

/// Numbers that mean something to a reader: addresses in the image, states, flags of types, small and impossible lengths.
fn word() -> impl Strategy<Value = u64> {
    prop_oneof![
        6 => (0u64..512).prop_map(|index| BASE + index * 8),
        2 => proptest::sample::select(PLACES.to_vec()),
        2 => (0u64..256).prop_map(|bits| bits | 0x20),
        2 => 0u64..5000,
        1 => Just((1 << 28) | (1 << 27)),
        1 => (0u32..64).prop_map(|shift| 1 << shift),
        1 => Just(0),
        1 => any::<u64>(),
    ]
}

fn check(image: &Image, strings: &StringLayout, codes: &CodeLayout, address: u64) -> Result<(), TestCaseError> {
    image.read.set(0);
    if let Ok(code) = CodeObject::read(image, address, codes, strings) {
        prop_assert!(code.positional_only <= code.arguments);
        prop_assert!(code.line_table.bytes.len() as u64 <= MAX_LINE_TABLE);
        let end = code.code_begin.wrapping_add(u64::from(code.code_size));
        for raw in [0, 1, 2, 5, u64::MAX, code.code_begin, end.wrapping_sub(2), end, address] {
            code.line_of(raw);
            if let Some(Position::At(at)) = code.position(raw) {
                prop_assert!(at < code.code_size && at % 2 == 0);
            }
        }
    }
    image.read.set(0);
    if let Ok(text) = strings.text(image, address) {
        let length = text.text.chars().count() as u64;
        prop_assert!(length <= MAX_CHARACTERS && (length == MAX_CHARACTERS || !text.is_cut));
    }
    image.read.set(0);
    if let Ok(bytes) = strings.bytes(image, address, 100) {
        prop_assert!(bytes.bytes.len() <= 100 && (bytes.bytes.len() == 100 || !bytes.is_cut));
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_memory_is_read_or_refused(
        words in proptest::collection::vec(word(), SIZE / 8),
        overwritten in proptest::collection::vec((0..SIZE / 8, word()), 0..40),
        table in proptest::collection::vec(any::<u8>(), 0..100),
        is_endless in any::<bool>(),
        minor in 6u8..=15,
        is_free_threaded in any::<bool>(),
        knows_types in proptest::array::uniform3(any::<bool>()),
        address in (0u64..512).prop_map(|index| BASE + index * 8),
    ) {
        let known = |index: usize| knows_types[index].then_some(PLACES[4 + index]);
        let types = Types { of_str: known(0), of_bytes: known(1), of_code: known(2) };
        let strings = layouts::strings(minor, is_free_threaded && minor >= 13, types);
        let codes = layouts::codes(minor, is_free_threaded && minor >= 13, types);
        let bytes = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        let mut image = planted(bytes, is_endless, &strings, &codes, &table);
        let code = CodeObject::read(&image, PLACES[3], &codes, &strings);
        let code = code.map_err(|error| TestCaseError::fail(error.to_string()))?;
        prop_assert_eq!(code.name.text, if minor < 11 { "C.method" } else { "関\u{fffd}a" });
        prop_assert_eq!(code.line_table.bytes, table);
        for (index, word) in overwritten {
            image.put_u64(BASE + index as u64 * 8, word);
            for address in PLACES.into_iter().chain([address]) {
                check(&image, &strings, &codes, address)?;
            }
        }
    }
}

/// A compact ASCII string of 3.11 that claims this length, of a type known to be `str`.
fn string(length: u64, contents: &str) -> (Image, StringLayout) {
    let layout = layouts::strings(11, false, Types { of_str: Some(PLACES[4]), ..Types::default() });
    let mut image = Image::new(vec![0xcc; layout.ascii_data as usize + contents.len() + 1], false);
    image.plant_ascii(BASE, &layout, contents);
    image.put_u64(BASE + layout.length, length);
    (image, layout)
}

#[test]
fn lengths_that_lie() {
    let (memory, layout) = string(5, "hello");
    assert_eq!(layout.text(&memory, BASE).expect("a string").to_string(), "hello");
    // Longer than memory; larger than user space; no address at all.
    let (memory, layout) = string(500, "hello");
    assert!(matches!(layout.text(&memory, BASE), Err(GarbledString::Unreadable(_))));
    for length in [1 << 60, u64::MAX, 1 << 63] {
        let (memory, layout) = string(length, "hello");
        assert_eq!(layout.text(&memory, BASE), Err(GarbledString::Length { length }));
    }
    // Shorter than what is there: no zero behind it.
    let (memory, layout) = string(3, "hello");
    assert_eq!(layout.text(&memory, BASE), Err(GarbledString::Unterminated));
    // Not ASCII, though the string says so.
    let (memory, layout) = string(2, "é");
    assert_eq!(layout.text(&memory, BASE), Err(GarbledString::Character { character: 0xc3 }));
}

#[test]
fn huge_strings_are_cut() {
    let (mut memory, layout) = string(0, &"a".repeat(5000));
    memory.is_endless = true;
    // Memory repeats, and the string ends at the end of one of the repetitions.
    memory.put_u64(BASE + layout.length, memory.bytes.len() as u64 * (1 << 28) + 5000);
    let text = layout.text(&memory, BASE).expect("a string");
    assert!(text.is_cut);
    assert_eq!(text.to_string(), "a".repeat(MAX_CHARACTERS as usize) + "…");
}

#[test]
fn classes_that_derive_in_a_circle() {
    let layout = layouts::strings(13, false, Types { of_str: Some(BASE + 8), ..Types::default() });
    let mut memory = Image::new(vec![0; SIZE], false);
    memory.plant_ascii(BASE, &layout, "circle");
    memory.put_u64(PLACES[4] + layout.tp_base, PLACES[5]);
    memory.put_u64(PLACES[5] + layout.tp_base, PLACES[4]);
    assert_eq!(layout.text(&memory, BASE), Err(GarbledString::Type { found: PLACES[4] }));
    memory.put_u64(PLACES[5] + layout.tp_base, BASE + 8);
    assert_eq!(layout.text(&memory, BASE).expect("a string").text, "circle");
}

#[test]
fn addresses_where_no_object_lies() {
    let (strings, codes) = (layouts::strings(12, false, Types::default()), layouts::codes(12, false, Types::default()));
    let memory = Image::new(vec![0; SIZE], false);
    for address in [0, 1, BASE + 3] {
        let found = CodeObject::read(&memory, address, &codes, &strings);
        assert_eq!(found, Err(GarbledCode::Address { address }));
    }
}

#[test]
fn what_frames_keep() {
    let (int, code) = (|number: i32| u64::from(number as u32), 0x7f00_0000_1000);
    for (lasti, raw, position) in [
        (Lasti::ByteOffset, int(-1), Some(Position::NotStarted)),
        (Lasti::ByteOffset, int(-2), None),
        (Lasti::ByteOffset, int(10), Some(Position::At(10))),
        (Lasti::ByteOffset, 0xdead_beef_0000_000a, Some(Position::At(10))),
        (Lasti::ByteOffset, int(11), None),
        (Lasti::UnitIndex, int(-1), Some(Position::NotStarted)),
        (Lasti::UnitIndex, int(10), Some(Position::At(20))),
        (Lasti::UnitIndex, int(i32::MAX), Some(Position::At(u32::MAX - 1))),
        (Lasti::UnitIndex, int(i32::MIN), None),
        (Lasti::PreviousUnit, code - 2, Some(Position::NotStarted)),
        (Lasti::PreviousUnit, code, Some(Position::At(0))),
        (Lasti::PreviousUnit, code - 4, None),
        (Lasti::InstructionPointer, code - 2, None),
        (Lasti::InstructionPointer, code + 6, Some(Position::At(6))),
        (Lasti::InstructionPointer, code + 7, None),
        (Lasti::InstructionPointer, code + (1 << 32), None),
        (Lasti::InstructionPointer, 0, None),
    ] {
        assert_eq!(lasti.position(raw, code), position, "{lasti:?} {raw:#x}");
    }
}
