//! ELF files of 64 bits that are well-formed but for what is put into their sections.
//!
//! ```text
//!  0       file header, program headers
//!  0x1000  executable sections              a segment that can be executed, at address TEXT
//!          other sections                   a segment that cannot, directly behind it
//!          section headers, their names
//! ```

/// Address of the first byte of the executable segment.
pub const TEXT: u64 = 0x2_1000;
/// Its place in the file.
pub const TEXT_OFFSET: u64 = 0x1000;
/// x86_64 in `e_machine`.
pub const X86_64: u16 = 62;
/// aarch64.
pub const AARCH64: u16 = 183;
/// `SHT_PROGBITS`.
pub const PROGBITS: u32 = 1;
/// Flag of a section with code, which is loaded.
pub const CODE: u64 = 6;
/// Flag of a loaded section.
pub const DATA: u64 = 2;

const FILE_HEADER: usize = 64;
const PROGRAM_HEADER: usize = 56;

/// A section.
#[derive(Clone, Copy, Debug)]
pub struct Section<'a> {
    /// Its name.
    pub name: &'a str,
    /// `sh_type`.
    pub kind: u32,
    /// `sh_flags`.
    pub flags: u64,
    /// `sh_link`.
    pub link: u32,
    /// `sh_entsize`.
    pub entry_size: u64,
    /// What is in it.
    pub bytes: &'a [u8],
}

impl<'a> Section<'a> {
    /// A section of bytes.
    pub fn new(name: &'a str, flags: u64, bytes: &'a [u8]) -> Section<'a> {
        Section { name, kind: PROGBITS, flags, link: 0, entry_size: 0, bytes }
    }
}

/// A section's place.
#[derive(Clone, Copy, Debug)]
struct Placed {
    offset: usize,
    address: u64,
}

/// The file of these sections, of which those with code must come first, as the headers count them from 1.
pub fn file(machine: u16, entry: u64, sections: &[Section<'_>]) -> Vec<u8> {
    let mut bytes = vec![0; TEXT_OFFSET as usize];
    let (mut places, mut code_end) = (Vec::new(), bytes.len());
    for section in sections {
        bytes.resize(bytes.len().next_multiple_of(8), 0);
        let address = TEXT + bytes.len() as u64 - TEXT_OFFSET;
        places.push(Placed { offset: bytes.len(), address });
        bytes.extend(section.bytes);
        if section.flags == CODE {
            code_end = bytes.len();
        }
    }
    let end = bytes.len();
    let headers = append_section_headers(&mut bytes, sections, &places);
    let count = sections.len() as u16 + 2;
    let mut head = b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0".to_vec();
    put_u16(&mut head, &[3, machine]);
    put_u32(&mut head, &[1]);
    put_u64(&mut head, &[entry, FILE_HEADER as u64, headers as u64]);
    put_u32(&mut head, &[0]);
    put_u16(&mut head, &[FILE_HEADER as u16, PROGRAM_HEADER as u16, 2, 64, count, count - 1]);
    for (flags, begin, end) in [(5, TEXT_OFFSET, code_end as u64), (4, code_end as u64, end as u64)] {
        let address = TEXT + begin - TEXT_OFFSET;
        put_u32(&mut head, &[1, flags]);
        put_u64(&mut head, &[begin, address, address, end - begin, end - begin, 8]);
    }
    bytes[..head.len()].copy_from_slice(&head);
    bytes
}

/// Where the headers begin.
fn append_section_headers(bytes: &mut Vec<u8>, sections: &[Section<'_>], places: &[Placed]) -> usize {
    let mut names = vec![0];
    let mut headers = vec![0; 64];
    let mut add = |name: &str, section: &Section<'_>, place: Placed, size: usize| {
        put_u32(&mut headers, &[names.len() as u32, section.kind]);
        put_u64(&mut headers, &[section.flags, place.address, place.offset as u64, size as u64]);
        put_u32(&mut headers, &[section.link, 0]);
        put_u64(&mut headers, &[1, section.entry_size]);
        names.extend(name.bytes().chain([0]));
    };
    for (section, place) in sections.iter().zip(places) {
        add(section.name, section, *place, section.bytes.len());
    }
    let of_names = Section { kind: 3, ..Section::new(".shstrtab", 0, &[]) };
    let size = sections.iter().map(|section| section.name.len() + 1).sum::<usize>() + of_names.name.len() + 2;
    add(of_names.name, &of_names, Placed { offset: bytes.len(), address: 0 }, size);
    bytes.extend(names);
    bytes.resize(bytes.len().next_multiple_of(8), 0);
    let at = bytes.len();
    bytes.extend(headers);
    at
}

fn put_u16(to: &mut Vec<u8>, numbers: &[u16]) {
    numbers.iter().for_each(|number| to.extend(number.to_le_bytes()));
}

fn put_u32(to: &mut Vec<u8>, numbers: &[u32]) {
    numbers.iter().for_each(|number| to.extend(number.to_le_bytes()));
}

fn put_u64(to: &mut Vec<u8>, numbers: &[u64]) {
    numbers.iter().for_each(|number| to.extend(number.to_le_bytes()));
}
