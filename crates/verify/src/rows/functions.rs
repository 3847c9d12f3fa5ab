//! The functions that `.eh_frame` describes, by gimli: where their rows begin and end is known from it, and it is the
//! arbiter where the two sides differ.

use anyhow::{Context, bail};
use gimli::{
    BaseAddresses, EhFrame, EhFrameHdr, EndianSlice, FrameDescriptionEntry, LittleEndian, ParsedEhFrameHdr,
    UnwindSection,
};
use object::{Object, ObjectSection};

use super::ours::Code;

pub(crate) type Slice<'d> = EndianSlice<'d, LittleEndian>;
pub(crate) type Fde<'d> = FrameDescriptionEntry<Slice<'d>>;

/// `.eh_frame` of a file.
pub(crate) struct Section<'d> {
    pub(crate) eh_frame: EhFrame<Slice<'d>>,
    pub(crate) bases: BaseAddresses,
    bytes: &'d [u8],
    /// `.eh_frame_hdr`.
    search: Option<ParsedEhFrameHdr<Slice<'d>>>,
}

/// A function, and which part of it no other one has.
pub(crate) struct Function<'d> {
    pub(crate) fde: Fde<'d>,
    pub(crate) begin: u64,
    pub(crate) end: u64,
}

/// The functions of a file.
#[derive(Default)]
pub(crate) struct Functions<'d> {
    /// By address, without overlaps.
    pub(crate) list: Vec<Function<'d>>,
    /// Functions that begin where another one does.
    pub(crate) duplicates: usize,
    /// Functions whose end another one covers.
    pub(crate) cut: usize,
    /// Functions without code in an executable segment: what linkers leave of those that they removed.
    pub(crate) outside: usize,
}

impl<'d> Section<'d> {
    /// `None` if the file has no `.eh_frame`.
    pub(crate) fn of(file: &object::File<'d>) -> anyhow::Result<Option<Section<'d>>> {
        let Some(section) = file.section_by_name(".eh_frame") else { return Ok(None) };
        let bytes = section.data().context("cannot read .eh_frame")?;
        if bytes.is_empty() {
            return Ok(None);
        }
        let mut eh_frame = EhFrame::new(bytes, LittleEndian);
        eh_frame.set_address_size(8);
        let address = |name| file.section_by_name(name).map_or(0, |section| section.address());
        let bases = BaseAddresses::default()
            .set_eh_frame(section.address())
            .set_eh_frame_hdr(address(".eh_frame_hdr"))
            .set_text(address(".text"))
            .set_got(address(".got"));
        let header = file.section_by_name(".eh_frame_hdr").and_then(|section| section.data().ok());
        let search = header.and_then(|bytes| EhFrameHdr::new(bytes, LittleEndian).parse(&bases, 8).ok());
        Ok(Some(Section { eh_frame, bases, bytes, search }))
    }

    /// Whether the search table of `.eh_frame_hdr`, if there is one, leads from an address to this function.
    pub(crate) fn is_found(&self, address: u64, fde: &Fde<'d>) -> bool {
        let Some(search) = &self.search else { return true };
        let table = || {
            let table = search.table()?;
            let pointer = table.lookup(address, &self.bases).ok()?;
            table.pointer_to_offset(pointer).ok()
        };
        table().is_some_and(|offset| offset.0 == fde.offset())
    }

    /// All functions with code. Where several begin at one place, the first of the section counts; where they overlap,
    /// the one that begins last, as in the binary search of `.eh_frame_hdr`.
    pub(crate) fn functions(&self, code: Code<'_>) -> anyhow::Result<Functions<'d>> {
        let mut functions = Functions::default();
        for offset in entries(self.bytes)? {
            let fde = self.eh_frame.fde_from_offset(&self.bases, offset.into(), EhFrame::cie_from_offset);
            let fde = fde.with_context(|| format!("gimli cannot decode the FDE at {offset:#x}"))?;
            let begin = fde.initial_address();
            match code.mapping(begin) {
                Some(mapping) if fde.len() > 0 => {
                    let end = begin.saturating_add(fde.len()).min(mapping.end);
                    functions.list.push(Function { fde, begin, end });
                }
                _ => functions.outside += 1,
            }
        }
        functions.settle();
        Ok(functions)
    }
}

impl Functions<'_> {
    fn settle(&mut self) {
        self.list.sort_by_key(|function| function.begin);
        let all = self.list.len();
        self.list.dedup_by_key(|function| function.begin);
        self.duplicates = all - self.list.len();
        for index in 1..self.list.len() {
            let next = self.list[index].begin;
            let function = &mut self.list[index - 1];
            if function.end > next {
                function.end = next;
                self.cut += 1;
            }
        }
    }
}

/// Where in `.eh_frame` FDEs are. gimli's own iteration ends at the first terminator, of which a file that was linked
/// from several may have more.
fn entries(bytes: &[u8]) -> anyhow::Result<Vec<usize>> {
    let word = |at: usize| bytes.get(at..).and_then(<[u8]>::first_chunk).map(|word| u32::from_le_bytes(*word));
    let (mut offsets, mut at) = (Vec::new(), 0);
    while let Some(length) = word(at) {
        if length == u32::MAX {
            bail!("an entry of .eh_frame has the form of 64 bits");
        }
        let next = at + 4 + length as usize;
        if length != 0 && word(at + 4).is_some_and(|id| id != 0) {
            offsets.push(at);
        }
        at = next;
    }
    Ok(offsets)
}
