//! Lines of instructions: for the whole standard library of every interpreter on the machine, what the interpreter says itself.

mod interpreters;

use std::collections::HashSet;
use std::io::{BufReader, Read};
use std::process::Stdio;

use interpreters::{Interpreter, layouts};
use proptest::prelude::*;
use python::lines::{CODE_UNIT, Line, LineFormat, LineRange, line_at, ranges};

const SCRIPT: &str = include_str!("scripts/lines.py");
/// Runs of a code object whose first and last instructions are looked up on their own as well, evenly chosen.
const LOOKED_UP: usize = 16;
/// What any standard library has more of.
const MANY_INSTRUCTIONS: u64 = 100_000;

/// A code object, as the script writes it.
struct Sample {
    first_line: i32,
    table: Vec<u8>,
    size: u32,
    /// Offset behind each run, and its line.
    runs: Vec<(u32, Line)>,
}

impl Sample {
    /// The next one, or the numbers at the end.
    fn read(from: &mut impl Read) -> Result<Sample, [u32; 2]> {
        let first_line = number(from).cast_signed();
        if first_line == -1 {
            return Err([number(from), number(from)]);
        }
        let [table, size, count] = [number(from), number(from), number(from)];
        let mut bytes = vec![0; table as usize];
        from.read_exact(&mut bytes).expect("a table");
        let runs = (0..count).map(|_| (number(from), u32_or_absent(number(from)))).collect();
        Ok(Sample { first_line, table: bytes, size, runs })
    }

    /// Compares every instruction; the number of them.
    fn check(&self, format: LineFormat) -> u64 {
        let mut ours = ranges(format, &self.table, self.first_line).peekable();
        let step = self.runs.len() / LOOKED_UP + 1;
        let mut begin = 0;
        for (index, (end, line)) in self.runs.iter().enumerate() {
            // Before 3.10 a table may go on behind the code.
            let end = (*end).min(self.size);
            for offset in (begin..end).step_by(CODE_UNIT as usize) {
                while ours.next_if(|range| range.end <= offset).is_some() {}
                let found = ours.peek().filter(|range| range.begin <= offset).map_or(Line::Unknown, |range| range.line);
                assert_eq!(found, *line, "at {offset} of {:x?} from {}", self.table, self.first_line);
            }
            if begin < end && index % step == 0 {
                for offset in [begin, end - CODE_UNIT] {
                    assert_eq!(line_at(format, &self.table, self.first_line, offset), *line, "at {offset}");
                }
            }
            begin = begin.max(end);
        }
        assert_eq!(begin, self.size, "the interpreter's own lines do not cover the code");
        u64::from(begin / CODE_UNIT)
    }
}

fn u32_or_absent(line: u32) -> Line {
    if line == u32::MAX { Line::Absent } else { Line::Number(line) }
}

fn number(from: &mut impl Read) -> u32 {
    let mut bytes = [0; 4];
    from.read_exact(&mut bytes).expect("a number of the script");
    u32::from_le_bytes(bytes)
}

fn check_standard_library(interpreter: &Interpreter) {
    let mut command = interpreter.place.command();
    let mut child =
        command.args(["-c", SCRIPT]).stdout(Stdio::piped()).spawn().expect("an interpreter that ran before");
    let mut from = BufReader::with_capacity(1 << 20, child.stdout.take().expect("piped"));
    let (mut codes, mut instructions) = (0, 0);
    let [files, refused] = loop {
        match Sample::read(&mut from) {
            Ok(sample) => instructions += sample.check(layouts::line_format(interpreter.version.minor)),
            Err(numbers) => break numbers,
        }
        codes += 1;
    };
    assert!(child.wait().expect("a child").success());
    println!(
        "{} {}: {files} files ({refused} more do not compile), {codes} code objects, {instructions} instructions",
        interpreter.version,
        interpreter.place.file.display()
    );
    assert!(instructions > MANY_INSTRUCTIONS, "too few to be a standard library");
}

#[test]
fn every_instruction_of_the_standard_library() {
    let all = interpreters::all();
    if all.is_empty() {
        println!("SKIPPED: no CPython here");
    }
    // The static and the shared interpreter of a tree have one library, and compile it alike.
    let mut is_checked = HashSet::new();
    let is_first = |interpreter: &&Interpreter| match &interpreter.place.tree {
        Some(tree) => is_checked.insert((tree.clone(), interpreter.version)),
        None => true,
    };
    all.iter().filter(is_first).for_each(check_standard_library);
}

/// A table written by hand from PEP 626's and PEP 657's texts, where real tables of one version do not have every case.
#[test]
fn cases_that_no_compiler_makes() {
    let lines = |format, table: &[u8], first, offsets: &[u32]| -> Vec<Line> {
        offsets.iter().map(|offset| line_at(format, table, first, *offset)).collect()
    };
    let n = Line::Number;
    // No table at all.
    assert_eq!(lines(LineFormat::Lnotab, &[], 7, &[0, 900]), [n(7), n(7)]);
    assert_eq!(lines(LineFormat::Pairs, &[], 7, &[0]), [Line::Unknown]);
    assert_eq!(lines(LineFormat::Locations, &[], 7, &[0]), [Line::Unknown]);
    // A line delta that takes two pairs, an address delta that takes two, a last byte without a partner.
    assert_eq!(
        lines(LineFormat::Lnotab, &[4, 127, 0, 3, 255, 0, 1, 0xfe, 9], 1, &[3, 4, 259, 260]),
        [n(1), n(131), n(131), n(129)]
    );
    // A range without a line leaves the sum alone; an empty range adds to it.
    assert_eq!(
        lines(LineFormat::Pairs, &[2, 1, 2, 0x80, 0, 100, 2, 1, 9], 10, &[0, 2, 4, 6]),
        [n(11), Line::Absent, n(112), Line::Unknown]
    );
    // Code 15 between two entries; a long form; a negative delta; then bytes that are no number.
    let table =
        [0x80 | 11 << 3, 1, 2, 0x80 | 15 << 3 | 1, 0x80 | 13 << 3, 0x42, 2, 0x80 | 14 << 3, 7, 0, 0, 0, 0xe8, 0x7f];
    assert_eq!(
        lines(LineFormat::Locations, &table, 100, &[0, 2, 4, 6, 8, 10]),
        [n(101), Line::Absent, Line::Absent, n(101 + 65), n(101 + 65 - 3), Line::Unknown]
    );
    // What does not begin with an entry is no table, and no number has more than 32 bits.
    assert_eq!(lines(LineFormat::Locations, &[1, 0x80, 0], 1, &[0]), [Line::Unknown]);
    assert_eq!(lines(LineFormat::Locations, &[0xe8, 0x7e, 0x7f, 0x7f, 0x7f, 0x7f, 0x0f], 1, &[0]), [Line::Unknown]);
    // Sums below zero are no lines, as for CPython, and sums that no `int` holds are not CPython's.
    assert_eq!(lines(LineFormat::Pairs, &[2, 0xff, 2, 1], 0, &[0, 2]), [Line::Absent, n(0)]);
    assert_eq!(lines(LineFormat::Pairs, &[2, 1], i32::MAX, &[0]), [Line::Unknown]);
}

fn any_format() -> impl Strategy<Value = LineFormat> {
    prop_oneof![Just(LineFormat::Lnotab), Just(LineFormat::Pairs), Just(LineFormat::Locations)]
}

/// Encodes PEP 657 ranges with columns of every form: units of code, and the line if there is one.
fn encode_locations(first_line: i32, entries: &[(u8, Option<i32>, u8)]) -> Vec<u8> {
    let mut table = Vec::new();
    let mut line = first_line;
    for (units, new, form) in entries {
        let Some(new) = new else {
            table.push(0x80 | 15 << 3 | (units - 1));
            continue;
        };
        let delta = new - line;
        line = *new;
        match (delta, form % 3) {
            (0, 0) => table.extend([0x80 | (form % 10) << 3 | (units - 1), form & 0x7f]),
            (0..=2, 1) => table.extend([0x80 | (10 + delta as u8) << 3 | (units - 1), form & 0x7f, form & 0x7f]),
            (_, 2) => {
                table.push(0x80 | 14 << 3 | (units - 1));
                varint(&mut table, signed(delta));
                [0, u32::from(*form), 77].into_iter().for_each(|number| varint(&mut table, number));
            }
            _ => {
                table.push(0x80 | 13 << 3 | (units - 1));
                varint(&mut table, signed(delta));
            }
        }
    }
    table
}

fn signed(number: i32) -> u32 {
    if number < 0 { number.unsigned_abs() << 1 | 1 } else { number.unsigned_abs() << 1 }
}

fn varint(to: &mut Vec<u8>, mut number: u32) {
    while number >= 64 {
        to.push(number as u8 & 63 | 64);
        number >>= 6;
    }
    to.push(number as u8);
}

proptest! {
    #[test]
    fn locations_read_back(
        first in 0..1_000_000,
        entries in proptest::collection::vec((1u8..=8, proptest::option::weighted(0.8, 0..2_000_000), any::<u8>()), 0..60),
    ) {
        let table = encode_locations(first, &entries);
        let found: Vec<LineRange> = ranges(LineFormat::Locations, &table, first).collect();
        prop_assert_eq!(found.len(), entries.len());
        let mut begin = 0;
        for (range, (units, line, _)) in found.iter().zip(&entries) {
            let end = begin + u32::from(*units) * CODE_UNIT;
            let line = line.map_or(Line::Absent, |line| Line::Number(line.cast_unsigned()));
            prop_assert_eq!(*range, LineRange { begin, end, line });
            begin = end;
        }
    }

    #[test]
    fn any_bytes_give_ordered_ranges_and_the_same_lines(
        format in any_format(),
        table in proptest::collection::vec(any::<u8>(), 0..400),
        first in any::<i32>(),
        offset in prop_oneof![0u32..2000, any::<u32>()],
    ) {
        let mut behind = 0;
        let mut expected = Line::Unknown;
        for range in ranges(format, &table, first) {
            prop_assert!(range.begin == behind && range.begin < range.end);
            behind = range.end;
            if (range.begin..range.end).contains(&offset) {
                expected = range.line;
            }
        }
        prop_assert_eq!(line_at(format, &table, first, offset), expected);
    }
}
