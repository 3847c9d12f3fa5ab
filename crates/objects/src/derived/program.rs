//! All functions of a file: each one that is found may lead to others, and say more of those that call it.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::ops::Range;

use abi::table::{Rule, ra};

use super::beginnings::{self, Beginning};
use super::callers;
use super::function::{Others, walk};
use super::judge::{self, Function};
use super::space::Space;
use crate::image::Image;
use crate::limits::{MAX_DERIVED, MAX_DERIVED_FUNCTIONS, MAX_DERIVED_ROUNDS, MIN_DERIVED_TAKEN};

/// Functions by which it is judged whether a file is of the kind that rows can be derived of. Of C's compilers at least two of three
/// functions give rows; of GHC's, which make no use of calls, hardly any.
const MIN_FOLLOWED: usize = 2000;

/// Functions that are followed before memory is given back. The kernel maps up to 64 KiB around each.
const MAX_UNRELEASED: usize = 128;

/// The rows of all functions, by place in the file.
pub(super) fn derive(image: &Image, space: Space<'_>, described: &[Range<u64>]) -> Vec<(Range<u64>, Rule)> {
    let known = beginnings::symbols(image, &space);
    let mut program = Program {
        image,
        space,
        stale: known.keys().copied().collect(),
        known,
        functions: HashMap::new(),
        never: HashSet::new(),
        returning: HashSet::new(),
        taken: BTreeSet::new(),
        tried: HashSet::new(),
        left_for_taken: MIN_DERIVED_TAKEN,
        left: MAX_DERIVED,
        followed: 0,
        told: 0,
        unreleased: 0,
    };
    if let Some(entry) = image.entry().and_then(|place| image.file_offset_to_vaddr(place)) {
        // it has no caller, and leads to what has one
        program.discover(entry);
        program.taken.extend(callers::taken_at_entry(image, &program.space));
    }
    let called = callers::called(image, &program.space, described, MAX_DERIVED);
    program.called(&called);
    program.settle();
    program.taken.extend(beginnings::relocated(image, &program.space));
    for _ in 0..MAX_DERIVED_ROUNDS {
        program.take_addresses();
        if program.stale.is_empty() {
            break;
        }
        program.settle();
    }
    program.rows()
}

struct Program<'i> {
    image: &'i Image,
    space: Space<'i>,
    known: BTreeMap<u64, Beginning>,
    functions: HashMap<u64, Function>,
    /// Functions that are to be followed (again).
    stale: BTreeSet<u64>,
    /// Functions that are known never to come back, and functions that were seen to.
    never: HashSet<u64>,
    returning: HashSet<u64>,
    /// Addresses of code that are taken, and those of them that were followed.
    taken: BTreeSet<u64>,
    tried: HashSet<u64>,
    /// Instructions that may still be looked at behind such addresses.
    left_for_taken: usize,
    /// Instructions that may still be looked at.
    left: usize,
    /// Functions that were followed, and those of them that rows came of.
    followed: usize,
    told: usize,
    /// Functions that were followed since memory was given back.
    unreleased: usize,
}

impl Others for Program<'_> {
    fn begins(&self, vaddr: u64) -> bool {
        self.known.get(&vaddr).is_some_and(Beginning::is_function)
    }

    fn never_returns(&self, vaddr: u64) -> bool {
        self.never.contains(&vaddr)
    }
}

impl Program<'_> {
    /// Follows code that is no function, for what it calls.
    fn discover(&mut self, entry: u64) {
        if self.space.contains(entry) && !self.known.contains_key(&entry) {
            let function = self.judged(entry, &Beginning { called: true, ..Beginning::default() });
            self.found(&function);
        }
    }

    /// Follows all functions until nothing new is found.
    fn settle(&mut self) {
        for _ in 0..MAX_DERIVED_ROUNDS {
            while self.left > 0
                && let Some(entry) = self.stale.pop_first()
            {
                let beginning = self.known.get(&entry).copied().unwrap_or_default();
                let function = self.judged(entry, &beginning);
                self.count(&function);
                if function.rows.is_empty() && !beginning.is_function() {
                    // a label, or data
                    self.known.remove(&entry);
                    continue;
                }
                self.found(&function);
                if let Some(beginning) = self.known.get_mut(&entry).filter(|_| function.returns) {
                    beginning.returns = true;
                }
                self.functions.insert(entry, function);
            }
            self.outdate();
            if self.stale.is_empty() || self.left == 0 {
                break;
            }
        }
        // what is known of these may be outdated
        for entry in std::mem::take(&mut self.stale) {
            self.functions.remove(&entry);
        }
    }

    /// Ends it all if hardly any function can be told of: the code is not of the kind that this is for.
    fn count(&mut self, function: &Function) {
        self.followed += 1;
        self.told += usize::from(!function.rows.is_empty());
        if self.followed >= MIN_FOLLOWED && self.told < self.followed / 8 {
            self.left = 0;
        }
    }

    fn judged(&mut self, entry: u64, beginning: &Beginning) -> Function {
        if self.left == 0 || self.left_for_taken == 0 && !beginning.is_function() {
            return Function::default();
        }
        let walked = walk(&self.space, self, entry);
        self.left = self.left.saturating_sub(walked.looked_at);
        self.left_for_taken = match beginning.is_function() {
            true => self.left_for_taken + walked.looked_at,
            false => self.left_for_taken.saturating_sub(walked.looked_at),
        };
        self.unreleased += 1;
        if self.unreleased >= MAX_UNRELEASED {
            self.image.release();
            self.unreleased = 0;
        }
        let returning = |function: u64| self.functions.get(&function).is_some_and(|known| known.returns);
        judge::judge(&self.space, &walked, entry, beginning, returning)
    }

    /// Takes in functions that a function calls, and addresses that it takes.
    fn found(&mut self, function: &Function) {
        self.taken.extend(&function.takes);
        self.called(&function.calls);
    }

    fn called(&mut self, functions: &HashSet<u64>) {
        for function in functions.iter().copied().filter(|function| self.space.contains(*function)) {
            if self.known.len() >= MAX_DERIVED_FUNCTIONS {
                return;
            }
            let beginning = self.known.entry(function).or_default();
            if !beginning.called {
                beginning.called = true;
                self.stale.insert(function);
            }
        }
    }

    /// Notes which functions have to be followed again: those that go on where another one begins, and those that call one
    /// of which something new is known.
    fn outdate(&mut self) {
        let all = |of: fn(&Function) -> bool| -> HashSet<u64> {
            self.functions.iter().filter(|(_, function)| of(function)).map(|(entry, _)| *entry).collect()
        };
        let (never, returning) = (all(|function| function.never_returns), all(|function| function.returns));
        let newly_never: HashSet<u64> = never.difference(&self.never).copied().collect();
        let newly_returning: HashSet<u64> = returning.difference(&self.returning).copied().collect();
        (self.never, self.returning) = (never, returning);
        for (entry, function) in &self.functions {
            let runs_into = |piece: &Range<u64>| {
                self.known.range(piece.clone()).any(|(begin, known)| begin != entry && known.is_function())
            };
            let leads_to = |news: &HashSet<u64>| function.leads_to.iter().any(|other| news.contains(other));
            if leads_to(&newly_never)
                || function.undecided && leads_to(&newly_returning)
                || function.reached.iter().any(runs_into)
            {
                self.stale.insert(*entry);
            }
        }
    }

    /// Takes in what may be functions, of which only the address is seen.
    fn take_addresses(&mut self) {
        let mut reached: Vec<Range<u64>> = self.functions.values().flat_map(|f| f.reached.clone()).collect();
        reached.sort_by_key(|piece| piece.start);
        for address in std::mem::take(&mut self.taken) {
            // pieces of several functions may overlap, but hardly ever do
            let before = reached.partition_point(|piece| piece.start <= address);
            let is_reached = before.checked_sub(1).is_some_and(|index| reached[index].contains(&address));
            if !is_reached
                && self.tried.insert(address)
                && !self.known.contains_key(&address)
                && self.known.len() < MAX_DERIVED_FUNCTIONS
            {
                let looks_like_one = judge::begins_as_functions_do(&self.space, address);
                self.known.insert(address, Beginning { looks_like_one, ..Beginning::default() });
                self.stale.insert(address);
            }
        }
    }

    /// The rows of all functions. Where two functions share code and disagree, there is none.
    fn rows(&self) -> Vec<(Range<u64>, Rule)> {
        let rows = self.functions.values().flat_map(|function| &function.rows).cloned();
        let mut rows: Vec<(Range<u64>, Rule)> = rows.collect();
        rows.sort_by_key(|(range, _)| (range.start, range.end));
        let rows = without_overlaps(rows);
        let placed = rows.into_iter().filter_map(|(range, rule)| {
            let place = self.space.place(range.start)?;
            Some((place..place + (range.end - range.start), rule))
        });
        let mut placed: Vec<(Range<u64>, Rule)> = placed.collect();
        placed.sort_by_key(|(place, _)| place.start);
        placed
    }
}

/// Cuts overlapping rows into pieces that do not overlap; where rules disagree, the piece has none.
fn without_overlaps(rows: Vec<(Range<u64>, Rule)>) -> Vec<(Range<u64>, Rule)> {
    let mut cuts: Vec<u64> = rows.iter().flat_map(|(range, _)| [range.start, range.end]).collect();
    cuts.sort_unstable();
    cuts.dedup();
    let mut pieces: Vec<(Range<u64>, Rule)> = Vec::new();
    let mut active: Vec<&(Range<u64>, Rule)> = Vec::new();
    let mut waiting = rows.iter().peekable();
    for cut in cuts.windows(2) {
        active.retain(|(range, _)| range.end > cut[0]);
        while let Some(row) = waiting.next_if(|(range, _)| range.start <= cut[0]) {
            active.push(row);
        }
        let Some(rule) = active.iter().map(|(_, rule)| *rule).reduce(agreed) else { continue };
        match pieces.last_mut() {
            Some((range, last)) if range.end == cut[0] && *last == rule => range.end = cut[1],
            _ => pieces.push((cut[0]..cut[1], rule)),
        }
    }
    pieces
}

/// What two functions say of code that they share: the more careful of both, if they mean the same.
fn agreed(one: Rule, other: Rule) -> Rule {
    let careful = |rule: Rule| Rule { ra: if rule.ra == ra::AT_CFA_MINUS_8 { ra::CHECKED } else { rule.ra }, ..rule };
    match (one == other, careful(one) == careful(other)) {
        (true, _) => one,
        (false, true) => careful(one),
        (false, false) => Rule::NONE,
    }
}
