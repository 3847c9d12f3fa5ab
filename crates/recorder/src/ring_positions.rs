//! How far the ring buffer was written and read.

use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::sync::atomic::{AtomicUsize, Ordering};

use aya::maps::{MapData, RingBuf};
use memmap2::{MmapOptions, MmapRaw};

/// The two positions that a BPF ring buffer has in front of its data, each in a page of its own: that of the reader and
/// that of the writers, in bytes since the start (kernel/bpf/ringbuf.c, `struct bpf_ringbuf`).
///
/// A record that is being written hides those behind it, which may be whole: only the positions tell.
pub(crate) struct RingPositions {
    pages: MmapRaw,
    page_size: usize,
}

impl RingPositions {
    /// Those of this ring buffer.
    pub(crate) fn new(ring: &RingBuf<MapData>) -> io::Result<RingPositions> {
        let page_size = rustix::param::page_size();
        let pages = MmapOptions::new().len(2 * page_size).map_raw_read_only(ring.as_fd().as_raw_fd())?;
        Ok(RingPositions { pages, page_size })
    }

    /// Where the next record will be read.
    pub(crate) fn read(&self) -> usize {
        self.position(0)
    }

    /// Where the next record will be written.
    pub(crate) fn written(&self) -> usize {
        self.position(self.page_size)
    }

    fn position(&self, offset: usize) -> usize {
        // SAFETY: within the mapping, which lives as long as self, and aligned as a page is; others only write atomically.
        unsafe { &*self.pages.as_ptr().add(offset).cast::<AtomicUsize>() }.load(Ordering::Acquire)
    }
}
