//! Deferred samples: walked here, now or when the tables that they need are there.

use std::time::Instant;

use abi::process::{Mapping, flags};
use abi::stop::Stop;
use abi::word::Word;

use super::{Collector, Parked, RESCAN_EVERY, SETTLED_AFTER, point_at_table};
use crate::deferred::Walked;
use crate::ring::DeferredSample;

impl Collector {
    /// Walks a deferred sample, now or when the tables that it needs are there.
    pub(super) fn resolve(&mut self, sample: Box<DeferredSample>) {
        let pid = sample.key.pid;
        let Some(process) = self.table.get(pid) else {
            // one that was known has ended: the sample hit its very end, after the kernel had reported it
            let (instance, stop) = match self.recent.get(&pid) {
                Some(instance) => (*instance, Stop::Exiting),
                None => (0, Stop::UnknownProcess),
            };
            if sample.walked {
                // counted where it was walked
                return;
            }
            let words = self.walker.unwalked(&sample, stop);
            return self.count_words(&sample.key, instance, &words);
        };
        let instance = process.instance;
        if sample.walked {
            return self.testify(&sample, instance);
        }
        if self.has_lost(pid) {
            self.dirty.insert(pid);
        }
        if !process.complete {
            self.table.rescan(pid);
            self.dirty.insert(pid);
        }
        let mut mappings = self.mappings_of(pid);
        // a task in exec is in the old image or in neither, and /proc would show the new one
        if !sample.execing && self.lies_outside(&sample, &mappings) {
            mappings = self.look_again(pid, mappings);
        }
        self.walk_parked(Parked { sample, instance, mappings, needs: 0 });
    }

    pub(super) fn lies_outside(&self, sample: &DeferredSample, mappings: &[Mapping]) -> bool {
        let index = mappings.partition_point(|mapping| mapping.begin <= sample.registers.pc);
        mappings[..index].last().is_none_or(|mapping| sample.registers.pc >= mapping.end)
    }

    /// A sample outside all mappings: what the kernel does not report (mremap) may be in /proc.
    pub(super) fn look_again(&mut self, pid: u32, mappings: Vec<Mapping>) -> Vec<Mapping> {
        let attention = self.attention.entry(pid).or_default();
        if attention.rescanned.is_some_and(|at| at.elapsed() < RESCAN_EVERY) {
            return mappings;
        }
        attention.rescanned = Some(Instant::now());
        if !self.table.find_unreported(pid) {
            return mappings;
        }
        self.dirty.insert(pid);
        self.mappings_of(pid)
    }

    pub(super) fn walk_parked(&mut self, mut parked: Parked) {
        parked.mappings.iter_mut().for_each(|mapping| point_at_table(mapping, &self.objects));
        let python = self.pythons.of_process(parked.instance);
        let python = python.as_ref().map(|(entry, found)| (entry, &*found.eval_loop));
        match self.walker.walk(&parked.sample, &parked.mappings, &self.objects, &self.tables, python) {
            Walked::Stack(words) => {
                let key = parked.sample.key;
                if let Some(testimony) = &mut self.testimony {
                    testimony.deferred(&parked, &words, &self.objects);
                }
                self.open_perf_map(parked.instance, key.pid, &words);
                self.look_for_python(key.pid);
                self.note_outside(key.pid, parked.sample.time, &words);
                self.count_words(&key, parked.instance, &words);
            }
            Walked::NeedsTable(number) => {
                self.warm(parked.sample.key.pid);
                self.ask_table(number);
                parked.needs = number;
                self.parked.push(parked);
            }
        }
    }

    /// A process that is sampled will be sampled again: all its tables are made now.
    pub(super) fn warm(&mut self, pid: u32) {
        let Some(attention) = self.attention.get_mut(&pid) else { return };
        if !attention.hot {
            attention.hot = true;
            let objects = attention.objects.clone();
            objects.iter().for_each(|object| self.ask_table(*object));
        }
    }

    /// A process whose samples keep falling outside all that it maps is not asked about again until that changes.
    pub(super) fn note_outside(&mut self, pid: u32, time: u64, words: &[u64]) {
        let Some(Word::End { stop, .. }) = words.last().map(|word| Word::decode(*word)) else { return };
        if stop != Stop::NoMapping as u8 {
            return;
        }
        let Some(attention) = self.attention.get_mut(&pid) else { return };
        attention.outside += 1;
        if attention.outside == SETTLED_AFTER && !self.dirty.contains(&pid) {
            let mappings = self.mappings_of(pid);
            match self.processes.set(pid, &mappings, flags::SETTLED, self.python_index(pid), time) {
                Ok(true) => {}
                Ok(false) => _ = self.dirty.insert(pid),
                Err(error) => self.troubles.no_room = Some(error.to_string()),
            }
        }
    }
}
