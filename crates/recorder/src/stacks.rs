//! Stacks as they come from the sampler: a prefix tree of words, and how often each thread had each stack.

use abi::record::CountKey;
use rustc_hash::FxHashMap;

/// Position in the tree.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Node(pub(crate) u32);

/// A thread under one name.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct RawThread {
    /// Number of its process, unique in a recording.
    pub instance: u64,
    /// Process id.
    pub pid: u32,
    /// Thread id.
    pub tid: u32,
    /// Name.
    pub comm: [u8; 16],
}

/// The tree and the counts.
#[derive(Default)]
pub(crate) struct Stacks {
    /// Caller's node (or none) and word.
    nodes: Vec<(Option<Node>, u64)>,
    index: FxHashMap<(Option<Node>, u64), Node>,
    by_hash: FxHashMap<(u32, u64), Node>,
    counts: FxHashMap<(RawThread, Node), u64>,
}

impl Stacks {
    /// Adds a stack whose words come innermost first, under the hash that its process's counts name.
    pub(crate) fn add(&mut self, pid: u32, hash: u64, words: &[u64]) -> Option<Node> {
        let node = self.intern(words)?;
        self.by_hash.insert((pid, hash), node);
        Some(node)
    }

    /// The node of a stack whose words come innermost first; `None` if there are none.
    pub(crate) fn intern(&mut self, words: &[u64]) -> Option<Node> {
        let mut at = None;
        for word in words.iter().rev() {
            let key = (at, *word);
            let nodes = &mut self.nodes;
            at = Some(*self.index.entry(key).or_insert_with(|| {
                nodes.push(key);
                Node(nodes.len() as u32 - 1)
            }));
        }
        at
    }

    /// The stack that is counted under this key.
    pub(crate) fn find(&self, key: &CountKey) -> Option<Node> {
        self.by_hash.get(&(key.pid, key.hash)).copied()
    }

    /// Adds samples.
    pub(crate) fn count(&mut self, thread: RawThread, stack: Node, count: u64) {
        *self.counts.entry((thread, stack)).or_default() += count;
    }

    /// All counts.
    pub(crate) fn counts(&self) -> impl Iterator<Item = (&RawThread, Node, u64)> {
        self.counts.iter().map(|((thread, node), count)| (thread, *node, *count))
    }

    /// The words of a stack, innermost first.
    pub(crate) fn words(&self, stack: Node) -> impl Iterator<Item = u64> {
        let mut at = Some(stack);
        std::iter::from_fn(move || {
            let (parent, word) = self.nodes[at?.0 as usize];
            at = parent;
            Some(word)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn stacks_come_out_as_they_went_in(stacks in prop::collection::vec(prop::collection::vec(0..4u64, 1..8), 1..40)) {
            let mut tree = Stacks::default();
            let nodes: Vec<Option<Node>> = stacks.iter().map(|words| tree.intern(words)).collect();
            for (words, node) in stacks.iter().zip(&nodes) {
                let node = node.expect("not empty");
                prop_assert_eq!(&tree.words(node).collect::<Vec<_>>(), words);
                prop_assert_eq!(tree.intern(words), Some(node), "equal stacks are one");
            }
        }
    }
}
