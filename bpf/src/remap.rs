//! Memory and process ids that are used again for something else.
//!
//! The kernel reports what is mapped, not what is unmapped. When a library is unloaded and another one is loaded in its
//! place, the old mapping would be believed until user space has read of the new one, and stacks in between would be
//! walked by the wrong table. The kernel looks for free memory before it maps: what it finds free was unmapped before.

use aya_ebpf::EbpfContext;
use aya_ebpf::helpers::bpf_get_current_pid_tgid;
use aya_ebpf::helpers::generated::bpf_ktime_get_ns;
use aya_ebpf::macros::raw_tracepoint;
use aya_ebpf::programs::RawTracePointContext;

use crate::kernel::field;
use crate::maps::{PROCESSES, SCRATCH, STALE, UNMAPPED_LENGTH};
use crate::target::{Mappings, zero};

/// `vm_unmapped_area(addr, info)` of include/trace/events/mmap.h: the kernel found `info->length` free bytes at `addr`.
#[raw_tracepoint(tracepoint = "vm_unmapped_area")]
pub fn remap(context: RawTracePointContext) -> i32 {
    let pid = (bpf_get_current_pid_tgid() >> 32) as u32;
    let Some(scratch) = SCRATCH.get_ptr(0) else { return 0 };
    let Some(process) = PROCESSES.get_ptr(pid) else {
        still_void(pid);
        return 0;
    };
    // SAFETY: user space replaces elements whole.
    let Some(mappings) = Mappings::of(unsafe { &*process }) else { return 0 };
    // SAFETY: two arguments of the tracepoint: an address or a negative error, and a pointer to a struct.
    let (address, info) = unsafe {
        let arguments = context.as_ptr() as *const u64;
        (*arguments, *arguments.add(1))
    };
    let length: u64 = field(info, UNMAPPED_LENGTH.load());
    if (address as i64) < 0 || !mappings.overlap(address, address.wrapping_add(length), zero(scratch)) {
        return 0;
    }
    forget(pid);
    0
}

/// A process that is void maps memory, and nobody knows here whether that had a mapping before.
#[inline(always)]
fn still_void(pid: u32) {
    if let Some(since) = STALE.get_ptr_mut(pid) {
        // SAFETY: one aligned word; no arguments.
        unsafe { *since = bpf_ktime_get_ns() };
    }
}

/// Voids what is known of a process, until user space has read everything up to now.
#[inline(always)]
pub fn forget(pid: u32) {
    if PROCESSES.get_ptr(pid).is_none() {
        return;
    }
    void(pid);
}

/// The same of a process that may not be known here yet, but will be, by what was true before.
#[inline(always)]
pub fn void(pid: u32) {
    // SAFETY: no arguments.
    let now = unsafe { bpf_ktime_get_ns() };
    // in this order: who finds no entry finds the time
    let _ = STALE.insert(pid, now, 0);
    let _ = PROCESSES.remove(pid);
}
