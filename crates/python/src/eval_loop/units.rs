//! The pieces that a file's code consists of: what has an FDE of its own, and functions of which only a symbol tells.

use objects::Functions;

use super::EvalLoopRefusal;
use super::code;
use crate::file::{PythonFile, SymbolKind};

/// Jumps from one piece into another that are kept.
const MAX_CROSSINGS: usize = 1 << 20;

/// A piece of code, by address.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Unit {
    pub begin: u64,
    pub end: u64,
    /// Index of its FDE.
    fde: Option<usize>,
}

/// All pieces, by address and disjoint.
pub(super) struct Units<'f> {
    frames: Option<Functions<'f>>,
    all: Vec<Unit>,
}

impl<'f> Units<'f> {
    pub(super) fn of(file: &PythonFile<'f>) -> Result<Units<'f>, EvalLoopRefusal> {
        let frames = file.eh_frame().map(Functions::read).transpose();
        let frames = frames.map_err(|error| EvalLoopRefusal::CallFrames(error.to_string()))?;
        let described = frames.iter().flat_map(|frames| frames.all().iter().enumerate());
        let mut all: Vec<Unit> = described
            .map(|(index, function)| Unit {
                begin: function.address,
                end: function.address.saturating_add(function.size),
                fde: Some(index),
            })
            .filter(|unit| unit.begin < unit.end && file.is_code(unit.begin))
            .collect();
        clip(&mut all);
        let mut undescribed = Vec::new();
        for symbol in file.functions().filter(|symbol| symbol.kind == SymbolKind::Function && symbol.size > 0) {
            if find(&all, symbol.address).is_none() && file.is_code(symbol.address) {
                let end = symbol.address.saturating_add(symbol.size);
                undescribed.push(Unit { begin: symbol.address, end, fde: None });
            }
        }
        if !undescribed.is_empty() {
            all.append(&mut undescribed);
            // what has an FDE comes first, and so stays where a symbol runs into it
            all.sort_by_key(|unit| (unit.begin, unit.fde.is_none()));
            all.dedup_by_key(|unit| unit.begin);
            clip(&mut all);
        }
        Ok(Units { frames, all })
    }

    pub(super) fn all(&self) -> &[Unit] {
        &self.all
    }

    pub(super) fn get(&self, index: usize) -> Option<Unit> {
        self.all.get(index).copied()
    }

    /// The piece that an address is in.
    pub(super) fn find(&self, address: u64) -> Option<usize> {
        find(&self.all, address)
    }

    /// The piece that begins at an address.
    pub(super) fn beginning(&self, address: u64) -> Option<usize> {
        self.all.binary_search_by_key(&address, |unit| unit.begin).ok()
    }

    /// Whether an address is where a function begins that can be called. If not, it is within a piece.
    pub(super) fn is_entry(&self, file: &PythonFile<'_>, address: u64) -> bool {
        match self.beginning(address).and_then(|index| self.get(index)) {
            Some(unit) => self.begins_as_called(&unit).unwrap_or(true),
            None => code::is_stub(file, address),
        }
    }

    fn begins_as_called(&self, unit: &Unit) -> Option<bool> {
        let frames = self.frames.as_ref()?;
        frames.begins_as_called(frames.all().get(unit.fde?)?)
    }

    /// Pairs of pieces of which the first seems to jump into the middle of the second, sorted by the second.
    pub(super) fn crossings(&self, file: &PythonFile<'_>) -> Result<Vec<(usize, usize)>, EvalLoopRefusal> {
        let mut found = Vec::new();
        let (Some(first), Some(last)) = (self.all.first(), self.all.last()) else { return Ok(found) };
        let span = first.begin..last.end;
        for (from, unit) in self.all.iter().enumerate() {
            code::scan(file, unit.begin, unit.end, |target| {
                if (unit.begin..unit.end).contains(&target) || !span.contains(&target) {
                    return;
                }
                let into = self.find(target).filter(|&into| self.all[into].begin != target);
                found.extend(into.filter(|_| found.len() <= MAX_CROSSINGS).map(|into| (into, from)));
            });
        }
        if found.len() > MAX_CROSSINGS {
            return Err(EvalLoopRefusal::TooMuchCode);
        }
        found.sort_unstable();
        found.dedup();
        Ok(found)
    }
}

fn find(all: &[Unit], address: u64) -> Option<usize> {
    let index = all.partition_point(|unit| unit.begin <= address).checked_sub(1)?;
    all.get(index).filter(|unit| address < unit.end).map(|_| index)
}

/// Ends each piece where the next begins.
fn clip(all: &mut [Unit]) {
    for index in 1..all.len() {
        let next = all[index].begin;
        all[index - 1].end = all[index - 1].end.min(next);
    }
}
