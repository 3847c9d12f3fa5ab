//! Signal return trampolines that no FDE describes (musl, Go, the vDSO of aarch64), found by their code.

use std::ops::Range;

use memchr::memmem::Finder;

use crate::architecture::Architecture;
use crate::limits::MAX_RESIDENT;

/// `mov x8, #139 (__NR_rt_sigreturn); svc #0`.
const AARCH64: [u8; 8] = [0x68, 0x11, 0x80, 0xd2, 0x01, 0x00, 0x00, 0xd4];
/// What `mov $15 (__NR_rt_sigreturn), %eax; syscall` and `mov $15, %rax; syscall` end with.
const X86_64: [u8; 6] = [0x0f, 0x00, 0x00, 0x00, 0x0f, 0x05];

/// A search for trampolines.
pub(crate) struct Trampolines {
    architecture: Architecture,
    finder: Finder<'static>,
}

impl Trampolines {
    pub(crate) fn new(architecture: Architecture) -> Trampolines {
        let needle: &[u8] = match architecture {
            Architecture::X86_64 => &X86_64,
            Architecture::Aarch64 => &AARCH64,
        };
        Trampolines { architecture, finder: Finder::new(needle) }
    }

    /// Calls `found` with the place of each trampoline in `code`, in rising order, and `pause` after every few MB.
    ///
    /// The place begins one byte before the trampoline where there is such a byte, as glibc's own FDE does: the pc of a
    /// signal frame is the first byte of the trampoline, and a walk looks up the byte before a return address.
    pub(crate) fn find(&self, code: &[u8], pause: impl FnMut(), mut found: impl FnMut(Range<usize>)) {
        let mut end = 0;
        for at in self.positions(code, MAX_RESIDENT as usize, pause) {
            let before = code.get(end..at).unwrap_or_default();
            let begin = match self.architecture {
                Architecture::X86_64 => x86_64_prefix(before).map(|length| at - length),
                Architecture::Aarch64 => Some(at),
            };
            if let Some(begin) = begin {
                let from = if begin > end { begin - 1 } else { begin };
                end = at + self.finder.needle().len();
                found(from..end);
            }
        }
    }

    /// The places of the needle, searched for in pieces of `size` bytes.
    fn positions(&self, code: &[u8], size: usize, mut pause: impl FnMut()) -> impl Iterator<Item = usize> {
        let length = self.finder.needle().len();
        (0..code.len()).step_by(size).flat_map(move |from| {
            if from > 0 {
                pause();
            }
            // one that begins in this piece may end in the next
            let piece = &code[from..code.len().min(from + size + length - 1)];
            self.finder.find_iter(piece).map(move |at| from + at)
        })
    }
}

/// Length of the first bytes of the move, which stand before its operand.
fn x86_64_prefix(before: &[u8]) -> Option<usize> {
    if before.ends_with(&[0x48, 0xc7, 0xc0]) {
        return Some(3);
    }
    let (&last, rest) = before.split_last()?;
    // behind a REX prefix with bit B, the move is to r8d
    let extended = rest.last().is_some_and(|byte| byte & 0xf1 == 0x41);
    (last == 0xb8 && !extended).then_some(1)
}

#[cfg(test)]
#[allow(clippy::single_range_in_vec_init, reason = "lists of places, of which some have one")]
mod tests {
    use super::*;

    fn all(architecture: Architecture, code: &[u8]) -> Vec<Range<usize>> {
        let mut places = Vec::new();
        Trampolines::new(architecture).find(code, || {}, |place| places.push(place));
        places
    }

    const LONG: [u8; 9] = [0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05];
    const SHORT: [u8; 7] = [0xb8, 0x0f, 0, 0, 0, 0x0f, 0x05];

    #[test]
    fn both_moves_of_x86_64() {
        let x86 = |code: &[u8]| all(Architecture::X86_64, code);
        assert_eq!(x86(&LONG), [0..9]);
        assert_eq!(x86(&SHORT), [0..7]);
        assert_eq!(x86(&[&[0xc3, 0x90], &LONG[..], &[0x90; 3], &SHORT].concat()), [1..11, 13..21]);
        assert_eq!(x86(&[&LONG[..], &SHORT].concat()), [0..9, 9..16], "back to back");
        assert_eq!(x86(&[&[0x41], &SHORT[..]].concat()), [], "mov $15, %r8d");
        assert_eq!(x86(&LONG[..8]), []);
        assert_eq!(x86(&LONG[3..]), []);
    }

    #[test]
    fn pieces_cut_none() {
        let search = Trampolines::new(Architecture::X86_64);
        let code = [&LONG[..], &[0x90; 5], &SHORT, &LONG].concat();
        for size in 1..code.len() + 2 {
            let mut pauses = 0;
            let places: Vec<usize> = search.positions(&code, size, || pauses += 1).collect();
            assert_eq!((places, pauses), (vec![3, 15, 24], (code.len() - 1) / size), "{size}");
        }
    }

    #[test]
    fn aarch64() {
        let arm = |code: &[u8]| all(Architecture::Aarch64, code);
        assert_eq!(arm(&AARCH64), [0..8]);
        assert_eq!(arm(&[&[0x1f, 0x20, 0x03, 0xd5], &AARCH64[..]].concat()), [3..12]);
        assert_eq!(arm(&AARCH64[..7]), []);
    }
}
