//! Shows samples to a [`Witness`].

use rustc_hash::FxHashMap;

use super::{Collector, Parked, point_at_table};
use crate::deferred::Walked;
use crate::evidence::{Evidence, Witness};
use crate::known_objects::KnownObjects;
use crate::ring::{DeferredSample, NewStack};

/// A witness, and stacks that the kernel sent whose evidence is still to come.
pub(super) struct Testimony {
    witness: Box<dyn Witness>,
    /// By thread and time.
    in_kernel: FxHashMap<(u32, u64), Vec<u64>>,
}

impl Testimony {
    pub(super) fn new(witness: Box<dyn Witness>) -> Testimony {
        Testimony { witness, in_kernel: FxHashMap::default() }
    }

    /// A stack came; what it was made from comes behind it.
    pub(super) fn sent(&mut self, stack: &NewStack) {
        self.in_kernel.insert((stack.key.tid, stack.time), stack.words.clone());
    }

    /// A sample that was only walked here.
    pub(super) fn deferred(&mut self, parked: &Parked, words: &[u64], objects: &KnownObjects) {
        self.witness.see(&Evidence {
            sample: &parked.sample,
            objects,
            mappings: &parked.mappings,
            instance: parked.instance,
            in_kernel: None,
            in_user_space: words,
        });
    }
}

impl Collector {
    /// A sample that the sampler walked: walks it here too, and shows both.
    pub(super) fn testify(&mut self, sample: &DeferredSample, instance: u64) {
        let mut mappings = self.mappings_of(sample.key.pid);
        mappings.iter_mut().for_each(|mapping| point_at_table(mapping, &self.objects));
        let walked = self.walker.walk(sample, &mappings, &self.objects, &self.tables, None);
        let Some(testimony) = &mut self.testimony else { return };
        let in_kernel = testimony.in_kernel.remove(&(sample.key.tid, sample.time));
        if let Walked::Stack(words) = walked {
            testimony.witness.see(&Evidence {
                sample,
                objects: &self.objects,
                mappings: &mappings,
                instance,
                in_kernel: in_kernel.as_deref(),
                in_user_space: &words,
            });
        }
    }
}
