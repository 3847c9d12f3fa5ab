//! The ring buffer in which the kernel leaves records of one CPU.
//!
//! The kernel writes at `data_head` and never beyond `data_tail` plus the size; the reader copies what lies between
//! and then moves `data_tail`. Positions only grow; their place in the buffer is the position modulo its size.

use std::io;
use std::ops::ControlFlow;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicU64, Ordering};

use perf_event_open_sys::{bindings as sys, ioctls};
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

use crate::records::{HEADER, SAMPLE_TYPE};

/// What to ask of the kernel.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RingOptions {
    /// Pages of data, a power of two.
    pub data_pages: usize,
    /// Unread bytes at which a waiting reader is woken.
    pub watermark: u32,
    /// Whether mappings carry build-ids (Linux 5.12).
    pub build_ids: bool,
}

/// Which step of the opening failed.
#[derive(Debug, thiserror::Error)]
pub enum RingError {
    /// `perf_event_open`.
    #[error("perf_event_open: {0}")]
    Open(#[source] io::Error),
    /// `mmap` of the buffer.
    #[error("mmap of the perf buffer: {0}")]
    Map(#[source] io::Error),
    /// Switching it on.
    #[error("enabling the perf event: {0}")]
    Enable(#[source] io::Error),
}

/// Records of one CPU: a perf event that counts nothing and reports what happens to processes.
#[derive(Debug)]
pub struct SidebandRing {
    fd: OwnedFd,
    cpu: u32,
    /// The control page, followed by the data.
    base: NonNull<u8>,
    page_size: usize,
    data_size: usize,
    /// How far was read.
    tail: u64,
    record: Vec<u8>,
}

// SAFETY: the mapping belongs to this value alone and is not tied to a thread.
unsafe impl Send for SidebandRing {}

impl SidebandRing {
    /// Opens and enables the event on one CPU, for all processes.
    ///
    /// # Errors
    /// The step and the kernel's error; `EINVAL` from `perf_event_open` where `build_ids` is not supported.
    pub fn open(cpu: u32, options: RingOptions) -> Result<SidebandRing, RingError> {
        let fd = open_event(cpu, options).map_err(RingError::Open)?;
        let data_size = options.data_pages.saturating_mul(rustix::param::page_size());
        let ring = SidebandRing::map(fd, cpu, data_size)?;
        // SAFETY: the descriptor is that of a perf event, and the call takes a number only.
        match unsafe { ioctls::ENABLE(ring.fd.as_raw_fd(), 0) } {
            -1 => Err(RingError::Enable(io::Error::last_os_error())),
            _ => Ok(ring),
        }
    }

    fn map(fd: OwnedFd, cpu: u32, data_size: usize) -> Result<SidebandRing, RingError> {
        let page_size = rustix::param::page_size();
        let length = data_size.saturating_add(page_size);
        let (protection, flags) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED);
        // SAFETY: a new mapping at a place of the kernel's choice touches no memory that is in use.
        let base = unsafe { mmap(ptr::null_mut(), length, protection, flags, &fd, 0) };
        let base = base.map_err(|error| RingError::Map(error.into()))?;
        let base = NonNull::new(base.cast()).ok_or_else(|| RingError::Map(io::ErrorKind::OutOfMemory.into()))?;
        Ok(SidebandRing { fd, cpu, base, page_size, data_size, tail: 0, record: Vec::new() })
    }

    /// A ring over a file of `data_size` bytes and a control page before them, for the fuzz targets: no event is behind
    /// it.
    ///
    /// # Errors
    /// [`RingError::Map`].
    #[cfg(fuzzing)]
    #[doc(hidden)]
    pub fn over(fd: OwnedFd, data_size: usize) -> Result<SidebandRing, RingError> {
        SidebandRing::map(fd, 0, data_size)
    }

    /// The CPU whose records these are.
    pub fn cpu(&self) -> u32 {
        self.cpu
    }

    /// Hands each record that is there now to `use_record`, which may break off: that record and those behind it
    /// stay in the buffer. Returns the number of bytes that made no sense and were dropped (0 on a sane kernel).
    pub fn read(&mut self, mut use_record: impl FnMut(&[u8]) -> ControlFlow<()>) -> u64 {
        let head = self.head().load(Ordering::Acquire);
        let mut dropped = 0;
        let mut record = std::mem::take(&mut self.record);
        while self.tail != head {
            if !self.copy_record(head, &mut record) {
                dropped = head.wrapping_sub(self.tail);
                self.tail = head;
                break;
            }
            if use_record(&record).is_break() {
                break;
            }
            self.tail = self.tail.wrapping_add(record.len() as u64);
        }
        self.record = record;
        self.tail_cell().store(self.tail, Ordering::Release);
        dropped
    }

    /// Copies the record at the tail; false if its size cannot be.
    fn copy_record(&self, head: u64, record: &mut Vec<u8>) -> bool {
        let unread = head.wrapping_sub(self.tail);
        if unread < HEADER as u64 || unread > self.data_size as u64 {
            return false;
        }
        record.clear();
        self.copy(self.tail, HEADER, record);
        let size = usize::from(u16::from_ne_bytes([record[6], record[7]]));
        if size < HEADER || size as u64 > unread {
            return false;
        }
        self.copy(self.tail.wrapping_add(HEADER as u64), size - HEADER, record);
        true
    }

    /// Appends `count` bytes from `position` on, across the buffer's end if need be.
    fn copy(&self, position: u64, count: usize, to: &mut Vec<u8>) {
        let at = (position % self.data_size as u64) as usize;
        let first = count.min(self.data_size - at);
        for (at, count) in [(at, first), (0, count - first)] {
            to.reserve(count);
            // SAFETY: `at + count` lies within the data; between tail and head the kernel does not write; the vector
            // has room for `count` more bytes, all of which are written.
            unsafe {
                let data = self.base.as_ptr().add(self.page_size).add(at);
                ptr::copy_nonoverlapping(data, to.as_mut_ptr().add(to.len()), count);
                to.set_len(to.len() + count);
            }
        }
    }

    fn head(&self) -> &AtomicU64 {
        self.cell(std::mem::offset_of!(sys::perf_event_mmap_page, data_head))
    }

    fn tail_cell(&self) -> &AtomicU64 {
        self.cell(std::mem::offset_of!(sys::perf_event_mmap_page, data_tail))
    }

    /// A number of the control page.
    fn cell(&self, offset: usize) -> &AtomicU64 {
        // SAFETY: the offset is that of an aligned 64-bit field of the control page, which stays mapped as long as
        // `self` lives; both sides access it as one word.
        unsafe { AtomicU64::from_ptr(self.base.as_ptr().add(offset).cast()) }
    }
}

impl AsFd for SidebandRing {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl Drop for SidebandRing {
    fn drop(&mut self) {
        // SAFETY: the mapping was made by `open` with this length, and nothing borrows from it any more. It can fail
        // only if it is not a mapping.
        let _ = unsafe { munmap(self.base.as_ptr().cast(), self.page_size + self.data_size) };
    }
}

/// The event: software, dummy, with all records about tasks and mappings.
fn attributes(options: RingOptions) -> sys::perf_event_attr {
    let mut attributes = sys::perf_event_attr {
        type_: sys::PERF_TYPE_SOFTWARE,
        size: size_of::<sys::perf_event_attr>() as u32,
        config: u64::from(sys::PERF_COUNT_SW_DUMMY),
        sample_type: SAMPLE_TYPE,
        clockid: libc::CLOCK_MONOTONIC,
        ..Default::default()
    };
    attributes.set_disabled(1);
    attributes.set_exclude_kernel(1);
    attributes.set_exclude_hv(1);
    attributes.set_mmap(1);
    attributes.set_mmap2(1);
    attributes.set_comm(1);
    attributes.set_comm_exec(1);
    attributes.set_task(1);
    attributes.set_sample_id_all(1);
    attributes.set_use_clockid(1);
    attributes.set_build_id(u64::from(options.build_ids));
    attributes.set_watermark(1);
    attributes.__bindgen_anon_2.wakeup_watermark = options.watermark.max(1);
    attributes
}

fn open_event(cpu: u32, options: RingOptions) -> io::Result<OwnedFd> {
    let mut attributes = attributes(options);
    let cpu = i32::try_from(cpu).map_err(|_| io::Error::from_raw_os_error(libc::ENODEV))?;
    let flags = std::ffi::c_ulong::from(sys::PERF_FLAG_FD_CLOEXEC);
    // SAFETY: the attributes are a whole structure of the size that they say; the kernel writes to `size` at most.
    let fd = unsafe { perf_event_open_sys::perf_event_open(&mut attributes, -1, cpu, -1, flags) };
    match fd {
        -1 => Err(io::Error::last_os_error()),
        // SAFETY: a descriptor that the kernel just made and nobody else knows.
        _ => Ok(unsafe { OwnedFd::from_raw_fd(fd) }),
    }
}
