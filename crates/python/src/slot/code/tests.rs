//! Code of real libraries, as their files have it, and code that nobody should write.

use objects::Architecture;
use proptest::prelude::*;

use super::{Code, Function, Misread, layout};
use crate::slot::SlotLayout;

/// Where the code is taken to lie.
const AT: u64 = 0x1000;

/// Bytes at [`AT`].
struct Flat(Vec<u8>);

impl Code for Flat {
    fn at(&self, address: u64) -> &[u8] {
        let skip = usize::try_from(address.wrapping_sub(AT)).unwrap_or(usize::MAX);
        let rest = self.0.get(skip..).unwrap_or_default();
        &rest[..rest.len().min(16)]
    }
}

fn read(architecture: Architecture, function: Function, bytes: &[u8]) -> Result<SlotLayout, Misread> {
    layout(&Flat(bytes.to_vec()), architecture, function, AT)
}

fn words(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

fn array(blocks: i32) -> SlotLayout {
    SlotLayout { inline: 0, blocks, stride: 8, data: 0, inline_keys: 0, keys_per_block: 128, keys: 128 }
}

fn blocks(inline: i32) -> SlotLayout {
    let blocks = inline + 504;
    SlotLayout { inline, blocks, stride: 16, data: 8, inline_keys: 32, keys_per_block: 32, keys: 1024 }
}

/// Debian's musl 1.2.2 to 1.2.6 for arm64.
#[test]
fn musl_for_aarch64() {
    let get = words(&[0xd53b_d041, 0xf85a_8021, 0xf860_5820, 0xd65f_03c0]);
    assert_eq!(read(Architecture::Aarch64, Function::Get, &get), Ok(array(-88)));
    let with_bti = words(&[0xd503_245f, 0xd53b_d041, 0xf85a_8021, 0xf860_5820, 0xd65f_03c0]);
    assert_eq!(read(Architecture::Aarch64, Function::Get, &with_bti), Ok(array(-88)));
    let set = words(&[
        0xd53b_d042,
        0xf85a_8043,
        0x2a00_03e0,
        0xd103_2042,
        0xf860_7864,
        0xeb01_009f,
        0x5400_00a0,
        0xf820_7861,
        0x3940_c840,
        0x3200_0000,
        0x3900_c840,
        0x5280_0000,
        0xd65f_03c0,
    ]);
    assert_eq!(read(Architecture::Aarch64, Function::Set, &set), Ok(array(-88)));
}

/// Debian's musl 1.2.6 for amd64.
#[test]
fn musl_for_x86_64() {
    let get = b"\xf3\x0f\x1e\xfa\x64\x48\x8b\x04\x25\0\0\0\0\x48\x8b\x80\x80\0\0\0\x89\xff\x48\x8b\x04\xf8\xc3";
    assert_eq!(read(Architecture::X86_64, Function::Get, get), Ok(array(128)));
    let set = b"\xf3\x0f\x1e\xfa\x64\x48\x8b\x04\x25\0\0\0\0\x48\x8b\x90\x80\0\0\0\x89\xff\x48\x39\x34\xfa\x74\x08\
        \x48\x89\x34\xfa\x80\x48\x42\x01\x31\xc0\xc3";
    assert_eq!(read(Architecture::X86_64, Function::Set, set), Ok(array(128)));
}

/// Debian's glibc 2.31 for arm64, whose `struct pthread` has 1,792 bytes.
#[test]
fn glibc_for_aarch64() {
    let get = words(&[
        0x2a00_03e1,
        0x7100_7c1f,
        0x5400_0248,
        0xd53b_d040,
        0x1100_4422,
        0xd11c_0000,
        0x8b02_1002,
        0xf940_0440,
        0xb400_0100,
        0xd37c_7c21,
        0xb000_00e3,
        0x910c_4063,
        0xf940_0044,
        0xf861_6861,
        0xeb04_003f,
        0x5400_0041,
        0xd65f_03c0,
        0xd280_0000,
        0xf900_045f,
        0xd65f_03c0,
        0x710f_fc1f,
        0x5400_0168,
        0xd53b_d040,
        0x5305_7c23,
        0xd11c_0000,
        0x9101_8863,
        0x1200_1022,
        0xf863_7800,
        0xb4ff_fe80,
        0xd37c_1042,
        0x8b02_0002,
        0x17ff_ffe8,
        0xd280_0000,
        0xd65f_03c0,
    ]);
    assert_eq!(read(Architecture::Aarch64, Function::Get, &get), Ok(blocks(280 - 1792)));
}

/// Debian's glibc 2.31 for amd64.
#[test]
fn glibc_for_x86_64() {
    let get = b"\x83\xff\x1f\x77\x3b\x8d\x47\x31\x48\xc1\xe0\x04\x64\x48\x8b\x14\x25\x10\0\0\0\x48\x01\xd0\x4c\x8b\x40\
        \x08\x4d\x85\xc0\x74\x16\x89\xff\x48\x8d\x15\xa6\xd6\0\0\x48\x8b\x30\x48\xc1\xe7\x04\x48\x39\x34\x3a\x75\x39\
        \x4c\x89\xc0\xc3\x0f\x1f\x44\0\0\x81\xff\xff\x03\0\0\x77\x38\x89\xf9\x89\xf8\x83\xe1\x1f\xc1\xe8\x05\x64\x48\
        \x8b\x14\xc5\x10\x05\0\0\x49\x89\xd0\x48\x85\xd2\x74\xd4\x48\xc1\xe1\x04\x48\x8d\x04\x0a\xeb\xab\x0f\x1f\0\
        \x48\xc7\x40\x08\0\0\0\0\x45\x31\xc0\xeb\xba\x0f\x1f\0\x45\x31\xc0\xeb\xb2";
    assert_eq!(read(Architecture::X86_64, Function::Get, get), Ok(blocks(792)));
}

#[test]
fn code_that_is_something_else() {
    let x86_64 = |bytes: &[u8]| read(Architecture::X86_64, Function::Get, bytes);
    // returns its argument, a constant, what is anywhere
    assert_eq!(x86_64(b"\x48\x89\xf8\xc3"), Err(Misread::NotASlot { key: 1 }));
    assert_eq!(x86_64(b"\xb8\x01\0\0\0\xc3"), Err(Misread::NotASlot { key: 0 }));
    assert_eq!(x86_64(b"\x48\x8b\x06\xc3"), Err(Misread::NotASlot { key: 0 }));
    // two different slots, by what memory holds: cmp qword [rsi], 0; mov rax, fs:[64]; je +9; mov rax, fs:[72]; ret
    let either = b"\x48\x83\x3e\0\x64\x48\x8b\x04\x25\x40\0\0\0\x74\x09\x64\x48\x8b\x04\x25\x48\0\0\0\xc3";
    assert_eq!(x86_64(either), Err(Misread::NotASlot { key: 0 }));
    // for ever; with a fork each time; calls itself; jumps to where memory says
    assert_eq!(x86_64(b"\xeb\xfe"), Err(Misread::TooLong));
    assert_eq!(x86_64(b"\x48\x83\x3e\0\x74\xfa\xeb\xf8"), Err(Misread::TooLong));
    assert_eq!(x86_64(b"\xe8\xfb\xff\xff\xff"), Err(Misread::TooLong));
    assert!(matches!(x86_64(b"\xff\x25\0\0\0\0"), Err(Misread::Instruction { address: AT, .. })));
    assert!(matches!(x86_64(b""), Err(Misread::Instruction { address: AT, .. })));
    let aarch64 = |bytes: &[u8]| read(Architecture::Aarch64, Function::Get, bytes);
    assert_eq!(aarch64(&words(&[0x1400_0000])), Err(Misread::TooLong));
    assert!(matches!(aarch64(&words(&[0xd61f_0200])), Err(Misread::Instruction { address: AT, .. })));
    assert!(matches!(aarch64(b"\xc0\x03\x5f"), Err(Misread::Instruction { address: AT, .. })));
}

proptest! {
    #[test]
    fn any_bytes(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
        for architecture in [Architecture::X86_64, Architecture::Aarch64] {
            for function in [Function::Get, Function::Set] {
                let _ = read(architecture, function, &bytes);
            }
        }
    }

    /// Instructions that are known, in any order and with any registers and numbers.
    #[test]
    fn any_known_instructions(
        known in prop::collection::vec((prop::sample::select(KNOWN.to_vec()), any::<u32>()), 1..24),
    ) {
        let code = words(&known.iter().map(|((word, free), bits)| word | bits & free).collect::<Vec<u32>>());
        let _ = read(Architecture::Aarch64, Function::Get, &code);
    }
}

/// Instructions of aarch64, and their bits that may be any.
const KNOWN: [(u32, u32); 16] = [
    (0x9100_0000, 0x007f_ffff), // add, immediate
    (0xf100_0000, 0x007f_ffff), // subs, immediate
    (0x8b00_0000, 0x00df_ffff), // add, shifted
    (0x8b20_0000, 0x001f_ffff), // add, extended
    (0xd340_0000, 0x003f_ffff), // ubfm
    (0x1300_0000, 0x003f_ffff), // sbfm, 32 bits
    (0xf940_0000, 0x003f_ffff), // ldr
    (0xf860_0800, 0x001f_f3ff), // ldr, register
    (0xf900_0000, 0x003f_ffff), // str
    (0xa980_0000, 0x003f_ffff), // stp, pre-indexed
    (0xd280_0000, 0x007f_ffff), // movz
    (0xf280_0000, 0x007f_ffff), // movk
    (0x5400_0000, 0x0000_00ef), // b.cond
    (0xb400_0000, 0x0000_00ff), // cbz
    (0x9ac0_0800, 0x001f_03ff), // udiv
    (0xd53b_d040, 0x0000_001f), // mrs tpidr_el0
];
