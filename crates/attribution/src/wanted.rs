//! The distinct addresses of a recording, so that each is named once.

use std::collections::{BTreeMap, BTreeSet};

use abi::word::Word;

use crate::RawSample;

/// Distinct addresses.
#[derive(Default)]
pub(crate) struct Wanted {
    /// Offsets in each object, as [`lookup`] has them.
    pub(crate) objects: BTreeMap<u32, BTreeSet<u64>>,
    /// Kernel addresses, as [`lookup`] has them.
    pub(crate) kernel: BTreeSet<u64>,
}

impl Wanted {
    pub(crate) fn collect(samples: &[RawSample]) -> Wanted {
        let mut wanted = Wanted::default();
        for sample in samples {
            for (index, word) in sample.words.iter().enumerate() {
                match Word::decode(*word) {
                    Word::Object { object, offset, exact, .. } => {
                        wanted.objects.entry(object).or_default().insert(lookup(offset, exact));
                    }
                    Word::Kernel(address) => {
                        wanted.kernel.insert(lookup(address, index == 0));
                    }
                    _ => {}
                }
            }
        }
        wanted
    }
}

/// The address that names a frame: for a return address one less, so that it lies within the call, which may be the
/// last instruction of its function.
pub(crate) fn lookup(address: u64, exact: bool) -> u64 {
    if exact { address } else { address.wrapping_sub(1) }
}
