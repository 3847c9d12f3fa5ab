//! `co_linetable` from 3.11 on (PEP 657): entries whose first byte has its top bit set, then four bits of a code and three of the
//! length, in code units less one. The bytes that follow have the top bit clear. Source: Objects/locations.md (3.11 to 3.13),
//! InternalDocs/code_objects.md (3.14, 3.15), and `advance` in Objects/codeobject.c, which finds the next entry by its top bit.
//!
//! Columns are not decoded: they follow the line.

use super::{CODE_UNIT, Line, LineRange};

/// The first byte of an entry.
const ENTRY: u8 = 0x80;
/// Codes of one line delta each, beginning with that of 0: one-line forms with columns of eight bits.
const ONE_LINE: std::ops::RangeInclusive<u8> = 10..=12;
/// A line delta, no columns.
const NO_COLUMNS: u8 = 13;
/// A line delta, end line, columns.
const LONG: u8 = 14;
/// No line: the sum stays what it was for the next entry.
const NONE: u8 = 15;
/// Bits of a number that a byte carries.
const VARINT_BITS: u32 = 6;
/// A byte that another one follows, in a number.
const CONTINUED: u8 = 0x40;

pub(super) struct Ranges<'a> {
    table: &'a [u8],
    begin: u32,
    line: i64,
}

impl<'a> Ranges<'a> {
    pub(super) fn new(table: &'a [u8], first_line: i32) -> Ranges<'a> {
        Ranges { table, begin: 0, line: i64::from(first_line) }
    }

    /// Takes the next entry: its first byte, and those up to the next entry.
    fn entry(&mut self) -> Option<(u8, &'a [u8])> {
        let (first, rest) = self.table.split_first()?;
        let size = rest.iter().position(|byte| byte & ENTRY != 0).unwrap_or(rest.len());
        let (body, rest) = rest.split_at(size);
        self.table = rest;
        (first & ENTRY != 0).then_some((*first, body))
    }
}

impl Iterator for Ranges<'_> {
    type Item = LineRange;

    fn next(&mut self) -> Option<LineRange> {
        let (first, body) = self.entry()?;
        let code = first >> 3 & 0xf;
        let length = (u32::from(first & 7) + 1) * CODE_UNIT;
        let (begin, end) = (self.begin, self.begin.checked_add(length)?);
        self.begin = end;
        if code == NONE {
            return Some(LineRange { begin, end, line: Line::Absent });
        }
        let delta = match code {
            NO_COLUMNS | LONG => signed_varint(body)?,
            code if ONE_LINE.contains(&code) => i64::from(code - ONE_LINE.start()),
            _ => 0,
        };
        self.line = self.line.saturating_add(delta);
        Some(LineRange { begin, end, line: Line::from_sum(self.line) })
    }
}

/// A number with its sign in the lowest bit; `None` if its end is missing, or if it does not fit in 32 bits.
fn signed_varint(bytes: &[u8]) -> Option<i64> {
    let mut number = 0;
    for (index, byte) in (0u32..).zip(bytes) {
        let bits = u64::from(byte & (CONTINUED - 1)) << (index * VARINT_BITS);
        number |= bits;
        if number > u64::from(u32::MAX) {
            return None;
        }
        if byte & CONTINUED == 0 {
            let size = (number >> 1).cast_signed();
            return Some(if number & 1 == 0 { size } else { -size });
        }
        if index >= u32::BITS / VARINT_BITS {
            return None;
        }
    }
    None
}
