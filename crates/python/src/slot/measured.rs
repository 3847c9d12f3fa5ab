//! Layouts that were measured, by tests/probes/slots.c or in the files themselves.

use objects::Architecture;

use super::SlotLayout;

/// Where glibc's `struct pthread` has the value of key 0 and the pointers to blocks: 2.31, 2.36, 2.41 and Debian's
/// of November 2026. The size of the struct, from which the thread pointer counts on aarch64, was 1,792, 1,856, 1,824 and
/// 1,824 bytes in these.
pub(super) const fn glibc(architecture: Architecture) -> (i32, i32) {
    match architecture {
        Architecture::X86_64 => (792, 1296),
        Architecture::Aarch64 => (280, 784),
    }
}

/// Whether a layout is glibc's, for some size of `struct pthread`.
pub(super) fn is_glibc(layout: &SlotLayout, architecture: Architecture) -> bool {
    let (first, blocks) = glibc(architecture);
    let Some(begin) = layout.inline.checked_sub(first) else { return false };
    let is_there = match architecture {
        Architecture::X86_64 => begin == 0,
        Architecture::Aarch64 => (-4096..=-1024).contains(&begin) && begin % 16 == 0,
    };
    is_there
        && *layout
            == SlotLayout {
                inline: layout.inline,
                blocks: begin + blocks,
                stride: 16,
                data: 8,
                inline_keys: 32,
                keys_per_block: 32,
                keys: 1024,
            }
}

/// Whether a layout is musl's: 1.2.2, 1.2.3, 1.2.5 and 1.2.6.
pub(super) fn is_musl(layout: &SlotLayout, architecture: Architecture) -> bool {
    let blocks = match architecture {
        Architecture::X86_64 => 128,
        Architecture::Aarch64 => -88,
    };
    *layout == SlotLayout { inline: 0, blocks, stride: 8, data: 0, inline_keys: 0, keys_per_block: 128, keys: 128 }
}
