//! Compares one file: every row of both sides at its first and last byte, as a place that was interrupted and as one
//! that made a call; and code without FDE.
//!
//! A rule holds from one boundary to the next, so the first byte behind every boundary of either side sees every pair of
//! rules. The last byte before the next boundary would show one that was missed. Where a rule depends on the pc, as in
//! linkage stubs, every byte is compared.

use std::ops::Range;

use abi::process::Mapping;
use abi::table::{PAGE_BITS, Rule, cfa, unsupported};
use anyhow::{Context, bail};
use gimli::UnwindContext;
use objects::{Architecture, Image, UnwindTable};

use super::answer::Answer;
use super::arbiter::Row;
use super::classify::classify;
use super::functions::{Function, Functions, Section};
use super::gaps;
use super::judge::Judge;
use super::kinds::Kind;
use super::ours::{self, Code, Walker};
use super::progress::Progress;
use super::report::{Example, FileReport, Tally};
use super::thread::{Mode, Thread};

/// What files are compared with.
const JUDGE: &str = "framehop";
/// Made-up threads at each place.
const SEEDS: [u64; 2] = [0x5eed_0001, 0x5eed_0002];

/// Both sides and what they came to.
pub(crate) struct Comparison<'t, 'd> {
    pub(crate) code: Code<'t>,
    judge: Judge<'d>,
    walker: Walker,
    pub(crate) report: FileReport,
}

/// Both sides' answers for one thread, where they differ.
pub(crate) struct Difference {
    pub(crate) thread: Thread,
    pub(crate) ours: Answer,
    theirs: Answer,
}

/// Compares a table with framehop's reading of the file that it was made of.
///
/// # Errors
/// The file cannot be judged: it is of another architecture, has no `.eh_frame`, or gimli cannot decode it.
pub fn compare(image: &Image, table: &UnwindTable, name: &str) -> anyhow::Result<FileReport> {
    with_sides(image, table, name, |mut comparison, file, section, functions| {
        comparison.count_functions(functions);
        comparison.functions(section, functions);
        gaps::compare(&mut comparison, file, functions);
        comparison.report.finish(file)
    })
}

/// Calls `work` with both sides, and with the functions of the file by gimli.
pub(crate) fn with_sides<T>(
    image: &Image,
    table: &UnwindTable,
    name: &str,
    work: impl for<'d> FnOnce(Comparison<'_, 'd>, &object::File<'d>, &Section<'d>, &Functions<'d>) -> T,
) -> anyhow::Result<T> {
    if image.architecture() != Architecture::X86_64 {
        bail!("not of x86_64, which is what is compared");
    }
    let file = object::File::parse(image.bytes()).context("cannot read the file's headers")?;
    let Some(section) = Section::of(&file)? else { bail!("no .eh_frame, so framehop has nothing to go by") };
    let mappings = ours::mappings(&file);
    let end = mappings.iter().map(|mapping| mapping.end).max().unwrap_or(0);
    if end > u64::from(u32::MAX) {
        bail!("framehop's addresses within a file have 32 bits, and this one has code at {end:#x}");
    }
    let code = Code { table, mappings: &mappings };
    let functions = section.functions(code)?;
    let judge = Judge::new(&file, end);
    let comparison = Comparison { code, judge, walker: Walker::new(), report: FileReport::new(name, JUDGE) };
    Ok(work(comparison, &file, &section, &functions))
}

impl<'t, 'd> Comparison<'t, 'd> {
    fn count_functions(&mut self, functions: &Functions<'_>) {
        let report = &mut self.report;
        report.functions = functions.list.len();
        report.functions_cut = functions.cut;
        report.functions_repeated = functions.duplicates;
        report.functions_outside = functions.outside;
        let known = self.code.table.stats.fdes as usize;
        if known != functions.list.len() {
            let example = Example {
                ours: format!("{known} functions"),
                eh_frame: Some(format!("{} functions", functions.list.len())),
                ..Example::default()
            };
            report.disagree(Kind::FunctionCount, || example);
        }
    }

    fn functions(&mut self, section: &Section<'d>, functions: &Functions<'d>) {
        let boundaries = boundaries(self.code.table, self.code.mappings);
        let mut context = Box::new(UnwindContext::new());
        let mut progress = Progress::new(&self.report.file, functions.list.len());
        for (done, function) in functions.list.iter().enumerate() {
            progress.at(done);
            self.report.code_bytes += function.end - function.begin;
            let refused = self.code.rule(function.begin) == Rule::unsupported(unsupported::BAD_FDE);
            if (refused && decode(section, function, &mut context).is_err())
                || self.rows(section, function, &boundaries, &mut context).is_err()
            {
                self.bad_function(function);
            }
        }
    }

    fn rows(
        &mut self,
        section: &Section<'d>,
        function: &Function<'d>,
        boundaries: &[u64],
        context: &mut UnwindContext<usize>,
    ) -> gimli::Result<()> {
        let fde = &function.fde;
        let mut rows = fde.rows(&section.eh_frame, &section.bases, context)?;
        while let Some(row) = rows.next_row()? {
            // BOLT leaves rows that begin where their function ends
            let range = row.start_address().max(function.begin)..row.end_address().min(function.end);
            if range.is_empty() {
                continue;
            }
            let row = Row { section, fde, row };
            for interval in split(range, boundaries) {
                self.report.intervals += 1;
                let every = row.depends_on_place() || self.code.rule(interval.start).cfa == cfa::PLT;
                for place in places(interval, every) {
                    self.described(&row, place);
                }
            }
        }
        Ok(())
    }

    fn described(&mut self, row: &Row<'_, 'd>, place: u64) {
        for mode in [Mode::Interrupted, Mode::Called] {
            let difference = self.differ(place, mode);
            self.report.described.count(difference.is_none());
            if let Some(difference) = difference {
                let kind = classify(row, &difference.thread, &difference.ours);
                let (report, code) = (&mut self.report, self.code);
                report.disagree(kind, || Example { eh_frame: Some(row.describe()), ..difference.example(code, place) });
            }
        }
    }

    /// A function that gimli cannot decode to its end.
    fn bad_function(&mut self, function: &Function<'_>) {
        let (place, last) = (function.begin, function.end - 1);
        let refused = self.code.rule(place) == Rule::unsupported(unsupported::BAD_FDE);
        let kind = if refused { Kind::BadFde } else { Kind::NotDecoded };
        self.report.described.count(false);
        let ours = describe(&self.code.rule(last));
        self.report.disagree(kind, || Example { address: place, ours, ..Example::default() });
    }

    /// The first thread for which the two sides give different callers.
    pub(crate) fn differ(&mut self, place: u64, mode: Mode) -> Option<Difference> {
        SEEDS.into_iter().find_map(|seed| {
            let thread = Thread::new(place, mode, seed);
            let ours = self.walker.step(self.code, &thread);
            let theirs = self.judge.step(&thread);
            (ours != theirs).then_some(Difference { thread, ours, theirs })
        })
    }
}

impl Difference {
    pub(crate) fn example(&self, code: Code<'_>, place: u64) -> Example {
        let Difference { thread, ours, theirs } = self;
        Example {
            address: place,
            mode: Some(thread.mode),
            ours: format!("{} [{}]", ours.describe(thread), describe(&code.rule(place))),
            judge: theirs.describe(thread),
            ..Example::default()
        }
    }
}

/// Decodes all rows of a function.
fn decode<'d>(section: &Section<'d>, function: &Function<'d>, context: &mut UnwindContext<usize>) -> gimli::Result<()> {
    let mut rows = function.fde.rows(&section.eh_frame, &section.bases, context)?;
    while rows.next_row()?.is_some() {}
    Ok(())
}

/// A rule in words.
pub(crate) fn describe(rule: &Rule) -> String {
    objects::describe(rule, Architecture::X86_64)
}

/// The places of an interval that are compared.
pub(crate) fn places(interval: Range<u64>, every: bool) -> impl Iterator<Item = u64> {
    let last = interval.end - 1;
    interval.clone().filter(move |place| every || *place == interval.start || *place == last)
}

/// A range cut at the boundaries within it.
pub(crate) fn split(range: Range<u64>, boundaries: &[u64]) -> impl Iterator<Item = Range<u64>> {
    let within = boundaries.partition_point(|at| *at <= range.start)..boundaries.partition_point(|at| *at < range.end);
    let cuts = &boundaries[within];
    let starts = std::iter::once(range.start).chain(cuts.iter().copied());
    let ends = cuts.iter().copied().chain([range.end]);
    starts.zip(ends).map(|(start, end)| start..end)
}

/// Addresses from which on another rule of the table holds, rising.
pub(crate) fn boundaries(table: &UnwindTable, mappings: &[Mapping]) -> Vec<u64> {
    let mut addresses = Vec::with_capacity(table.rows.len());
    for mapping in mappings {
        let mut last = None;
        let end = mapping.file_offset + (mapping.end - mapping.begin);
        let pages = (mapping.file_offset >> PAGE_BITS)..=(end.saturating_sub(1) >> PAGE_BITS);
        for page in pages {
            let Some(index) = page.checked_sub(u64::from(table.first_page)) else { continue };
            let Some(entry) = table.pages.get(index as usize) else { continue };
            let first = entry.first_row as usize;
            for row in table.rows.get(first..first + entry.rows as usize).unwrap_or_default() {
                let offset = (page << PAGE_BITS) + u64::from(row.low);
                if offset >= mapping.file_offset && offset < end && last != Some(row.rule) {
                    addresses.push(offset - mapping.file_offset + mapping.begin);
                    last = Some(row.rule);
                }
            }
        }
    }
    addresses
}

impl Tally {
    /// Counts a comparison.
    pub(crate) fn count(&mut self, equal: bool) {
        self.comparisons += 1;
        self.equal += u64::from(equal);
    }
}
