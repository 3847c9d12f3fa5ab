//! The executable ranges of one address space.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::MappedRange;

/// Ranges that are kept for one process at most; the kernel's default for all mappings is 65,530
/// (`vm.max_map_count`).
pub const MAX_RANGES: usize = 65_536;

/// The process has more than [`MAX_RANGES`] ranges; this one was left out.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("more than {MAX_RANGES} executable ranges")]
pub struct RangesFull;

/// Ranges that do not overlap, by address. A copy costs nothing until one of the two is changed, since most
/// copies are those of children that are about to exec.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct RangeSet {
    by_start: Arc<BTreeMap<u64, MappedRange>>,
}

impl RangeSet {
    /// The range that holds `address`.
    pub fn find(&self, address: u64) -> Option<&MappedRange> {
        let (_, range) = self.by_start.range(..=address).next_back()?;
        range.contains(address).then_some(range)
    }

    /// All, ascending.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &MappedRange> + ExactSizeIterator {
        self.by_start.values()
    }

    /// How many.
    pub fn len(&self) -> usize {
        self.by_start.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.by_start.is_empty()
    }

    /// Maps `range`: it takes the place of whatever was there, and is joined with neighbours that it continues.
    /// Whether anything changed.
    ///
    /// # Errors
    /// If there are too many; what was in its place is gone all the same.
    pub fn insert(&mut self, range: MappedRange) -> Result<bool, RangesFull> {
        if range.start >= range.end || self.has(&range) {
            return Ok(false);
        }
        self.remove(range.start, range.end);
        let range = self.join_neighbours(range);
        self.put(range).map(|()| true)
    }

    /// Unmaps everything from `start` to `end`.
    pub fn remove(&mut self, start: u64, end: u64) {
        if !self.overlaps(start, end) {
            return;
        }
        let ranges = Arc::make_mut(&mut self.by_start);
        let mut behind = None;
        if let Some((_, before)) = ranges.range_mut(..start).next_back()
            && before.end > start
        {
            if before.end > end {
                behind = Some(before.part(end, before.end));
            }
            *before = before.part(before.start, start);
        }
        while let Some((at, range)) = ranges.range(start..end).next() {
            if range.end > end {
                behind = Some(range.part(end, range.end));
            }
            let at = *at;
            ranges.remove(&at);
        }
        if let Some(behind) = behind {
            // if there is no room, the far part of a range that was cut in two is forgotten
            let _ = self.put(behind);
        }
    }

    pub(crate) fn overlaps(&self, start: u64, end: u64) -> bool {
        start < end && self.by_start.range(..end).next_back().is_some_and(|(_, range)| range.end > start)
    }

    /// Whether exactly this is mapped there already.
    fn has(&self, range: &MappedRange) -> bool {
        self.find(range.start)
            .is_some_and(|there| there.end >= range.end && there.part(range.start, range.end) == *range)
    }

    /// Takes out the neighbours that `range` continues; the whole of all of them.
    fn join_neighbours(&mut self, range: MappedRange) -> MappedRange {
        let before = self.by_start.range(..range.start).next_back().map(|(_, before)| before);
        let before = before.filter(|before| before.continues_in(&range)).map(|before| before.start);
        let behind = self.by_start.get(&range.end).filter(|behind| range.continues_in(behind));
        let behind = behind.map(|behind| behind.start);
        if before.is_none() && behind.is_none() {
            return range;
        }
        let ranges = Arc::make_mut(&mut self.by_start);
        let end = behind.and_then(|start| ranges.remove(&start)).map_or(range.end, |behind| behind.end);
        match before.and_then(|start| ranges.remove(&start)) {
            Some(before) => MappedRange { end, ..before },
            None => MappedRange { end, ..range },
        }
    }

    fn put(&mut self, range: MappedRange) -> Result<(), RangesFull> {
        if self.by_start.len() >= MAX_RANGES {
            return Err(RangesFull);
        }
        Arc::make_mut(&mut self.by_start).insert(range.start, range);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::FileIdentity;
    use proptest::prelude::*;
    use std::ffi::OsStr;

    /// Addresses of the model.
    const SPACE: u64 = 64;

    fn range(start: u64, length: u64, file: u8, offset: u64) -> MappedRange {
        let (identity, name) = match file {
            0 => (FileIdentity::None, String::new()),
            _ => {
                let identity = FileIdentity::Inode { major: 1, minor: 1, inode: file.into(), generation: 0 };
                (identity, format!("/f{file}"))
            }
        };
        let file_offset = if file == 0 { 0 } else { offset };
        let path = Arc::from(OsStr::new(&name));
        MappedRange { start, end: start + length, file_offset, executable: true, readable: true, identity, path }
    }

    /// What each byte of the address space holds: the file and the offset in it.
    fn bytes_of(set: &RangeSet) -> Vec<Option<(FileIdentity, u64)>> {
        (0..SPACE + 32).map(|address| set.find(address).map(|range| byte(range, address))).collect()
    }

    fn byte(range: &MappedRange, address: u64) -> (FileIdentity, u64) {
        let offset = if range.identity == FileIdentity::None { 0 } else { range.file_offset + address - range.start };
        (range.identity, offset)
    }

    #[derive(Clone, Debug)]
    enum Step {
        Map(MappedRange),
        Unmap(u64, u64),
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let map = (0..SPACE, 1..24u64, 0..3u8, 0..3u64)
            // offsets that often continue the neighbour's
            .prop_map(|(start, length, file, shift)| Step::Map(range(start, length, file, start + 100 * shift)));
        let unmap = (0..SPACE, 0..24u64).prop_map(|(start, length)| Step::Unmap(start, start + length));
        prop::collection::vec(prop_oneof![4 => map, 1 => unmap], 0..60)
    }

    proptest! {
        /// Any sequence gives what writing byte by byte gives, and the ranges are as few as can be.
        #[test]
        fn agrees_with_an_array_of_bytes(steps in steps()) {
            let mut set = RangeSet::default();
            let mut model = vec![None; SPACE as usize + 32];
            for step in steps {
                let before = model.clone();
                match step {
                    Step::Map(range) => {
                        for address in range.start..range.end {
                            model[address as usize] = Some(byte(&range, address));
                        }
                        prop_assert_eq!(set.insert(range), Ok(model != before));
                    }
                    Step::Unmap(start, end) => {
                        model[start as usize..end as usize].fill(None);
                        set.remove(start, end);
                    }
                }
                prop_assert_eq!(&bytes_of(&set), &model);
                let ranges: Vec<_> = set.iter().collect();
                for pair in ranges.windows(2) {
                    prop_assert!(pair[0].end <= pair[1].start, "overlap: {:?}", pair);
                }
            }
        }

        /// A copy does not change with its original.
        #[test]
        fn copies_are_apart(first in steps(), second in steps()) {
            let mut set = RangeSet::default();
            let play = |set: &mut RangeSet, steps: Vec<Step>| for step in steps {
                match step {
                    Step::Map(range) => { let _ = set.insert(range); }
                    Step::Unmap(start, end) => set.remove(start, end),
                }
            };
            play(&mut set, first);
            let copy = set.clone();
            let before = bytes_of(&copy);
            play(&mut set, second);
            prop_assert_eq!(bytes_of(&copy), before);
        }
    }

    #[test]
    fn neighbours_are_joined() {
        let mut set = RangeSet::default();
        for (start, offset) in [(0, 0), (20, 20), (10, 10)] {
            assert_eq!(set.insert(range(start, 10, 1, offset)), Ok(true));
        }
        assert_eq!(set.iter().cloned().collect::<Vec<_>>(), [range(0, 30, 1, 0)]);
        assert_eq!(set.insert(range(5, 10, 1, 5)), Ok(false), "the same again");
        assert_eq!(set.insert(range(5, 10, 1, 6)), Ok(true), "the same file elsewhere");
        assert_eq!(set.len(), 3);
    }

    #[test]
    fn the_number_is_limited() {
        let mut set = RangeSet::default();
        for index in 0..MAX_RANGES as u64 {
            assert_eq!(set.insert(range(index * 16, 8, 1, 0)), Ok(true));
        }
        assert_eq!(set.insert(range(8, 8, 2, 0)), Err(RangesFull));
        assert_eq!(set.insert(range(16, 8, 2, 0)), Ok(true), "a replacement needs no room");
        assert_eq!(set.insert(range(34, 2, 2, 0)), Err(RangesFull));
        assert_eq!(set.find(34), None, "but never is the old one seen in the new one's place");
        assert_eq!(set.len(), MAX_RANGES);
        set.remove(0, 1 << 40);
        assert!(set.is_empty());
    }
}
