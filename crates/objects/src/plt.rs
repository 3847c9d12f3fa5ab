//! Procedure linkage stubs that no FDE describes, as lld leaves them: found by their sections, believed by their code.

use std::ops::Range;

use abi::table::{Rule, cfa, ra};

use crate::architecture::Architecture;
use crate::image::Image;

/// Bytes of a stub in all forms that are known.
const STUB: usize = 16;

/// Calls `found` with the place in the file and the rule of each stub.
pub(crate) fn find(image: &Image, mut found: impl FnMut(Range<u64>, Rule)) {
    // sections of a sound file do not overlap: many headers of the same bytes are not all believed
    let mut left = image.bytes().len();
    for section in image.sections() {
        if !matches!(section.name, b".plt" | b".plt.sec" | b".plt.got" | b".iplt") {
            continue;
        }
        let Some(rest) = left.checked_sub(section.bytes.len()) else { return };
        left = rest;
        for (index, stub) in section.bytes.chunks_exact(STUB).enumerate() {
            let begin = section.file_offset + (index * STUB) as u64;
            let rows = match image.architecture() {
                Architecture::X86_64 => x86_64(stub),
                Architecture::Aarch64 => aarch64(stub),
            };
            for (bytes, rule) in rows {
                found(begin + bytes.start..begin + bytes.end, rule);
            }
        }
    }
}

type Rows = Vec<(Range<u64>, Rule)>;

fn x86_64(stub: &[u8]) -> Rows {
    let sp = |offset| Rule { cfa: cfa::SP, cfa_offset: offset, ..Rule::NONE };
    let plt = |threshold| Rule { cfa: cfa::PLT, cfa_offset: threshold, ..Rule::NONE };
    match *stub {
        // header, entered by a jump from a stub that pushed a number: push GOT+8(%rip); jmp *GOT+16(%rip)
        [0xff, 0x35, _, _, _, _, 0xff, 0x25, ..] => vec![(0..6, sp(16)), (6..16, sp(24))],
        // jmp *GOT(%rip); push $number; jmp header
        [0xff, 0x25, _, _, _, _, 0x68, _, _, _, _, 0xe9, ..] => vec![(0..16, plt(11))],
        // endbr64; push $number; jmp header
        [0xf3, 0x0f, 0x1e, 0xfa, 0x68, _, _, _, _, 0xe9 | 0xf2, ..] => vec![(0..16, plt(9))],
        // jmp *GOT(%rip), maybe behind endbr64, and padding
        [0xff, 0x25, ..] | [0xf3, 0x0f, 0x1e, 0xfa, 0xff, 0x25, ..] => vec![(0..16, sp(8))],
        _ => Vec::new(),
    }
}

fn aarch64(stub: &[u8]) -> Rows {
    const BR_X17: [u8; 4] = [0x20, 0x02, 0x1f, 0xd6];
    // adrp x16, GOT; ldr x17, [x16, ...]; add x16, ...; br x17: nothing on the stack is touched
    let is_adrp_x16 = stub[3] & 0x9f == 0x90 && stub[0] & 0x1f == 16;
    if is_adrp_x16 && stub.ends_with(&BR_X17) {
        return vec![(0..16, Rule { cfa: cfa::SP, ra: ra::LINK_REGISTER, ..Rule::NONE })];
    }
    Vec::new()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(text: &str) -> Vec<u8> {
        text.split(' ').map(|byte| u8::from_str_radix(byte, 16).expect("hex")).collect()
    }

    /// Stubs as `objdump -d` shows them in programs linked by ld.lld 19 and GNU ld 2.40.
    #[test]
    fn forms_of_x86_64() {
        let rules =
            |text| x86_64(&bytes(text)).into_iter().map(|(_, rule)| (rule.cfa, rule.cfa_offset)).collect::<Vec<_>>();
        let header = "ff 35 02 20 00 00 ff 25 04 20 00 00 0f 1f 40 00";
        assert_eq!(rules(header), [(cfa::SP, 16), (cfa::SP, 24)]);
        assert_eq!(rules("ff 25 02 20 00 00 68 00 00 00 00 e9 e0 ff ff ff"), [(cfa::PLT, 11)]);
        assert_eq!(rules("f3 0f 1e fa 68 00 00 00 00 f2 e9 e1 ff ff ff 90"), [(cfa::PLT, 9)]);
        assert_eq!(rules("f3 0f 1e fa ff 25 ae 2f 00 00 66 0f 1f 44 00 00"), [(cfa::SP, 8)]);
        assert_eq!(rules("ff 25 ae 2f 00 00 66 90 00 00 00 00 00 00 00 00"), [(cfa::SP, 8)]);
        assert_eq!(rules("55 48 89 e5 e8 00 00 00 00 5d c3 90 90 90 90 90"), []);
    }

    /// A file of many headers of the same bytes must not make more stubs than a file of its size can hold.
    #[test]
    fn sections_that_share_their_bytes_are_not_all_believed() {
        const HEADERS: usize = 500;
        let (stubs_at, names_at, headers_at) = (0x40u64, 0x440u64, 0x480u64);
        let mut file = b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0\x03\0\x3e\0\x01\0\0\0".to_vec();
        file.extend([0, 0, headers_at].map(u64::to_le_bytes).concat());
        file.extend([0u16, 0, 64, 56, 0, 64, HEADERS as u16 + 2, 1].map(u16::to_le_bytes).concat());
        let stub = bytes("ff 25 ae 2f 00 00 66 90 00 00 00 00 00 00 00 00");
        (0..64).for_each(|_| file.extend(&stub));
        file.extend(b"\0.plt\0");
        file.resize(headers_at as usize, 0);
        let mut section = |name: u32, offset: u64, size: u64| {
            file.extend([name, 1].map(u32::to_le_bytes).concat());
            file.extend([2, offset, offset, size, 0, 0, 0].map(u64::to_le_bytes).concat());
            file.resize(file.len() - 8, 0);
            file.extend([0; 8]);
        };
        section(0, 0, 0);
        section(0, names_at, 7);
        (0..HEADERS).for_each(|_| section(1, stubs_at, 0x400));
        let image = Image::from_bytes(file).expect("an ELF file");
        let mut found = 0;
        find(&image, |_, _| found += 1);
        assert!(found >= 64 && found as u64 <= image.size() / STUB as u64, "{found}");
    }

    #[test]
    fn forms_of_aarch64() {
        let stub = bytes("90 00 00 90 11 ca 47 f9 10 42 3e 91 20 02 1f d6");
        assert_eq!(aarch64(&stub).len(), 1);
        // the header pushes x16 and x30
        assert!(aarch64(&bytes("f0 7b bf a9 90 00 00 90 11 fe 47 f9 10 e2 3f 91")).is_empty());
    }
}
