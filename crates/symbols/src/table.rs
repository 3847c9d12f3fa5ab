//! Which symbol an address belongs to.

use crate::demangle::MAX_NAME;
use crate::symtab::string_at;

/// Something that may name addresses.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Candidate {
    /// First address.
    pub(crate) start: u64,
    /// Size in bytes; 0 = not known.
    pub(crate) size: u64,
    /// Where it ends at the latest if its size is not known.
    pub(crate) limit: u64,
    /// Which of several at one place is preferred: the smallest.
    pub(crate) rank: u16,
    /// Its name.
    pub(crate) name: Name,
}

/// A name: a zero-terminated string in one of the builder's string tables.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Name {
    pub(crate) strings: u16,
    pub(crate) offset: u32,
}

/// Collects the candidates that decide how the wanted addresses are called. Files have hundreds of thousands of symbols,
/// recordings some hundred addresses in them.
#[derive(Default, Debug)]
pub(crate) struct TableBuilder {
    strings: Vec<Vec<u8>>,
    /// The sized ones that hold a wanted address.
    holding: Vec<Candidate>,
    wanted: Vec<Wanted>,
}

/// A wanted address, and what matters of the candidates that begin at it or before it, but behind the wanted address
/// before it.
#[derive(Debug)]
struct Wanted {
    address: u64,
    /// Of the sized ones that end before the address the one that ends last: a symbol without a size that begins before
    /// that end is over.
    ended: Option<Candidate>,
    /// Of those without a size the one that begins last, and of several there the preferred one.
    unsized_one: Option<Candidate>,
}

/// Disjoint ranges of addresses, each with a name.
#[derive(Default, Debug)]
pub(crate) struct SymbolTable {
    strings: Vec<Vec<u8>>,
    ranges: Vec<Named>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Named {
    start: u64,
    end: u64,
    strings: u16,
    offset: u32,
}

impl Wanted {
    /// Whether a candidate that begins here and does not hold the address may matter.
    fn is_open_to(&self, start: u64, size: u64) -> bool {
        match size {
            0 => self.unsized_one.is_none_or(|known| start >= known.start),
            _ => self.ended.is_none_or(|known| start.saturating_add(size) > known.start.saturating_add(known.size)),
        }
    }
}

impl TableBuilder {
    /// A builder of a table that will be asked for these addresses and no others.
    pub(crate) fn new(mut addresses: Vec<u64>) -> TableBuilder {
        addresses.sort_unstable();
        addresses.dedup();
        let wanted = addresses.into_iter().map(|address| Wanted { address, ended: None, unsized_one: None });
        TableBuilder { strings: Vec::new(), holding: Vec::new(), wanted: wanted.collect() }
    }

    /// Whether a wanted address lies within a range.
    pub(crate) fn wants_any(&self, range: &std::ops::Range<u64>) -> bool {
        self.next(range.start).is_some_and(|next| self.wanted[next].address < range.end)
    }

    /// Whether a candidate of this place and size may matter.
    pub(crate) fn is_open_to(&self, start: u64, size: u64) -> bool {
        let Some((next, end)) = self.next(start).zip(start.checked_add(size)) else { return false };
        self.wanted[next].address < end || self.wanted[next].is_open_to(start, size)
    }

    /// Index of the first wanted address at or behind this one.
    fn next(&self, address: u64) -> Option<usize> {
        let next = self.wanted.partition_point(|wanted| wanted.address < address);
        (next < self.wanted.len()).then_some(next)
    }

    /// Adds a string table; its number for [`Name::strings`].
    pub(crate) fn strings(&mut self, strings: Vec<u8>) -> u16 {
        self.strings.push(strings);
        (self.strings.len() - 1) as u16
    }

    /// Sets the contents of a string table.
    pub(crate) fn fill(&mut self, number: u16, strings: Vec<u8>) {
        self.strings[usize::from(number)] = strings;
    }

    /// Adds a candidate.
    pub(crate) fn add(&mut self, candidate: Candidate) {
        let Candidate { start, size, .. } = candidate;
        // a size that leads around the end of the address space is none
        let Some((next, end)) = self.next(start).zip(start.checked_add(size)) else { return };
        let next = &mut self.wanted[next];
        if next.address < end {
            self.holding.push(candidate);
        } else if size != 0 && next.is_open_to(start, size) {
            next.ended = Some(candidate);
        } else if size == 0 {
            let order = |one: Candidate| (std::cmp::Reverse(one.start), one.rank, one.name.offset);
            next.unsized_one = next.unsized_one.into_iter().chain([candidate]).min_by_key(|one| order(*one));
        }
    }

    /// Decides for each address. A sized symbol names its addresses and no others; of nested ones the inner one
    /// names its part. A symbol without a size names what follows it up to the next symbol of any kind, the end of
    /// its section, or its limit, unless a sized one holds it.
    pub(crate) fn build(self) -> SymbolTable {
        let TableBuilder { strings, holding: mut candidates, wanted } = self;
        candidates.extend(wanted.iter().flat_map(|wanted| [wanted.ended, wanted.unsized_one]).flatten());
        // at one place the larger one lies outside, and of equal ones the preferred one comes first
        candidates.sort_unstable_by_key(|one| (one.start, std::cmp::Reverse(one.size), one.rank, one.name.offset));
        candidates.dedup_by_key(|one| (one.start, one.size));
        let mut ranges = flatten(candidates.iter().filter(|one| one.size != 0));
        let unsized_ones = fill_gaps(&candidates, &ranges);
        ranges.extend(unsized_ones);
        ranges.sort_unstable_by_key(|range| range.start);
        ranges.shrink_to_fit();
        SymbolTable { strings, ranges }
    }
}

/// Cuts sorted, possibly nested or overlapping symbols into disjoint ranges; the one that starts last wins.
fn flatten<'a>(sized: impl Iterator<Item = &'a Candidate>) -> Vec<Named> {
    let mut ranges = Vec::new();
    let mut open: Vec<Named> = Vec::new();
    let mut at = 0;
    for one in sized {
        let Some(end) = one.start.checked_add(one.size) else { continue };
        close(&mut open, &mut ranges, &mut at, one.start);
        open.push(Named { start: one.start, end, strings: one.name.strings, offset: one.name.offset });
    }
    close(&mut open, &mut ranges, &mut at, u64::MAX);
    ranges
}

/// Gives the addresses from `at` up to `until` to the innermost open symbols.
fn close(open: &mut Vec<Named>, ranges: &mut Vec<Named>, at: &mut u64, until: u64) {
    while *at < until {
        let Some(top) = open.last() else { break };
        if top.end <= *at {
            open.pop();
            continue;
        }
        let start = top.start.max(*at);
        let end = top.end.min(until);
        if start < end {
            ranges.push(Named { start, end, ..*top });
        }
        *at = end;
    }
    *at = (*at).max(until);
}

/// Ranges of the symbols without a size that no sized one holds.
fn fill_gaps(candidates: &[Candidate], ranges: &[Named]) -> Vec<Named> {
    let mut found: Vec<Named> = Vec::new();
    for one in candidates.iter().filter(|one| one.size == 0) {
        let next = ranges.partition_point(|range| range.start <= one.start);
        if next > 0 && ranges[next - 1].end > one.start {
            continue;
        }
        if let Some(last) = found.last_mut() {
            last.end = last.end.min(one.start);
        }
        let end = ranges.get(next).map_or(one.limit, |range| range.start.min(one.limit));
        if one.start < end {
            found.push(Named { start: one.start, end, strings: one.name.strings, offset: one.name.offset });
        }
    }
    found.retain(|range| range.start < range.end);
    found
}

impl SymbolTable {
    /// The raw name of the symbol that an address belongs to.
    pub(crate) fn name(&self, address: u64) -> Option<&[u8]> {
        let next = self.ranges.partition_point(|range| range.start <= address);
        let range = self.ranges.get(next.checked_sub(1)?).filter(|range| address < range.end)?;
        // one byte more than is shown: a name that is longer is seen to be
        let name = string_at(self.strings.get(usize::from(range.strings))?, range.offset, MAX_NAME + 1);
        (!name.is_empty()).then_some(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn table(symbols: &[(u64, u64, u16)]) -> SymbolTable {
        table_for((0..=1000).collect(), symbols)
    }

    fn table_for(wanted: Vec<u64>, symbols: &[(u64, u64, u16)]) -> SymbolTable {
        let mut builder = TableBuilder::new(wanted);
        let mut strings = Vec::new();
        let names: Vec<u32> = (0..symbols.len())
            .map(|index| {
                let offset = strings.len() as u32;
                strings.extend(format!("{index}\0").bytes());
                offset
            })
            .collect();
        let strings = builder.strings(strings);
        for ((start, size, rank), offset) in symbols.iter().zip(names) {
            let name = Name { strings, offset };
            builder.add(Candidate { start: *start, size: *size, limit: 1000, rank: *rank, name });
        }
        builder.build()
    }

    fn names(table: &SymbolTable, addresses: impl IntoIterator<Item = u64>) -> Vec<String> {
        let text = |name: Option<&[u8]>| name.map_or("-".to_owned(), |name| String::from_utf8_lossy(name).into_owned());
        addresses.into_iter().map(|address| text(table.name(address))).collect()
    }

    #[test]
    fn sized_symbols_name_no_gap() {
        let table = table(&[(10, 5, 0), (20, 5, 0)]);
        assert_eq!(names(&table, [9, 10, 14, 15, 19, 20, 24, 25]), ["-", "0", "0", "-", "-", "1", "1", "-"]);
    }

    #[test]
    fn inner_symbols_win_and_outer_ones_go_on() {
        let table = table(&[(10, 20, 0), (15, 5, 0), (16, 2, 0), (40, 4, 0), (40, 2, 0)]);
        let expected = ["0", "0", "1", "2", "2", "1", "1", "0", "0", "-", "4", "3"];
        assert_eq!(names(&table, [10, 14, 15, 16, 17, 18, 19, 20, 29, 30, 41, 42]), expected);
    }

    #[test]
    fn symbols_without_a_size_end_at_the_next() {
        let table = table(&[(10, 0, 0), (20, 5, 0), (22, 0, 0), (30, 0, 0), (990, 0, 0)]);
        let expected = ["0", "0", "1", "1", "-", "-", "3", "3", "4", "-"];
        assert_eq!(names(&table, [10, 19, 20, 24, 25, 29, 30, 989, 999, 1000]), expected);
    }

    #[test]
    fn the_preferred_alias_names() {
        assert_eq!(names(&table(&[(10, 5, 3), (10, 5, 1), (10, 5, 2), (10, 0, 0)]), [12]), ["1"]);
    }

    proptest! {
        /// Against a search through all symbols for each address.
        #[test]
        fn the_innermost_sized_symbol_names(symbols in prop::collection::vec((0..60u64, 1..20u64), 0..20)) {
            let with_rank: Vec<(u64, u64, u16)> = symbols.iter().map(|(start, size)| (*start, *size, 0)).collect();
            let table = table(&with_rank);
            for address in 0..90 {
                let holds = |(_, (start, size)): &(usize, &(u64, u64))| (*start..start + size).contains(&address);
                let holding = symbols.iter().enumerate().filter(holds);
                let best = holding.max_by_key(|(index, (start, size))| (*start, u64::MAX - size, usize::MAX - index));
                let expected = best.map_or("-".to_owned(), |(index, _)| index.to_string());
                prop_assert_eq!(&names(&table, [address])[0], &expected);
            }
        }

        /// Against a table in which all addresses are wanted.
        #[test]
        fn what_is_not_wanted_changes_nothing(
            symbols in prop::collection::vec((0..60u64, 0..12u64, 0..3u16), 0..30),
            wanted in prop::collection::vec(0..80u64, 0..6),
        ) {
            let all = table(&symbols);
            let some = table_for(wanted.clone(), &symbols);
            prop_assert_eq!(names(&some, wanted.clone()), names(&all, wanted));
        }

        #[test]
        fn extreme_symbols_do_no_harm(
            symbols in prop::collection::vec((any::<u64>(), any::<u64>(), any::<u16>()), 0..20),
        ) {
            let ends = symbols.iter().flat_map(|(start, size, _)| [*start, start.wrapping_add(*size)]);
            let table = table_for(ends.collect(), &symbols);
            prop_assert!(table.ranges.windows(2).all(|pair| pair[0].end <= pair[1].start));
            for (start, size, _) in symbols {
                let _ = (table.name(start), table.name(start.wrapping_add(size)));
            }
        }
    }
}
