//! Files that lie about places and lengths, as the fuzz targets make them.

mod common;

use abi::table::{Rule, cfa};
use common::assert_consistent;
use objects::{Image, UnwindTable};

const TEXT: u64 = 0x1000;
const TEXT_ADDRESS: u64 = 0x40_1000;
/// Address of a segment whose bytes would lie where offsets end.
const NOWHERE_ADDRESS: u64 = 0x50_0000;

fn numbers(to: &mut Vec<u8>, list: &[u64]) {
    list.iter().for_each(|number| to.extend(number.to_le_bytes()));
}

fn words(to: &mut Vec<u8>, list: &[u32]) {
    list.iter().for_each(|word| to.extend(word.to_le_bytes()));
}

/// A program whose only description of its code is this `.gopclntab`, and which claims a segment at the end of all offsets.
fn go_program(table: &[u8]) -> Vec<u8> {
    let (table_at, names_at) = (TEXT + 0x100, TEXT + 0x100 + table.len() as u64);
    let headers_at = names_at + 32;
    let mut file = b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0\x02\0\x3e\0\x01\0\0\0".to_vec();
    numbers(&mut file, &[TEXT_ADDRESS, 64, headers_at]);
    words(&mut file, &[0]);
    [64u16, 56, 2, 64, 3, 2].iter().for_each(|number| file.extend(number.to_le_bytes()));
    for (flags, offset, address) in [(5, TEXT, TEXT_ADDRESS), (4, u64::MAX - 8, NOWHERE_ADDRESS)] {
        words(&mut file, &[1, flags]);
        numbers(&mut file, &[offset, address, address, 0x100, 0x100, 0x1000]);
    }
    file.resize(TEXT as usize, 0);
    file.resize(table_at as usize, 0xcc);
    file.extend(table);
    file.extend(b"\0.gopclntab\0.shstrtab\0");
    file.resize(headers_at as usize, 0);
    for (name, kind, offset, size) in [(0, 0, 0, 0), (1, 1, table_at, table.len() as u64), (12, 3, names_at, 22)] {
        words(&mut file, &[name, kind]);
        numbers(&mut file, &[2, 0, offset, size]);
        words(&mut file, &[0, 0]);
        numbers(&mut file, &[1, 0]);
    }
    file
}

/// A table of functions at these distances from the text, each of 32 bytes whose stack pointer never moves. The names
/// have no end.
fn go_table(functions: &[u32]) -> Vec<u8> {
    const HEADER: usize = 72;
    let mut table = vec![0xf1, 0xff, 0xff, 0xff, 0, 0, 1, 8];
    let bodies = functions.len() * 8 + 8;
    let values = bodies + functions.len() * 44;
    let names = HEADER + values + 4;
    let places = [functions.len(), 0, TEXT_ADDRESS as usize, names, names, names, HEADER + values, HEADER];
    numbers(&mut table, &places.map(|place| place as u64));
    for (index, begin) in functions.iter().enumerate() {
        words(&mut table, &[*begin, (bodies + index * 44) as u32]);
    }
    words(&mut table, &[functions.last().map_or(0, |begin| begin + 32), 0]);
    for begin in functions {
        words(&mut table, &[*begin, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    }
    // one step of 1, zigzag, for 127 bytes
    table.extend([2, 127, 0, 0]);
    table.extend([b'x'; 200]);
    table
}

#[test]
fn go_functions_beyond_the_end_of_the_file_have_no_rules() {
    // the first is the entry point, which nothing called
    let distance = (NOWHERE_ADDRESS - TEXT_ADDRESS) as u32;
    let file = go_program(&go_table(&[0, 32, distance, distance + 16]));
    let table = UnwindTable::build(&Image::from_bytes(file).unwrap()).unwrap();
    assert_consistent(&table);
    assert_eq!(table.lookup(TEXT + 32), Rule { cfa: cfa::SP, cfa_offset: 8, ..Rule::NONE }, "in spite of its name");
    assert_eq!(table.lookup(u64::MAX - 8), Rule::NONE);
}
