//! Where functions and split-off parts of them begin, from the search table of `.eh_frame_hdr`, which stripping leaves.
//!
//! Its form is that of the LSB core specification, "DWARF exception header encoding"; linkers write one encoding only.

use std::ops::Range;

use super::elf::Layout;

/// `DW_EH_PE_datarel | DW_EH_PE_sdata4`: pairs of four-byte distances from the header, sorted.
const TABLE: u8 = 0x3b;
/// `DW_EH_PE_udata4`.
const COUNT: u8 = 0x03;

/// From the last FDE's beginning at or before an address to the next one's; everything, if there is no table.
pub(super) fn around(layout: &Layout<'_>, address: u64) -> Range<u64> {
    search(layout, address).unwrap_or(0..u64::MAX)
}

fn search(layout: &Layout<'_>, address: u64) -> Option<Range<u64>> {
    let header = layout.eh_frame_hdr;
    let bytes = layout.table(header, u64::MAX);
    let &[1, pointer, COUNT, TABLE, ..] = bytes else { return None };
    let pointer_size = if matches!(pointer & 0xf, 0x3 | 0xb) { 4 } else { 8 };
    let (count, rows) = bytes.get(4 + pointer_size..)?.split_first_chunk()?;
    let count = usize::try_from(u32::from_le_bytes(*count)).ok()?;
    let rows = rows.get(..count.checked_mul(8)?)?;
    let begin = |index: usize| {
        let distance = rows.get(index * 8..)?.first_chunk().map(|bytes| i32::from_le_bytes(*bytes))?;
        Some(header.wrapping_add_signed(distance.into()))
    };
    let (mut low, mut high) = (0, count);
    while low < high {
        let middle = low + (high - low) / 2;
        if begin(middle)? <= address { low = middle + 1 } else { high = middle }
    }
    let before = low.checked_sub(1).and_then(begin).unwrap_or(0);
    Some(before..begin(low).unwrap_or(u64::MAX))
}
