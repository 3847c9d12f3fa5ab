//! A view of an ELF file that may hold a CPython: its symbols, its code and read-only data at their addresses, and what the
//! dynamic linker will write into its slots.
//!
//! What is loaded counts: segments and the dynamic table, as the loader reads them, before section headers, which may be
//! missing. Layouts and numbers are those of the System V ABI and its supplements for x86_64 and aarch64 (`<elf.h>`).
//! Nothing about the file is believed: ranges are checked on use, and tables have limits.

mod elf;
mod fragments;
mod identity;
mod relocations;
mod symbols;

use std::ops::Range;
use std::sync::Arc;

pub use elf::FileError;
use elf::Layout;
pub use identity::{Identity, VersionEvidence, VersionRefusal, VersionSource};
use objects::EhFrame;
use relocations::Relocations;
pub use relocations::Slot;
use symbols::Symbols;
pub use symbols::{Symbol, SymbolKind};

use crate::memory::{Memory, Unreadable};

/// An instruction set whose code can be evaluated.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Architecture {
    /// x86_64, 64-bit.
    X86_64,
    /// arm64, little-endian.
    Aarch64,
}

/// The segment that thread-local variables are made from (`PT_TLS`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TlsSegment {
    /// Its address, before relocation.
    pub address: u64,
    /// Bytes of each thread's block.
    pub size: u64,
    /// Alignment of the block, in bytes; at least 1.
    pub alignment: u64,
}

/// An ELF file. Cheap to clone.
#[derive(Clone, Debug)]
pub struct PythonFile<'a> {
    shared: Arc<Shared<'a>>,
    patch: Option<(u64, Arc<[u8]>)>,
}

#[derive(Debug)]
struct Shared<'a> {
    layout: Layout<'a>,
    symbols: Symbols<'a>,
    relocations: Relocations,
}

impl<'a> PythonFile<'a> {
    /// Reads the headers of a file; its tables are read when they are needed.
    ///
    /// # Errors
    /// One [`FileError`] for each reason why the bytes are not an executable of a supported kind.
    pub fn parse(data: &'a [u8]) -> Result<PythonFile<'a>, FileError> {
        let layout = Layout::parse(data)?;
        let symbols = Symbols::new(&layout);
        let relocations = Relocations::new();
        Ok(PythonFile { shared: Arc::new(Shared { layout, symbols, relocations }), patch: None })
    }

    /// The same file with other bytes at an address: as a process has it whose code was changed.
    pub fn patched(&self, address: u64, bytes: &[u8]) -> PythonFile<'a> {
        PythonFile { shared: Arc::clone(&self.shared), patch: Some((address, bytes.into())) }
    }

    /// The instruction set.
    pub fn architecture(&self) -> Architecture {
        self.shared.layout.architecture
    }

    /// Whether the file is loaded at the addresses that it names (`ET_EXEC`), so that plain numbers can be addresses in it.
    pub fn is_fixed(&self) -> bool {
        self.shared.layout.fixed
    }

    /// The segment of thread-local variables.
    pub fn tls(&self) -> Option<TlsSegment> {
        self.shared.layout.tls
    }

    /// Addresses of the section `.PyRuntime`, in which CPython puts `_PyRuntime` since 3.10.
    pub fn runtime_section(&self) -> Option<Range<u64>> {
        self.shared.layout.section(b".PyRuntime").map(|section| section.addresses.clone())
    }

    /// The definition of a symbol, from `.dynsym` or else from `.symtab`. An import is none.
    pub fn symbol(&self, name: &str) -> Option<Symbol<'a>> {
        self.shared.symbols.find(name.as_bytes())
    }

    /// Whether the file defines or imports a symbol.
    pub fn mentions(&self, name: &str) -> bool {
        self.shared.symbols.mentions(name.as_bytes())
    }

    /// The functions that begin at an address.
    pub fn functions_at(&self, address: u64) -> impl Iterator<Item = Symbol<'a>> {
        self.shared.symbols.at(address)
    }

    /// The symbol with an index of [`Slot::Import`].
    pub fn import_name(&self, index: u32) -> Option<&'a [u8]> {
        self.shared.symbols.dynamic(index).map(|(symbol, _)| symbol.name)
    }

    /// The addresses of a function's body, as its symbol's size says, but not beyond the next symbol or FDE, and not more
    /// than [`MAX_BODY`] bytes.
    pub fn body(&self, symbol: &Symbol<'_>) -> Option<Range<u64>> {
        let fragment = self.fragment(symbol.address)?;
        let end = match symbol.size {
            0 => fragment.end,
            size => fragment.end.min(symbol.address.saturating_add(size)),
        };
        Some(symbol.address..end)
    }

    /// The piece of code that an address belongs to: from one FDE or function symbol to the next, within an executable segment.
    pub fn fragment(&self, address: u64) -> Option<Range<u64>> {
        let layout = &self.shared.layout;
        let within = layout.loads.iter().find(|load| load.executable && load.addresses.contains(&address))?;
        let symbols = self.shared.symbols.around(address);
        let rows = fragments::around(layout, address);
        let begin = [within.addresses.start, symbols.start, rows.start].into_iter().max()?;
        let end = [within.addresses.end, symbols.end, rows.end, address.saturating_add(MAX_BODY)].into_iter().min()?;
        Some(begin..end)
    }

    /// What a word of eight bytes holds once the dynamic linker has done its work.
    pub fn slot(&self, address: u64) -> Slot {
        self.shared.relocations.slot(&self.shared.layout, &self.shared.symbols, address).unwrap_or_else(|| {
            match self.constant(address, 8) {
                Some(value) => Slot::Constant(value),
                None => Slot::Variable,
            }
        })
    }

    /// What is read, little-endian and zero-extended, from a place that nobody writes to: read-only data, or data that is
    /// read-only once relocations are done. `width` is at most 8 bytes.
    pub fn constant(&self, address: u64, width: u8) -> Option<u64> {
        let range = address..address.checked_add(u64::from(width))?;
        if !self.shared.layout.is_constant(&range) || self.shared.relocations.touches(&self.shared.layout, &range) {
            return None;
        }
        self.number(address, width)
    }

    /// What the file has at an address, little-endian and zero-extended. `width` is at most 8 bytes.
    pub fn number(&self, address: u64, width: u8) -> Option<u64> {
        let mut bytes = [0; 8];
        self.read(address, bytes.get_mut(..usize::from(width))?).ok()?;
        Some(u64::from_le_bytes(bytes))
    }

    /// Whether `size` bytes at an address are a variable's: writable also when relocations are done.
    pub fn is_variable(&self, address: u64, size: u64) -> bool {
        address.checked_add(size).is_some_and(|end| self.shared.layout.is_variable(&(address..end)))
    }

    /// Whether an address is in code.
    pub fn is_code(&self, address: u64) -> bool {
        self.shared.layout.loads.iter().any(|load| load.executable && load.addresses.contains(&address))
    }

    /// The bytes of code from an address on to the end of its segment, without what [`PythonFile::patched`] changes.
    pub(crate) fn code(&self, address: u64) -> &'a [u8] {
        self.shared.layout.code(address)
    }

    /// Where in the file the byte of code at an address is.
    pub(crate) fn code_offset(&self, address: u64) -> Option<u64> {
        self.shared.layout.code_offset(address)
    }

    /// The address of the byte of code at an offset in the file.
    pub(crate) fn code_address(&self, offset: u64) -> Option<u64> {
        self.shared.layout.code_address(offset)
    }

    /// Bytes by their place in the file.
    pub(crate) fn file_bytes(&self, offsets: Range<u64>) -> Option<&'a [u8]> {
        self.shared.layout.file_bytes(offsets)
    }

    /// The call frame information.
    pub(crate) fn eh_frame(&self) -> Option<EhFrame<'a>> {
        self.shared.layout.eh_frame()
    }

    /// All function symbols that the file defines, by address.
    pub(crate) fn functions(&self) -> impl Iterator<Item = Symbol<'a>> {
        self.shared.symbols.functions()
    }

    /// The address that a word of eight bytes holds at first, also a variable's.
    pub(crate) fn initial_pointer(&self, address: u64) -> Option<u64> {
        let Shared { layout, symbols, relocations } = &*self.shared;
        let relocated = relocations.initial(layout, symbols, address);
        relocated.or_else(|| if self.is_fixed() { self.number(address, 8) } else { None })
    }

    /// Up to 16 bytes of code at an address, and how many.
    pub fn fetch(&self, address: u64) -> ([u8; 16], usize) {
        let mut bytes = [0; 16];
        let available = self.shared.layout.code(address);
        let length = available.len().min(bytes.len());
        bytes[..length].copy_from_slice(&available[..length]);
        self.apply(address, &mut bytes[..length]);
        (bytes, length)
    }

    /// The zero-terminated text, of less than `limit` bytes, at an address in read-only data.
    pub fn text(&self, address: u64, limit: usize) -> Option<&'a str> {
        let bytes = self.shared.layout.constants(address);
        let bytes = &bytes[..bytes.len().min(limit)];
        let end = bytes.iter().position(|&byte| byte == 0)?;
        std::str::from_utf8(&bytes[..end]).ok()
    }

    fn apply(&self, address: u64, bytes: &mut [u8]) {
        let Some((at, patch)) = &self.patch else { return };
        for (index, byte) in bytes.iter_mut().enumerate() {
            let within = address.wrapping_add(index as u64).wrapping_sub(*at);
            if let Some(&other) = usize::try_from(within).ok().and_then(|within| patch.get(within)) {
                *byte = other;
            }
        }
    }
}

/// Bytes of code of one function that are looked at.
pub const MAX_BODY: u64 = 1 << 20;

impl Memory for PythonFile<'_> {
    /// The file's contents at the addresses where they are loaded; what has no bytes in the file (`.bss`) cannot be read.
    fn read(&self, address: u64, into: &mut [u8]) -> Result<(), Unreadable> {
        let unreadable = Unreadable { address, length: into.len() };
        let bytes = self.shared.layout.bytes(address).get(..into.len()).ok_or(unreadable)?;
        into.copy_from_slice(bytes);
        self.apply(address, into);
        Ok(())
    }
}
