//! Memory of a process, or what stands for it.

use processes::memory::ProcessMemory;

/// Memory that cannot be read.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{length} bytes at {address:#x} cannot be read")]
pub struct Unreadable {
    /// Where.
    pub address: u64,
    /// Bytes asked for.
    pub length: usize,
}

/// Memory that can be read: that of a live process, a recording of it, or a file's contents at its own addresses.
pub trait Memory {
    /// Fills `into` from `address` on: all of it or nothing.
    ///
    /// # Errors
    /// If any of it cannot be read.
    fn read(&self, address: u64, into: &mut [u8]) -> Result<(), Unreadable>;

    /// A byte.
    ///
    /// # Errors
    /// If it cannot be read.
    fn u8(&self, address: u64) -> Result<u8, Unreadable> {
        let mut bytes = [0; 1];
        self.read(address, &mut bytes).map(|()| bytes[0])
    }

    /// Four bytes, little-endian.
    ///
    /// # Errors
    /// If they cannot be read.
    fn u32(&self, address: u64) -> Result<u32, Unreadable> {
        let mut bytes = [0; 4];
        self.read(address, &mut bytes).map(|()| u32::from_le_bytes(bytes))
    }

    /// Eight bytes, little-endian.
    ///
    /// # Errors
    /// If they cannot be read.
    fn u64(&self, address: u64) -> Result<u64, Unreadable> {
        let mut bytes = [0; 8];
        self.read(address, &mut bytes).map(|()| u64::from_le_bytes(bytes))
    }
}

impl<M: Memory + ?Sized> Memory for &M {
    fn read(&self, address: u64, into: &mut [u8]) -> Result<(), Unreadable> {
        (**self).read(address, into)
    }
}

/// A live process, as long as it runs the program that it ran when its memory was opened.
impl Memory for ProcessMemory {
    fn read(&self, address: u64, into: &mut [u8]) -> Result<(), Unreadable> {
        let length = into.len();
        ProcessMemory::read(self, address, into).map_err(|_| Unreadable { address, length })
    }
}
