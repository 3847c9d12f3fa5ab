//! Which parts of a growing row of segments are free. Pure bookkeeping; [`crate::arena`] has the memory.

use std::collections::BTreeMap;

/// Where a run of elements lies.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Run {
    /// Number of the first element.
    pub(crate) start: u32,
    /// Elements.
    pub(crate) length: u32,
}

impl Run {
    fn end(self) -> u32 {
        self.start + self.length
    }
}

/// Free runs of `segments` segments of `per_segment` elements.
pub(crate) struct Runs {
    per_segment: u32,
    segments: u32,
    /// Whether a run may reach from one segment into the next.
    across: bool,
    /// Start and length; no two touch unless a segment's boundary keeps them apart.
    free: BTreeMap<u32, u32>,
}

impl Runs {
    /// No segments yet.
    pub(crate) fn new(per_segment: u32, across: bool) -> Runs {
        Runs { per_segment, segments: 0, across, free: BTreeMap::new() }
    }

    /// How many segments there are.
    pub(crate) fn segments(&self) -> u32 {
        self.segments
    }

    /// One more segment, all free.
    pub(crate) fn add_segment(&mut self) {
        let start = self.segments * self.per_segment;
        self.segments += 1;
        self.put(Run { start, length: self.per_segment });
    }

    /// Takes the first free run of `length` elements.
    pub(crate) fn take(&mut self, length: u32) -> Option<Run> {
        let (&start, &free) = self.free.iter().find(|(_, free)| **free >= length)?;
        self.free.remove(&start);
        if free > length {
            self.free.insert(start + length, free - length);
        }
        Some(Run { start, length })
    }

    /// Gives a run back.
    pub(crate) fn put(&mut self, run: Run) {
        if run.length == 0 {
            return;
        }
        let mut merged = run;
        if let Some((&start, &length)) = self.free.range(..run.start).next_back()
            && start + length == run.start
            && self.joins(run.start)
        {
            self.free.remove(&start);
            merged = Run { start, length: length + run.length };
        }
        if self.joins(merged.end())
            && let Some(length) = self.free.remove(&merged.end())
        {
            merged.length += length;
        }
        self.free.insert(merged.start, merged.length);
    }

    /// Whether free runs on both sides of `at` are one.
    fn joins(&self, at: u32) -> bool {
        self.across || !at.is_multiple_of(self.per_segment)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    impl Runs {
        /// Elements in use.
        fn used(&self) -> u64 {
            let free: u64 = self.free.values().map(|length| u64::from(*length)).sum();
            u64::from(self.segments) * u64::from(self.per_segment) - free
        }
    }

    proptest! {
        /// Runs in use never overlap, never cross a boundary where they may not, and all comes back.
        #[test]
        fn runs_are_disjoint(across: bool, steps in prop::collection::vec((1..40u32, any::<prop::sample::Index>(), any::<bool>()), 1..200)) {
            let mut runs = Runs::new(64, across);
            let mut used: Vec<Run> = Vec::new();
            for (length, index, give_back) in steps {
                if give_back && !used.is_empty() {
                    let run = used.swap_remove(index.index(used.len()));
                    runs.put(run);
                } else {
                    let run = match runs.take(length) {
                        Some(run) => run,
                        None => {
                            runs.add_segment();
                            runs.take(length).expect("a fresh segment has room")
                        }
                    };
                    prop_assert_eq!(run.length, length);
                    prop_assert!(across || run.start / 64 == (run.end() - 1) / 64);
                    prop_assert!(used.iter().all(|other| run.end() <= other.start || other.end() <= run.start));
                    used.push(run);
                }
                prop_assert_eq!(runs.used(), used.iter().map(|run| u64::from(run.length)).sum::<u64>());
            }
            used.into_iter().for_each(|run| runs.put(run));
            prop_assert_eq!(runs.used(), 0);
            let longest = if across { runs.segments() * 64 } else { 64 };
            prop_assert!(runs.segments() == 0 || runs.take(longest).is_some());
        }
    }
}
