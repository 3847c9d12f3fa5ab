//! The name of a thread.

use std::fmt;

/// Name of a thread, at most 15 bytes as the kernel keeps it; any bytes but NUL. The rest is zero.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Comm([u8; 16]);

impl Comm {
    /// Takes the bytes before the first NUL, at most 15.
    pub fn new(bytes: &[u8]) -> Comm {
        let mut comm = [0; 16];
        for (to, from) in comm[..15].iter_mut().zip(bytes.iter().take_while(|byte| **byte != 0)) {
            *to = *from;
        }
        Comm(comm)
    }

    /// The name without padding.
    pub fn as_bytes(&self) -> &[u8] {
        let length = self.0.iter().position(|byte| *byte == 0).unwrap_or(self.0.len());
        &self.0[..length]
    }

    /// The name padded with zeros, as the kernel's own structures hold it.
    pub fn padded(&self) -> [u8; 16] {
        self.0
    }
}

impl fmt::Display for Comm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&String::from_utf8_lossy(self.as_bytes()))
    }
}

impl fmt::Debug for Comm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", String::from_utf8_lossy(self.as_bytes()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cut_at_nul_and_at_15() {
        assert_eq!(Comm::new(b"abc\0def").as_bytes(), b"abc");
        assert_eq!(Comm::new(b"0123456789abcdefgh").as_bytes(), b"0123456789abcde");
        assert_eq!(Comm::new(b"").as_bytes(), b"");
        assert_eq!(Comm::new(&[0xff, b'x']).as_bytes(), &[0xff, b'x']);
    }
}
