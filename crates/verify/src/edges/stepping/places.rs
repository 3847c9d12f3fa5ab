//! Counts states by where and why.

use std::hash::Hash;

use abi::word::Word;
use rustc_hash::{FxHashMap, FxHashSet};

use super::judge::Fault;
use super::report::Example;

/// Examples that are kept.
const EXAMPLES: usize = 1000;

/// A frame: file, offset in it (0 and the address outside all files), and whether it is exact.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Place {
    /// Number of the file.
    pub object: u32,
    /// Offset in the file.
    pub offset: u64,
    /// An instruction, not a return address.
    pub exact: bool,
}

impl Place {
    /// No frame.
    pub const NONE: Place = Place { object: 0, offset: 0, exact: true };

    /// That of a word.
    pub fn of(word: u64) -> Option<Place> {
        match Word::decode(word) {
            Word::Object { object, offset, exact, .. } => Some(Place { object, offset, exact }),
            Word::Raw { address, exact, .. } => Some(Place { object: 0, offset: address, exact }),
            _ => None,
        }
    }
}

/// How often each of some things was seen.
#[derive(Debug)]
pub struct Counts<K>(FxHashMap<K, u64>);

impl<K> Default for Counts<K> {
    fn default() -> Counts<K> {
        Counts(FxHashMap::default())
    }
}

impl<K: Copy + Eq + Hash + Ord> Counts<K> {
    /// Seen once more.
    pub fn add(&mut self, key: K) {
        *self.0.entry(key).or_default() += 1;
    }

    /// All, most frequent first.
    pub fn sorted(&self) -> Vec<(K, u64)> {
        let mut all: Vec<(K, u64)> = self.0.iter().map(|(key, count)| (*key, *count)).collect();
        all.sort_by_key(|(key, count)| (std::cmp::Reverse(*count), *key));
        all
    }
}

/// Why and where walks were not whole.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Key {
    /// They ended by a name: its code, and the frame at which they did.
    Stop(u8, Place),
    /// They were wrong: the frame behind which they were.
    Fault(Place, Kind),
}

/// What was seen in all runs.
#[derive(Default)]
pub struct Places {
    /// Innermost frames.
    pub innermost: FxHashSet<Place>,
    /// Hashes of whole stacks, the program's among them.
    pub stacks: FxHashSet<u64>,
    /// Walks that were not whole.
    pub counts: Counts<Key>,
    /// The first of each, as far as they are kept.
    pub examples: FxHashMap<Key, Example>,
}

impl Places {
    /// Keeps an example if it is the first one.
    pub fn add_example(&mut self, key: Key, make: impl FnOnce() -> Example) {
        if self.examples.len() < EXAMPLES {
            self.examples.entry(key).or_insert_with(make);
        }
    }
}

/// A [`Fault`] without the number of the frame.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// The caller is another one.
    OtherCaller,
    /// It ends as if it were whole.
    EndsEarly,
    /// It goes on behind the last frame.
    GoesOn,
    /// No stack.
    NoStack,
}

/// The number of the frame whose caller a wrong walk got wrong, its place, and how.
pub fn culprit(walked: &[u64], fault: Fault) -> (usize, Place, Kind) {
    let frames = walked.len().saturating_sub(1);
    let (index, kind) = match fault {
        Fault::Frame(number) => (number.saturating_sub(1), Kind::OtherCaller),
        Fault::EndsEarly => (frames.saturating_sub(1), Kind::EndsEarly),
        Fault::GoesOn => (frames.saturating_sub(2), Kind::GoesOn),
        Fault::NoStack => (0, Kind::NoStack),
    };
    (index, walked.get(index).and_then(|word| Place::of(*word)).unwrap_or(Place::NONE), kind)
}
