//! Unwind tables in the memory that the BPF walker reads, and the same look-up from user space.

use abi::process::{Mapping, PAGE_SEGMENTS, PAGES_PER_SEGMENT, Pages, ROW_SEGMENTS, ROWS_PER_SEGMENT, RULES};
use abi::table::{PAGE_BITS, PAGE_MASK, Page, Row, Rule, unsupported};
use aya::maps::{ArrayOfMaps, MapData};
use objects::UnwindTable;
use rustc_hash::FxHashMap;

use crate::arena::{Arena, ArenaError, Shape};
use crate::mapped::Mapped;
use crate::runs::Run;

/// Rows that are put into one run: small enough that holes of freed tables are used again.
const ROWS_PER_RUN: usize = 1 << 15;

/// Where the table of an object lies.
#[derive(Clone, Debug)]
pub(crate) struct Installed {
    /// Number of the first page's entry.
    pub(crate) page_base: u32,
    /// Which pages of the file there are.
    pub(crate) pages: Pages,
    page_run: Run,
    row_runs: Vec<Run>,
}

/// All tables.
pub(crate) struct Tables {
    pages: Arena<Page>,
    rows: Arena<Row>,
    rules: RuleTable,
}

impl Tables {
    /// No tables yet; `rules` is the map of distinct rules.
    pub(crate) fn new(
        pages: ArrayOfMaps<MapData>,
        rows: ArrayOfMaps<MapData>,
        rules: &MapData,
    ) -> std::io::Result<Tables> {
        let page_shape = Shape { name: "pages", per_segment: PAGES_PER_SEGMENT, segments: PAGE_SEGMENTS, across: true };
        let row_shape = Shape { name: "rows", per_segment: ROWS_PER_SEGMENT, segments: ROW_SEGMENTS, across: false };
        Ok(Tables {
            pages: Arena::new(pages, page_shape),
            rows: Arena::new(rows, row_shape),
            rules: RuleTable::new(Mapped::new(rules, RULES)?),
        })
    }

    /// Puts a table where BPF finds it.
    pub(crate) fn install(&mut self, table: &UnwindTable) -> Result<Installed, ArenaError> {
        let rules: Vec<u16> = table.rules.iter().map(|rule| self.rules.number(rule)).collect();
        let mut pages = table.pages.clone();
        let mut row_runs = Vec::new();
        if let Err(error) = self.install_rows(table, &rules, &mut pages, &mut row_runs) {
            row_runs.into_iter().for_each(|run| self.rows.retire(run));
            return Err(error);
        }
        let page_run = match self.pages.insert(&pages) {
            Ok(run) => run,
            Err(error) => {
                row_runs.into_iter().for_each(|run| self.rows.retire(run));
                return Err(error);
            }
        };
        let covered = Pages { first: table.first_page, count: pages.len() as u32 };
        Ok(Installed { page_base: page_run.start, pages: covered, page_run, row_runs })
    }

    /// Copies the rows, run by run, each of whole pages, and points the pages at them.
    fn install_rows(
        &mut self,
        table: &UnwindTable,
        rules: &[u16],
        pages: &mut [Page],
        runs: &mut Vec<Run>,
    ) -> Result<(), ArenaError> {
        let mut rows = Vec::with_capacity(ROWS_PER_RUN);
        let mut first = 0;
        while first < pages.len() {
            rows.clear();
            let mut end = first;
            while end < pages.len() && (end == first || rows.len() + pages[end].rows as usize <= ROWS_PER_RUN) {
                let from = pages[end].first_row as usize;
                let of_page = &table.rows[from..from + pages[end].rows as usize];
                pages[end].first_row = rows.len() as u32;
                rows.extend(of_page.iter().map(|row| Row { rule: rules[usize::from(row.rule)], ..*row }));
                end += 1;
            }
            if !rows.is_empty() {
                let run = self.rows.insert(&rows)?;
                pages[first..end].iter_mut().for_each(|page| page.first_row += run.start);
                runs.push(run);
            }
            first = end;
        }
        Ok(())
    }

    /// Frees a table; its memory is used again after [`Tables::reclaim`].
    pub(crate) fn remove(&mut self, installed: Installed) {
        self.pages.retire(installed.page_run);
        installed.row_runs.into_iter().for_each(|run| self.rows.retire(run));
    }

    /// Whether anything waits for [`Tables::reclaim`].
    pub(crate) fn has_retired(&self) -> bool {
        self.pages.has_retired() || self.rows.has_retired()
    }

    /// See [`Arena::reclaim`].
    pub(crate) fn reclaim(&mut self) {
        self.pages.reclaim();
        self.rows.reclaim();
    }

    /// What the BPF walker finds for a file offset of a mapping.
    pub(crate) fn rule(&self, mapping: &Mapping, offset: u64) -> Rule {
        self.find(mapping, offset).unwrap_or(Rule::NONE)
    }

    fn find(&self, mapping: &Mapping, offset: u64) -> Option<Rule> {
        let page = ((offset >> PAGE_BITS) as u32).wrapping_sub(mapping.pages.first);
        if page >= mapping.pages.count {
            return None;
        }
        let page = self.pages.get(mapping.page_base + page)?;
        let (mut at, mut length) = (page.first_row, page.rows);
        while length > 1 {
            let half = length / 2;
            if self.rows.get(at + half)?.low <= (offset & PAGE_MASK) as u16 {
                at += half;
            }
            length -= half;
        }
        if length == 0 {
            return None;
        }
        self.rules.get(self.rows.get(at)?.rule)
    }
}

/// Distinct rules of all tables. Rules stay when tables go: a whole machine has a few thousand.
struct RuleTable {
    numbers: FxHashMap<Rule, u16>,
    memory: Mapped<Rule>,
}

impl RuleTable {
    /// Number of the rule that stands for all that find no room.
    const TOO_MANY: u16 = 1;

    fn new(memory: Mapped<Rule>) -> RuleTable {
        let mut table = RuleTable { numbers: FxHashMap::default(), memory };
        table.number(&Rule::NONE);
        table.number(&Rule::unsupported(unsupported::TOO_MANY_RULES));
        table
    }

    fn number(&mut self, rule: &Rule) -> u16 {
        if let Some(number) = self.numbers.get(rule) {
            return *number;
        }
        let next = self.numbers.len();
        if next >= RULES || !self.memory.write(next, std::slice::from_ref(rule)) {
            return RuleTable::TOO_MANY;
        }
        self.numbers.insert(*rule, next as u16);
        next as u16
    }

    fn get(&self, number: u16) -> Option<Rule> {
        self.memory.get(usize::from(number))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::{Sizes, load};
    use abi::process::code;
    use objects::Image;

    fn table_of(path: &str) -> UnwindTable {
        let file = std::fs::File::open(path).expect("is there");
        UnwindTable::build(&Image::open(&file).expect("an executable")).expect("a table")
    }

    fn mapping(installed: &Installed) -> Mapping {
        let (page_base, pages) = (installed.page_base, installed.pages);
        Mapping { code: code::TABLE, page_base, pages, ..Mapping::default() }
    }

    /// Where rows begin and the bytes before.
    fn places(table: &UnwindTable) -> impl Iterator<Item = u64> {
        (u64::from(table.first_page)..).zip(&table.pages).flat_map(|(page, entry)| {
            let rows = &table.rows[entry.first_row as usize..][..entry.rows as usize];
            rows.iter().flat_map(move |row| {
                let place = page << PAGE_BITS | u64::from(row.low);
                [place.saturating_sub(1), place]
            })
        })
    }

    /// In the memory of BPF maps a table says what it says by itself, also in memory that another one had.
    #[test]
    fn installed_tables_give_the_same_rules() {
        let sizes = Sizes {
            cpus: 2,
            processes: 1024,
            counts: 4096,
            ring: 1 << 22,
            copy: 1 << 14,
            follow: false,
            evidence: false,
        };
        let sampler = load(sizes).expect("loads as root on this kernel");
        let mut tables = Tables::new(sampler.pages, sampler.rows, &sampler.rules).expect("maps can be mapped");
        let own = table_of("/proc/self/exe");
        assert!(own.rows.len() > ROWS_PER_RUN, "a table of several runs");
        for round in 0..3 {
            let installed = tables.install(&own).expect("room");
            let beside = tables.install(&own).expect("room");
            for installed in [&installed, &beside] {
                let mapping = mapping(installed);
                for place in places(&own) {
                    assert_eq!(tables.rule(&mapping, place), own.lookup(place), "round {round}, {place:#x}");
                }
                let end = u64::from(own.first_page) + own.pages.len() as u64;
                assert_eq!(tables.rule(&mapping, end << PAGE_BITS), Rule::NONE);
            }
            tables.remove(installed);
            tables.remove(beside);
            assert!(tables.has_retired());
            tables.reclaim();
        }
    }
}
