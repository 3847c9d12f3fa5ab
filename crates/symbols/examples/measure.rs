//! Names samples of the code of each file given, and prints how long it took and what share got a name:
//! `cargo run --release --example measure -- FILE...`

use std::process::Command;
use std::time::Instant;
use symbols::{NamedFile, NativeNamer, ObjectFile};

const SAMPLES: u64 = 5000;

/// File offset and size of `.text`, as readelf shows them.
fn text(path: &str) -> Option<(u64, u64)> {
    let output = Command::new("readelf").args(["-SW", path]).output().ok()?.stdout;
    let output = String::from_utf8_lossy(&output).into_owned();
    let line = output.lines().find(|line| line.contains(" .text "))?;
    let words: Vec<&str> = line.split(" .text ").nth(1)?.split_whitespace().collect();
    let number = |at: usize| u64::from_str_radix(words.get(at)?, 16).ok();
    Some((number(2)?, number(3)?))
}

fn main() {
    for path in std::env::args().skip(1) {
        let Some((start, size)) = text(&path) else { panic!("{path}: readelf shows no .text") };
        // a fixed pseudorandom sequence, so that runs can be compared
        let mut state = 0x9e37_79b9_7f4a_7c15u64;
        let mut random = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state
        };
        let offsets: Vec<u64> = (0..SAMPLES).map(|_| start + random() % size).collect();
        let file = ObjectFile::open(path.as_ref()).unwrap_or_else(|reason| panic!("{path}: {reason}"));
        let begin = Instant::now();
        let NamedFile { named, reasons } = NativeNamer::new().name(&file, &offsets);
        let took = begin.elapsed();
        let share = |count: usize| 100.0 * count as f64 / SAMPLES as f64;
        let with_name = named.iter().filter(|named| !named.functions.is_empty()).count();
        let with_line = named.iter().filter(|named| named.functions.iter().any(|function| function.line != 0)).count();
        println!(
            "{path}: {:.1} % named, {:.1} % with lines, {took:.0?}, {:?}",
            share(with_name),
            share(with_line),
            reasons.iter().map(ToString::to_string).collect::<Vec<_>>(),
        );
    }
}
