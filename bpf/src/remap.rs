//! Memory and process ids that are used again for something else.
//!
//! The kernel reports what is mapped, not what is unmapped. When a library is unloaded and another one is loaded in its
//! place, the old mapping would be believed until user space has read of the new one, and stacks in between would be
//! walked by the wrong table. The kernel looks for free memory before it maps: what it finds free was unmapped before.

use abi::process::{LOST, PASSING};
use abi::record::{GivenAway, kind};
use aya_ebpf::EbpfContext;
use aya_ebpf::helpers::bpf_get_current_pid_tgid;
use aya_ebpf::helpers::generated::bpf_ktime_get_ns;
use aya_ebpf::macros::raw_tracepoint;
use aya_ebpf::programs::RawTracePointContext;
use core::ffi::c_void;

use crate::emit;
use crate::kernel::field;
use crate::maps::{FOLLOW, FOLLOWED, PROCESSES, SCRATCH, STALE, UNMAPPED_LENGTH};
use crate::target::{Mappings, zero};

/// `vm_unmapped_area(addr, info)` of include/trace/events/mmap.h: the kernel found `info->length` free bytes at `addr`.
#[raw_tracepoint(tracepoint = "vm_unmapped_area")]
pub fn remap(context: RawTracePointContext) -> i32 {
    let pid = (bpf_get_current_pid_tgid() >> 32) as u32;
    let process = PROCESSES.get_ptr(pid);
    if process.is_none() && !is_recorded(pid) {
        return 0;
    }
    // SAFETY: two arguments of the tracepoint: an address or a negative error, and a pointer to a struct.
    let (address, info) = unsafe {
        let arguments = context.as_ptr() as *const u64;
        (*arguments, *arguments.add(1))
    };
    let length: u64 = field(info, UNMAPPED_LENGTH.load());
    let end = address.wrapping_add(length);
    let concerned = match (process, SCRATCH.get_ptr(0)) {
        // SAFETY: user space replaces elements whole.
        (Some(process), Some(scratch)) => match Mappings::of(unsafe { &*process }) {
            Some(mappings) => mappings.overlap(address, end, zero(scratch)),
            None => false,
        },
        // user space may be about to enter what it knew before now
        _ => true,
    };
    if (address as i64) < 0 {
        return 0;
    }
    if !concerned {
        pass(pid);
        return 0;
    }
    let mut given = GivenAway { begin: address, end, ..GivenAway::default() };
    given.header.kind = kind::GIVEN_AWAY;
    given.header.key.pid = pid;
    given.header.time = now();
    let sent = emit::output(&raw const given as *const c_void, size_of::<GivenAway>() as u64, false);
    // after it was sent: who has read the ring up to this time has it
    void(pid, now() & !(LOST | PASSING) | if sent { 0 } else { LOST });
    0
}

/// Notes the time of what concerns nothing that is known here. The entry stays.
#[inline(always)]
fn pass(pid: u32) {
    // SAFETY: one aligned word.
    let before = unsafe { STALE.get(pid) }.copied().unwrap_or(0);
    let _ = STALE.insert(pid, now() & !(LOST | PASSING) | PASSING | before & LOST, 0);
}

/// Voids what is known of a process, or is about to be entered, until user space has read everything up to now.
#[inline(always)]
pub fn forget(pid: u32) {
    if is_recorded(pid) {
        void(pid, now() & !(LOST | PASSING));
    }
}

#[inline(always)]
fn void(pid: u32, time: u64) {
    // in this order: who finds no entry finds the time
    let _ = STALE.insert(pid, time, 0);
    let _ = PROCESSES.remove(pid);
}

#[inline(always)]
fn is_recorded(pid: u32) -> bool {
    FOLLOW.load() == 0 || FOLLOWED.get_ptr(pid).is_some()
}

#[inline(always)]
fn now() -> u64 {
    // SAFETY: no arguments.
    unsafe { bpf_ktime_get_ns() }
}
