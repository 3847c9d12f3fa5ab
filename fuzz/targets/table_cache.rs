//! The reader of cached tables: what it takes is a sound table, and is written again as it was read.
#![no_main]

use std::sync::LazyLock;

use fuzz::elf::{self, CODE, Section, X86_64};
use libfuzzer_sys::fuzz_target;
use objects::fuzzing::{decode_table, encode_table};
use objects::{CacheKey, Image};

/// The key of a file with a build-id.
static KEY: LazyLock<CacheKey> = LazyLock::new(|| {
    let note = [&[4, 0, 0, 0, 4, 0, 0, 0, 3, 0, 0, 0], &b"GNU\0\x01\x02\x03\x04"[..]].concat();
    let note = Section { kind: 7, ..Section::new(".note.gnu.build-id", 2, &note) };
    let file = elf::file(X86_64, 0, &[Section::new(".text", CODE, &[0xcc; 64]), note]);
    let image = Image::from_bytes(file).expect("an ELF file");
    CacheKey::of(&image).expect("a build-id")
});

fuzz_target!(|body: &[u8]| {
    if let Some(table) = decode_table(&KEY, body) {
        fuzz::table::check(&table);
        assert_eq!(encode_table(&KEY, &table), body);
    }
});
