//! Which pieces of code a file's call frame information describes: functions, and what compilers split off from them.

use crate::architecture::Architecture;
use crate::error::BuildError;
use crate::frames::cursor::Cursor;
use crate::frames::entries::{Cies, Entries, Function as Fde, Id};
use crate::frames::instructions::Machine;
use crate::frames::section::{FrameSection, Kind};
use crate::limits::{MAX_FDES, MAX_FRAME_BYTES};

/// The bytes of `.eh_frame`.
#[derive(Clone, Copy, Debug)]
pub struct EhFrame<'a> {
    /// The instruction set that it is for.
    pub architecture: Architecture,
    /// Its bytes.
    pub bytes: &'a [u8],
    /// Address of the first one, before relocation.
    pub address: u64,
    /// Whether the bytes end where the section ends. If not, a terminator ends it.
    pub exact: bool,
}

impl EhFrame<'_> {
    /// Where `.eh_frame` is, as the `.eh_frame_hdr` at an address says (Linux Standard Base, "The .eh_frame_hdr section").
    pub fn pointed_to(header: &[u8], address: u64) -> Option<u64> {
        let mut cursor = Cursor::new(header);
        let (version, encoding) = (cursor.u8()?, cursor.u8()?);
        // encodings of the search table
        cursor.bytes(2)?;
        (version == 1).then_some(())?;
        cursor.encoded_pointer(encoding, address, Some(address))
    }
}

/// A piece of code that has an entry (FDE) of its own.
#[derive(Clone, Copy, Debug)]
pub struct Function {
    /// Address of the first byte, before relocation.
    pub address: u64,
    /// Bytes of code.
    pub size: u64,
    cie: u32,
    rest: (usize, usize),
}

/// The pieces of code of a file, in the order of their addresses; of several that begin at one address, one.
#[derive(Debug)]
pub struct Functions<'a> {
    section: FrameSection<'a>,
    cies: Cies<'a>,
    all: Vec<Function>,
}

impl<'a> Functions<'a> {
    /// Reads the entries. What cannot be decoded is left out.
    ///
    /// # Errors
    /// [`BuildError::FramesTooLarge`], [`BuildError::TooManyCies`], [`BuildError::TooManyFdes`].
    pub fn read(frames: EhFrame<'a>) -> Result<Functions<'a>, BuildError> {
        let EhFrame { architecture, bytes, address, exact } = frames;
        if exact && bytes.len() > MAX_FRAME_BYTES {
            return Err(BuildError::FramesTooLarge { bytes: bytes.len() });
        }
        let bytes = &bytes[..bytes.len().min(MAX_FRAME_BYTES)];
        let section = FrameSection { architecture, bytes, address, kind: Kind::EhFrame, exact };
        let mut functions = Functions { section, cies: Cies::read(section)?, all: Vec::new() };
        for entry in Entries::new(section) {
            let Id::Fde(Some(cie)) = entry.id else { continue };
            let Some(cie) = functions.cies.find(cie) else { continue };
            let parse = |common| Fde::parse(section, common, entry.body);
            let Some(fde) = functions.cies.get(cie).and_then(parse) else { continue };
            if functions.all.len() == MAX_FDES {
                return Err(BuildError::TooManyFdes);
            }
            let rest = (fde.rest.position(), fde.rest.end());
            functions.all.push(Function { address: fde.address, size: fde.size, cie, rest });
        }
        functions.all.sort_by_key(|function| function.address);
        functions.all.dedup_by_key(|function| function.address);
        Ok(functions)
    }

    /// All of them, by address.
    pub fn all(&self) -> &[Function] {
        &self.all
    }

    /// Whether a piece begins as a function does that was just called: with nothing pushed and no register saved. `None`
    /// if its entry is bad.
    pub fn begins_as_called(&self, function: &Function) -> Option<bool> {
        let cie = self.cies.get(function.cie)?;
        let rest = Cursor::within(self.section.bytes, function.rest.0, function.rest.1)?;
        let mut first = None;
        let instructions = Fde::instructions(cie, rest)?;
        Machine::new(self.section).run(cie, function.address, instructions, |_, state| {
            first.get_or_insert(Some(*state) == cie.initial);
        })?;
        first
    }
}
