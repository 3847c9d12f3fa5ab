//! The build-id: the linker's name for exactly this file.

use crate::limits::{MAX_BUILD_ID, MAX_NOTES};

const NT_GNU_BUILD_ID: u32 = 3;

/// The build-id in a run of notes, of which each part is padded to `alignment` (8 where the header says so, else 4).
///
/// One of no bytes or of more than [`MAX_BUILD_ID`] is none.
pub(crate) fn build_id(notes: &[u8], alignment: u64) -> Option<&[u8]> {
    let alignment = if alignment == 8 { 8 } else { 4 };
    let mut rest = notes.get(..MAX_NOTES).unwrap_or(notes);
    while let Some((header, body)) = rest.split_first_chunk::<12>() {
        let field = |i: usize| u32::from_le_bytes([header[i], header[i + 1], header[i + 2], header[i + 3]]);
        let (name_size, size, kind) = (field(0) as usize, field(4) as usize, field(8));
        // the padding counts from the start of the note, whose header has 12 bytes
        let description = (12 + name_size).next_multiple_of(alignment) - 12;
        let next = (12 + description + size).next_multiple_of(alignment) - 12;
        if kind == NT_GNU_BUILD_ID && body.get(..name_size) == Some(b"GNU\0") {
            let id = body.get(description..description + size)?;
            return (1..=MAX_BUILD_ID).contains(&id.len()).then_some(id);
        }
        rest = body.get(next..)?;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn note(name: &[u8], kind: u32, description: &[u8], alignment: usize) -> Vec<u8> {
        let mut bytes = Vec::new();
        for field in [name.len() as u32, description.len() as u32, kind] {
            bytes.extend(field.to_le_bytes());
        }
        bytes.extend(name);
        bytes.resize(bytes.len().next_multiple_of(alignment), 0);
        bytes.extend(description);
        bytes.resize(bytes.len().next_multiple_of(alignment), 0);
        bytes
    }

    #[test]
    fn found_behind_other_notes() {
        let mut notes = note(b"GNU\0", 1, &[0; 16], 4);
        notes.extend(note(b"stapsdt\0", 3, b"abc", 4));
        notes.extend(note(b"GNU\0", 3, b"0123456789abcdefghij", 4));
        assert_eq!(build_id(&notes, 4), Some(&b"0123456789abcdefghij"[..]));
        assert_eq!(build_id(&notes, 1), Some(&b"0123456789abcdefghij"[..]));
    }

    #[test]
    fn found_with_padding_to_eight() {
        let mut notes = note(b"GNU\0", 5, &[1; 12], 8);
        notes.extend(note(b"GNU\0", 3, b"01234567", 8));
        assert_eq!(build_id(&notes, 8), Some(&b"01234567"[..]));
    }

    #[test]
    fn absurd_ones_are_none() {
        assert_eq!(build_id(&note(b"GNU\0", 3, &[7; 65], 4), 4), None);
        assert_eq!(build_id(&note(b"GNU\0", 3, b"", 4), 4), None);
        assert_eq!(build_id(&note(b"GNU\0", 3, &[7; 20], 4)[..30], 4), None, "cut off");
        assert_eq!(build_id(&[0xff; 64], 4), None);
        assert_eq!(build_id(&[], 4), None);
    }

    proptest::proptest! {
        #[test]
        fn random_bytes_never_panic(bytes: Vec<u8>, alignment in 0u64..10) {
            if let Some(id) = build_id(&bytes, alignment) {
                proptest::prop_assert!(!id.is_empty() && id.len() <= MAX_BUILD_ID);
            }
        }
    }
}
