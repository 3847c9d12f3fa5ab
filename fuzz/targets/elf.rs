//! Executable files: headers, sections, notes, and the unwind table of whatever is in them.
#![no_main]

use libfuzzer_sys::fuzz_target;
use objects::{Image, Segment};

fuzz_target!(|bytes: &[u8]| {
    fuzz::table::build_and_check(bytes);
    let Ok(image) = Image::from_bytes(bytes.to_vec()) else { return };
    let none_wraps = !image.segments().iter().any(wraps);
    for segment in image.segments() {
        for at in [segment.file_offset, segment.file_offset.wrapping_add(segment.file_size).wrapping_sub(1)] {
            let address = image.file_offset_to_vaddr(at);
            let back = address.and_then(|address| image.vaddr_to_file_offset(address));
            // where segments overlap it may be another place, but some segment holds the address
            assert!(!none_wraps || address.is_none() || back.is_some(), "{at:#x} {address:x?}");
            let _ = image.load_bias(0x7000_0000_0000, at & !0xfff);
        }
    }
});

fn wraps(segment: &Segment) -> bool {
    [segment.file_offset, segment.vaddr].iter().any(|begin| begin.checked_add(segment.file_size).is_none())
}
