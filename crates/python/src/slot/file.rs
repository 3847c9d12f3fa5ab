//! The symbols of a C library's file, and what lies at their addresses.

use object::Endianness;
use object::read::elf::{ElfFile64, ProgramHeader};
use object::{Object, ObjectSymbol, elf};
use objects::Architecture;

use super::code::Code;

/// Symbols of a file that are looked at; a debug build of a large program has a million.
const MOST_SYMBOLS: usize = 8_000_000;

/// An ELF file.
pub(super) struct LibraryFile<'a> {
    file: ElfFile64<'a, Endianness, &'a [u8]>,
    bytes: &'a [u8],
    pub(super) architecture: Architecture,
}

impl<'a> LibraryFile<'a> {
    /// `None` if it is no ELF file of an architecture that is known.
    pub(super) fn parse(bytes: &'a [u8]) -> Option<LibraryFile<'a>> {
        let file = ElfFile64::<Endianness>::parse(bytes).ok()?;
        let architecture = Architecture::from_machine(file.elf_header().e_machine.get(file.endian()))?;
        file.is_little_endian().then_some(LibraryFile { file, bytes, architecture })
    }

    /// Addresses of the symbols with these names, as far as they are defined. Those for other programs come before those for
    /// debuggers.
    pub(super) fn addresses<const N: usize>(&self, names: &[&str; N]) -> [Option<u64>; N] {
        let mut addresses = [None; N];
        for symbol in self.file.dynamic_symbols().chain(self.file.symbols()).take(MOST_SYMBOLS) {
            let Ok(name) = symbol.name_bytes() else { continue };
            let Some(index) = names.iter().position(|wanted| wanted.as_bytes() == name) else { continue };
            if addresses[index].is_none() && symbol.is_definition() {
                addresses[index] = Some(symbol.address());
            }
        }
        addresses
    }

    /// The bytes of the file from an address on, to the end of their segment.
    fn from(&self, address: u64) -> Option<&'a [u8]> {
        let endian = self.file.endian();
        self.file.elf_program_headers().iter().find_map(|header| {
            if header.p_type(endian) != elf::PT_LOAD {
                return None;
            }
            let skip = address.checked_sub(header.p_vaddr(endian))?;
            let length = header.p_filesz(endian).checked_sub(skip).filter(|length| *length > 0)?;
            let begin = usize::try_from(header.p_offset(endian).checked_add(skip)?).ok()?;
            let rest = self.bytes.get(begin..)?;
            Some(&rest[..rest.len().min(usize::try_from(length).unwrap_or(usize::MAX))])
        })
    }

    /// The first bytes at an address, to be shown.
    pub(super) fn beginning(&self, address: u64) -> &'a [u8] {
        let bytes = self.from(address).unwrap_or_default();
        &bytes[..bytes.len().min(64)]
    }

    /// 32-bit numbers from an address on.
    pub(super) fn numbers<const N: usize>(&self, address: u64) -> Option<[u32; N]> {
        let bytes = self.from(address)?.get(..N * 4)?;
        let mut numbers = [0; N];
        for (number, bytes) in numbers.iter_mut().zip(bytes.chunks_exact(4)) {
            *number = u32::from_le_bytes(bytes.try_into().ok()?);
        }
        Some(numbers)
    }
}

impl Code for LibraryFile<'_> {
    fn at(&self, address: u64) -> &[u8] {
        let bytes = self.from(address).unwrap_or_default();
        &bytes[..bytes.len().min(16)]
    }
}
