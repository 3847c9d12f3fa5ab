//! What the headers of an ELF file say: segments, sections, build-id.

use object::elf::{FileHeader32, FileHeader64, NT_GNU_BUILD_ID, PF_X, PT_LOAD, SHF_EXECINSTR, SHT_NOBITS, SHT_NOTE};
use object::read::elf::{FileHeader, ProgramHeader, SectionHeader};
use object::{FileKind, LittleEndian, ReadCache, ReadRef};
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::ops::Range;
use std::os::unix::fs::FileExt;

use crate::Reason;
use crate::contents::Input;

/// More sections than any executable has; the rest of a file that claims more is not looked at.
const MAX_SECTIONS: usize = 100_000;
/// The largest table of headers that is read, in bytes.
const MAX_HEADERS: u64 = 64 << 20;
/// The longest name of a section that is read, in bytes; those that matter are short. Thousands of sections may share
/// one name that does not end.
const MAX_SECTION_NAME: u64 = 256;

/// A part of the file that is mapped.
#[derive(Clone, Debug)]
pub(crate) struct Segment {
    pub(crate) offset: u64,
    pub(crate) address: u64,
    pub(crate) size: u64,
    pub(crate) executable: bool,
}

/// A section.
#[derive(Clone, Debug)]
pub(crate) struct Section {
    pub(crate) name: String,
    pub(crate) kind: u32,
    pub(crate) flags: u64,
    pub(crate) address: u64,
    pub(crate) offset: u64,
    pub(crate) size: u64,
    pub(crate) link: u32,
    pub(crate) entry_size: u64,
}

impl Section {
    /// Whether the file holds its contents.
    pub(crate) fn has_contents(&self) -> bool {
        self.kind != SHT_NOBITS && self.size != 0
    }

    /// Its addresses.
    pub(crate) fn addresses(&self) -> Range<u64> {
        self.address..self.address.saturating_add(self.size)
    }

    /// The addresses of its code; empty for data.
    pub(crate) fn code(&self) -> Range<u64> {
        if self.flags & u64::from(SHF_EXECINSTR) == 0 {
            return 0..0;
        }
        self.addresses()
    }
}

/// What the headers say.
#[derive(Clone, Debug)]
pub(crate) struct Layout {
    pub(crate) is_64: bool,
    pub(crate) machine: u16,
    pub(crate) segments: Vec<Segment>,
    pub(crate) sections: Vec<Section>,
}

impl Layout {
    /// Reads the headers.
    pub(crate) fn read(input: &Input<'_>) -> Result<Layout, Reason> {
        match input {
            Input::Memory(bytes) => read_any(Bounded(*bytes)),
            Input::File(file) => read_any(Bounded(&ReadCache::new(Positioned { file, at: 0 }))),
        }
    }

    /// The first section of a name.
    pub(crate) fn section(&self, name: &str) -> Option<&Section> {
        self.sections.iter().find(|section| section.name == name)
    }

    /// The address at which the file wants the byte at a file offset; `None` if it is not mapped as code.
    pub(crate) fn address_of(&self, offset: u64) -> Option<u64> {
        let holds = |segment: &&Segment| offset.checked_sub(segment.offset).is_some_and(|into| into < segment.size);
        let segment = self.segments.iter().filter(|segment| segment.executable).find(holds)?;
        segment.address.checked_add(offset - segment.offset)
    }

    /// Whether the file holds DWARF.
    pub(crate) fn has_debug_info(&self) -> bool {
        [".debug_info", ".zdebug_info"].iter().any(|name| self.section(name).is_some_and(Section::has_contents))
    }

    /// The build-id, if the file has one of a sensible length.
    pub(crate) fn build_id(&self, input: &Input<'_>) -> Option<Vec<u8>> {
        self.sections
            .iter()
            .filter(|section| section.kind == SHT_NOTE)
            .filter_map(|section| input.read(section.offset, section.size, 64 << 10, &section.name).ok())
            .find_map(|notes| build_id_in(&notes))
    }
}

/// The build-id in a run of notes.
fn build_id_in(mut notes: &[u8]) -> Option<Vec<u8>> {
    loop {
        let word = |at: usize| notes.get(at..at + 4)?.try_into().ok().map(u32::from_le_bytes);
        let (name_size, size, kind) = (word(0)? as usize, word(4)? as usize, word(8)?);
        let start = 12usize.checked_add(name_size)?.checked_next_multiple_of(4)?;
        let end = start.checked_add(size)?;
        if kind == NT_GNU_BUILD_ID && notes.get(12..16) == Some(b"GNU\0") && name_size == 4 {
            return notes.get(start..end).filter(|id| (2..=64).contains(&id.len())).map(<[u8]>::to_vec);
        }
        notes = notes.get(end.checked_next_multiple_of(4)?..)?;
    }
}

fn read_any<'data, R: ReadRef<'data>>(data: R) -> Result<Layout, Reason> {
    match FileKind::parse(data).map_err(|_| Reason::NotElf("no ELF header"))? {
        FileKind::Elf64 => read::<FileHeader64<LittleEndian>, R>(data),
        FileKind::Elf32 => read::<FileHeader32<LittleEndian>, R>(data),
        _ => Err(Reason::NotElf("no ELF header")),
    }
}

fn read<'data, Elf: FileHeader<Endian = LittleEndian>, R: ReadRef<'data>>(data: R) -> Result<Layout, Reason> {
    let header = Elf::parse(data).map_err(|_| Reason::NotElf("not of this kind of machine"))?;
    let endian = LittleEndian;
    let segments = header.program_headers(endian, data).map_err(|_| Reason::NotElf("bad program headers"))?;
    let segments = segments
        .iter()
        .filter(|segment| segment.p_type(endian) == PT_LOAD)
        .map(|segment| Segment {
            offset: segment.p_offset(endian).into(),
            address: segment.p_vaddr(endian).into(),
            size: segment.p_filesz(endian).into(),
            executable: segment.p_flags(endian) & PF_X != 0,
        })
        .collect();
    // a file without section headers still runs
    let sections = header.sections(endian, data).map_err(|_| Reason::NotElf("bad section headers"))?;
    let name = |section: &Elf::SectionHeader| {
        let name = sections.section_name(endian, section).unwrap_or_default();
        String::from_utf8_lossy(name).into_owned()
    };
    let sections = sections
        .iter()
        .take(MAX_SECTIONS)
        .map(|section| Section {
            name: name(section),
            kind: section.sh_type(endian),
            flags: section.sh_flags(endian).into(),
            address: section.sh_addr(endian).into(),
            offset: section.sh_offset(endian).into(),
            size: section.sh_size(endian).into(),
            link: section.sh_link(endian),
            entry_size: section.sh_entsize(endian).into(),
        })
        .collect();
    Ok(Layout { is_64: header.is_type_64(), machine: header.e_machine(endian), segments, sections })
}

/// An open file, read by a position of one's own: that of the file is moved by everybody who has it.
struct Positioned<'a> {
    file: &'a File,
    at: u64,
}

impl Read for Positioned<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.file.read_at(buffer, self.at)?;
        self.at += count as u64;
        Ok(count)
    }
}

impl Seek for Positioned<'_> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let at = match to {
            SeekFrom::Start(at) => Some(at),
            SeekFrom::End(by) => self.file.metadata()?.len().checked_add_signed(by),
            SeekFrom::Current(by) => self.at.checked_add_signed(by),
        };
        self.at = at.ok_or(io::ErrorKind::InvalidInput)?;
        Ok(self.at)
    }
}

/// Reads headers, never a large piece.
#[derive(Clone, Copy)]
struct Bounded<R>(R);

impl<'a, R: ReadRef<'a>> ReadRef<'a> for Bounded<R> {
    fn len(self) -> Result<u64, ()> {
        self.0.len()
    }

    fn read_bytes_at(self, offset: u64, size: u64) -> Result<&'a [u8], ()> {
        if size > MAX_HEADERS {
            return Err(());
        }
        self.0.read_bytes_at(offset, size)
    }

    fn read_bytes_at_until(self, range: Range<u64>, delimiter: u8) -> Result<&'a [u8], ()> {
        let end = range.end.min(range.start.saturating_add(MAX_SECTION_NAME));
        self.0.read_bytes_at_until(range.start..end, delimiter)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn segment(offset: u64, address: u64, size: u64, executable: bool) -> Segment {
        Segment { offset, address, size, executable }
    }

    #[test]
    fn only_code_has_addresses() {
        let layout = Layout {
            is_64: true,
            machine: 62,
            sections: Vec::new(),
            segments: vec![segment(0, 0x1000, 0x2000, false), segment(0x1800, 0x3800, 0x1000, true)],
        };
        assert_eq!(layout.address_of(0x100), None);
        assert_eq!(layout.address_of(0x1900), Some(0x3900));
        assert_eq!(layout.address_of(0x27ff), Some(0x47ff));
        assert_eq!(layout.address_of(0x2800), None);
    }

    /// Thousands of sections may have names in one string that does not end.
    #[test]
    fn endless_section_names_are_not_read() {
        let mut bytes = std::fs::read("/proc/self/exe").unwrap();
        let number = |at: usize, size: usize| {
            bytes[at..at + size].iter().rev().fold(0, |sum, byte| sum << 8 | usize::from(*byte))
        };
        let (headers, names) = (number(40, 8), number(62, 2));
        let (at, size) = (number(headers + names * 64 + 24, 8), number(headers + names * 64 + 32, 8));
        bytes[at..at + size].fill(b'x');
        let layout = Layout::read(&Input::Memory(&bytes)).unwrap();
        assert!(size as u64 > MAX_SECTION_NAME && layout.sections.len() > 10);
        assert!(layout.sections.iter().all(|section| section.name.len() as u64 <= MAX_SECTION_NAME));
    }

    proptest! {
        #[test]
        fn notes_never_panic(notes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = build_id_in(&notes);
        }

        #[test]
        fn damaged_headers_never_panic(at in 0usize..4096, value: u8) {
            let mut bytes = std::fs::read("/proc/self/exe").unwrap();
            bytes[at] = value;
            if let Ok(layout) = Layout::read(&Input::Memory(&bytes)) {
                let _ = (layout.build_id(&Input::Memory(&bytes)), layout.address_of(at as u64));
            }
        }
    }
}
