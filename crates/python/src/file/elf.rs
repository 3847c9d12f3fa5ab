//! Headers of an ELF file: segments, the dynamic table, sections by name.

use std::ops::Range;

use object::LittleEndian as LE;
use object::elf;
use object::elf::{Dyn64, FileHeader64, ProgramHeader64, SectionHeader64};
use object::pod;
use objects::EhFrame;

use super::{Architecture, TlsSegment};

/// Program headers that are read; files have about ten.
const MAX_PROGRAM_HEADERS: usize = 256;
/// Section headers that are read. Programs built with a section a function have them merged by the linker.
const MAX_SECTIONS: usize = 4096;
/// Entries of the dynamic table that are read; files have about thirty.
const MAX_DYNAMIC: usize = 1024;

/// Why a file is not one that can be looked at.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum FileError {
    /// It does not begin like an ELF file.
    #[error("not an ELF file")]
    NotElf,
    /// A 32-bit file.
    #[error("a 32-bit file")]
    Bits32,
    /// A big-endian file.
    #[error("a big-endian file")]
    BigEndian,
    /// For another instruction set.
    #[error("code for machine {0} (e_machine); x86_64 and aarch64 are understood")]
    Machine(u16),
    /// Neither a program nor a shared library.
    #[error("ELF type {0}; programs and shared libraries are understood")]
    Kind(u16),
    /// Headers that are not in the file or are nonsense.
    #[error("bad program headers")]
    ProgramHeaders,
}

/// A part of the file that is loaded.
#[derive(Debug)]
pub(super) struct Load {
    pub addresses: Range<u64>,
    file: Range<usize>,
    /// End, in the file, of the loads that follow one another in memory as in the file: a table may go on in the next, as
    /// patchelf writes them.
    run_end: usize,
    pub executable: bool,
    writable: bool,
}

/// A section that its header names.
#[derive(Debug)]
pub(super) struct Section<'a> {
    pub name: &'a [u8],
    pub addresses: Range<u64>,
    pub kind: u32,
    pub link: usize,
    pub bytes: &'a [u8],
}

/// Entries of the dynamic table, as far as they are needed. Addresses are before relocation; zero is absent.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Dynamic {
    pub symbols: u64,
    pub strings: u64,
    pub strings_size: u64,
    pub hash: u64,
    pub gnu_hash: u64,
    pub rela: u64,
    pub rela_size: u64,
    pub plt_rela: u64,
    pub plt_rela_size: u64,
    pub relr: u64,
    pub relr_size: u64,
}

/// What the headers say.
#[derive(Debug)]
pub(super) struct Layout<'a> {
    data: &'a [u8],
    pub architecture: Architecture,
    pub fixed: bool,
    pub loads: Vec<Load>,
    relro: Range<u64>,
    pub tls: Option<TlsSegment>,
    pub eh_frame_hdr: u64,
    pub dynamic: Option<Dynamic>,
    pub sections: Vec<Section<'a>>,
}

impl<'a> Layout<'a> {
    pub(super) fn parse(data: &'a [u8]) -> Result<Layout<'a>, FileError> {
        let header = file_header(data)?;
        let architecture = match header.e_machine.get(LE) {
            elf::EM_X86_64 => Architecture::X86_64,
            elf::EM_AARCH64 => Architecture::Aarch64,
            machine => return Err(FileError::Machine(machine)),
        };
        let fixed = match header.e_type.get(LE) {
            elf::ET_EXEC => true,
            elf::ET_DYN => false,
            kind => return Err(FileError::Kind(kind)),
        };
        let mut layout = Layout {
            data,
            architecture,
            fixed,
            loads: Vec::new(),
            relro: 0..0,
            tls: None,
            eh_frame_hdr: 0,
            dynamic: None,
            sections: sections(data, header).unwrap_or_default(),
        };
        let mut dynamic = None;
        for segment in program_headers(data, header).ok_or(FileError::ProgramHeaders)? {
            let (begin, size) = (segment.p_vaddr.get(LE), segment.p_memsz.get(LE));
            match segment.p_type.get(LE) {
                elf::PT_LOAD => layout.loads.extend(load(data, segment)),
                elf::PT_GNU_RELRO => layout.relro = begin..begin.saturating_add(size),
                elf::PT_TLS => {
                    let alignment = segment.p_align.get(LE).max(1);
                    layout.tls = Some(TlsSegment { address: begin, size, alignment });
                }
                elf::PT_GNU_EH_FRAME => layout.eh_frame_hdr = begin,
                elf::PT_DYNAMIC => dynamic = Some(begin),
                _ => {}
            }
        }
        join_runs(&mut layout.loads);
        layout.dynamic = dynamic.map(|at| read_dynamic(layout.bytes(at)));
        Ok(layout)
    }

    /// The file's bytes from an address to the end of its segment and of those that follow without a gap; empty where there
    /// are none.
    pub(super) fn bytes(&self, address: u64) -> &'a [u8] {
        let run = |load: &Load| load.bytes_to(self.data, address, load.run_end);
        self.loads.iter().map(run).find(|bytes| !bytes.is_empty()).unwrap_or_default()
    }

    /// `size` bytes at an address, or as many of them as there are.
    pub(super) fn table(&self, address: u64, size: u64) -> &'a [u8] {
        let bytes = if address == 0 { &[] } else { self.bytes(address) };
        &bytes[..bytes.len().min(usize::try_from(size).unwrap_or(usize::MAX))]
    }

    /// The bytes of code from an address on.
    pub(super) fn code(&self, address: u64) -> &'a [u8] {
        let mut loads = self.loads.iter().filter(|load| load.executable);
        loads.find(|load| load.addresses.contains(&address)).map_or(&[], |load| load.bytes(self.data, address))
    }

    /// Where in the file the byte of code at an address is.
    pub(super) fn code_offset(&self, address: u64) -> Option<u64> {
        let mut loads = self.loads.iter().filter(|load| load.executable);
        let load = loads.find(|load| load.addresses.contains(&address))?;
        let within = address - load.addresses.start;
        (within < load.file.len() as u64).then(|| load.file.start as u64 + within)
    }

    /// The address of the byte of code at an offset in the file.
    pub(super) fn code_address(&self, offset: u64) -> Option<u64> {
        let mut loads = self.loads.iter().filter(|load| load.executable);
        let load = loads.find(|load| load.file.contains(&(offset as usize)))?;
        Some(load.addresses.start + (offset - load.file.start as u64))
    }

    /// Bytes by their place in the file.
    pub(super) fn file_bytes(&self, offsets: Range<u64>) -> Option<&'a [u8]> {
        self.data.get(usize::try_from(offsets.start).ok()?..usize::try_from(offsets.end).ok()?)
    }

    /// The `.eh_frame` that is loaded: the one that `.eh_frame_hdr` points to, or else by its name.
    pub(super) fn eh_frame(&self) -> Option<EhFrame<'a>> {
        let architecture = match self.architecture {
            Architecture::X86_64 => objects::Architecture::X86_64,
            Architecture::Aarch64 => objects::Architecture::Aarch64,
        };
        let pointed_to = EhFrame::pointed_to(self.table(self.eh_frame_hdr, u64::MAX), self.eh_frame_hdr);
        let is_loaded = |section: &&Section<'a>| {
            let loaded = self.bytes(section.addresses.start);
            section.name == b".eh_frame" && loaded.as_ptr() == section.bytes.as_ptr() && !section.bytes.is_empty()
        };
        let mut sections = self.sections.iter().filter(is_loaded);
        let named = sections.find(|section| pointed_to.is_none_or(|address| address == section.addresses.start));
        match (named, pointed_to) {
            (Some(Section { bytes, addresses, .. }), _) => {
                Some(EhFrame { architecture, bytes, address: addresses.start, exact: true })
            }
            (None, Some(address)) => Some(EhFrame { architecture, bytes: self.bytes(address), address, exact: false }),
            (None, None) => None,
        }
    }

    /// The bytes from an address on that nobody writes to.
    pub(super) fn constants(&self, address: u64) -> &'a [u8] {
        let mut loads = self.loads.iter().filter(|load| !load.writable);
        loads.find(|load| load.addresses.contains(&address)).map_or(&[], |load| load.bytes(self.data, address))
    }

    /// Whether nobody writes there once relocations are done. The table of addresses (`.got`) counts, even in a file whose
    /// linker did not protect it.
    pub(super) fn is_constant(&self, range: &Range<u64>) -> bool {
        let is_got = || self.section(b".got").is_some_and(|section| covers(&section.addresses, range));
        covers(&self.relro, range)
            || self.loads.iter().any(|load| !load.writable && covers(&load.addresses, range))
            || is_got()
    }

    pub(super) fn is_variable(&self, range: &Range<u64>) -> bool {
        let after_relro = range.start >= self.relro.end || range.end <= self.relro.start;
        after_relro && self.loads.iter().any(|load| load.writable && covers(&load.addresses, range))
    }

    pub(super) fn section(&self, name: &[u8]) -> Option<&Section<'a>> {
        self.sections.iter().find(|section| section.name == name)
    }

    pub(super) fn section_of_kind(&self, kind: u32) -> Option<&Section<'a>> {
        self.sections.iter().find(|section| section.kind == kind)
    }
}

impl Load {
    fn bytes<'a>(&self, data: &'a [u8], address: u64) -> &'a [u8] {
        self.bytes_to(data, address, self.file.end)
    }

    fn bytes_to<'a>(&self, data: &'a [u8], address: u64, end: usize) -> &'a [u8] {
        let within = address.checked_sub(self.addresses.start).and_then(|within| usize::try_from(within).ok());
        let within = within.filter(|&within| within < self.file.len());
        within.and_then(|within| data.get(self.file.start..end)?.get(within..)).unwrap_or_default()
    }
}

fn covers(outer: &Range<u64>, inner: &Range<u64>) -> bool {
    outer.start <= inner.start && inner.end <= outer.end && inner.start <= inner.end
}

fn file_header(data: &[u8]) -> Result<&FileHeader64<LE>, FileError> {
    let (header, _) = pod::from_bytes::<FileHeader64<LE>>(data).map_err(|()| FileError::NotElf)?;
    if header.e_ident.magic != elf::ELFMAG {
        return Err(FileError::NotElf);
    }
    match (header.e_ident.class, header.e_ident.data) {
        (elf::ELFCLASS64, elf::ELFDATA2LSB) => Ok(header),
        (elf::ELFCLASS32, _) => Err(FileError::Bits32),
        (elf::ELFCLASS64, elf::ELFDATA2MSB) => Err(FileError::BigEndian),
        _ => Err(FileError::NotElf),
    }
}

fn program_headers<'a>(data: &'a [u8], header: &FileHeader64<LE>) -> Option<&'a [ProgramHeader64<LE>]> {
    let count = usize::from(header.e_phnum.get(LE));
    let fits = usize::from(header.e_phentsize.get(LE)) == size_of::<ProgramHeader64<LE>>();
    if !fits || count > MAX_PROGRAM_HEADERS {
        return None;
    }
    let bytes = data.get(usize::try_from(header.e_phoff.get(LE)).ok()?..)?;
    pod::slice_from_bytes(bytes, count).ok().map(|(headers, _)| headers)
}

fn load(data: &[u8], segment: &ProgramHeader64<LE>) -> Option<Load> {
    let begin = segment.p_vaddr.get(LE);
    let end = begin.checked_add(segment.p_memsz.get(LE))?;
    let limit = |at: u64| usize::try_from(at).unwrap_or(usize::MAX).min(data.len());
    let offset = segment.p_offset.get(LE);
    let size = segment.p_filesz.get(LE).min(segment.p_memsz.get(LE));
    let flags = segment.p_flags.get(LE);
    Some(Load {
        addresses: begin..end,
        file: limit(offset)..limit(offset.saturating_add(size)),
        run_end: limit(offset.saturating_add(size)),
        executable: flags & elf::PF_X != 0,
        writable: flags & elf::PF_W != 0,
    })
}

fn join_runs(loads: &mut [Load]) {
    // the loader maps them in the order of their addresses
    loads.sort_by_key(|load| load.addresses.start);
    for index in (1..loads.len()).rev() {
        let (next, run_end) = (&loads[index], loads[index].run_end);
        let load = &loads[index - 1];
        let in_memory = load.addresses.start.checked_add(load.file.len() as u64) == Some(next.addresses.start);
        if in_memory && load.file.end == next.file.start {
            loads[index - 1].run_end = run_end;
        }
    }
}

fn read_dynamic(bytes: &[u8]) -> Dynamic {
    let mut dynamic = Dynamic::default();
    for entry in bytes.chunks_exact(size_of::<Dyn64<LE>>()).take(MAX_DYNAMIC) {
        let Ok((entry, _)) = pod::from_bytes::<Dyn64<LE>>(entry) else { break };
        let into = match entry.d_tag.get(LE) {
            elf::DT_NULL => break,
            elf::DT_SYMTAB => &mut dynamic.symbols,
            elf::DT_STRTAB => &mut dynamic.strings,
            elf::DT_STRSZ => &mut dynamic.strings_size,
            elf::DT_HASH => &mut dynamic.hash,
            elf::DT_GNU_HASH => &mut dynamic.gnu_hash,
            elf::DT_RELA => &mut dynamic.rela,
            elf::DT_RELASZ => &mut dynamic.rela_size,
            elf::DT_JMPREL => &mut dynamic.plt_rela,
            elf::DT_PLTRELSZ => &mut dynamic.plt_rela_size,
            elf::DT_RELR => &mut dynamic.relr,
            elf::DT_RELRSZ => &mut dynamic.relr_size,
            _ => continue,
        };
        *into = entry.d_val.get(LE);
    }
    dynamic
}

fn sections<'a>(data: &'a [u8], header: &FileHeader64<LE>) -> Option<Vec<Section<'a>>> {
    let fits = usize::from(header.e_shentsize.get(LE)) == size_of::<SectionHeader64<LE>>();
    let count = usize::from(header.e_shnum.get(LE));
    if !fits || count > MAX_SECTIONS {
        return None;
    }
    let bytes = data.get(usize::try_from(header.e_shoff.get(LE)).ok()?..)?;
    let (headers, _) = pod::slice_from_bytes::<SectionHeader64<LE>>(bytes, count).ok()?;
    let contents = |header: &SectionHeader64<LE>| {
        let (offset, size) = (usize::try_from(header.sh_offset.get(LE)).ok()?, header.sh_size.get(LE));
        data.get(offset..)?.get(..usize::try_from(size).ok()?)
    };
    let names = contents(headers.get(usize::from(header.e_shstrndx.get(LE)))?)?;
    let section = |header: &SectionHeader64<LE>| {
        let (begin, kind) = (header.sh_addr.get(LE), header.sh_type.get(LE));
        Some(Section {
            name: name(names, header.sh_name.get(LE) as usize)?,
            addresses: begin..begin.checked_add(header.sh_size.get(LE))?,
            kind,
            link: header.sh_link.get(LE) as usize,
            bytes: if kind == elf::SHT_NOBITS { &[] } else { contents(header)? },
        })
    };
    // a section that is nonsense keeps its place, so that the numbers of the others stay
    let nonsense = || Section { name: &[], addresses: 0..0, kind: elf::SHT_NULL, link: 0, bytes: &[] };
    Some(headers.iter().map(|header| section(header).unwrap_or_else(nonsense)).collect())
}

/// The zero-terminated name at an index of a string table. Names are not longer than 4096 bytes.
pub(super) fn name(strings: &[u8], at: usize) -> Option<&[u8]> {
    let rest = strings.get(at..)?;
    let end = rest.iter().take(4096).position(|&byte| byte == 0)?;
    rest.get(..end)
}
