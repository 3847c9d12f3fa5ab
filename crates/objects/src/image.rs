//! An executable file: its ELF header, program headers and section headers.
//!
//! Layouts and numbers are those of the System V ABI, chapters 4 and 5 (`<elf.h>`). Program headers are needed;
//! section headers are a convenience, and files whose section headers are missing or nonsense are served without.

use std::fs::File;
use std::ops::Range;

use crate::architecture::Architecture;
use crate::error::ImageError;
use crate::limits::{MAX_NOTE_SECTIONS, MAX_PROGRAM_HEADERS};
use crate::segments::{self, Segment};

const PT_LOAD: u32 = 1;
const PT_NOTE: u32 = 4;
const PT_GNU_EH_FRAME: u32 = 0x6474_e550;
const SHT_NOTE: u32 = 7;
const SHT_NOBITS: u32 = 8;
const SHF_COMPRESSED: u64 = 0x800;
const FILE_HEADER: usize = 64;
const PROGRAM_HEADER: usize = 56;
const SECTION_HEADER: usize = 64;
/// `e_shnum` and `e_shstrndx` that do not fit are in the first section header.
const SHN_XINDEX: u16 = 0xffff;

/// An executable or shared library of a supported kind, with its headers decoded.
///
/// Through [`Image::open`] the bytes are a mapping of the file. If its owner truncates the file meanwhile, reading what
/// is gone raises SIGBUS; a program that opens files of others must handle that signal.
#[derive(Debug)]
pub struct Image {
    data: Data,
    architecture: Architecture,
    segments: Vec<Segment>,
    notes: Vec<(Range<usize>, u64)>,
    eh_frame_hdr: Option<Segment>,
}

#[derive(Debug)]
enum Data {
    Mapped(memmap2::Mmap),
    Owned(Vec<u8>),
}

/// A section whose bytes are in the file.
pub(crate) struct Section<'a> {
    pub(crate) name: &'a [u8],
    pub(crate) address: u64,
    pub(crate) file_offset: u64,
    pub(crate) bytes: &'a [u8],
    /// `sh_type`.
    pub(crate) kind: u32,
}

impl Image {
    /// Maps a regular file and reads its headers.
    ///
    /// # Errors
    /// One [`ImageError`] for each reason why the file is not a supported executable.
    pub fn open(file: &File) -> Result<Image, ImageError> {
        let metadata = file.metadata()?;
        if !metadata.is_file() {
            return Err(ImageError::NotAFile);
        }
        if metadata.len() == 0 {
            return Err(ImageError::NotElf);
        }
        // SAFETY: the mapping is private and read-only, and bytes are read once and checked. What another process
        // writes to the file meanwhile can change what is decoded, which is hostile anyway; a truncation raises SIGBUS,
        // as the type's documentation says.
        let map = unsafe { memmap2::MmapOptions::new().map_copy_read_only(file)? };
        Image::from_data(Data::Mapped(map))
    }

    /// Takes an executable that was read from somewhere else, such as the vDSO from a process's memory.
    ///
    /// # Errors
    /// One [`ImageError`] for each reason why the bytes are not a supported executable.
    pub fn from_bytes(bytes: Vec<u8>) -> Result<Image, ImageError> {
        Image::from_data(Data::Owned(bytes))
    }

    fn from_data(data: Data) -> Result<Image, ImageError> {
        let bytes = data.bytes();
        let architecture = check_file_header(bytes)?;
        let headers = program_headers(bytes)?;
        let mut image = Image { architecture, segments: Vec::new(), notes: Vec::new(), eh_frame_hdr: None, data };
        for header in headers {
            match header.kind {
                PT_LOAD => image.segments.push(header.segment),
                PT_GNU_EH_FRAME => image.eh_frame_hdr = Some(header.segment),
                PT_NOTE => {
                    let range = clip(image.data.bytes().len(), header.segment.file_offset, header.segment.file_size);
                    image.notes.push((range, header.alignment));
                }
                _ => {}
            }
        }
        Ok(image)
    }

    /// The instruction set.
    pub fn architecture(&self) -> Architecture {
        self.architecture
    }

    /// All bytes of the file.
    pub fn bytes(&self) -> &[u8] {
        self.data.bytes()
    }

    /// Size of the file in bytes.
    pub fn size(&self) -> u64 {
        self.bytes().len() as u64
    }

    /// The loadable segments, in the file's order. Nothing about them is checked: they may overlap, and reach beyond the
    /// end of the file.
    pub fn segments(&self) -> &[Segment] {
        &self.segments
    }

    /// The GNU build-id, of 1 to 64 bytes: from the note segments, or else from note sections.
    pub fn build_id(&self) -> Option<Vec<u8>> {
        let in_segments = || {
            let mut notes = self.notes.iter();
            notes.find_map(|(range, alignment)| crate::identity::build_id(self.bytes().get(range.clone())?, *alignment))
        };
        let in_sections = || {
            let mut notes = self.sections().filter(|s| s.kind == SHT_NOTE).take(MAX_NOTE_SECTIONS);
            notes.find_map(|s| crate::identity::build_id(s.bytes, 4))
        };
        in_segments().or_else(in_sections).map(<[u8]>::to_vec)
    }

    /// The address, before relocation, of a byte of the file. Where segments share the byte, an executable one wins.
    pub fn file_offset_to_vaddr(&self, file_offset: u64) -> Option<u64> {
        segments::file_offset_to_vaddr(&self.segments, file_offset)
    }

    /// The place in the file of the byte at an address; `None` where memory has no byte of the file (`.bss`).
    pub fn vaddr_to_file_offset(&self, vaddr: u64) -> Option<u64> {
        segments::vaddr_to_file_offset(&self.segments, vaddr)
    }

    /// What is added to the file's addresses in a process that has mapped `mapping_file_offset` of it, executable, at
    /// `mapping_start`. Wraps, so that adding it to an address always gives the address in the process.
    ///
    /// The offset of a mapping is rounded down to a page, and may lie before the segment that it is for:
    ///
    /// ```text
    ///   mapping   0x7f0000002000 ├──── offset 0x1000 ─────────┤
    ///   segment                      ├─ p_offset 0x1240, p_vaddr 0x2240 ─┤
    ///   bias      = 0x7f0000002000 - (0x1000 - 0x1240 + 0x2240) = 0x7f0000000000
    /// ```
    /// `None` if no segment can be mapped there.
    pub fn load_bias(&self, mapping_start: u64, mapping_file_offset: u64) -> Option<u64> {
        segments::load_bias(&self.segments, mapping_start, mapping_file_offset)
    }

    /// The place in the file where a process begins in it (`e_entry`): `_start` of a program, of the dynamic linker.
    pub(crate) fn entry(&self) -> Option<u64> {
        let vaddr = u64_at(self.bytes(), 24);
        (vaddr != 0).then(|| self.vaddr_to_file_offset(vaddr)).flatten()
    }

    /// The segment that points to `.eh_frame` and survives the loss of the section headers.
    pub(crate) fn eh_frame_hdr(&self) -> Option<Segment> {
        self.eh_frame_hdr
    }

    /// The bytes of the file from `file_offset` on, at most `size`.
    pub(crate) fn file_bytes(&self, file_offset: u64, size: u64) -> &[u8] {
        let bytes = self.bytes();
        bytes.get(clip(bytes.len(), file_offset, size)).unwrap_or_default()
    }

    /// Gives back the memory in which parts of a mapped file lie because they were read. What is read again comes from
    /// the page cache.
    pub(crate) fn release(&self) {
        if let Data::Mapped(map) = &self.data {
            // SAFETY: nothing was ever written to the mapping, so a page that is dropped and read again has the same
            // right to be there as before: it is the file's.
            let released = unsafe { map.unchecked_advise(memmap2::UncheckedAdvice::DontNeed) };
            // of no consequence but memory
            let _ = released;
        }
    }

    /// The sections that have uncompressed bytes within the file; none if the section headers are nonsense.
    pub(crate) fn sections(&self) -> impl Iterator<Item = Section<'_>> {
        let bytes = self.bytes();
        let table = section_headers(bytes).unwrap_or_default();
        let names = section_names(bytes, table).unwrap_or_default();
        table.chunks_exact(SECTION_HEADER).filter_map(move |header| section(bytes, names, header))
    }
}

impl Data {
    fn bytes(&self) -> &[u8] {
        match self {
            Data::Mapped(map) => map,
            Data::Owned(bytes) => bytes,
        }
    }
}

struct ProgramHeader {
    kind: u32,
    alignment: u64,
    segment: Segment,
}

fn check_file_header(bytes: &[u8]) -> Result<Architecture, ImageError> {
    if !bytes.starts_with(b"\x7fELF") {
        return Err(ImageError::NotElf);
    }
    let header = bytes.get(..FILE_HEADER).ok_or(ImageError::Truncated("file header"))?;
    match header[4] {
        2 => {}
        1 => return Err(ImageError::Bits32),
        _ => return Err(ImageError::NotElf),
    }
    match header[5] {
        1 => {}
        2 => return Err(ImageError::BigEndian),
        _ => return Err(ImageError::NotElf),
    }
    let machine = u16_at(header, 18);
    Architecture::from_machine(machine).ok_or(ImageError::Machine(machine))
}

fn program_headers(bytes: &[u8]) -> Result<Vec<ProgramHeader>, ImageError> {
    let (size, count) = (u16_at(bytes, 54), u16_at(bytes, 56));
    if count > 0 && usize::from(size) != PROGRAM_HEADER {
        return Err(ImageError::ProgramHeaderSize(size));
    }
    if usize::from(count) > MAX_PROGRAM_HEADERS {
        return Err(ImageError::TooManyProgramHeaders(count));
    }
    let range = clip(bytes.len(), u64_at(bytes, 32), u64::from(count) * PROGRAM_HEADER as u64);
    if range.len() != usize::from(count) * PROGRAM_HEADER {
        return Err(ImageError::Truncated("program headers"));
    }
    let headers = bytes[range].chunks_exact(PROGRAM_HEADER).map(|h| ProgramHeader {
        kind: u32_at(h, 0),
        alignment: u64_at(h, 48),
        segment: Segment {
            file_offset: u64_at(h, 8),
            vaddr: u64_at(h, 16),
            file_size: u64_at(h, 32),
            mem_size: u64_at(h, 40),
            flags: u32_at(h, 4),
        },
    });
    Ok(headers.collect())
}

/// The bytes of the section headers, if all of them are within the file.
fn section_headers(bytes: &[u8]) -> Option<&[u8]> {
    let begin = usize::try_from(u64_at(bytes, 40)).ok().filter(|&begin| begin != 0)?;
    if usize::from(u16_at(bytes, 58)) != SECTION_HEADER {
        return None;
    }
    let first = bytes.get(begin..)?.get(..SECTION_HEADER)?;
    let count = match u16_at(bytes, 60) {
        0 => usize::try_from(u64_at(first, 32)).ok()?,
        count => usize::from(count),
    };
    bytes.get(begin..)?.get(..count.checked_mul(SECTION_HEADER)?)
}

/// The string table that section names are in.
fn section_names<'a>(bytes: &'a [u8], table: &[u8]) -> Option<&'a [u8]> {
    let index = match u16_at(bytes, 62) {
        SHN_XINDEX => u32_at(table.get(..SECTION_HEADER)?, 40) as usize,
        index => usize::from(index),
    };
    let header = table.chunks_exact(SECTION_HEADER).nth(index)?;
    bytes.get(clip(bytes.len(), u64_at(header, 24), u64_at(header, 32)))
}

fn section<'a>(bytes: &'a [u8], names: &'a [u8], header: &[u8]) -> Option<Section<'a>> {
    let (kind, flags) = (u32_at(header, 4), u64_at(header, 8));
    let (address, file_offset, size) = (u64_at(header, 16), u64_at(header, 24), u64_at(header, 32));
    let range = clip(bytes.len(), file_offset, size);
    if kind == SHT_NOBITS || flags & SHF_COMPRESSED != 0 || range.len() as u64 != size {
        return None;
    }
    let name = names.get(u32_at(header, 0) as usize..)?;
    // the names that matter are short; an endless one is not scanned to its end
    let name = &name[..name.iter().take(64).position(|&b| b == 0)?];
    Some(Section { name, address, file_offset, bytes: bytes.get(range)?, kind })
}

/// The part of `offset .. offset + size` that is within a file of `length` bytes.
fn clip(length: usize, offset: u64, size: u64) -> Range<usize> {
    let limit = |at: u64| usize::try_from(at).unwrap_or(usize::MAX).min(length);
    limit(offset)..limit(offset.saturating_add(size))
}

// Fields of headers whose length was checked; a field that is not there reads as zero.

fn u16_at(bytes: &[u8], at: usize) -> u16 {
    bytes.get(at..).and_then(<[u8]>::first_chunk).map_or(0, |b| u16::from_le_bytes(*b))
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..).and_then(<[u8]>::first_chunk).map_or(0, |b| u32::from_le_bytes(*b))
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    bytes.get(at..).and_then(<[u8]>::first_chunk).map_or(0, |b| u64::from_le_bytes(*b))
}
