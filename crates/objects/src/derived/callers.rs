//! Functions without unwind information that are called by functions that have it.

use std::collections::HashSet;
use std::ops::Range;

use iced_x86::{Code, Decoder, DecoderOptions};
use memchr::memchr_iter;

use super::function::taken;
use super::space::Space;
use crate::image::Image;
use crate::limits::{ENTRY_CODE, MAX_RESIDENT};

/// First byte of `call rel32`, and its length.
const CALL: (u8, usize) = (0xe8, 5);

/// What functions at these places in the file call directly. Looks at no more than `most` instructions.
///
/// A function is decoded from its beginning only if it has bytes that may be such a call.
pub(super) fn called(image: &Image, space: &Space<'_>, functions: &[Range<u64>], mut most: usize) -> HashSet<u64> {
    let mut found = HashSet::new();
    let mut released = 0;
    for function in functions {
        let code = image.file_bytes(function.start, function.end.saturating_sub(function.start));
        if function.start.saturating_sub(released) > MAX_RESIDENT {
            image.release();
            released = function.start;
        }
        let Some(vaddr) = image.file_offset_to_vaddr(function.start) else { continue };
        let may_call = |at: usize| target(code, vaddr, at).is_some_and(|target| space.contains(target));
        let Some(last) = memchr_iter(CALL.0, code).rfind(|at| may_call(*at)) else { continue };
        let instructions = Decoder::with_ip(64, &code[..last + CALL.1], vaddr, DecoderOptions::NONE).into_iter();
        for instruction in instructions.take(most) {
            most -= 1;
            if instruction.code() == Code::Call_rel32_64 && space.contains(instruction.near_branch_target()) {
                found.insert(instruction.near_branch_target());
            }
        }
    }
    found
}

/// The addresses that the code at the entry point takes: of `main`, in most programs.
pub(super) fn taken_at_entry(image: &Image, space: &Space<'_>) -> Vec<u64> {
    let Some(place) = image.entry() else { return Vec::new() };
    let Some(vaddr) = image.file_offset_to_vaddr(place) else { return Vec::new() };
    let instructions = Decoder::with_ip(64, image.file_bytes(place, ENTRY_CODE), vaddr, DecoderOptions::NONE);
    instructions.into_iter().filter_map(|instruction| taken(&instruction)).filter(|at| space.contains(*at)).collect()
}

/// Where a call at a place in the code would lead.
fn target(code: &[u8], vaddr: u64, at: usize) -> Option<u64> {
    let call = code.get(at..at + CALL.1)?;
    let distance = i32::from_le_bytes(*call.last_chunk()?);
    Some(vaddr.wrapping_add((at + CALL.1) as u64).wrapping_add_signed(distance.into()))
}
