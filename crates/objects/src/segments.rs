//! Segments: which bytes of a file lie at which addresses.
//!
//! File offset and address differ by another amount in every segment. lld shifts each segment by a page:
//!
//! ```text
//!   file     0x0000 ┌ headers, rodata ┐ 0x1234 ┌ text ┐ 0x5678
//!   address  0x0000 └─────────────────┘ 0x2234 └──────┘ 0x6678     (page 0x1 of the file is in both)
//! ```
//! So neither `start - file_offset` nor the first segment that touches the page gives the load bias.

/// A loadable segment (`PT_LOAD`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Segment {
    /// Offset of the first byte in the file.
    pub file_offset: u64,
    /// Address of that byte, before relocation.
    pub vaddr: u64,
    /// Bytes in the file.
    pub file_size: u64,
    /// Bytes in memory; what is beyond `file_size` is zero.
    pub mem_size: u64,
    /// `PF_X` = 1, `PF_W` = 2, `PF_R` = 4.
    pub flags: u32,
}

/// Page sizes that kernels of the two architectures have: a mapping begins at a multiple of one.
const PAGE_SIZES: [u64; 3] = [4 << 10, 16 << 10, 64 << 10];

impl Segment {
    /// Whether its bytes can be executed.
    pub fn is_executable(&self) -> bool {
        self.flags & 1 != 0
    }

    /// The address of a file offset, whether or not it lies in the segment.
    fn shift(&self, file_offset: u64) -> u64 {
        file_offset.wrapping_sub(self.file_offset).wrapping_add(self.vaddr)
    }

    fn has_file_offset(&self, file_offset: u64) -> bool {
        file_offset >= self.file_offset && file_offset - self.file_offset < self.file_size
    }

    fn has_file_bytes_at(&self, vaddr: u64) -> bool {
        vaddr >= self.vaddr && vaddr - self.vaddr < self.file_size
    }

    /// Whether a mapping of this segment with pages of `page` bytes can have this offset.
    fn has_mapping_offset(&self, file_offset: u64, page: u64) -> bool {
        let begin = self.file_offset & !(page - 1);
        file_offset >= begin && file_offset < self.file_offset.saturating_add(self.file_size)
    }
}

/// The address of a byte of the file; an executable segment wins over others that share the byte.
pub(crate) fn file_offset_to_vaddr(segments: &[Segment], file_offset: u64) -> Option<u64> {
    let holders = || segments.iter().filter(|s| s.has_file_offset(file_offset));
    holders().find(|s| s.is_executable()).or_else(|| holders().next()).map(|s| s.shift(file_offset))
}

/// The place in the file of the byte at an address; `None` for addresses that have no byte in the file.
pub(crate) fn vaddr_to_file_offset(segments: &[Segment], vaddr: u64) -> Option<u64> {
    let holders = || segments.iter().filter(|s| s.has_file_bytes_at(vaddr));
    let segment = holders().find(|s| s.is_executable()).or_else(|| holders().next())?;
    (vaddr - segment.vaddr).checked_add(segment.file_offset)
}

/// See [`Image::load_bias`](crate::Image::load_bias): for those who keep a file's segments and not the file.
pub fn load_bias(segments: &[Segment], mapping_start: u64, mapping_file_offset: u64) -> Option<u64> {
    let executable = |page| {
        let holders =
            segments.iter().filter(move |s| s.is_executable() && s.has_mapping_offset(mapping_file_offset, page));
        // in a page that two segments share, a mapping begins because the later one does
        holders.max_by_key(|s| s.file_offset)
    };
    let any = |page| segments.iter().find(move |s| s.has_mapping_offset(mapping_file_offset, page));
    let segment = PAGE_SIZES
        .iter()
        .find_map(|&page| executable(page))
        .or_else(|| segments.iter().find(|s| s.has_file_offset(mapping_file_offset)))
        .or_else(|| PAGE_SIZES.iter().find_map(|&page| any(page)))?;
    Some(mapping_start.wrapping_sub(segment.shift(mapping_file_offset)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const R: u32 = 4;
    const RX: u32 = 5;
    const RW: u32 = 6;

    fn segment(file_offset: u64, vaddr: u64, size: u64, flags: u32) -> Segment {
        Segment { file_offset, vaddr, file_size: size, mem_size: size, flags }
    }

    /// As lld lays out a Rust program: each segment one page further from its place in the file.
    fn lld() -> Vec<Segment> {
        vec![
            segment(0, 0, 0x1234, R),
            segment(0x1240, 0x2240, 0x5000, RX),
            segment(0x6240, 0x8240, 0x100, RW),
            segment(0x6340, 0x9340, 0x10, RW),
        ]
    }

    #[test]
    fn lld_shifts_the_text_by_a_page() {
        let segments = lld();
        assert_eq!(file_offset_to_vaddr(&segments, 0x1233), Some(0x1233));
        assert_eq!(file_offset_to_vaddr(&segments, 0x1238), None, "between the segments");
        assert_eq!(file_offset_to_vaddr(&segments, 0x1240), Some(0x2240));
        assert_eq!(vaddr_to_file_offset(&segments, 0x2240), Some(0x1240));
        assert_eq!(vaddr_to_file_offset(&segments, 0x1240), None);
    }

    #[test]
    fn the_bias_comes_from_the_executable_segment_of_a_shared_page() {
        // the kernel maps text from page 1, of which the first part belongs to the headers
        assert_eq!(load_bias(&lld(), 0x5555_0000_2000, 0x1000), Some(0x5555_0000_0000));
        // a later piece of the same text, split off by mprotect
        assert_eq!(load_bias(&lld(), 0x5555_0000_5000, 0x4000), Some(0x5555_0000_0000));
    }

    #[test]
    fn the_bias_is_the_same_with_large_pages() {
        let segments = [segment(0, 0, 0x21234, R), segment(0x21240, 0x31240, 0x5000, RX)];
        assert_eq!(load_bias(&segments, 0xaaaa_0003_0000, 0x20000), Some(0xaaaa_0000_0000));
        assert_eq!(load_bias(&segments, 0xaaaa_0003_1000, 0x21000), Some(0xaaaa_0000_0000));
    }

    #[test]
    fn two_executable_segments_have_a_bias_each() {
        // as BOLT leaves them: the old text, and new text at the end of the file with another distance
        let segments = [segment(0x1000, 0x401000, 0x1800, RX), segment(0x20_0000, 0x80_0000, 0x4000, RX)];
        assert_eq!(load_bias(&segments, 0x401000, 0x1000), Some(0));
        assert_eq!(load_bias(&segments, 0x800000, 0x20_0000), Some(0));
        assert_eq!(load_bias(&segments, 0x801000, 0x20_1000), Some(0));
    }

    #[test]
    fn adjacent_executable_segments_that_share_a_page() {
        let segments = [segment(0x1000, 0x1000, 0x1800, RX), segment(0x2800, 0x4800, 0x1000, RX)];
        assert_eq!(load_bias(&segments, 0x7000_0000_4000, 0x2000), Some(0x7000_0000_0000));
    }

    #[test]
    fn an_offset_outside_all_segments_has_no_bias() {
        assert_eq!(load_bias(&lld(), 0x7000_0000_0000, 0x10_0000), None);
        assert_eq!(load_bias(&[], 0x7000_0000_0000, 0), None);
    }

    #[test]
    fn hostile_numbers_wrap_and_never_panic() {
        let numbers = [0, 1, 0xfff, 0x1000, u64::MAX / 2, u64::MAX - 0xfff, u64::MAX];
        for a in numbers {
            for b in numbers {
                for c in numbers {
                    let segments = [segment(a, b, c, RX), segment(c, a, b, R)];
                    for at in numbers {
                        let _ = load_bias(&segments, at, b);
                        let _ = file_offset_to_vaddr(&segments, at);
                        let _ = vaddr_to_file_offset(&segments, at);
                    }
                }
            }
        }
    }

    #[test]
    fn an_executable_segment_wins_a_shared_byte() {
        let segments = [segment(0, 0, 0x2000, R), segment(0x1000, 0x5000, 0x2000, RX)];
        assert_eq!(file_offset_to_vaddr(&segments, 0x1800), Some(0x5800));
        assert_eq!(file_offset_to_vaddr(&segments, 0x800), Some(0x800));
    }
}
