//! Into the ring buffer.

use abi::record::{Header, Stack, WORDS};
use aya_ebpf::bindings::{BPF_RB_AVAIL_DATA, BPF_RB_FORCE_WAKEUP, BPF_RB_NO_WAKEUP};
use aya_ebpf::helpers::generated::{bpf_ringbuf_output, bpf_ringbuf_query};
use core::ffi::c_void;

use crate::maps::{RING, WAKE_BYTES};

/// Whether so much is waiting that user space is being woken for it.
#[inline(always)]
pub fn is_busy() -> bool {
    // SAFETY: the ring is a ring buffer map.
    unsafe { bpf_ringbuf_query(&raw const RING as *mut c_void, BPF_RB_AVAIL_DATA as u64) > WAKE_BYTES.load() }
}

/// Sends `size` bytes. User space looks by itself every now and then; it is woken for what cannot wait, or when much
/// is waiting.
#[inline(always)]
pub fn output(from: *const c_void, size: u64, urgent: bool) -> bool {
    let ring = &raw const RING as *mut c_void;
    // SAFETY: the ring is a ring buffer map; the verifier checks that `from` has `size` bytes.
    unsafe {
        let wake = if urgent || is_busy() { BPF_RB_FORCE_WAKEUP } else { BPF_RB_NO_WAKEUP };
        bpf_ringbuf_output(ring, from as *mut c_void, size, wake as u64) == 0
    }
}

/// Sends a stack that user space has not seen.
#[inline(always)]
pub fn stack(stack: &mut Stack) -> bool {
    let total = stack.header.total as u64;
    let words = if total > WORDS as u64 { WORDS as u64 } else { total };
    stack.header.kind = abi::record::kind::STACK;
    stack.header.length = words as u32;
    output(&raw const *stack as *const c_void, size_of::<Header>() as u64 + words * 8, false)
}
