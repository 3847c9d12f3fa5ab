//! Places of keys.

use proptest::prelude::*;

use super::{KeyOutOfRange, SlotLayout, SlotPlace};
use crate::memory::{Memory, Unreadable};

const GLIBC: SlotLayout =
    SlotLayout { inline: -1576, blocks: -1072, stride: 16, data: 8, inline_keys: 32, keys_per_block: 32, keys: 1024 };
const MUSL: SlotLayout =
    SlotLayout { inline: 0, blocks: 128, stride: 8, data: 0, inline_keys: 0, keys_per_block: 128, keys: 128 };

/// One pointer in memory.
struct Pointer {
    at: u64,
    to: u64,
}

impl Memory for Pointer {
    fn read(&self, address: u64, into: &mut [u8]) -> Result<(), Unreadable> {
        match (address == self.at, <&mut [u8; 8]>::try_from(&mut *into)) {
            (true, Ok(bytes)) => {
                *bytes = self.to.to_le_bytes();
                Ok(())
            }
            _ => Err(Unreadable { address, length: into.len() }),
        }
    }
}

#[test]
fn places() {
    assert_eq!(size_of::<SlotLayout>(), 20);
    assert_eq!(GLIBC.place(0x10000, 0), Ok(SlotPlace::At(0x10000 - 1576)));
    assert_eq!(GLIBC.place(0x10000, 31), Ok(SlotPlace::At(0x10000 - 1576 + 31 * 16)));
    assert_eq!(GLIBC.place(0x10000, 32), Ok(SlotPlace::Behind { pointer: 0x10000 - 1072 + 8, offset: 8 }));
    assert_eq!(GLIBC.place(0x10000, 1023), Ok(SlotPlace::Behind { pointer: 0x10000 - 1072 + 248, offset: 504 }));
    assert_eq!(GLIBC.place(0x10000, 1024), Err(KeyOutOfRange { key: 1024, keys: 1024 }));
    assert_eq!(MUSL.place(0x10000, 3), Ok(SlotPlace::Behind { pointer: 0x10080, offset: 24 }));
    assert_eq!(MUSL.place(0x10000, 128), Err(KeyOutOfRange { key: 128, keys: 128 }));
}

#[test]
fn addresses_behind_pointers() {
    let memory = Pointer { at: 0x10080, to: 0x7000 };
    assert_eq!(MUSL.address(&memory, 0x10000, 3), Ok(Some(0x7018)));
    assert_eq!(MUSL.address(&Pointer { at: 0x10080, to: 0 }, 0x10000, 3), Ok(None));
    assert_eq!(MUSL.value(&Pointer { at: 0x10080, to: 0 }, 0x10000, 3), Ok(0));
    MUSL.address(&memory, 0x20000, 3).expect_err("nothing there");
    MUSL.value(&memory, 0x10000, 3).expect_err("nothing behind it");
}

proptest! {
    #[test]
    fn any_layout_and_key(fields: (i32, i32, u16, u16, u16, u16, u16), pointer: u64, key: u32) {
        let (inline, blocks, stride, data, inline_keys, keys_per_block, keys) = fields;
        let layout = SlotLayout { inline, blocks, stride, data, inline_keys, keys_per_block, keys };
        let memory = Pointer { at: pointer, to: u64::MAX };
        prop_assert!(layout.value(&memory, pointer, key).is_err() || keys > 0);
        if let Ok(place) = layout.place(pointer, key % u32::from(keys.max(1))) {
            prop_assert!(keys_per_block > 0 || matches!(place, SlotPlace::At(_)));
        }
    }
}
