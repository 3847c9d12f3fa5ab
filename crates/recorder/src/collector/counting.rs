//! How often each thread had each stack.

use std::time::Instant;

use abi::record::CountKey;

use super::Collector;
use crate::stacks::{Node, RawThread};

impl Collector {
    pub(super) fn count_words(&mut self, key: &CountKey, instance: u64, words: &[u64]) {
        if let Some(node) = self.stacks.intern(words) {
            self.count(key, instance, node, 1);
        }
    }

    pub(super) fn count(&mut self, key: &CountKey, instance: u64, node: Node, count: u64) {
        let thread = RawThread { instance, pid: key.pid, tid: key.tid, comm: key.comm };
        self.stacks.count(thread, node, count);
    }

    /// Fetches the counts since the last time.
    pub(crate) fn drain_counts(&mut self) {
        self.counted_at = Instant::now();
        let memory_waits = self.tables.has_retired() || self.processes.has_retired();
        self.counts.switch();
        if memory_waits {
            // what was retired before the switch is read by nobody now
            self.tables.reclaim();
            self.processes.reclaim();
        }
        self.pump();
        let mut counted: Vec<(CountKey, u64)> = Vec::new();
        let result = self.counts.empty(&mut |key, count| counted.push((*key, count)));
        if let Err(error) = result {
            self.troubles.counts_error = Some(error.to_string());
        }
        for (key, count) in counted {
            let instance = self.recent.get(&key.pid).copied().unwrap_or(0);
            match self.stacks.find(&key) {
                Some(node) => self.count(&key, instance, node, count),
                None => self.troubles.missing_stacks += count,
            }
        }
    }
}
