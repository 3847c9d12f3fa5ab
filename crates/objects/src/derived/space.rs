//! The code that is looked at: pieces of a file by address.

use iced_x86::{Decoder, DecoderOptions, Instruction};

use crate::image::Image;

/// Bytes of the longest instruction of x86_64.
const MAX_INSTRUCTION: u64 = 15;

/// A piece of code that no unwind information describes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Piece {
    /// Address of the first byte, before relocation.
    pub vaddr: u64,
    /// Place of that byte in the file.
    pub place: u64,
    /// Bytes; `vaddr + size` does not overflow.
    pub size: u64,
}

/// All pieces, by address.
pub(super) struct Space<'i> {
    image: &'i Image,
    pieces: Vec<Piece>,
}

impl<'i> Space<'i> {
    pub(super) fn new(image: &'i Image, mut pieces: Vec<Piece>) -> Space<'i> {
        pieces.sort_by_key(|piece| piece.vaddr);
        Space { image, pieces }
    }

    fn piece(&self, vaddr: u64) -> Option<&Piece> {
        let index = self.pieces.partition_point(|piece| piece.vaddr <= vaddr).checked_sub(1)?;
        self.pieces.get(index).filter(|piece| vaddr - piece.vaddr < piece.size)
    }

    /// Whether the byte at an address is one of them.
    pub(super) fn contains(&self, vaddr: u64) -> bool {
        self.piece(vaddr).is_some()
    }

    /// Place in the file of the byte at an address.
    pub(super) fn place(&self, vaddr: u64) -> Option<u64> {
        self.piece(vaddr).map(|piece| piece.place + (vaddr - piece.vaddr))
    }

    /// The instruction at an address; `None` if there is none that lies within one piece.
    pub(super) fn instruction(&self, vaddr: u64) -> Option<Instruction> {
        let piece = self.piece(vaddr)?;
        let at = vaddr - piece.vaddr;
        let bytes = self.image.file_bytes(piece.place + at, MAX_INSTRUCTION.min(piece.size - at));
        let instruction = Decoder::with_ip(64, bytes, vaddr, DecoderOptions::NONE).decode();
        (!instruction.is_invalid()).then_some(instruction)
    }
}
