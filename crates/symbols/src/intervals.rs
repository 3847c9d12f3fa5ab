//! A map from ranges of addresses to names in which a later range replaces what it covers of earlier ones.

use std::collections::BTreeMap;

/// Disjoint ranges. `V` is what each carries.
#[derive(Default, Debug)]
pub(crate) struct Intervals<V> {
    /// End and value by start.
    ranges: BTreeMap<u64, (u64, V)>,
}

impl<V: Copy> Intervals<V> {
    /// Puts `start..end` over whatever is there; of a range that is partly covered, the rest stays.
    pub(crate) fn put(&mut self, start: u64, end: u64, value: V) {
        if start >= end {
            return;
        }
        let before = self.ranges.range(..start).next_back().map(|(at, range)| (*at, *range));
        if let Some((at, (old_end, old))) = before.filter(|(_, (old_end, _))| *old_end > start) {
            self.ranges.insert(at, (start, old));
            if old_end > end {
                self.ranges.insert(end, (old_end, old));
            }
        }
        while let Some((at, (old_end, old))) = self.ranges.range(start..end).next().map(|(at, range)| (*at, *range)) {
            self.ranges.remove(&at);
            if old_end > end {
                self.ranges.insert(end, (old_end, old));
            }
        }
        self.ranges.insert(start, (end, value));
    }

    /// The value at an address.
    pub(crate) fn get(&self, address: u64) -> Option<V> {
        let (_, (end, value)) = self.ranges.range(..=address).next_back()?;
        (address < *end).then_some(*value)
    }

    /// How many ranges there are.
    pub(crate) fn len(&self) -> usize {
        self.ranges.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Against an array with one cell for each address.
        #[test]
        fn the_latest_wins(ranges in prop::collection::vec((0..100u64, 0..40u64), 0..50)) {
            let mut intervals = Intervals::default();
            let mut cells = vec![None; 200];
            for (index, (start, size)) in ranges.iter().enumerate() {
                intervals.put(*start, start + size, index);
                cells[*start as usize..(start + size) as usize].fill(Some(index));
            }
            for (address, cell) in cells.iter().enumerate() {
                prop_assert_eq!(intervals.get(address as u64), *cell);
            }
            prop_assert!(intervals.len() <= 2 * ranges.len());
        }
    }
}
