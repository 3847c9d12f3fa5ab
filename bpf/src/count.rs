//! Counting: the sampler's own counters, and how often a thread had a stack.

use abi::counter::Counter;
use abi::record::CountKey;
use aya_ebpf::bindings::BPF_NOEXIST;

use crate::maps::{CONTROL, COUNTERS, COUNTS_0, COUNTS_1};

/// Adds one to a counter of this CPU.
#[inline(always)]
pub fn note(counter: Counter) {
    if let Some(counters) = COUNTERS.get_ptr_mut(0) {
        // SAFETY: this CPU's copy; the index is a constant below the length.
        unsafe { (*counters)[counter as usize] += 1 }
    }
}

/// Adds one to the count of a stack of a thread. A thread runs on one CPU at a time, so its counts have one writer.
#[inline(always)]
pub fn count(key: &CountKey) -> Counter {
    let counts = if epoch() == 0 { &COUNTS_0 } else { &COUNTS_1 };
    if let Some(count) = counts.get_ptr_mut(key) {
        // SAFETY: the element stays while this program runs: user space deletes from the other epoch's map.
        unsafe { *count += 1 };
        return Counter::Counted;
    }
    match counts.insert(key, 1, BPF_NOEXIST as u64) {
        Ok(()) => Counter::Counted,
        Err(_) => Counter::LostCount,
    }
}

/// Whether the thread already has a count for this stack, which it then increments.
#[inline(always)]
pub fn count_known(key: &CountKey) -> bool {
    let counts = if epoch() == 0 { &COUNTS_0 } else { &COUNTS_1 };
    match counts.get_ptr_mut(key) {
        // SAFETY: as in `count`.
        Some(count) => {
            unsafe { *count += 1 };
            true
        }
        None => false,
    }
}

#[inline(always)]
fn epoch() -> u32 {
    CONTROL.get(0).map_or(0, |control| control.epoch)
}
