//! Names of the code in any file: symbol tables, linkage stubs, compressed sections, links to debug files, DWARF.
#![no_main]

use libfuzzer_sys::fuzz_target;

/// Places in the file that are named.
const OFFSETS: usize = 24;

fuzz_target!(init: fuzz::panics::allow_those_of_dependencies(), |bytes: &[u8]| {
    let places = (0..bytes.len()).step_by(bytes.len() / OFFSETS + 1).map(|offset| offset as u64);
    let offsets: Vec<u64> = places.chain([bytes.len() as u64, u64::MAX]).collect();
    fuzz::names::check(bytes, &offsets);
});
