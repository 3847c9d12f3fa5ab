//! Python frames: which stand for which eval loop, and what they are called.

use std::collections::BTreeMap;
use std::fmt;

use abi::python::Fault;
use abi::word::{self, Word, flag};
use profile::{Builder, FrameKey, FunctionKey, Kind};
use rustc_hash::FxHashMap;

use crate::frames::nameless_frame;
use crate::wanted::lookup;
use crate::{RawSample, Sources};

/// What stands where a code object could not be read in time, or is another one by now.
const GONE: &str = "python: code object gone";

/// The words of a stack with its Python frames where they belong; `None` if they are already.
///
/// Up to 3.10 nothing ties a frame to its eval loop but their order. An eval loop can be interrupted before it has linked its
/// frame, or after it has unlinked it: then the innermost one has none, and takes its caller's, and so on up to the outermost one,
/// which finds none. If that is what the whole stack shows, each frame goes one eval loop further out.
pub(crate) fn in_place(words: &[u64], keeps_eval_loops: bool) -> Option<Vec<u64>> {
    let lacks = words.iter().filter(|word| matches!(Word::decode(**word), Word::PythonLacks { .. })).count();
    let unproven = words.iter().any(|word| Word::decode(*word) == Word::PythonFault(Fault::Unproven as u8));
    match (lacks, unproven) {
        (0, false) => None,
        (1, false) => Some(moved_outwards(words, keeps_eval_loops)),
        _ => Some(without_frames(words)),
    }
}

/// What belongs in the place of a stack's next Python frame when all move outwards.
enum Before {
    /// The innermost eval loop, which has none.
    Innermost,
    /// The frame before, as two words.
    Frame([u64; 2]),
    /// A frame that is not there: words were left out.
    LeftOut,
}

/// Each Python frame in the place of the next one, the first of them replaced by its eval loop.
fn moved_outwards(words: &[u64], keeps_eval_loops: bool) -> Vec<u64> {
    let mut moved = Vec::with_capacity(words.len());
    let innermost = words.iter().find_map(|word| innermost_eval_loop(*word)).filter(|_| !keeps_eval_loops);
    let mut before = Before::Innermost;
    let mut rest = words;
    while let [word, others @ ..] = rest {
        rest = others;
        match (Word::decode(*word), others.first().map(|second| Word::decode(*second))) {
            (Word::Python(_), second) => {
                let this = match (second, others) {
                    (Some(Word::PythonAt { .. }), [second, behind @ ..]) => {
                        rest = behind;
                        Before::Frame([*word, *second])
                    }
                    _ => Before::LeftOut,
                };
                match std::mem::replace(&mut before, this) {
                    Before::Innermost => moved.extend(innermost),
                    Before::Frame(frame) => moved.extend(frame),
                    Before::LeftOut => {}
                }
            }
            (Word::PythonAt { .. }, _) => {}
            (Word::Cut(_), _) => {
                before = Before::LeftOut;
                moved.push(*word);
            }
            (Word::PythonLacks { .. }, _) => {
                if let Before::Frame(frame) = before {
                    moved.extend(frame);
                    // the eval loop's own frame follows
                    rest = &others[usize::from(!keeps_eval_loops && !others.is_empty())..];
                }
                before = Before::LeftOut;
            }
            _ => moved.push(*word),
        }
    }
    moved
}

/// The frame of the innermost eval loop, which an outer one's word has.
fn innermost_eval_loop(word: u64) -> Option<u64> {
    let Word::PythonLacks { object, offset, exact, by_frame_pointer } = Word::decode(word) else { return None };
    let exact = if exact { flag::EXACT } else { 0 };
    let by_frame_pointer = if by_frame_pointer { flag::BY_FRAME_POINTER } else { 0 };
    Some(word::object(exact | by_frame_pointer, object, offset))
}

/// Without Python frames, where it cannot be told to which eval loops they belong.
fn without_frames(words: &[u64]) -> Vec<u64> {
    let mut kept = Vec::with_capacity(words.len());
    for word in words {
        match Word::decode(*word) {
            Word::Python(_) => kept.push(word::python_fault(Fault::Unproven as u8)),
            Word::PythonAt { .. } | Word::PythonLacks { .. } => {}
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
    named: FxHashMap<(u64, u64, u32, u32), FrameKey>,
}

impl PythonFrames {
    /// The frame of a process's code object.
    pub(crate) fn name(
        &mut self,
        instance: u64,
        code: u64,
        (check, instruction): (u32, u32),
        sources: &dyn Sources,
        builder: &mut Builder,
    ) -> FrameKey {
        *self.named.entry((instance, code, check, instruction)).or_insert_with(|| {
            let Some(object) = sources.code_object(instance, code, check) else {
                return nameless_frame(GONE, Kind::Marker, None, 0, builder);
            };
            let key = FunctionKey {
                name: builder.text(&object.name.to_string()),
                kind: Kind::Python,
                file: Some(builder.text(&object.path.to_string())),
                start_line: u32::try_from(object.first_line).unwrap_or(0),
                module: None,
            };
            let line = object.line_of_sample(code, instruction).number().unwrap_or(0);
            FrameKey { line, ..FrameKey::of(builder.function(key)) }
        })
    }
}

/// What is shown in place of Python frames that there should be.
pub(crate) fn fault_text(code: u8) -> String {
    format!("python: {}", Fault::from_code(code).map_or("unknown fault", Fault::text))
}

#[cfg(test)]
mod tests;
