//! `.gopclntab`: the table of functions in Go programs, and the description of the module.
//!
//! The first byte chooses whether the rest is the section itself, or pieces ([`fuzz::parts`]) that are functions.
#![no_main]

use fuzz::elf::{self, CODE, DATA, Section, TEXT, X86_64};
use fuzz::parts;
use libfuzzer_sys::fuzz_target;

/// `pcHeader` of Go 1.20 and later: magic, zeros, size of the smallest instruction, size of a pointer.
const MAGIC: [u8; 8] = [0xf1, 0xff, 0xff, 0xff, 0, 0, 1, 8];
/// Names that mean something, and one that does not.
const NAMES: &[u8] = b"main.main\0runtime.sigtramp\0runtime.sigreturn\0runtime.sigreturn__sigaction\0";
/// Where they begin.
const NAME_PLACES: [u32; 4] = [0, 10, 27, 45];
/// Bytes of `_func` that are read.
const FUNCTION: usize = 44;
/// Code that sets the frame pointer, and code that does not.
const FRAMED: [u8; 4] = [0x55, 0x48, 0x89, 0xe5];

fuzz_target!(|input: &[u8]| {
    let Some(([flags, entry], rest)) = input.split_first_chunk() else { return };
    // no instruction begins with 6: code that is in no function is not decoded any further
    let mut text = vec![6; 0x1400];
    for at in (0..text.len() - FRAMED.len()).step_by(64) {
        text[at..at + FRAMED.len()].copy_from_slice(&FRAMED);
    }
    let text_start = if flags & 2 == 0 { TEXT } else { 0 };
    let table = if flags & 1 == 0 { rest.to_vec() } else { table(text_start, rest) };
    let data = if flags & 4 == 0 { Vec::new() } else { module(&text, &table) };
    let sections = [
        Section::new(".text", CODE, &text),
        Section::new(".gopclntab", DATA, &table),
        Section::new(".go.module", DATA, &data),
    ];
    fuzz::table::build_and_check(&elf::file(X86_64, TEXT + u64::from(*entry) * 64, &sections));
});

/// A table of functions, in the order of the pieces.
fn table(text_start: u64, input: &[u8]) -> Vec<u8> {
    let functions: Vec<Function> = parts::of(input).map(|(kind, piece)| Function::new(kind, piece)).collect();
    let entries_size = functions.len() * (8 + FUNCTION) + 8;
    let names_at = 72;
    let values_at = names_at + NAMES.len();
    let values_size: usize = functions.iter().map(|function| function.distances.len()).sum();
    let entries_at = values_at + values_size;
    let mut table = MAGIC.to_vec();
    let places = [functions.len(), 0, text_start as usize, names_at, names_at, names_at, values_at, entries_at];
    places.iter().for_each(|place| table.extend((*place as u64).to_le_bytes()));
    table.extend(NAMES);
    functions.iter().for_each(|function| table.extend(function.distances));
    let mut begin = 0u32;
    let mut bodies = Vec::with_capacity(entries_size);
    let mut distances_at = 0u32;
    for function in &functions {
        let at = (functions.len() * 8 + 8 + bodies.len()) as u32;
        table.extend([begin, at].map(u32::to_le_bytes).concat());
        let mut body = [0; FUNCTION];
        body[4..8].copy_from_slice(&function.name.to_le_bytes());
        body[16..20].copy_from_slice(&distances_at.to_le_bytes());
        body[41] = function.flags;
        bodies.extend(body);
        begin = begin.wrapping_add(function.size.into());
        distances_at += function.distances.len() as u32;
    }
    table.extend([begin, 0].map(u32::to_le_bytes).concat());
    table.extend(bodies);
    table
}

struct Function<'a> {
    flags: u8,
    name: u32,
    size: u16,
    distances: &'a [u8],
}

impl<'a> Function<'a> {
    fn new(kind: u8, mut piece: &'a [u8]) -> Function<'a> {
        let size = parts::take_u16(&mut piece);
        Function { flags: kind & 7, name: NAME_PLACES[usize::from(kind >> 3) % 4], size, distances: piece }
    }
}

/// `moduledata`: a pointer to the table, the ends of the text, its beginning.
fn module(text: &[u8], table: &[u8]) -> Vec<u8> {
    let header = TEXT + text.len().next_multiple_of(8) as u64;
    let count = table.get(8..16).and_then(|count| count.try_into().ok()).map_or(0, u64::from_le_bytes);
    let place = |index: u64| {
        let entries = table.get(64..72).and_then(|at| at.try_into().ok()).map_or(0, u64::from_le_bytes);
        let at = usize::try_from(entries.wrapping_add(index.wrapping_mul(8))).unwrap_or(usize::MAX);
        table.get(at..).and_then(<[u8]>::first_chunk).map_or(0, |word| u32::from_le_bytes(*word))
    };
    let mut words = [0u64; 23];
    words[0] = header;
    words[20] = TEXT + u64::from(place(0));
    words[21] = TEXT + u64::from(place(count));
    words[22] = TEXT;
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}
