//! What is read of the kernel's own structs.

use aya_ebpf::helpers::generated::{bpf_get_current_task_btf, bpf_probe_read_kernel};
use core::ffi::c_void;

/// `PF_KTHREAD` of include/linux/sched.h.
const PF_KTHREAD: u32 = 0x0020_0000;

/// Reads a field of the struct at `address`; 0 if it cannot be read.
#[inline(always)]
pub fn field<T: Copy + Default>(address: u64, offset: u32) -> T {
    let mut value = T::default();
    let from = address.wrapping_add(offset as u64) as *const c_void;
    // SAFETY: `value` has the size that is asked for; a bad address gives an error and leaves zeros.
    unsafe { bpf_probe_read_kernel(&raw mut value as *mut c_void, size_of::<T>() as u32, from) };
    value
}

/// A task and what it is.
#[derive(Clone, Copy)]
pub struct Task(pub u64);

impl Task {
    #[inline(always)]
    pub fn current() -> Task {
        // SAFETY: no arguments; the kernel gives the running task.
        Task(unsafe { bpf_get_current_task_btf() } as u64)
    }

    /// Reads a field of its; 0 if it cannot be read.
    #[inline(always)]
    pub fn field<T: Copy + Default>(self, offset: u32) -> T {
        field(self.0, offset)
    }

    #[inline(always)]
    pub fn is_kernel_thread(self) -> bool {
        self.field::<u32>(crate::maps::TASK_FLAGS.load()) & PF_KTHREAD != 0
    }

    /// Whether it still has its memory; an exiting task gives it up before it is gone.
    #[inline(always)]
    pub fn has_memory(self) -> bool {
        self.field::<u64>(crate::maps::TASK_MM.load()) != 0
    }
}
