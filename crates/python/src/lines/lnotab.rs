//! `co_lnotab` of 3.6 to 3.9: pairs of an unsigned address delta and a signed line delta, each a byte. A line delta holds from the
//! address on that its pair ends at. Source: `PyCode_Addr2Line` and Objects/lnotab_notes.txt of 3.6 to 3.9.

use super::{Line, LineRange};

pub(super) struct Ranges<'a> {
    table: &'a [u8],
    begin: u32,
    line: i64,
    is_done: bool,
}

impl<'a> Ranges<'a> {
    pub(super) fn new(table: &'a [u8], first_line: i32) -> Ranges<'a> {
        Ranges { table, begin: 0, line: i64::from(first_line), is_done: false }
    }
}

impl Iterator for Ranges<'_> {
    type Item = LineRange;

    fn next(&mut self) -> Option<LineRange> {
        if self.is_done {
            return None;
        }
        while let Some(([address_delta, line_delta], rest)) = self.table.split_first_chunk() {
            let Some(end) = self.begin.checked_add(u32::from(*address_delta)) else { break };
            let range = LineRange { begin: self.begin, end, line: Line::from_sum(self.line) };
            self.table = rest;
            self.begin = end;
            self.line = self.line.saturating_add(i64::from(line_delta.cast_signed()));
            if range.begin < range.end {
                return Some(range);
            }
        }
        self.is_done = true;
        Some(LineRange { begin: self.begin, end: u32::MAX, line: Line::from_sum(self.line) })
    }
}
