//! Jumps, calls and addresses in aarch64 code.
//!
//! Encodings are those of the Arm Architecture Reference Manual for A-profile, chapter C6: every instruction has four bytes.

use super::code::Code;

/// Reads instructions. A page address that `adrp` puts into a register is taken to stay there until another comes; an address
/// is what is added to it.
pub(super) fn read(bytes: &[u8], begin: u64, into: &mut Code) {
    let mut pages = [None; 32];
    for (pc, word) in words(bytes, begin) {
        if let Some(target) = jump(word, pc) {
            into.jumps.push(target);
        } else if word >> 26 == 0b10_0101 {
            into.calls.push(distance(pc, word, 0, 26, 4));
        } else if is_indirect_jump(word) {
            into.indirect_jumps += 1;
        } else if is_indirect_call(word) {
            into.selected_calls += 1;
        } else if let Some(formed) = formed(word, pc) {
            match formed {
                Formed::Page(page) => pages[(word & 0x1f) as usize] = Some(page),
                Formed::Address(address) => into.data.push(address),
            }
        } else if word & 0xff80_0000 == 0x9100_0000 {
            let shift = if word >> 22 & 1 == 1 { 12 } else { 0 };
            let added = u64::from(word >> 10 & 0xfff) << shift;
            into.data.extend(pages[(word >> 5 & 0x1f) as usize].map(|page: u64| page.wrapping_add(added)));
        }
    }
}

/// Finds direct jumps.
pub(super) fn scan(bytes: &[u8], begin: u64, mut found: impl FnMut(u64)) {
    words(bytes, begin).filter_map(|(pc, word)| jump(word, pc)).for_each(&mut found);
}

/// Whether any instruction forms an address, or its page.
pub(super) fn may_name(bytes: &[u8], begin: u64, address: u64) -> bool {
    words(bytes, begin).filter_map(|(pc, word)| formed(word, pc)).any(|formed| match formed {
        Formed::Page(page) => page == address & !0xfff,
        Formed::Address(formed) => formed == address,
    })
}

/// What an instruction puts into the register in its low five bits.
enum Formed {
    /// `adrp`.
    Page(u64),
    /// `adr`.
    Address(u64),
}

fn formed(word: u32, pc: u64) -> Option<Formed> {
    if word & 0x1f00_0000 != 0x1000_0000 {
        return None;
    }
    let distance = sign_extended((word >> 5 & 0x7_ffff) << 2 | word >> 29 & 3, 21);
    Some(match word >> 31 {
        1 => Formed::Page((pc & !0xfff).wrapping_add_signed(distance << 12)),
        _ => Formed::Address(pc.wrapping_add_signed(distance)),
    })
}

/// `bti c` or nothing, then `adrp x16`: the register that the ABI gives to linkage stubs (AAPCS64, 6.1.1).
pub(super) fn is_stub(bytes: &[u8]) -> bool {
    const BTI_C: u32 = 0xd503_245f;
    let mut words = words(bytes, 0).map(|(_, word)| word).skip_while(|word| *word == BTI_C);
    words.next().is_some_and(|word| word & 0x9f00_001f == 0x9000_0010)
}

fn words(bytes: &[u8], begin: u64) -> impl Iterator<Item = (u64, u32)> {
    let addresses = (0..).map(move |index: u64| begin.wrapping_add(index * 4));
    let words = bytes.chunks_exact(4).map(|word| word.first_chunk().map_or(0, |word| u32::from_le_bytes(*word)));
    addresses.zip(words)
}

/// The target of `b`, `b.cond`, `cbz`, `cbnz`, `tbz`, `tbnz`.
fn jump(word: u32, pc: u64) -> Option<u64> {
    if word >> 26 == 0b00_0101 {
        return Some(distance(pc, word, 0, 26, 4));
    }
    let is_conditional = word & 0xff00_0000 == 0x5400_0000;
    let compares = word & 0x7e00_0000 == 0x3400_0000;
    let tests = word & 0x7e00_0000 == 0x3600_0000;
    match (is_conditional || compares, tests) {
        (true, _) => Some(distance(pc, word, 5, 19, 4)),
        (_, true) => Some(distance(pc, word, 5, 14, 4)),
        _ => None,
    }
}

/// `br`, and `braa` with its kin, which check the target's signature.
fn is_indirect_jump(word: u32) -> bool {
    word & 0xffff_fc1f == 0xd61f_0000 || word & 0xfeff_f800 == 0xd61f_0800
}

/// `blr`, and `blraa` with its kin.
fn is_indirect_call(word: u32) -> bool {
    is_indirect_jump(word & !0x0020_0000) && word & 0x0020_0000 != 0
}

fn distance(pc: u64, word: u32, low: u32, bits: u32, scale: i64) -> u64 {
    let field = word >> low & ((1 << bits) - 1);
    pc.wrapping_add_signed(sign_extended(field, bits) * scale)
}

fn sign_extended(field: u32, bits: u32) -> i64 {
    i64::from((field << (32 - bits)).cast_signed() >> (32 - bits))
}
