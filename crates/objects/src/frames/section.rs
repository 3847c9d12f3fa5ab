//! Where in a file the call frame information is.

use crate::architecture::Architecture;
use crate::frames::cursor::Cursor;
use crate::image::{Image, Section};

/// The two forms of call frame information.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    /// `.eh_frame`, which is loaded with the code.
    EhFrame,
    /// `.debug_frame`.
    DebugFrame,
}

/// The bytes of call frame information.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FrameSection<'a> {
    pub(crate) architecture: Architecture,
    pub(crate) bytes: &'a [u8],
    /// Address of the first byte, before relocation.
    pub(crate) address: u64,
    pub(crate) kind: Kind,
    /// Whether `bytes` ends where the section ends. If not, what follows is other data, and a terminator ends it;
    /// else there may be entries behind a terminator, where a linker joined files that had one each.
    pub(crate) exact: bool,
}

/// The call frame information of an image: `.eh_frame` by its section header, else through `PT_GNU_EH_FRAME`, else
/// `.debug_frame`.
///
/// A compressed `.debug_frame` and that of a Go program are not taken. Go describes the stack pointer but not that its
/// functions save the frame pointer, on which its code, and the end of its stacks, are better followed.
pub(crate) fn find(image: &Image) -> Option<FrameSection<'_>> {
    let pointed_to = from_eh_frame_hdr(image);
    let mut candidates =
        image.sections().filter(|s| s.name == b".eh_frame" && !s.bytes.is_empty() && is_loaded(image, s));
    let first = candidates.next();
    let named = match &pointed_to {
        // of two sections with the name, the one that the running program uses
        Some(p) => first.into_iter().chain(candidates).reduce(|a, b| if b.address == p.address { b } else { a }),
        None => first,
    };
    named.map(|s| from_section(image, s, Kind::EhFrame)).or(pointed_to).or_else(|| debug_frame(image))
}

/// Whether a section lies where the program headers, which are what counts, put its bytes.
fn is_loaded(image: &Image, section: &Section<'_>) -> bool {
    image.segments().iter().any(|s| {
        let into = section.file_offset.wrapping_sub(s.file_offset);
        into < s.file_size && s.vaddr.wrapping_add(into) == section.address
    })
}

fn from_eh_frame_hdr(image: &Image) -> Option<FrameSection<'_>> {
    let header = image.eh_frame_hdr()?;
    let mut cursor = Cursor::new(image.file_bytes(header.file_offset, header.file_size));
    if cursor.u8()? != 1 {
        return None;
    }
    let encoding = cursor.u8()?;
    // encodings of the search table, which is not used
    cursor.bytes(2)?;
    let address = cursor.encoded_pointer(encoding, header.vaddr, Some(header.vaddr))?;
    let segment = image.segments().iter().find(|s| address >= s.vaddr && address - s.vaddr < s.file_size)?;
    let into = address - segment.vaddr;
    let bytes = image.file_bytes(segment.file_offset.checked_add(into)?, segment.file_size - into);
    Some(FrameSection { architecture: image.architecture(), bytes, address, kind: Kind::EhFrame, exact: false })
}

fn debug_frame(image: &Image) -> Option<FrameSection<'_>> {
    if image.sections().any(|s| s.name == b".gopclntab") {
        return None;
    }
    let section = image.sections().find(|s| s.name == b".debug_frame")?;
    Some(from_section(image, section, Kind::DebugFrame))
}

fn from_section<'a>(image: &Image, section: Section<'a>, kind: Kind) -> FrameSection<'a> {
    FrameSection {
        architecture: image.architecture(),
        bytes: section.bytes,
        address: section.address,
        kind,
        exact: true,
    }
}
