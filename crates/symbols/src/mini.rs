//! `.gnu_debugdata`: the symbols of a stripped file, xz-compressed inside it ("MiniDebugInfo" of Fedora and others).

use lzma_rust2::XzReader;
use std::io::Read;

use crate::Reason;
use crate::contents::{Input, bad};
use crate::layout::Layout;
use crate::symtab::{self, Kind};
use crate::table::TableBuilder;

const SECTION: &str = ".gnu_debugdata";
/// The most that is read of the section, in bytes.
const MAX_PACKED: u64 = 128 << 20;
/// The most that it may hold, in bytes.
const MAX_UNPACKED: u64 = 512 << 20;
/// The largest dictionary of the compressor, in KiB; xz -9 takes 64 MiB.
const MAX_MEMORY: u32 = 256 << 10;

/// Adds the symbols; whether there are any. The addresses are those of the file around it.
pub(crate) fn add(builder: &mut TableBuilder, input: &Input<'_>, layout: &Layout) -> Result<bool, Reason> {
    let Some(section) = layout.section(SECTION).filter(|section| section.has_contents()) else { return Ok(false) };
    let inner = unpack(&input.section(layout, section, MAX_PACKED)?, MAX_UNPACKED)?;
    let inner = Input::Memory(&inner);
    let layout = Layout::read(&inner).map_err(|reason| bad(SECTION, reason.to_string()))?;
    symtab::add(builder, &inner, &layout, Kind::Full)
}

fn unpack(packed: &[u8], limit: u64) -> Result<Vec<u8>, Reason> {
    let mut bytes = Vec::new();
    let reader = XzReader::new_mem_limit(packed, true, MAX_MEMORY);
    reader.take(limit + 1).read_to_end(&mut bytes).map_err(|error| bad(SECTION, error.to_string()))?;
    if bytes.len() as u64 > limit {
        return Err(bad(SECTION, format!("holds more than {limit} bytes")));
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::io::Write;
    use std::process::{Command, Stdio};

    /// What xz makes of `bytes`.
    fn xz(bytes: &[u8]) -> Vec<u8> {
        let mut child = Command::new("xz").arg("-c").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        std::thread::scope(|scope| {
            scope.spawn(move || stdin.write_all(bytes).unwrap());
            child.wait_with_output().unwrap().stdout
        })
    }

    #[test]
    fn bombs_are_not_unpacked() {
        let packed = xz(&vec![0; 8 << 20]);
        assert_eq!(unpack(&packed, 8 << 20).unwrap().len(), 8 << 20);
        assert!(unpack(&packed, (8 << 20) - 1).is_err());
    }

    #[test]
    fn damage_anywhere_is_an_error_or_harmless() {
        let bytes: Vec<u8> = (0..2000u32).flat_map(|word| (word * word).to_le_bytes()).collect();
        let packed = xz(&bytes);
        for at in 0..packed.len() {
            let mut damaged = packed.clone();
            damaged[at] ^= 0x41;
            if let Ok(got) = unpack(&damaged, 1 << 20) {
                assert!(got == bytes || got.is_empty(), "byte {at}");
            }
        }
    }

    proptest! {
        #[test]
        fn any_bytes_do(packed in prop::collection::vec(any::<u8>(), 0..300)) {
            let mut with_magic = b"\xfd7zXZ\0\0\x04\xe6\xd6\xb4\x46".to_vec();
            with_magic.extend(&packed);
            let _ = (unpack(&packed, 4096), unpack(&with_magic, 4096));
        }
    }
}
