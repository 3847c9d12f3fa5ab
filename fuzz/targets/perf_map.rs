//! Perf maps: the parser, and that an address has the name of the last line that covers it.
#![no_main]

use libfuzzer_sys::fuzz_target;
use std::io::Write;
use symbols::{MAX_NAME, fuzzing};

fuzz_target!(|text: &[u8]| {
    let cut = text.first().map_or(0, |first| usize::from(*first) % text.len());
    let mut file = fuzz::memory_file::with(&text[..cut]);
    let mut map = fuzzing::perf_map(file.try_clone().expect("a descriptor")).expect("a map");
    file.write_all(&text[cut..]).expect("a write to memory");
    map.refresh().expect("a map");
    let whole = fuzzing::perf_map(file).expect("a map");
    let lines = text.split(|byte| *byte == b'\n').count();
    assert!(fuzzing::ranges(&whole) <= 2 * lines);
    for line in text.split(|byte| *byte == b'\n') {
        let number = line.split(|byte| *byte == b' ').next().and_then(|word| std::str::from_utf8(word).ok());
        let Some(start) = number.and_then(|number| u64::from_str_radix(number.trim_start_matches("0x"), 16).ok())
        else {
            continue;
        };
        for address in [start.wrapping_sub(1), start, start.wrapping_add(1)] {
            let name = whole.lookup(address);
            assert_eq!(map.lookup(address), name, "read in two parts, {address:#x}");
            assert!(name.is_none_or(|name| !name.is_empty() && name.len() <= MAX_NAME + '…'.len_utf8()));
        }
    }
});
