//! `co_linetable` of 3.10 (PEP 626): pairs of an unsigned length in bytes of bytecode and a signed line delta, each a byte. The
//! delta is added before its range; -128 stands for a range without a line, and the sum stays what it was. Source:
//! Objects/lnotab_notes.txt and `advance` in Objects/codeobject.c of 3.10.

use super::{Line, LineRange};

/// A line delta that is none.
const NO_LINE: i8 = -128;

pub(super) struct Ranges<'a> {
    table: &'a [u8],
    begin: u32,
    line: i64,
}

impl<'a> Ranges<'a> {
    pub(super) fn new(table: &'a [u8], first_line: i32) -> Ranges<'a> {
        Ranges { table, begin: 0, line: i64::from(first_line) }
    }
}

impl Iterator for Ranges<'_> {
    type Item = LineRange;

    fn next(&mut self) -> Option<LineRange> {
        loop {
            let ([length, delta], rest) = self.table.split_first_chunk()?;
            let (begin, end) = (self.begin, self.begin.checked_add(u32::from(*length))?);
            self.table = rest;
            self.begin = end;
            let line = match delta.cast_signed() {
                NO_LINE => Line::Absent,
                delta => {
                    self.line = self.line.saturating_add(i64::from(delta));
                    Line::from_sum(self.line)
                }
            };
            if begin < end {
                return Some(LineRange { begin, end, line });
            }
        }
    }
}
