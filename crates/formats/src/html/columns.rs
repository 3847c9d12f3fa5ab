//! Columns of numbers, as LEB128.

/// Appends a number, seven bits a byte, lowest first; the top bit says that more follow.
pub(super) fn put(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Appends a column: how many numbers, then the numbers.
pub(super) fn put_column(out: &mut Vec<u8>, values: impl ExactSizeIterator<Item = u64>) {
    put(out, values.len() as u64);
    for value in values {
        put(out, value);
    }
}

/// Appends bytes: how many, then the bytes.
pub(super) fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    put(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// A number so that small ones of either sign are short: 0, -1, 1, -2, 2, ...
pub(super) fn zigzag(value: i64) -> u64 {
    ((value << 1) ^ (value >> 63)) as u64
}
