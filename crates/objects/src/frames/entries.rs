//! The entries of call frame information: common ones (CIE) and one per function (FDE).

use crate::error::BuildError;
use crate::frames::cursor::Cursor;
use crate::frames::instructions::{self, State};
use crate::frames::section::{FrameSection, Kind};
use crate::limits::MAX_CIES;

/// An entry whose place is known and whose contents are not decoded.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry<'a> {
    /// Offset of the entry in the section.
    pub(crate) offset: usize,
    pub(crate) id: Id,
    /// What follows the id.
    pub(crate) body: Cursor<'a>,
}

/// What an entry is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Id {
    Cie,
    /// An FDE whose CIE is at this offset in the section; `None` if that is not within it.
    Fde(Option<usize>),
    /// Too short for an id.
    None,
}

/// Steps from entry to entry by their lengths alone. Each step goes forward, so it ends on any bytes.
pub(crate) struct Entries<'a> {
    section: FrameSection<'a>,
    at: usize,
    /// Set if the last length led beyond the end of the section: what follows is lost.
    pub(crate) broken: bool,
}

impl<'a> Entries<'a> {
    pub(crate) fn new(section: FrameSection<'a>) -> Entries<'a> {
        Entries { section, at: 0, broken: false }
    }

    fn next_entry(&mut self) -> Option<Entry<'a>> {
        loop {
            let offset = self.at;
            let mut cursor = Cursor::within(self.section.bytes, offset, self.section.bytes.len())?;
            let (length, wide) = match cursor.u32()? {
                0xffff_ffff => (cursor.u64()?, true),
                length => (u64::from(length), false),
            };
            self.at = cursor.position();
            if length == 0 {
                if self.section.exact {
                    continue;
                }
                return None;
            }
            let begin = cursor.position();
            let end = usize::try_from(length).ok().and_then(|length| begin.checked_add(length));
            let Some(body) = end.and_then(|end| Cursor::within(self.section.bytes, begin, end)) else {
                self.broken = self.section.exact;
                self.at = self.section.bytes.len();
                return None;
            };
            self.at = body.end();
            return Some(identify(self.section, offset, body, wide));
        }
    }
}

impl<'a> Iterator for Entries<'a> {
    type Item = Entry<'a>;

    fn next(&mut self) -> Option<Entry<'a>> {
        self.next_entry()
    }
}

fn identify<'a>(section: FrameSection<'a>, offset: usize, mut body: Cursor<'a>, wide: bool) -> Entry<'a> {
    let place = body.position();
    let id = match section.kind {
        Kind::EhFrame => body.u32().map(|id| match id {
            0 => Id::Cie,
            back => Id::Fde(place.checked_sub(back as usize)),
        }),
        Kind::DebugFrame if wide => body.u64().map(|id| match id {
            u64::MAX => Id::Cie,
            at => Id::Fde(usize::try_from(at).ok()),
        }),
        Kind::DebugFrame => body.u32().map(|id| match id {
            u32::MAX => Id::Cie,
            at => Id::Fde(Some(at as usize)),
        }),
    };
    Entry { offset, id: id.unwrap_or(Id::None), body }
}

/// What the functions of one CIE have in common.
#[derive(Clone, Debug)]
pub(crate) struct Cie<'a> {
    offset: usize,
    /// Bytes per unit of `DW_CFA_advance_loc`.
    pub(crate) code_alignment: u64,
    /// Bytes per unit of factored offsets.
    pub(crate) data_alignment: i64,
    /// DWARF number of the column of the return address.
    pub(crate) return_register: u64,
    /// `DW_EH_PE_*` encoding of the addresses of its functions.
    pub(crate) encoding: u8,
    /// Whether its functions have augmentation data.
    pub(crate) augmented: bool,
    /// Whether its functions are frames of signal handlers' returns.
    pub(crate) signal: bool,
    /// What holds at the first instruction; `None` if the instructions that say so are bad.
    pub(crate) initial: Option<State<'a>>,
}

/// The CIEs of a section, in its order.
///
/// Only an entry is a CIE, and each is decoded once: FDEs that point into other bytes cannot have the same bytes decoded
/// over and over.
#[derive(Debug)]
pub(crate) struct Cies<'a>(Vec<Cie<'a>>);

impl<'a> Cies<'a> {
    pub(crate) fn read(section: FrameSection<'a>) -> Result<Cies<'a>, BuildError> {
        let mut cies = Vec::new();
        for entry in Entries::new(section).filter(|e| e.id == Id::Cie) {
            if cies.len() == MAX_CIES {
                return Err(BuildError::TooManyCies);
            }
            cies.extend(Cie::parse(section, entry));
        }
        Ok(Cies(cies))
    }

    /// Index of the CIE at an offset, for [`Cies::get`].
    pub(crate) fn find(&self, offset: usize) -> Option<u32> {
        self.0.binary_search_by_key(&offset, |cie| cie.offset).ok().and_then(|i| u32::try_from(i).ok())
    }

    pub(crate) fn get(&self, index: u32) -> Option<&Cie<'a>> {
        self.0.get(index as usize)
    }
}

impl<'a> Cie<'a> {
    fn parse(section: FrameSection<'a>, entry: Entry<'a>) -> Option<Cie<'a>> {
        let mut body = entry.body;
        let version = body.u8().filter(|v| matches!(v, 1 | 3 | 4))?;
        let augmentation = body.string()?;
        if section.kind == Kind::DebugFrame && version == 4 {
            // size of addresses, size of segment selectors
            (body.u8()? == 8 && body.u8()? == 0).then_some(())?;
        }
        let code_alignment = body.uleb()?;
        let data_alignment = body.sleb()?;
        let return_register = if version == 1 { u64::from(body.u8()?) } else { body.uleb()? };
        let mut cie = Cie {
            offset: entry.offset,
            code_alignment,
            data_alignment,
            return_register,
            encoding: 0,
            augmented: false,
            signal: false,
            initial: None,
        };
        cie.augment(augmentation, &mut body)?;
        cie.initial = instructions::initial_state(section, &cie, body);
        Some(cie)
    }

    /// Reads the augmentation that `letters` announce (Linux Standard Base, "Augmentation String Format").
    ///
    /// With `z` first, unknown letters can be skipped, as their data has a length; only the encoding of addresses must
    /// not be behind one.
    fn augment(&mut self, letters: &[u8], body: &mut Cursor<'a>) -> Option<()> {
        let Some((b'z', letters)) = letters.split_first() else {
            // GNU as writes a bare S
            self.signal = letters == b"S";
            return (letters.is_empty() || self.signal).then_some(());
        };
        self.augmented = true;
        let length = usize::try_from(body.uleb()?).ok()?;
        let begin = body.position();
        let mut data = *body;
        body.bytes(length)?;
        let mut known = true;
        for &letter in letters {
            match letter {
                b'S' => self.signal = true,
                // aarch64: return addresses are signed with key B; the stack is tagged
                b'B' | b'G' => {}
                b'R' => self.encoding = known.then(|| data.u8())??,
                b'L' if known => _ = data.u8()?,
                b'P' if known => {
                    let encoding = data.u8()?;
                    data.encoded_value(encoding)?;
                }
                _ => known = false,
            }
        }
        (data.position() - begin <= length).then_some(())
    }
}

/// The function that an FDE describes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Function<'a> {
    /// Address of the first byte, before relocation.
    pub(crate) address: u64,
    /// Bytes of code.
    pub(crate) size: u64,
    /// The rest of the FDE.
    pub(crate) rest: Cursor<'a>,
}

impl<'a> Function<'a> {
    /// The range of an FDE; `None` if it cannot be decoded or wraps around the end of the address space.
    pub(crate) fn parse(section: FrameSection<'a>, cie: &Cie<'a>, mut body: Cursor<'a>) -> Option<Function<'a>> {
        let address = body.encoded_pointer(cie.encoding, section.address, None)?;
        let size = body.encoded_value(cie.encoding)?;
        address.checked_add(size)?;
        Some(Function { address, size, rest: body })
    }

    /// Its instructions: what follows the augmentation data.
    pub(crate) fn instructions(cie: &Cie<'a>, mut rest: Cursor<'a>) -> Option<Cursor<'a>> {
        if cie.augmented {
            rest.block()?;
        }
        Some(rest)
    }
}
