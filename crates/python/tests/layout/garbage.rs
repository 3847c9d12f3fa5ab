//! Memory full of garbage that leads into itself: whatever it says, each check comes to an end and nothing panics.

use abi::python::{Fault, Slot};
use objects::Architecture;
use proptest::prelude::*;
use python::layout::confirm::{Types, confirm};
use python::layout::frames::{Process, Words, check_frames};
use python::layout::process::{Census, ThreadIdentity, check_runtime, check_thread_state};
use python::layout::{Layout, Platform, debug_offsets};
use python::{Memory, Unreadable, Version};
use walk::cpython::{Block, Chain, Cursor, Turn, state_of, turn};

/// A ring of words, which is all memory there is.
#[derive(Debug)]
struct Ring(Vec<u64>);

impl Memory for Ring {
    fn read(&self, address: u64, into: &mut [u8]) -> Result<(), Unreadable> {
        for (index, byte) in into.iter_mut().enumerate() {
            let at = address.wrapping_add(index as u64);
            let word = self.0[(at / 8) as usize % self.0.len()];
            // one address in many cannot be read
            if at % 4099 == 4098 {
                return Err(Unreadable { address, length: into.len() });
            }
            *byte = word.to_le_bytes()[(at % 8) as usize];
        }
        Ok(())
    }
}

fn words() -> impl Strategy<Value = Vec<u64>> {
    let word = prop_oneof![
        4 => (0..4096_u64).prop_map(|word| word * 8),
        2 => Just(0),
        1 => Just(1),
        1 => Just(u64::MAX),
        1 => Just(u64::from_le_bytes(debug_offsets::COOKIE)),
        1 => Just(u64::from_le_bytes(*b"code\0\0\0\0")),
        2 => any::<u64>(),
    ];
    proptest::collection::vec(word, 1..600)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn garbage_comes_to_an_end(words in words(), minor in 6..=15_u8, at in (0..4096_u64).prop_map(|word| word * 8)) {
        let memory = Ring(words);
        let platform = Platform { architecture: Architecture::Aarch64, musl: false, free_threaded: minor == 13 };
        let layout = Layout::measured(Version::release(3, minor, 9), platform).expect("a layout");
        let types = Types { code: at, frame: at + 400, unicode: at + 800, bytes: at + 1200 };
        let slot = Slot { loads: 3, steps: [8, -16, 24], ..Slot::default() };
        let facts = layout.facts(memory.u64(at).unwrap_or(0), slot);
        let _ = debug_offsets::compare(&layout, &memory, at);
        let _ = confirm(&layout, &memory, &types);
        let census = Census::take(&layout, &memory, at).unwrap_or(Census { interpreters: Vec::new() });
        let _ = check_runtime(&layout, &memory, at, &census);
        let _ = check_thread_state(&layout, &memory, &census, at, ThreadIdentity { thread_self: at, native: Some(1) });
        let process = Process { layout: &layout, facts: &facts, types: &types, memory: &memory };
        let _ = check_frames(&process, at, 300);
        let _ = state_of(&mut Words(&memory), &facts, at);
        let steps: Vec<_> = Chain::new(&mut Words(&memory), &facts, at, 300).take(1000).collect();
        prop_assert!(steps.len() <= 301);
        prop_assert!(steps.iter().rev().skip(1).all(Result::is_ok), "a fault is the end");
        let (mut cursor, mut block) = (Cursor::default(), Block::ZERO);
        cursor.begin(&mut Words(&memory), &facts, at);
        for low in (0..8).map(|index| index * 4096) {
            cursor.enter(low, low + 4096);
            let mut next = || turn(&mut Words(&memory), &facts, &mut cursor, &mut block);
            let frames = (0..300).take_while(|_| matches!(next(), Turn::Frame(_)));
            prop_assert!(frames.count() <= 300);
        }
        prop_assert!(cursor.fault().is_none_or(|fault| Fault::ALL.contains(&fault)));
    }
}
