//! Threads whose stacks change: each frame must be one that its caller calls, from that line.

use std::collections::HashSet;

use super::label::{Label, Python};
use super::truth::{Told, is_among};

/// The calls that there are.
pub(crate) struct Calls<'a> {
    told: &'a Told,
    with_lines: bool,
    /// Without lines.
    pairs: HashSet<(i64, usize)>,
    lines: HashSet<(i64, u32, usize)>,
}

impl<'a> Calls<'a> {
    pub(crate) fn new(told: &'a Told, with_lines: bool) -> Calls<'a> {
        let pairs = told.calls.iter().map(|(caller, _, callee)| (*caller, *callee)).collect();
        let lines =
            told.calls.iter().map(|(caller, line, callee)| (*caller, line.unwrap_or_default(), *callee)).collect();
        Calls { told, with_lines, pairs, lines }
    }

    /// Functions that this may be; more than one if two are called the same.
    fn functions(&self, shown: &Python) -> Vec<usize> {
        let functions = self.told.functions.iter().enumerate();
        functions.filter(|(_, place)| place.is_of(shown)).map(|(number, _)| number).collect()
    }

    fn calls(&self, caller: i64, line: Option<u32>, callee: usize) -> bool {
        match line {
            Some(line) => self.with_lines && self.lines.contains(&(caller, line, callee)),
            None => {
                self.pairs.contains(&(caller, callee))
                    && (!self.with_lines || self.lines.contains(&(caller, 0, callee)))
            }
        }
    }

    /// Whether it begins as threads do, and every frame is called by the one before it, in the line where that is.
    pub(crate) fn judge(&self, frames: &[Label]) -> Result<(), String> {
        let innermost = frames.iter().rposition(|frame| matches!(frame, Label::Python(_)));
        // the last frame and the functions that it may be of, unless a marker says that there are others after it
        let mut last: Option<(&Python, Vec<usize>)> = None;
        let mut is_cut = false;
        for (index, frame) in frames.iter().enumerate() {
            match frame {
                Label::PythonMarker(_) | Label::Stopped(_) => {
                    is_cut = true;
                    last = None;
                }
                Label::Python(shown) => {
                    let candidates = self.functions(shown).into_iter();
                    let is_leaf = innermost == Some(index);
                    let fits = |callee: &usize| match &last {
                        Some((caller, callers)) => callers.iter().any(|number| {
                            self.calls(*number as i64, caller.line, *callee)
                                || (is_leaf && self.is_made(*number, *callee, shown.line))
                        }),
                        None => is_cut || self.pairs.contains(&(-1, *callee)),
                    };
                    let functions: Vec<usize> = candidates.filter(fits).collect();
                    if functions.is_empty() {
                        let caller = last.map(|(caller, _)| caller);
                        return Err(format!("{shown:?} is not called by {caller:?}"));
                    }
                    last = Some((shown, functions));
                }
                _ => {}
            }
        }
        match last {
            Some((leaf, functions)) => {
                let lines = |number: &usize| is_among(&self.told.functions[*number].lines, leaf.line, self.with_lines);
                functions.iter().any(lines).then_some(()).ok_or_else(|| format!("{leaf:?} is in a line of another"))
            }
            None if is_cut => Ok(()),
            None => Err("no Python frames".to_owned()),
        }
    }

    /// Whether it may be a generator that is being made.
    fn is_made(&self, maker: usize, made: usize, line: Option<u32>) -> bool {
        let first = self.told.functions[made].first_line;
        self.told.makers.contains(&(maker, made)) && line.is_none_or(|line| line == first)
    }
}
