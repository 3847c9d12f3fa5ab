//! Rows in rising order, cut into pages.

use abi::table::{PAGE_BITS, PAGE_MASK, Page, Row};

use crate::error::BuildError;
use crate::limits::MAX_ROWS;

/// Number of [`abi::table::Rule::NONE`].
const NONE: u16 = 0;

/// Collects rows into pages: repeats at the beginning of each page the rule that holds there, and merges equal rows.
pub(crate) struct Pages {
    first_page: u64,
    pages: Vec<Page>,
    rows: Vec<Row>,
    /// Index of the first row of the page in the making, which is not yet in `pages`.
    page_begin: usize,
    /// The rule that holds at the end of what was pushed.
    rule: u16,
}

impl Pages {
    /// A table whose first page is `first_page` (file offset >> [`PAGE_BITS`]).
    pub(crate) fn new(first_page: u64) -> Pages {
        Pages { first_page, pages: Vec::new(), rows: Vec::new(), page_begin: 0, rule: NONE }
    }

    /// From `file_offset` on, the rule with this number holds. Offsets never fall; of two equal ones, the later counts.
    ///
    /// # Errors
    /// [`BuildError::TooManyRows`].
    pub(crate) fn push(&mut self, file_offset: u64, rule: u16) -> Result<(), BuildError> {
        self.go_to_page(file_offset >> PAGE_BITS)?;
        let low = (file_offset & PAGE_MASK) as u16;
        if self.rows[self.page_begin..].last().is_some_and(|row| row.low == low) {
            self.rows.pop();
        }
        let before = self.rows[self.page_begin..].last().map(|row| row.rule);
        if before != Some(rule) {
            self.push_row(Row { low, rule })?;
        }
        self.rule = rule;
        Ok(())
    }

    /// Nothing holds beyond the page of `file_offset`, which is one of the last bytes of a segment.
    ///
    /// # Errors
    /// [`BuildError::TooManyRows`].
    pub(crate) fn end_segment(&mut self, file_offset: u64) -> Result<(), BuildError> {
        self.go_to_page(file_offset >> PAGE_BITS)?;
        self.rule = NONE;
        Ok(())
    }

    /// The finished pages, up to and with `last_page`, and their rows.
    ///
    /// # Errors
    /// [`BuildError::TooManyRows`].
    pub(crate) fn finish(mut self, last_page: u64) -> Result<(Vec<Page>, Vec<Row>), BuildError> {
        self.go_to_page(last_page)?;
        self.close_page();
        self.pages.shrink_to_fit();
        self.rows.shrink_to_fit();
        Ok((self.pages, self.rows))
    }

    fn go_to_page(&mut self, page: u64) -> Result<(), BuildError> {
        while self.first_page + (self.pages.len() as u64) < page {
            self.close_page();
            self.open_page()?;
        }
        if self.rows.len() == self.page_begin {
            self.open_page()?;
        }
        Ok(())
    }

    fn open_page(&mut self) -> Result<(), BuildError> {
        self.push_row(Row { low: 0, rule: self.rule })
    }

    /// A page where nothing is described has no rows.
    fn close_page(&mut self) {
        if let [Row { rule: NONE, .. }] = self.rows[self.page_begin..] {
            self.rows.pop();
        }
        let rows = (self.rows.len() - self.page_begin) as u32;
        self.pages.push(Page { first_row: self.page_begin as u32, rows });
        self.page_begin = self.rows.len();
    }

    fn push_row(&mut self, row: Row) -> Result<(), BuildError> {
        if self.rows.len() >= MAX_ROWS {
            return Err(BuildError::TooManyRows);
        }
        self.rows.push(row);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(list: &[(u16, u16)]) -> Vec<Row> {
        list.iter().map(|&(low, rule)| Row { low, rule }).collect()
    }

    fn build(first: u64, pushes: &[(u64, u16)], end: u64) -> (Vec<u32>, Vec<Row>) {
        let mut pages = Pages::new(first);
        for &(at, rule) in pushes {
            pages.push(at, rule).unwrap();
        }
        let (pages, rows) = pages.finish(end).unwrap();
        let mut next = 0;
        for page in &pages {
            assert_eq!(page.first_row, next);
            next += page.rows;
        }
        assert_eq!(next as usize, rows.len());
        (pages.iter().map(|p| p.rows).collect(), rows)
    }

    #[test]
    fn a_rule_goes_on_in_the_next_pages() {
        let (counts, list) = build(1, &[(0x1010, 1), (0x3020, 2)], 4);
        assert_eq!(counts, [2, 1, 2, 1]);
        assert_eq!(list, rows(&[(0, 0), (0x10, 1), (0, 1), (0, 1), (0x20, 2), (0, 2)]));
    }

    #[test]
    fn equal_neighbours_are_one_row() {
        let (_, list) = build(0, &[(0, 1), (4, 1), (8, 2), (9, 2), (0x20, 1)], 0);
        assert_eq!(list, rows(&[(0, 1), (8, 2), (0x20, 1)]));
    }

    #[test]
    fn the_later_of_two_at_one_place_counts() {
        let (_, list) = build(0, &[(0, 1), (8, 2), (8, 3), (0x10, 4), (0x10, 3)], 0);
        assert_eq!(list, rows(&[(0, 1), (8, 3)]));
        let (_, list) = build(0, &[(0, 1), (8, 2), (8, 1)], 0);
        assert_eq!(list, rows(&[(0, 1)]));
        let (_, list) = build(0, &[(0, 1), (0x1000, 2), (0x1000, 3)], 1);
        assert_eq!(list, rows(&[(0, 1), (0, 3)]));
    }

    #[test]
    fn pages_without_rules_have_no_rows() {
        let (counts, list) = build(0, &[(0, 0), (0x2000, 1), (0x2800, 0), (0x5004, 1)], 6);
        assert_eq!(counts, [0, 0, 2, 0, 0, 2, 1]);
        assert_eq!(list, rows(&[(0, 1), (0x800, 0), (0, 0), (4, 1), (0, 1)]));
    }

    #[test]
    fn a_segment_ends_the_rule() {
        let mut pages = Pages::new(0);
        pages.push(0, 1).unwrap();
        pages.end_segment(0x10ff).unwrap();
        pages.push(0x3004, 2).unwrap();
        let (pages, _) = pages.finish(3).unwrap();
        assert_eq!(pages.iter().map(|p| p.rows).collect::<Vec<_>>(), [1, 1, 0, 2]);
    }

    #[test]
    fn rows_are_limited() {
        let mut pages = Pages::new(0);
        for place in 0..MAX_ROWS as u64 {
            pages.push(place, 1 + (place & 1) as u16).unwrap();
        }
        assert!(matches!(pages.push(MAX_ROWS as u64, 1), Err(BuildError::TooManyRows)));
    }
}
