//! Random processes: what is shown of those in order, by a model, and what must hold of any.

extern crate std;

use abi::python::{Python, run as ends};
use abi::record::{TURNS, WORDS};
use abi::stop::Stop;
use abi::word::{self, Word};
use proptest::prelude::*;
use std::string::String;
use std::vec::Vec;

use super::made::{Made, VERSIONS, code_at, frame_at};
use crate::cpython::tests::{BASE, STATE, TYPE};
use crate::{mix, unroll};

/// A stack of eval loops.
#[derive(Clone, Debug)]
struct Scene {
    version: usize,
    natives: String,
    /// How many frames each eval loop runs that is in the chain.
    runs: Vec<usize>,
    unlinked: bool,
    keeps: bool,
    kernel: usize,
}

/// Native code around an eval loop: functions that it calls, and its parts.
fn around() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => "N{0,3}E",
        1 => "N{0,2}PE",
        1 => "NPPE",
        1 => "PNE",
    ]
}

fn scene() -> impl Strategy<Value = Scene> {
    let eval_loops = prop::collection::vec((around(), 1..7usize), 1..6);
    let ends = prop_oneof![3 => "N{0,2}R", 1 => "N{0,2}X"];
    (0..VERSIONS.len(), eval_loops, ends, any::<[bool; 2]>(), 0..4usize).prop_map(
        |(version, eval_loops, end, [unlinked, keeps], kernel)| {
            let natives = eval_loops.iter().map(|(natives, _)| natives.as_str()).chain([end.as_str()]).collect();
            let one_each = VERSIONS[version]().run == ends::EVERY;
            let lengths = eval_loops.iter().map(|(_, length)| if one_each { 1 } else { *length });
            let runs = lengths.skip(unlinked.into()).collect();
            Scene { version, natives, runs, unlinked, keeps, kernel }
        },
    )
}

impl Scene {
    fn python(&self) -> Python {
        VERSIONS[self.version]()
    }

    /// The numbers of the frames of each run.
    fn frames(&self) -> Vec<Vec<u64>> {
        let mut next = 1;
        let mut number = || {
            next += 1;
            next - 1
        };
        self.runs.iter().map(|length| (0..*length).map(|_| number()).collect()).collect()
    }

    fn made(&self) -> Made {
        let frames = self.frames();
        let runs: Vec<&[u64]> = frames.iter().map(Vec::as_slice).collect();
        let make = if self.unlinked { Made::unlinked } else { Made::new };
        let made = make(&self.python(), &self.natives, &runs).with_kernel(self.kernel);
        if self.keeps { made.keeping_native() } else { made }
    }

    /// What is to be shown.
    fn expected(&self, made: &Made) -> Vec<u64> {
        let is_old = self.python().run == ends::EVERY;
        let mut runs: Vec<Option<Vec<u64>>> = self.frames().into_iter().map(Some).collect();
        if self.unlinked {
            runs.insert(0, None);
        }
        let mut runs = runs.into_iter();
        let kinds: Vec<char> = self.natives.chars().collect();
        let mut words = made.kernel.clone();
        for group in groups(&kinds) {
            let natives = group.clone().filter(|index| kinds[*index] == 'E' || *index == group.start);
            let natives = natives.map(|index| made.native(index));
            if kinds[group.end - 1] != 'E' {
                words.extend(natives);
                continue;
            }
            match runs.next().flatten() {
                Some(run) => {
                    words.extend(run.iter().flat_map(|id| made.frame(*id)));
                    words.extend(natives.filter(|_| self.keeps));
                }
                None => {
                    // what has called something has linked its frame
                    if !is_old && group.start != 0 && !self.runs.is_empty() {
                        words.push(word::python_fault(abi::python::Fault::OtherChain as u8));
                    }
                    words.extend(natives);
                }
            }
        }
        if !self.natives.ends_with('X') {
            words.push(made.root_end());
            return words;
        }
        if is_old && !self.runs.is_empty() {
            words.push(word::python_fault(abi::python::Fault::Unproven as u8));
        }
        words.push(word::end(Stop::UnsupportedRule as u8, 7, 1));
        words
    }
}

/// Native frames that are one: an eval loop and its parts, or parts without one. Else each is alone.
fn groups(kinds: &[char]) -> Vec<std::ops::Range<usize>> {
    let mut groups = Vec::new();
    let mut begin = 0;
    while begin < kinds.len() {
        let parts = kinds[begin..].iter().take_while(|kind| **kind == 'P').count();
        let is_main = kinds.get(begin + parts) == Some(&'E');
        let end = begin + if parts == 0 { 1 } else { parts + usize::from(is_main) };
        groups.push(begin..end);
        begin = end;
    }
    groups
}

/// A word that may mislead.
fn misleading() -> impl Strategy<Value = Option<u64>> {
    prop_oneof![
        2 => (0..40u64).prop_map(|id| Some(frame_at(id))),
        1 => (0..40u64, 1..8u64).prop_map(|(id, off)| Some(frame_at(id) + off)),
        1 => (0..40u64).prop_map(|id| Some(code_at(id))),
        2 => (0..0x200u64).prop_map(|words| Some(0x7000_0000 + words * 8)),
        2 => prop::sample::select(std::vec![0, 1, 3, STATE, BASE, TYPE, u64::MAX, u64::MAX - 7, 1 << 63]).prop_map(Some),
        1 => any::<u64>().prop_map(Some),
        1 => Just(None),
    ]
}

/// Checks that native frames are all there, in order, or Python frames are where eval loops were.
fn native_order(made: &Made, natives: &str, words: &[u64]) {
    let kinds: Vec<char> = natives.chars().collect();
    let mut words = words[made.kernel.len()..].iter().copied().peekable();
    // those before the next native frame, less one for each eval loop that they may stand for
    let mut frames = 0;
    for group in groups(&kinds) {
        while let Some(word) =
            words.next_if(|word| !matches!(Word::decode(*word), Word::Object { .. } | Word::End { .. }))
        {
            frames += usize::from(matches!(Word::decode(word), Word::Python(_)));
        }
        let is_main = kinds[group.end - 1] == 'E';
        let first = made.native(group.start);
        if words.peek() != Some(&first) {
            assert!(is_main && frames > 0, "native frame {} of {natives} is missing", group.start);
            frames -= 1;
            continue;
        }
        frames = 0;
        words.next();
        if is_main && group.len() > 1 {
            while words.next_if(|word| matches!(Word::decode(*word), Word::PythonFault(_))).is_some() {}
            assert_eq!(words.next(), Some(made.native(group.end - 1)));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 2000, ..ProptestConfig::default() })]

    #[test]
    fn stacks_in_order_are_as_a_model_has_them(scene in scene()) {
        let made = scene.made();
        prop_assert_eq!(made.words(), scene.expected(&made));
    }

    #[test]
    fn whatever_memory_says(
        scene in scene(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), misleading()), 0..12),
        turns in prop_oneof![3 => Just(TURNS), 1 => 1..60u32],
    ) {
        let mut made = scene.made();
        let returns: Vec<u64> = made.extents.iter().map(|(_, end)| end - 8).collect();
        let addresses: Vec<u64> = made.memory.keys().copied().filter(|address| !returns.contains(address)).collect();
        for (index, value) in &changes {
            made.set(addresses[index.index(addresses.len())], *value);
        }
        let walk = made.walked(&made.entry, turns);
        let total = walk.stack.header.total as usize;
        let mut words = Vec::new();
        unroll(&walk.stack.words, walk.stack.header.total, |word| words.push(word));
        if total <= WORDS {
            prop_assert_eq!(words.iter().fold(0, |hash, word| mix(hash, *word)), walk.stack.header.key.hash);
        }
        check_words(&made, &words)?;
        if turns == TURNS && total <= WORDS {
            native_order(&made, &scene.natives, &words);
        }
    }
}

/// Frames are what memory has, faults are said once, and one end is the last word.
fn check_words(made: &Made, words: &[u64]) -> Result<(), TestCaseError> {
    let decoded: Vec<Word> = words.iter().map(|word| Word::decode(*word)).collect();
    let count = |matches: fn(&Word) -> bool| decoded.iter().filter(|word| matches(word)).count();
    let ends = matches!(decoded.last(), Some(Word::End { .. }));
    prop_assert!(ends);
    prop_assert_eq!(count(|word| matches!(word, Word::End { .. })), 1);
    prop_assert_eq!(count(|word| matches!(word, Word::Unknown(_) | Word::Raw { .. })), 0);
    let unproven = abi::python::Fault::Unproven as u8;
    let faults = decoded.iter().filter_map(|word| if let Word::PythonFault(code) = word { Some(*code) } else { None });
    let (doubts, faults): (Vec<u8>, Vec<u8>) = faults.partition(|fault| *fault == unproven);
    // of one eval loop frames may be missing, and others follow
    let half_pushed = abi::python::Fault::HalfPushed as u8;
    let (caught, faults): (Vec<u8>, Vec<u8>) = faults.into_iter().partition(|fault| *fault == half_pushed);
    let other_chain = abi::python::Fault::OtherChain as u8;
    let (marks, faults): (Vec<u8>, Vec<u8>) = faults.into_iter().partition(|fault| *fault == other_chain);
    prop_assert!(marks.len() <= 1);
    prop_assert!(doubts.len() <= 1 && caught.len() <= 1 && faults.len() <= 1);
    prop_assert!(count(|word| matches!(word, Word::Python(_))) <= abi::python::FRAMES as usize);
    let tags = u64::from(made.entry.python.tags);
    for (index, word) in decoded.iter().enumerate() {
        let Word::Python(code) = word else { continue };
        let is_cut = matches!(decoded[index + 1], Word::Cut(_));
        let has_second = matches!(decoded[index + 1], Word::PythonAt { .. });
        prop_assert!(is_cut || has_second);
        prop_assert!(made.memory.values().any(|value| value & !tags & word::PAYLOAD == *code));
    }
    Ok(())
}
