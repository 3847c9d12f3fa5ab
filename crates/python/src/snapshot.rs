//! Memory as it was when it was first looked at.

use std::cell::RefCell;
use std::collections::HashMap;

use crate::{Memory, Unreadable};

/// Bytes that are read at once: a page of the smallest size.
const PAGE: u64 = 4096;
/// Pages that are kept at most; further ones are read each time.
const MAX_PAGES: usize = 1 << 14;

/// Reads each page of another memory once, and answers from that. Objects of an interpreter lie close together, so reading a
/// stack takes a few large reads in place of many small ones.
pub struct Snapshot<'a, M> {
    memory: &'a M,
    pages: RefCell<HashMap<u64, Option<Box<[u8; PAGE as usize]>>>>,
}

impl<'a, M: Memory> Snapshot<'a, M> {
    /// Of this memory, as it is when it is read.
    pub fn new(memory: &'a M) -> Snapshot<'a, M> {
        Snapshot { memory, pages: RefCell::new(HashMap::new()) }
    }

    fn copy(&self, address: u64, into: &mut [u8]) -> bool {
        let (page, at) = (address & !(PAGE - 1), (address & (PAGE - 1)) as usize);
        let mut pages = self.pages.borrow_mut();
        if pages.len() >= MAX_PAGES && !pages.contains_key(&page) {
            return self.memory.read(address, into).is_ok();
        }
        let bytes = pages.entry(page).or_insert_with(|| {
            let mut bytes = Box::new([0; PAGE as usize]);
            self.memory.read(page, &mut *bytes).is_ok().then_some(bytes)
        });
        match bytes {
            Some(bytes) => into.copy_from_slice(&bytes[at..at + into.len()]),
            None => return false,
        }
        true
    }
}

impl<M: Memory> Memory for Snapshot<'_, M> {
    fn read(&self, address: u64, into: &mut [u8]) -> Result<(), Unreadable> {
        let unreadable = Unreadable { address, length: into.len() };
        address.checked_add(into.len() as u64).ok_or(unreadable)?;
        let mut filled = 0;
        while filled < into.len() {
            let at = address + filled as u64;
            let end = into.len().min(filled + (PAGE - at % PAGE) as usize);
            if !self.copy(at, &mut into[filled..end]) {
                return Err(unreadable);
            }
            filled = end;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    /// Each byte is the low byte of its address, above 2^16 there is nothing; reads are counted.
    struct Counted(Cell<u32>);

    impl Memory for Counted {
        fn read(&self, address: u64, into: &mut [u8]) -> Result<(), Unreadable> {
            self.0.set(self.0.get() + 1);
            if address + into.len() as u64 > 1 << 16 {
                return Err(Unreadable { address, length: into.len() });
            }
            (address..).zip(into).for_each(|(at, byte)| *byte = at as u8);
            Ok(())
        }
    }

    #[test]
    fn each_page_is_read_once() {
        let memory = Counted(Cell::new(0));
        let snapshot = Snapshot::new(&memory);
        let mut bytes = [0; 300];
        for at in [0, 4000, 3999, 8191, 5] {
            snapshot.read(at, &mut bytes).expect("there");
            assert!((at..).zip(&bytes).all(|(at, byte)| *byte == at as u8), "{at}");
        }
        assert_eq!(memory.0.get(), 3);
        assert!(
            snapshot.read((1 << 16) - 10, &mut bytes).is_err() && snapshot.read(u64::MAX - 10, &mut bytes).is_err()
        );
    }
}
