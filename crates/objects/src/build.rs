//! Makes a table: finds the functions, orders them by place, runs each, and lays the rows out in pages.

use std::ops::Range;

use abi::table::{PAGE_BITS, Rule, unsupported};

use crate::bolt;
use crate::derived::{self, Piece};
use crate::entry;
use crate::error::BuildError;
use crate::frames::convert::{self, Convention};
use crate::frames::cursor::Cursor;
use crate::frames::entries::{Cie, Cies, Entries, Function, Id};
use crate::frames::instructions::Machine;
use crate::frames::section::{self, FrameSection};
use crate::gopclntab;
use crate::image::Image;
use crate::limits::{ENTRY_CODE, MAX_FDES, MAX_FRAME_BYTES, MAX_PAGES, MAX_RESIDENT, MAX_ROWS_PER_FDE, MIN_GAP};
use crate::padding::is_padding;
use crate::pages::Pages;
use crate::plt;
use crate::realign;
use crate::rules::Rules;
use crate::sigreturn::Trampolines;
use crate::stats::TableStats;
use crate::table::UnwindTable;

/// See [`UnwindTable::build`].
pub(crate) fn build(image: &Image) -> Result<UnwindTable, BuildError> {
    let code = code_ranges(image);
    let (first_page, last_page) = page_span(&code)?;
    let frames = section::find(image);
    if let Some(frames) = frames.filter(|f| f.bytes.len() > MAX_FRAME_BYTES) {
        return Err(BuildError::FramesTooLarge { bytes: frames.bytes.len() });
    }
    let mut stats = TableStats::default();
    let frames = frames.map(|f| Frames::read(f, &code, first_page << PAGE_BITS, &mut stats)).transpose()?;
    let mut builder = Builder {
        image,
        base: first_page << PAGE_BITS,
        pages: Pages::new(first_page),
        rules: Rules::new(),
        rows: Vec::new(),
        stubs: Vec::new(),
        derived: Vec::new(),
        trampolines: Trampolines::new(image.architecture()),
        jumps: bolt::has_written(image).then(bolt::Jumps::default),
        stats,
    };
    plt::find(image, |place, rule| builder.stubs.push((place, rule)));
    gopclntab::find(image, |place, rule| builder.stubs.push((place, rule)));
    builder.stubs.sort_by_key(|(place, _)| place.start);
    let functions: Vec<Range<u64>> = frames.as_ref().map(|frames| frames.places(builder.base)).unwrap_or_default();
    let undescribed = undescribed(&code, functions.clone(), &builder.stubs);
    builder.derived = derived::rows(image, undescribed, &functions);
    image.release();
    builder.add_code(&code, frames.as_ref())?;
    let (pages, rows) = builder.pages.finish(last_page)?;
    let (rules, mut stats) = (builder.rules.finish(), builder.stats);
    stats.count_rows(&rows, &rules);
    Ok(UnwindTable { architecture: image.architecture(), first_page: first_page as u32, pages, rows, rules, stats })
}

/// The bytes of the file that one executable segment has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct CodeRange {
    begin: u64,
    end: u64,
    /// Address of the byte at `begin`.
    vaddr: u64,
}

impl CodeRange {
    /// Place in the file of the code at an address.
    fn place(&self, vaddr: u64) -> Option<u64> {
        let into = vaddr.checked_sub(self.vaddr)?;
        (into < self.end - self.begin).then(|| self.begin + into)
    }
}

/// The executable segments within the file, in its order and without overlaps.
fn code_ranges(image: &Image) -> Vec<CodeRange> {
    let clipped = image.segments().iter().filter(|s| s.is_executable()).map(|s| CodeRange {
        begin: s.file_offset.min(image.size()),
        end: s.file_offset.saturating_add(s.file_size).min(image.size()),
        vaddr: s.vaddr,
    });
    let mut ranges: Vec<CodeRange> = clipped.collect();
    ranges.sort_by_key(|r| r.begin);
    let mut end = 0;
    for range in &mut ranges {
        let overlap = end.max(range.begin) - range.begin;
        range.begin += overlap;
        range.vaddr = range.vaddr.wrapping_add(overlap);
        end = end.max(range.end);
    }
    ranges.retain(|r| r.begin < r.end && r.vaddr.checked_add(r.end - r.begin).is_some());
    ranges
}

/// First and last page with code.
fn page_span(code: &[CodeRange]) -> Result<(u64, u64), BuildError> {
    let (Some(first), Some(last)) = (code.first(), code.last()) else { return Err(BuildError::NoCode) };
    let (first, last) = (first.begin >> PAGE_BITS, (last.end - 1) >> PAGE_BITS);
    let pages = last - first + 1;
    if pages > MAX_PAGES as u64 || u32::try_from(first).is_err() {
        return Err(BuildError::CodeTooLarge { pages });
    }
    Ok((first, last))
}

/// A function by its place in the file, relative to the first page of the table; and its FDE.
#[derive(Clone, Copy)]
struct Placed {
    begin: u32,
    end: u32,
    cie: u32,
    /// Where in the section the rest of the FDE is.
    rest: (u32, u32),
}

/// The unwind information of a file, with its functions in the order of their places.
struct Frames<'a> {
    section: FrameSection<'a>,
    cies: Cies<'a>,
    functions: Vec<Placed>,
}

impl<'a> Frames<'a> {
    fn read(
        section: FrameSection<'a>,
        code: &[CodeRange],
        base: u64,
        stats: &mut TableStats,
    ) -> Result<Frames<'a>, BuildError> {
        let mut frames = Frames { section, cies: Cies::read(section)?, functions: Vec::new() };
        let mut entries = Entries::new(section);
        for entry in &mut entries {
            let Id::Fde(cie) = entry.id else { continue };
            let Some((index, function)) = frames.function(cie, entry.body) else {
                stats.lost_fdes += 1;
                continue;
            };
            let Some(placed) = place(code, base, index, &function) else {
                stats.outside_fdes += 1;
                continue;
            };
            if frames.functions.len() == MAX_FDES {
                return Err(BuildError::TooManyFdes);
            }
            frames.functions.push(placed);
        }
        stats.broken_framing = u32::from(entries.broken);
        frames.functions.sort_by_key(|f| f.begin);
        let all = frames.functions.len();
        frames.functions.dedup_by_key(|f| f.begin);
        stats.duplicate_fdes = (all - frames.functions.len()) as u32;
        Ok(frames)
    }

    fn function(&self, cie: Option<usize>, body: Cursor<'a>) -> Option<(u32, Function<'a>)> {
        let index = self.cies.find(cie?)?;
        Some((index, Function::parse(self.section, self.cies.get(index)?, body)?))
    }

    /// Places of all functions in the file.
    fn places(&self, base: u64) -> Vec<Range<u64>> {
        self.functions.iter().map(|f| base + u64::from(f.begin)..base + u64::from(f.end)).collect()
    }

    /// The functions that begin within `begin..end`, relative to the first page of the table.
    fn within(&self, begin: u64, end: u64) -> &[Placed] {
        let index = |place: u64| self.functions.partition_point(|f| u64::from(f.begin) < place);
        &self.functions[index(begin)..index(end)]
    }
}

/// The code that neither functions nor stubs cover; not what is too little to be a function.
fn undescribed(code: &[CodeRange], mut described: Vec<Range<u64>>, stubs: &[(Range<u64>, Rule)]) -> Vec<Piece> {
    described.extend(stubs.iter().map(|(place, _)| place.clone()));
    described.sort_by_key(|place| place.start);
    let mut pieces = Vec::new();
    for range in code {
        let within = described.partition_point(|place| place.end <= range.begin);
        let mut add = |begin: u64, end: u64| {
            if end.saturating_sub(begin) >= MIN_GAP {
                pieces.push(Piece { vaddr: range.vaddr + (begin - range.begin), place: begin, size: end - begin });
            }
        };
        let mut behind = range.begin;
        for place in described[within..].iter().take_while(|place| place.start < range.end) {
            add(behind, place.start);
            behind = behind.max(place.end);
        }
        add(behind, range.end);
    }
    pieces
}

/// Where in the file a function's code is; `None` for one without code in an executable segment.
fn place(code: &[CodeRange], base: u64, cie: u32, function: &Function<'_>) -> Option<Placed> {
    let (range, begin) = code.iter().find_map(|range| Some((range, range.place(function.address)?)))?;
    let end = begin.saturating_add(function.size).min(range.end);
    let (rest, rest_end) = (function.rest.position(), function.rest.end());
    // a table spans less than 4 GiB of the file, and a section has at most 1 GiB
    (end > begin).then_some(Placed {
        begin: (begin - base) as u32,
        end: (end - base) as u32,
        cie,
        rest: (rest as u32, rest_end as u32),
    })
}

struct Builder<'i> {
    image: &'i Image,
    /// Place in the file of the first page.
    base: u64,
    pages: Pages,
    rules: Rules,
    /// Rows of the function at hand, by place in the file.
    rows: Vec<(u64, Rule)>,
    /// Linkage stubs and the code of Go, by place.
    stubs: Vec<(Range<u64>, Rule)>,
    /// What was derived from code, by place and without overlaps.
    derived: Vec<(Range<u64>, Rule)>,
    trampolines: Trampolines,
    /// Of the segment at hand, if its unwind information is not complete.
    jumps: Option<bolt::Jumps>,
    stats: TableStats,
}

impl Builder<'_> {
    fn add_code(&mut self, code: &[CodeRange], frames: Option<&Frames<'_>>) -> Result<(), BuildError> {
        let mut machine = frames.map(|f| Machine::new(f.section));
        for range in code {
            self.push(range.begin, Rule::NONE)?;
            let end = match (frames, &mut machine) {
                (Some(frames), Some(machine)) => self.add_functions(*range, frames, machine)?,
                _ => range.begin,
            };
            self.add_gap(end, range.end)?;
            self.pages.end_segment(range.end - 1)?;
        }
        Ok(())
    }

    /// Adds the functions of one segment; returns the place behind the last one.
    fn add_functions<'a>(
        &mut self,
        range: CodeRange,
        frames: &Frames<'a>,
        machine: &mut Machine<'a>,
    ) -> Result<u64, BuildError> {
        self.jumps = self.jumps.take().map(|_| bolt::Jumps::default());
        let functions = frames.within(range.begin - self.base, range.end - self.base);
        let (mut described, mut released) = (range.begin, range.begin);
        for (i, function) in functions.iter().enumerate() {
            let begin = self.base + u64::from(function.begin);
            // the next one begins inside of this one if one of them is a remain
            let next = functions.get(i + 1).map_or(u32::MAX, |next| next.begin);
            let end = self.base + u64::from(function.end.min(next));
            self.add_gap(described, begin)?;
            self.stats.fdes += 1;
            let vaddr = range.vaddr + (begin - range.begin);
            if self.run(frames, machine, function, begin, end, vaddr).is_some() {
                for i in 0..self.rows.len() {
                    self.push(self.rows[i].0, self.rows[i].1)?;
                }
            } else {
                self.stats.bad_fdes += 1;
                self.push(begin, Rule::unsupported(unsupported::BAD_FDE))?;
            }
            described = end;
            if described - released > MAX_RESIDENT {
                self.image.release();
                released = described;
            }
        }
        Ok(described)
    }

    /// Fills `rows` with the rows of a function; `None` if its FDE is bad.
    fn run<'a>(
        &mut self,
        frames: &Frames<'a>,
        machine: &mut Machine<'a>,
        function: &Placed,
        begin: u64,
        end: u64,
        vaddr: u64,
    ) -> Option<()> {
        let cie = frames.cies.get(function.cie)?;
        let rest = Cursor::within(frames.section.bytes, function.rest.0 as usize, function.rest.1 as usize)?;
        let instructions = Function::instructions(cie, rest)?;
        let convention = self.convention(cie);
        let rows = &mut self.rows;
        rows.clear();
        machine.run(cie, vaddr, instructions, |at, state| {
            if at < end - begin && rows.len() <= MAX_ROWS_PER_FDE {
                let rule = convert::rule(convention, state);
                if rows.last().is_none_or(|last| last.1 != rule) {
                    rows.push((begin + at, rule));
                }
            }
        })?;
        realign::correct(self.image, rows, end);
        if let Some(jumps) = &mut self.jumps {
            bolt::correct(self.image.file_bytes(begin, end - begin), begin, rows, jumps);
        }
        (rows.len() <= MAX_ROWS_PER_FDE).then_some(())
    }

    fn convention(&self, cie: &Cie<'_>) -> Convention {
        Convention { architecture: self.image.architecture(), return_register: cie.return_register, signal: cie.signal }
    }

    /// Code that no function covers: padding, where the rule before goes on, or code, where nothing holds but what is
    /// recognised.
    fn add_gap(&mut self, begin: u64, end: u64) -> Result<(), BuildError> {
        if begin >= end {
            return Ok(());
        }
        let code = self.image.file_bytes(begin, end - begin);
        let padding = is_padding(self.image.architecture(), code);
        let recognised = self.recognise(begin, end, padding);
        if padding && end - begin < MIN_GAP && recognised.is_empty() {
            self.stats.paddings += 1;
            return Ok(());
        }
        self.stats.gaps += 1;
        self.push(begin, Rule::NONE)?;
        let mut behind = begin;
        for (place, rule) in recognised {
            if place.start > behind {
                self.push(behind, Rule::NONE)?;
            }
            if place.end > behind {
                self.push(place.start.max(behind), rule)?;
                behind = place.end;
            }
        }
        if behind < end { self.push(behind, Rule::NONE) } else { Ok(()) }
    }

    /// Code that is known without an FDE, by place: linkage stubs, the entry point, functions whose code says it all
    /// ([`crate::derived`]), and, where there is more than padding, signal return trampolines. All other code is read where a
    /// sample needs it ([`crate::exits`]).
    fn recognise(&mut self, begin: u64, end: u64, padding: bool) -> Vec<(Range<u64>, Rule)> {
        let index = |place: u64| self.stubs.partition_point(|(stub, _)| stub.start < place);
        let mut known: Vec<(Range<u64>, Rule)> = self.stubs[index(begin)..index(end)].to_vec();
        if !padding {
            let code = self.image.file_bytes(begin, end - begin);
            let found = |place: Range<usize>| {
                known.push((begin + place.start as u64..begin + place.end as u64, Rule::SIGNAL));
                self.stats.trampolines += 1;
            };
            self.trampolines.find(code, || self.image.release(), found);
        }
        if let Some(entry) = self.image.entry().filter(|entry| (begin..end).contains(entry)) {
            // the kernel jumps there: nothing called it
            let next = known.iter().map(|(place, _)| place.start).filter(|start| *start > entry).min();
            let behind = next.unwrap_or(end).min(entry + ENTRY_CODE);
            let called = entry::first_called(self.image.architecture(), self.image.file_bytes(entry, behind - entry));
            known.push((entry..called.map_or(behind, |at| entry + at as u64), Rule::END));
        }
        known.iter_mut().for_each(|(place, _)| place.end = place.end.min(end));
        known.sort_by_key(|(place, _)| place.start);
        let index = |place: u64| self.derived.partition_point(|(derived, _)| derived.end <= place);
        let derived = self.derived[index(begin)..].iter().take_while(|(place, _)| place.start < end);
        let mut behind = begin;
        known.retain_mut(|(place, _)| {
            place.start = place.start.max(behind);
            behind = behind.max(place.end);
            place.start < place.end
        });
        let derived: Vec<_> =
            derived.flat_map(|(place, rule)| outside(place, &known).map(|rest| (rest, *rule))).collect();
        known.extend(derived);
        known.sort_by_key(|(place, _)| place.start);
        known
    }

    fn push(&mut self, place: u64, rule: Rule) -> Result<(), BuildError> {
        let number = self.rules.number(rule);
        self.pages.push(place, number)
    }
}

/// What of a place lies outside all known ones, which are in rising order and do not overlap.
fn outside<'k>(place: &Range<u64>, known: &'k [(Range<u64>, Rule)]) -> impl Iterator<Item = Range<u64>> + use<'k> {
    let first = known.partition_point(|(other, _)| other.end <= place.start);
    let (mut rest, end) = (place.clone(), place.end);
    let cuts = known[first..].iter().map(|(other, _)| other.clone()).take_while(move |other| other.start < end);
    cuts.chain(std::iter::once(end..end)).filter_map(move |cut| {
        let before = rest.start..cut.start;
        rest.start = rest.start.max(cut.end);
        (before.start < before.end).then_some(before)
    })
}
