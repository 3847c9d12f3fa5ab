//! The finished table of one file.

use abi::table::{PAGE_BITS, PAGE_MASK, Page, Row, Rule};

use crate::architecture::Architecture;
use crate::build;
use crate::error::BuildError;
use crate::image::Image;
use crate::stats::TableStats;

/// How to unwind from each byte of a file's code; see [`abi::table`] for the format.
///
/// What always holds: `rules[0]` is [`Rule::NONE`] and each row's rule is one of `rules`; `pages` lists all rows in
/// order; within a page rows rise strictly, the first is at 0, and neighbours differ.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct UnwindTable {
    /// The instruction set, which gives the registers of rules their meaning.
    pub architecture: Architecture,
    /// The page of the file (offset >> [`PAGE_BITS`]) that `pages[0]` is for.
    pub first_page: u32,
    /// One for each page from the first to the last executable one; without rows where nothing is described.
    pub pages: Vec<Page>,
    /// All rows.
    pub rows: Vec<Row>,
    /// The distinct rules.
    pub rules: Vec<Rule>,
    /// What it was made of.
    pub stats: TableStats,
}

impl UnwindTable {
    /// Makes the table of an executable. One without unwind information gets a table without rows, except where a signal
    /// return trampoline is recognised by its code.
    ///
    /// Where functions overlap, as remains of removed functions do, the one that begins last decides, as in the search
    /// of `.eh_frame_hdr` that C++ exceptions use; where it has ended, nothing holds. Of several that begin at one
    /// place, the first of the section counts.
    ///
    /// # Errors
    /// A [`BuildError`] if there is no code, or if the file exceeds one of the [`limits`](crate::limits).
    pub fn build(image: &Image) -> Result<UnwindTable, BuildError> {
        build::build(image)
    }

    /// The rule for the byte of code at `file_offset`, found as the sampler does.
    pub fn lookup(&self, file_offset: u64) -> Rule {
        self.find(file_offset).unwrap_or(Rule::NONE)
    }

    fn find(&self, file_offset: u64) -> Option<Rule> {
        let page = (file_offset >> PAGE_BITS).checked_sub(u64::from(self.first_page))?;
        let page = self.pages.get(usize::try_from(page).ok()?)?;
        let rows = self.rows.get(page.first_row as usize..)?.get(..page.rows as usize)?;
        let low = (file_offset & PAGE_MASK) as u16;
        let after = rows.partition_point(|row| row.low <= low);
        let row = rows.get(after.checked_sub(1)?)?;
        self.rules.get(usize::from(row.rule)).copied()
    }

    /// Bytes of pages, rows and rules.
    pub fn size(&self) -> usize {
        size_of_val(&self.pages[..]) + size_of_val(&self.rows[..]) + size_of_val(&self.rules[..])
    }

    /// The rule at a place in the file in words, such as `CFA=rsp+16, rbp at CFA-16`.
    pub fn explain(&self, file_offset: u64) -> String {
        crate::explain::describe(&self.lookup(file_offset), self.architecture)
    }
}
