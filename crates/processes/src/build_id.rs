//! The GNU build-id in a file's ELF notes, to tell whether a file is the one that the kernel reported.

use std::fs::File;
use std::os::unix::fs::FileExt;

use crate::BuildId;

/// Program headers that are looked at; the kernel looks at no more than fit on a page.
const PROGRAM_HEADERS: usize = 128;
/// Bytes of notes that are looked at, per header.
const NOTES: u64 = 64 * 1024;

const PT_NOTE: u64 = 4;
const NT_GNU_BUILD_ID: u64 = 3;
const EM_BYTE_ORDER: u8 = if cfg!(target_endian = "little") { 1 } else { 2 };

/// Where the fields of an ELF file are, 32 or 64 bits.
struct Layout {
    /// Bytes of an address.
    word: usize,
    /// Of `e_phoff`.
    table: usize,
    /// Of `e_phentsize`, followed by `e_phnum`.
    entry_size: usize,
    /// Bytes of a program header.
    entry: usize,
    /// Of `p_offset` in it.
    offset: usize,
    /// Of `p_filesz` in it.
    size: usize,
    /// Of `p_align` in it.
    align: usize,
}

const ELF32: Layout = Layout { word: 4, table: 28, entry_size: 42, entry: 32, offset: 4, size: 16, align: 28 };
const ELF64: Layout = Layout { word: 8, table: 32, entry_size: 54, entry: 56, offset: 8, size: 32, align: 48 };

/// The build-id of an ELF file of this machine's byte order; `None` if it has none, or is no such file.
pub fn of_file(file: &File) -> Option<BuildId> {
    let header = read(file, 0, 64)?;
    let layout = match header.get(..6)? {
        [0x7f, b'E', b'L', b'F', 1, EM_BYTE_ORDER] => ELF32,
        [0x7f, b'E', b'L', b'F', 2, EM_BYTE_ORDER] => ELF64,
        _ => return None,
    };
    let table = number(&header, layout.table, layout.word)?;
    let entry_size = number(&header, layout.entry_size, 2)?;
    let count = number(&header, layout.entry_size + 2, 2)?.min(PROGRAM_HEADERS as u64);
    if entry_size != layout.entry as u64 {
        return None;
    }
    let headers = read(file, table, (count * entry_size) as usize)?;
    headers.chunks_exact(layout.entry).find_map(|header| in_notes(file, header, &layout))
}

/// Looks through the notes of one program header.
fn in_notes(file: &File, header: &[u8], layout: &Layout) -> Option<BuildId> {
    if number(header, 0, 4)? != PT_NOTE {
        return None;
    }
    let offset = number(header, layout.offset, layout.word)?;
    let size = number(header, layout.size, layout.word)?.min(NOTES);
    let align = if number(header, layout.align, layout.word)? == 8 { 8 } else { 4 };
    parse_notes(&read(file, offset, size as usize)?, align)
}

/// Notes: size of the name, size of the content, type, name, content; the latter two padded to `align`.
fn parse_notes(mut notes: &[u8], align: usize) -> Option<BuildId> {
    loop {
        let name_size = number(notes, 0, 4)? as usize;
        let content_size = number(notes, 4, 4)? as usize;
        let kind = number(notes, 8, 4)?;
        let name = notes.get(12..)?.get(..name_size)?;
        let content_at = name_size.checked_add(12)?.checked_next_multiple_of(align)?;
        let content = notes.get(content_at..)?.get(..content_size)?;
        if kind == NT_GNU_BUILD_ID && name == b"GNU\0" {
            return BuildId::new(content);
        }
        let next = content_at.checked_add(content_size)?.checked_next_multiple_of(align)?;
        notes = notes.get(next..)?;
    }
}

fn number(bytes: &[u8], at: usize, size: usize) -> Option<u64> {
    let bytes = bytes.get(at..)?.get(..size)?;
    match size {
        2 => Some(u16::from_ne_bytes(bytes.try_into().ok()?).into()),
        4 => Some(u32::from_ne_bytes(bytes.try_into().ok()?).into()),
        _ => Some(u64::from_ne_bytes(bytes.try_into().ok()?)),
    }
}

/// Up to `count` bytes; fewer at the end of the file.
fn read(file: &File, offset: u64, count: usize) -> Option<Vec<u8>> {
    let mut bytes = vec![0; count];
    let mut filled = 0;
    while filled < count {
        match file.read_at(&mut bytes[filled..], offset.checked_add(filled as u64)?) {
            Ok(0) => break,
            Ok(more) => filled += more,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(_) => return None,
        }
    }
    bytes.truncate(filled);
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn any_notes(bytes in prop::collection::vec(any::<u8>(), 0..200), wide: bool) {
            let _ = parse_notes(&bytes, if wide { 8 } else { 4 });
        }

        #[test]
        fn found_behind_other_notes(id in prop::collection::vec(any::<u8>(), 1..=20), other in prop::collection::vec(any::<u8>(), 0..40)) {
            let mut notes = Vec::new();
            for (kind, name, content) in [(5u32, &b"other\0"[..], &other), (3, &b"GNU\0"[..], &id)] {
                for number in [name.len() as u32, content.len() as u32, kind] {
                    notes.extend(number.to_ne_bytes());
                }
                for bytes in [name, content] {
                    notes.extend(bytes);
                    notes.resize(notes.len().next_multiple_of(4), 0);
                }
            }
            prop_assert_eq!(parse_notes(&notes, 4), BuildId::new(&id));
        }
    }
}
