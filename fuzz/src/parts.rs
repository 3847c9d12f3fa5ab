//! Inputs that hold several pieces: each is a number, a length of two bytes and that many bytes.
//!
//! A mutation of a length moves the border between two pieces; any bytes are some list of pieces.

/// The pieces of an input. A last one that is cut off is as long as what is left.
pub fn of(mut input: &[u8]) -> impl Iterator<Item = (u8, &[u8])> {
    std::iter::from_fn(move || {
        let ([kind, low, high], rest) = input.split_first_chunk()?;
        let length = usize::from(u16::from_le_bytes([*low, *high])).min(rest.len());
        let (piece, rest) = rest.split_at(length);
        input = rest;
        Some((*kind, piece))
    })
}

/// Takes a number of two bytes from the front of a piece; 0 where it is too short.
pub fn take_u16(piece: &mut &[u8]) -> u16 {
    let Some((number, rest)) = piece.split_first_chunk() else {
        *piece = &[];
        return 0;
    };
    *piece = rest;
    u16::from_le_bytes(*number)
}

/// Takes a byte from the front of a piece; 0 where there is none.
pub fn take_u8(piece: &mut &[u8]) -> u8 {
    let Some((number, rest)) = piece.split_first() else { return 0 };
    *piece = rest;
    *number
}
