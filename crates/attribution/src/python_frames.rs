//! Python frames: which stand for which eval loop, and what they are called.

use std::collections::BTreeMap;
use std::fmt;

use abi::python::Fault;
use abi::word::{self, Word};
use profile::{Builder, FrameKey, FunctionKey, Kind};
use rustc_hash::FxHashMap;

use crate::frames::nameless_frame;
use crate::wanted::lookup;
use crate::{RawSample, Sources};

/// What stands where a code object could not be read in time, or is another one by now.
const GONE: &str = "python: code object gone";

/// The words of a stack without Python frames, if it is in doubt to which eval loops they belong; `None` if it is not.
///
/// Up to 3.10 nothing ties a frame to its eval loop but their order. If one has none, and it is not known which, each may stand in
/// the wrong place.
pub(crate) fn in_doubt(words: &[u64]) -> Option<Vec<u64>> {
    let unproven = word::python_fault(Fault::Unproven as u8);
    words.contains(&unproven).then(|| without_frames(words))
}

fn without_frames(words: &[u64]) -> Vec<u64> {
    let mut kept = Vec::with_capacity(words.len());
    for word in words {
        match Word::decode(*word) {
            Word::Python(_) => kept.push(word::python_fault(Fault::Unproven as u8)),
            Word::PythonAt { .. } => {}
            Word::PythonFault(fault) if fault == Fault::Unproven as u8 => {}
            _ => kept.push(*word),
        }
    }
    kept
}

/// Marks a stack that was taken before its interpreter was known: its eval loops are native frames, and nothing else.
pub(crate) fn mark_eval_loops_of_before(sample: &mut RawSample, sources: &dyn Sources) {
    let is_python = |word: Word| matches!(word, Word::Python(_) | Word::PythonFault(_));
    if sample.words.iter().any(|word| is_python(Word::decode(*word))) {
        return;
    }
    let innermost = sample.words.iter().position(|word| match Word::decode(*word) {
        Word::Object { object, offset, exact, .. } => {
            sources.is_eval_loop(sample.thread.instance, object, lookup(offset, exact))
        }
        _ => false,
    });
    if let Some(index) = innermost {
        sample.words.insert(index, word::python_fault(Fault::NotYet as u8));
    }
}

/// How many samples of a process have Python frames, and of how many they were refused.
#[derive(Clone, Copy, Default)]
struct Tally {
    stacks: u64,
    refused: u64,
    /// Taken before the interpreter was known.
    before: u64,
}

/// The same of all processes, whose number and pid are the key.
#[derive(Default)]
pub(crate) struct Tallies(BTreeMap<(u64, u32), Tally>);

impl Tallies {
    /// Counts a sample whose frames are in place.
    pub(crate) fn add(&mut self, sample: &RawSample) {
        let tally = self.0.entry((sample.thread.instance, sample.thread.pid)).or_default();
        let mut words = sample.words.iter().map(|word| Word::decode(*word));
        let fault = words.clone().find_map(|word| match word {
            Word::PythonFault(fault) => Some(fault),
            _ => None,
        });
        match fault {
            Some(fault) if fault == Fault::NotYet as u8 => tally.before += sample.count,
            Some(_) => tally.refused += sample.count,
            None if words.any(|word| matches!(word, Word::Python(_))) => tally.stacks += sample.count,
            None => {}
        }
    }

    /// A line for each interpreter of each process, those with most stacks first.
    pub(crate) fn lines(&self, sources: &dyn Sources) -> Vec<String> {
        let mut tallies: Vec<_> = self.0.iter().collect();
        tallies.sort_by_key(|(_, tally)| std::cmp::Reverse(tally.stacks + tally.refused + tally.before));
        let of_process = tallies.into_iter().flat_map(|((instance, pid), tally)| {
            let interpreters = sources.interpreters(*instance).into_iter();
            interpreters.map(move |interpreter| format!("pid {pid} {interpreter}; {tally}"))
        });
        of_process.collect()
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} stacks, {} refused", grouped(self.stacks), grouped(self.refused))?;
        match self.before {
            0 => Ok(()),
            before => write!(formatter, ", {} before it was proven", grouped(before)),
        }
    }
}

/// 1234567 as `1,234,567`.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (index, digit) in digits.char_indices() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Names of Python frames.
#[derive(Default)]
pub(crate) struct PythonFrames {
    named: FxHashMap<(u64, u64, u32, u32), Option<FrameKey>>,
}

impl PythonFrames {
    /// The frame of a process's code object; `None` if it is of no function.
    pub(crate) fn name(
        &mut self,
        instance: u64,
        code: u64,
        (check, instruction): (u32, u32),
        sources: &dyn Sources,
        builder: &mut Builder,
    ) -> Option<FrameKey> {
        *self.named.entry((instance, code, check, instruction)).or_insert_with(|| {
            let Some(object) = sources.code_object(instance, code, check) else {
                return Some(nameless_frame(GONE, Kind::Marker, None, 0, builder));
            };
            if object.is_trampoline() {
                return None;
            }
            let key = FunctionKey {
                name: builder.text(&object.name.to_string()),
                kind: Kind::Python,
                file: Some(builder.text(&object.path.to_string())),
                start_line: u32::try_from(object.first_line).unwrap_or(0),
                module: None,
            };
            let line = object.line_of_sample(code, instruction).number().unwrap_or(0);
            Some(FrameKey { line, ..FrameKey::of(builder.function(key)) })
        })
    }
}

/// What is shown in place of Python frames that there should be.
pub(crate) fn fault_text(code: u8) -> String {
    format!("python: {}", Fault::from_code(code).map_or("unknown fault", Fault::text))
}

#[cfg(test)]
mod tests;
