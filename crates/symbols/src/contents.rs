//! Reading parts of a file: bounded, by copy, decompressed.

use object::elf::{ELFCOMPRESS_ZLIB, ELFCOMPRESS_ZSTD, SHF_COMPRESSED};
use std::fs::File;
use std::io::Read;
use std::os::unix::fs::FileExt;

use crate::Reason;
use crate::layout::{Layout, Section};

/// Where bytes come from.
pub(crate) enum Input<'a> {
    /// An open file, read with `pread`: its offset is shared with nobody's reading.
    File(&'a File),
    /// Bytes in memory.
    Memory(&'a [u8]),
}

impl Input<'_> {
    /// Copies `size` bytes at `offset` if they are all there and not more than `limit`. `what` is for the error.
    pub(crate) fn read(&self, offset: u64, size: u64, limit: u64, what: &str) -> Result<Vec<u8>, Reason> {
        if size > limit {
            return Err(Reason::TooLarge { section: what.to_owned(), size, limit });
        }
        let outside = || bad(what, "lies outside the file");
        let end = offset.checked_add(size).ok_or_else(outside)?;
        match self {
            Input::Memory(bytes) => {
                let range = usize::try_from(offset).ok().zip(usize::try_from(end).ok());
                range.and_then(|(from, to)| bytes.get(from..to)).map(<[u8]>::to_vec).ok_or_else(outside)
            }
            Input::File(file) => {
                let failed = |error: std::io::Error| Reason::NotReadable(error.to_string());
                if end > file.metadata().map_err(failed)?.len() {
                    return Err(outside());
                }
                let mut bytes = reserve(size, what)?;
                bytes.resize(size as usize, 0);
                file.read_exact_at(&mut bytes, offset).map_err(failed)?;
                Ok(bytes)
            }
        }
    }

    /// Copies a section, decompressed, if it is not more than `limit` bytes.
    pub(crate) fn section(&self, layout: &Layout, section: &Section, limit: u64) -> Result<Vec<u8>, Reason> {
        let bytes = self.read(section.offset, section.size, limit, &section.name)?;
        if section.flags & u64::from(SHF_COMPRESSED) != 0 {
            let (kind, size, start) = compression_header(&bytes, layout.is_64)
                .ok_or_else(|| bad(&section.name, "has a damaged compression header"))?;
            return decompress(kind, &bytes[start..], size, limit, &section.name);
        }
        if section.name.starts_with(".zdebug_") {
            // the older way: "ZLIB" and the size, big-endian
            let size = bytes.get(4..12).and_then(|size| size.try_into().ok()).map(u64::from_be_bytes);
            let size = size.filter(|_| bytes.starts_with(b"ZLIB")).ok_or_else(|| bad(&section.name, "is damaged"))?;
            return decompress(ELFCOMPRESS_ZLIB, &bytes[12..], size, limit, &section.name);
        }
        Ok(bytes)
    }
}

/// Whether a section's bytes are the contents, without decompression.
pub(crate) fn is_plain(section: &Section) -> bool {
    section.flags & u64::from(SHF_COMPRESSED) == 0 && !section.name.starts_with(".zdebug_")
}

/// A section that cannot be used.
pub(crate) fn bad(section: &str, problem: impl Into<String>) -> Reason {
    Reason::BadSection { section: section.to_owned(), problem: problem.into() }
}

/// Kind of compression, size of the contents, and where the compressed bytes begin.
fn compression_header(bytes: &[u8], is_64: bool) -> Option<(u32, u64, usize)> {
    let word = |at: usize| bytes.get(at..at + 4)?.try_into().ok().map(u32::from_le_bytes);
    if is_64 {
        let size = u64::from_le_bytes(bytes.get(8..16)?.try_into().ok()?);
        bytes.get(24..).map(|_| ())?;
        Some((word(0)?, size, 24))
    } else {
        bytes.get(12..).map(|_| ())?;
        Some((word(0)?, u64::from(word(4)?), 12))
    }
}

fn decompress(kind: u32, packed: &[u8], size: u64, limit: u64, what: &str) -> Result<Vec<u8>, Reason> {
    match kind {
        ELFCOMPRESS_ZLIB => take(flate2::bufread::ZlibDecoder::new(packed), size, limit, what),
        ELFCOMPRESS_ZSTD => {
            let reader =
                ruzstd::decoding::StreamingDecoder::new(packed).map_err(|error| bad(what, error.to_string()))?;
            take(reader, size, limit, what)
        }
        _ => Err(bad(what, "is compressed in an unknown way")),
    }
}

/// Reads exactly `size` bytes of what a decompressor gives.
fn take(reader: impl Read, size: u64, limit: u64, what: &str) -> Result<Vec<u8>, Reason> {
    if size > limit {
        return Err(Reason::TooLarge { section: what.to_owned(), size, limit });
    }
    // grows with what really comes: the size is only a claim
    let mut bytes = reserve(size.min(1 << 20), what)?;
    reader.take(size).read_to_end(&mut bytes).map_err(|error| bad(what, error.to_string()))?;
    if bytes.len() as u64 != size {
        return Err(bad(what, "is shorter than it says"));
    }
    Ok(bytes)
}

fn reserve(size: u64, what: &str) -> Result<Vec<u8>, Reason> {
    let mut bytes = Vec::new();
    let size = usize::try_from(size).map_err(|_| bad(what, "is too large"))?;
    bytes.try_reserve_exact(size).map_err(|_| bad(what, "does not fit in memory"))?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::io::Write;

    fn zlib(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::default());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    #[test]
    fn bombs_are_not_unpacked() {
        let packed = zlib(&vec![0; 10 << 20]);
        assert!(packed.len() < 100_000);
        let lie = decompress(ELFCOMPRESS_ZLIB, &packed, u64::MAX, 1 << 20, ".x");
        assert!(matches!(lie, Err(Reason::TooLarge { .. })), "{lie:?}");
        // it says less than it holds: no more than that is unpacked
        assert_eq!(decompress(ELFCOMPRESS_ZLIB, &packed, 100, 1 << 20, ".x").unwrap(), vec![0; 100]);
        assert!(decompress(ELFCOMPRESS_ZLIB, &packed, 11 << 20, 64 << 20, ".x").is_err());
    }

    #[test]
    fn nothing_outside_the_file_is_read() {
        let file = File::open("/proc/self/exe").unwrap();
        let size = file.metadata().unwrap().len();
        for input in [Input::File(&file), Input::Memory(&std::fs::read("/proc/self/exe").unwrap())] {
            assert_eq!(input.read(size - 1, 1, 10, "x").unwrap().len(), 1);
            assert!(input.read(size, 1, 10, "x").is_err());
            assert!(input.read(u64::MAX, 10, 10, "x").is_err());
            assert!(matches!(input.read(0, 11, 10, "x"), Err(Reason::TooLarge { .. })));
        }
    }

    proptest! {
        #[test]
        fn any_bytes_decompress_or_not(
            kind in 0u32..4,
            size in 0u64..5000,
            packed in prop::collection::vec(any::<u8>(), 0..300),
        ) {
            if let Ok(bytes) = decompress(kind, &packed, size, 4096, ".x") {
                prop_assert_eq!(bytes.len() as u64, size);
            }
        }
    }
}
