//! Code read piece by piece: the reader may cost a system call each time.

use std::collections::HashMap;

use super::Code;

/// Bytes that are read at once.
const PIECE: usize = 256;
/// Bytes of the longest instruction of x86_64.
pub(super) const MAX_INSTRUCTION: usize = 15;

/// Keeps what was read.
pub(super) struct Bytes<'a, C: Code> {
    code: &'a mut C,
    pieces: HashMap<u64, Piece>,
}

/// The readable bytes from the place of a piece on.
struct Piece {
    bytes: [u8; PIECE],
    length: usize,
}

impl<'a, C: Code> Bytes<'a, C> {
    pub(super) fn new(code: &'a mut C) -> Bytes<'a, C> {
        Bytes { code, pieces: HashMap::new() }
    }

    /// What they are read from.
    pub(super) fn code(&mut self) -> &mut C {
        self.code
    }

    /// Up to [`MAX_INSTRUCTION`] bytes from `address` on, and how many there are. None wrap around the end of memory.
    pub(super) fn instruction(&mut self, address: u64) -> ([u8; MAX_INSTRUCTION], usize) {
        let mut into = [0; MAX_INSTRUCTION];
        let mut length = 0;
        while length < MAX_INSTRUCTION {
            let Some(at) = address.checked_add(length as u64) else { break };
            let copied = self.copy(at, &mut into[length..]);
            if copied == 0 {
                break;
            }
            length += copied;
        }
        (into, length)
    }

    /// Copies what one piece has from `address` on.
    fn copy(&mut self, address: u64, into: &mut [u8]) -> usize {
        let begin = address - address % PIECE as u64;
        let code = &mut *self.code;
        let piece = self.pieces.entry(begin).or_insert_with(|| {
            let mut bytes = [0; PIECE];
            let length = code.read(begin, &mut bytes).min(PIECE);
            Piece { bytes, length }
        });
        let skip = (address - begin) as usize;
        let Some(bytes) = piece.bytes[..piece.length].get(skip..).filter(|bytes| !bytes.is_empty()) else {
            // the code may begin within the piece
            let most = into.len().min(PIECE - skip);
            return code.read(address, &mut into[..most]).min(most);
        };
        let length = bytes.len().min(into.len());
        into[..length].copy_from_slice(&bytes[..length]);
        length
    }
}
