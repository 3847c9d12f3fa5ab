//! A profile of names that are as long as a target can make them.

use profile::{FrameId, Kind, Profile};

use crate::synthetic::{At, Author};

/// Bytes of a long name, or more.
pub const BYTES: usize = 64 << 10;

/// A function of each kind whose name and file are long, and hostile all the way.
pub fn profile() -> Profile {
    let mut author = Author::default();
    let name = "<x;\n\x1b[1m\"&' \u{fffd}".repeat(BYTES / 16);
    let thread = author.task(1, "p", "p");
    let at = At { source: Some((&name, 1, 2)), ..At::default() };
    let stack: Vec<FrameId> = Kind::ALL.iter().map(|kind| author.frame(&name, *kind, at)).collect();
    author.add(thread, &stack, 7);
    author.builder.finish()
}
