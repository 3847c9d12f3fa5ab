//! /proc/PID/maps: the parser of lines, and the set of ranges that they make.
#![no_main]

use libfuzzer_sys::fuzz_target;
use processes::{RangeSet, maps};

fuzz_target!(|text: &[u8]| {
    let mut set = RangeSet::default();
    for line in text.split(|byte| *byte == b'\n') {
        let Some(range) = maps::parse_line(line) else { continue };
        assert!(range.start < range.end && range.length() > 0);
        assert!(range.path.len() <= line.len());
        let _ = (range.kind(), range.file_path(), range.is_deleted());
        let (start, last) = (range.start, range.end - 1);
        if set.insert(range.clone()).is_ok() {
            for address in [start, last] {
                let found = set.find(address).expect("a range that was put there");
                assert!(found.path == range.path && found.identity == range.identity);
            }
        }
    }
    let all: Vec<_> = set.iter().collect();
    assert!(all.windows(2).all(|pair| pair[0].end <= pair[1].start) && all.iter().all(|range| range.start < range.end));
});
