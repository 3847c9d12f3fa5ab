//! Source lines of instructions, by all line tables that CPython 3.6 to 3.15 makes.
//!
//! Three formats: `lnotab` up to 3.9, `pairs` in 3.10, `locations` from 3.11 on. Each is a function of bytes that a target
//! has written: any bytes take time in proportion to their number, and what they do not say is [`Line::Unknown`].

pub mod lasti;
mod lnotab;
mod locations;
mod pairs;

/// Bytes of an instruction, or of one of its cache entries: `sizeof(_Py_CODEUNIT)`, since 3.6.
pub const CODE_UNIT: u32 = 2;

/// How a line table is written.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum LineFormat {
    /// `co_lnotab` of 3.6 to 3.9.
    Lnotab,
    /// `co_linetable` of 3.10 (PEP 626).
    Pairs,
    /// `co_linetable` from 3.11 on (PEP 657).
    Locations,
}

/// What a line table says of an instruction.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Line {
    /// A line, counted from 1. 0 is what CPython itself says of the first instruction of a module, from 3.11 on.
    Number(u32),
    /// The compiler made the instruction for no line of the source; CPython says `None`.
    Absent,
    /// The table does not cover the instruction, or is no table.
    Unknown,
}

impl Line {
    /// The line, if there is one.
    pub fn number(self) -> Option<u32> {
        match self {
            Line::Number(number) => Some(number),
            Line::Absent | Line::Unknown => None,
        }
    }

    /// A running sum of line deltas: below zero stands for no line (`PyCode_Addr2Line`, 3.6 to 3.15), and above what fits
    /// CPython's `int` is no sum that CPython can have made.
    fn from_sum(sum: i64) -> Line {
        match u32::try_from(sum) {
            Ok(number) if i32::try_from(sum).is_ok() => Line::Number(number),
            Err(_) if sum < 0 => Line::Absent,
            _ => Line::Unknown,
        }
    }
}

/// Instructions that follow each other and have the same line.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LineRange {
    /// Offset of the first, in bytes of bytecode.
    pub begin: u32,
    /// Offset behind the last, in bytes of bytecode. [`u32::MAX`] for the last range of a `co_lnotab`, which has no end.
    pub end: u32,
    /// Their line.
    pub line: Line,
}

/// All ranges of a table, by their offsets: none of them empty, and none overlapping. They end where the table does, or
/// where it says nothing that can be understood.
pub fn ranges(format: LineFormat, table: &[u8], first_line: i32) -> impl Iterator<Item = LineRange> {
    match format {
        LineFormat::Lnotab => Ranges::Lnotab(lnotab::Ranges::new(table, first_line)),
        LineFormat::Pairs => Ranges::Pairs(pairs::Ranges::new(table, first_line)),
        LineFormat::Locations => Ranges::Locations(locations::Ranges::new(table, first_line)),
    }
}

/// The range of the instruction that lies at `offset`, in bytes of bytecode. `first_line` is `co_firstlineno`.
pub fn range_at(format: LineFormat, table: &[u8], first_line: i32, offset: u32) -> Option<LineRange> {
    ranges(format, table, first_line).take_while(|range| range.begin <= offset).find(|range| offset < range.end)
}

/// The line of the instruction that lies at `offset`, in bytes of bytecode. `first_line` is `co_firstlineno`.
pub fn line_at(format: LineFormat, table: &[u8], first_line: i32, offset: u32) -> Line {
    range_at(format, table, first_line, offset).map_or(Line::Unknown, |range| range.line)
}

enum Ranges<'a> {
    Lnotab(lnotab::Ranges<'a>),
    Pairs(pairs::Ranges<'a>),
    Locations(locations::Ranges<'a>),
}

impl Iterator for Ranges<'_> {
    type Item = LineRange;

    fn next(&mut self) -> Option<LineRange> {
        match self {
            Ranges::Lnotab(ranges) => ranges.next(),
            Ranges::Pairs(ranges) => ranges.next(),
            Ranges::Locations(ranges) => ranges.next(),
        }
    }
}
