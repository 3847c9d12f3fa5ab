//! Records of code objects: pieces of memory that may say anything, lie anywhere, and be cut anywhere.
//!
//! The first byte chooses the version and what the process still has; the rest is a record of the ring buffer.
#![no_main]

use libfuzzer_sys::fuzz_target;
use objects::Architecture;
use python::code_object::{CodeLayout, CodeObject};
use python::layout::confirm::Types;
use python::layout::{Layout, Platform};
use python::sampled::{Gone, Pieces, Sampled, check_of};
use python::strings::{MAX_CHARACTERS, StringLayout};
use python::{Memory, Version};
use recorder::fuzzing::{Decoded, record};

fuzz_target!(|input: &[u8]| {
    let Some((choice, bytes)) = input.split_first() else { return };
    let Some(Decoded::Code { address, check, pieces }) = record(bytes, &[]) else { return };
    let known = || -> Vec<(u64, &[u8])> { pieces.iter().map(|(at, bytes)| (*at, bytes.as_slice())).collect() };
    let sent = Pieces { known: known(), rest: Gone };
    let platform = Platform { architecture: Architecture::X86_64, musl: false, free_threaded: false };
    let Ok(layout) = Layout::measured(Version::release(3, 6 + choice % 10, 15), platform) else { return };
    let facts = layout.code_facts();
    let (code, strings) = layouts(&layout, &sent, address);
    // what the process has is the same, or begins with the second piece
    let live = || Some(Pieces { known: known().into_iter().skip(usize::from(*choice > 127)).collect(), rest: Gone });
    for check in [Some(check), check_of(&sent, &facts, address)].into_iter().flatten() {
        let sampled = Sampled { address, check, pieces: known() };
        let gone = sampled.read(|| None::<Gone>, &facts, &code, &strings);
        assert!(gone.is_none() || check_of(&sent, &facts, address) == Some(check));
        let found = sampled.read(live, &facts, &code, &strings);
        assert!(gone.is_none() || gone == found);
        if let Some(object) = found {
            check_object(&object, address);
        }
    }
});

/// As if the types of what is there were the right ones.
fn layouts(layout: &Layout, memory: &impl Memory, address: u64) -> (CodeLayout, StringLayout) {
    let facts = layout.code_facts();
    let word = |at: u64, offset: u64| memory.u64(at.wrapping_add(offset)).unwrap_or(0);
    let type_of = |at: u64| word(at, layout.object.ob_type.into());
    let field = |offset: u16| type_of(word(address, offset.into()));
    let types = Types { code: type_of(address), frame: 0, unicode: field(facts.name), bytes: field(facts.lines) };
    (layout.code_layout(types.code), layout.string_layout(&types))
}

fn check_object(object: &CodeObject, address: u64) {
    for text in [&object.name, &object.path] {
        assert!(text.text.chars().count() <= MAX_CHARACTERS as usize);
    }
    for instruction in (0..64).chain([1 << 16, abi::word::NO_INSTRUCTION - 1, abi::word::NO_INSTRUCTION]) {
        let line = object.line_of_sample(address, instruction).number();
        assert!(line.is_none_or(|line| i32::try_from(line).is_ok()));
    }
}
