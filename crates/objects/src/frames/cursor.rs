//! Reading numbers from a section, never beyond the end of the entry they belong to.

/// A place in a section, and the end of what may be read.
///
/// Every read is `None` if its bytes are not all there or do not encode a number of 64 bits.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cursor<'a> {
    section: &'a [u8],
    at: usize,
    end: usize,
}

impl<'a> Cursor<'a> {
    /// All of a section.
    pub(crate) fn new(section: &'a [u8]) -> Cursor<'a> {
        Cursor { section, at: 0, end: section.len() }
    }

    /// `begin..end` of a section; `None` if that is not within it.
    pub(crate) fn within(section: &'a [u8], begin: usize, end: usize) -> Option<Cursor<'a>> {
        (begin <= end && end <= section.len()).then_some(Cursor { section, at: begin, end })
    }

    /// Offset of the next byte from the beginning of the section.
    pub(crate) fn position(&self) -> usize {
        self.at
    }

    /// Offset of the end from the beginning of the section.
    pub(crate) fn end(&self) -> usize {
        self.end
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.at >= self.end
    }

    pub(crate) fn bytes(&mut self, count: usize) -> Option<&'a [u8]> {
        let end = self.at.checked_add(count).filter(|&end| end <= self.end)?;
        let bytes = self.section.get(self.at..end)?;
        self.at = end;
        Some(bytes)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.bytes(N)?.first_chunk().copied()
    }

    pub(crate) fn u8(&mut self) -> Option<u8> {
        self.array().map(u8::from_le_bytes)
    }

    pub(crate) fn u16(&mut self) -> Option<u16> {
        self.array().map(u16::from_le_bytes)
    }

    pub(crate) fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_le_bytes)
    }

    pub(crate) fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_le_bytes)
    }

    pub(crate) fn uleb(&mut self) -> Option<u64> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.u8()?;
            if shift == 63 && byte > 1 {
                return None;
            }
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Some(value);
            }
        }
        None
    }

    pub(crate) fn sleb(&mut self) -> Option<i64> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.u8()?;
            if shift == 63 && byte != 0 && byte != 0x7f {
                return None;
            }
            value |= i64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                let negative = byte & 0x40 != 0 && shift + 7 < 64;
                return Some(if negative { value | -1 << (shift + 7) } else { value });
            }
        }
        None
    }

    /// A block with its length before it.
    pub(crate) fn block(&mut self) -> Option<&'a [u8]> {
        let length = self.uleb()?;
        self.bytes(usize::try_from(length).ok()?)
    }

    /// Bytes up to a zero, which is skipped.
    pub(crate) fn string(&mut self) -> Option<&'a [u8]> {
        let rest = self.section.get(self.at..self.end)?;
        let length = rest.iter().position(|&b| b == 0)?;
        self.at += length + 1;
        rest.get(..length)
    }

    /// A number in one of the formats of `DW_EH_PE_*` (the low four bits); signed ones are extended.
    pub(crate) fn encoded_value(&mut self, encoding: u8) -> Option<u64> {
        match encoding & 0x0f {
            0x00 | 0x04 => self.u64(),
            0x01 => self.uleb(),
            0x02 => self.u16().map(u64::from),
            0x03 => self.u32().map(u64::from),
            0x09 => self.sleb().map(i64::cast_unsigned),
            0x0a => self.u16().map(|v| i64::from(v.cast_signed()).cast_unsigned()),
            0x0b => self.u32().map(|v| i64::from(v.cast_signed()).cast_unsigned()),
            0x0c => self.u64(),
            _ => None,
        }
    }

    /// A pointer in a `DW_EH_PE_*` encoding: absolute, relative to its own address, or relative to `data`.
    ///
    /// Pointers to pointers (`DW_EH_PE_indirect`) and other bases make no sense for code on the supported architectures.
    pub(crate) fn encoded_pointer(&mut self, encoding: u8, section_address: u64, data: Option<u64>) -> Option<u64> {
        let base = match encoding & 0xf0 {
            0x00 => 0,
            0x10 => section_address.wrapping_add(self.at as u64),
            0x30 => data?,
            _ => return None,
        };
        self.encoded_value(encoding).map(|value| base.wrapping_add(value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_the_dwarf_standard() {
        // DWARF 5, tables 7.7 and 7.8
        let uleb = |bytes: &[u8]| Cursor::new(bytes).uleb();
        let sleb = |bytes: &[u8]| Cursor::new(bytes).sleb();
        assert_eq!(uleb(&[2]), Some(2));
        assert_eq!(uleb(&[127]), Some(127));
        assert_eq!(uleb(&[0x80, 1]), Some(128));
        assert_eq!(uleb(&[0xb9, 0x64]), Some(12857));
        assert_eq!(sleb(&[0x7e]), Some(-2));
        assert_eq!(sleb(&[0xff, 0]), Some(127));
        assert_eq!(sleb(&[0x81, 0x7f]), Some(-127));
        assert_eq!(sleb(&[0x80, 0x7f]), Some(-128));
        assert_eq!(uleb(&[0x80; 10]), None);
        assert_eq!(uleb(&[0x80]), None, "cut off");
    }

    #[test]
    fn reads_end_with_the_entry() {
        let mut cursor = Cursor::within(&[1, 2, 3, 4, 5, 6], 1, 4).unwrap();
        assert_eq!(cursor.u32(), None);
        assert_eq!(cursor.u16(), Some(0x302));
        assert_eq!(cursor.bytes(usize::MAX), None);
        assert_eq!(cursor.u8(), Some(4));
        assert!(cursor.is_empty());
    }

    proptest::proptest! {
        #[test]
        fn leb_like_gimli(bytes in proptest::collection::vec(proptest::num::u8::ANY, 0..14)) {
            use gimli::Reader;
            let slice = gimli::EndianSlice::new(&bytes, gimli::LittleEndian);
            proptest::prop_assert_eq!(Cursor::new(&bytes).uleb(), slice.clone().read_uleb128().ok());
            proptest::prop_assert_eq!(Cursor::new(&bytes).sleb(), slice.clone().read_sleb128().ok());
        }
    }
}
