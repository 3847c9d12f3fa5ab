//! The memory of a BPF array map, mapped into this process: filling a table costs no system call per element.

use std::marker::PhantomData;
use std::os::fd::AsFd;
use std::os::fd::AsRawFd;
use std::sync::atomic::{Ordering, fence};

use aya::maps::MapData;
use memmap2::{MmapOptions, MmapRaw};

/// Elements of type `T` in the memory of an array map. The kernel reads it at any time, without a lock: nothing that
/// a walk may be using is ever written, and what was written is published by a system call or by a store after
/// [`Mapped::publish`].
pub(crate) struct Mapped<T> {
    memory: MmapRaw,
    length: usize,
    elements: PhantomData<T>,
}

impl<T: Copy> Mapped<T> {
    /// Maps the `length` elements of `map`, created with `BPF_F_MMAPABLE`.
    pub(crate) fn new(map: &MapData, length: usize) -> std::io::Result<Mapped<T>> {
        let fd = map.fd().as_fd().as_raw_fd();
        let memory = MmapOptions::new().len(length * size_of::<T>()).map_raw(fd)?;
        Ok(Mapped { memory, length, elements: PhantomData })
    }

    /// The element at `index`.
    pub(crate) fn get(&self, index: usize) -> Option<T> {
        if index >= self.length {
            return None;
        }
        // SAFETY: within the mapping, aligned as the page is; T is plain integers and the kernel never writes here.
        Some(unsafe { self.memory.as_ptr().cast::<T>().add(index).read_volatile() })
    }

    /// Writes `values` at `index ..`; false if they do not fit.
    #[must_use]
    pub(crate) fn write(&mut self, index: usize, values: &[T]) -> bool {
        if index.checked_add(values.len()).is_none_or(|end| end > self.length) {
            return false;
        }
        // SAFETY: within the mapping; the source is ordinary memory of this process and cannot overlap it.
        unsafe {
            let to = self.memory.as_mut_ptr().cast::<T>().add(index);
            std::ptr::copy_nonoverlapping(values.as_ptr(), to, values.len());
        }
        true
    }

    /// Orders what was written before against what is written after.
    pub(crate) fn publish() {
        fence(Ordering::SeqCst);
    }
}
