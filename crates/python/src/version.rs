//! Versions of CPython.

use std::fmt;

/// How finished a version is: `PY_RELEASE_LEVEL_*` of Include/patchlevel.h.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Level {
    /// 0xA
    Alpha,
    /// 0xB
    Beta,
    /// 0xC
    Candidate,
    /// 0xF
    Final,
}

/// A version of CPython.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Version {
    /// 3.
    pub major: u8,
    /// What people mean by version: 12 of 3.12.1.
    pub minor: u8,
    /// 1 of 3.12.1.
    pub micro: u8,
    /// Pre-release or not.
    pub level: Level,
    /// Number of the pre-release.
    pub serial: u8,
}

impl Version {
    /// A final release.
    pub const fn release(major: u8, minor: u8, micro: u8) -> Version {
        Version { major, minor, micro, level: Level::Final, serial: 0 }
    }

    /// Decodes `PY_VERSION_HEX`: major, minor and micro a byte each, level and serial a nibble each. `None` if it is none.
    pub fn from_hex(hex: u32) -> Option<Version> {
        let [major, minor, micro, rest] = hex.to_be_bytes();
        let level = match rest >> 4 {
            0xa => Level::Alpha,
            0xb => Level::Beta,
            0xc => Level::Candidate,
            0xf => Level::Final,
            _ => return None,
        };
        Some(Version { major, minor, micro, level, serial: rest & 0xf })
    }

    /// Decodes the beginning of a text such as `3.12.1`, `3.13.0rc2 (main, ...)` or `3.8.18+`.
    pub fn parse(text: &str) -> Option<Version> {
        let word = text.split([' ', '+']).next()?;
        let digits = word.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(word.len());
        let (numbers, suffix) = word.split_at(digits);
        let mut parts = numbers.split('.').map(|part| part.parse::<u8>().ok());
        let (major, minor, micro) = (parts.next()??, parts.next()??, parts.next()??);
        let (level, serial) =
            match suffix.find(|c: char| c.is_ascii_digit()).map_or((suffix, ""), |at| suffix.split_at(at)) {
                ("", "") => (Level::Final, "0"),
                ("a", serial) => (Level::Alpha, serial),
                ("b", serial) => (Level::Beta, serial),
                ("rc" | "c", serial) => (Level::Candidate, serial),
                _ => return None,
            };
        let rest = parts.next().is_none();
        rest.then(|| serial.parse().ok()).flatten().map(|serial| Version { major, minor, micro, level, serial })
    }
}

impl fmt::Display for Version {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}.{}.{}", self.major, self.minor, self.micro)?;
        match self.level {
            Level::Alpha => write!(formatter, "a{}", self.serial),
            Level::Beta => write!(formatter, "b{}", self.serial),
            Level::Candidate => write!(formatter, "rc{}", self.serial),
            Level::Final => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_texts() {
        for (hex, text) in [
            (0x030c_01f0, "3.12.1"),
            (0x0306_0ff0, "3.6.15"),
            (0x030d_00c2, "3.13.0rc2"),
            (0x030f_00a7, "3.15.0a7"),
            (0x030e_00b1, "3.14.0b1"),
        ] {
            let version = Version::from_hex(hex).expect("a version");
            assert_eq!(version.to_string(), text);
            assert_eq!(Version::parse(text), Some(version));
        }
        assert_eq!(Version::parse("3.8.18 (default, Nov 1 2023) [GCC]"), Some(Version::release(3, 8, 18)));
        assert_eq!(Version::parse("3.9.2+"), Some(Version::release(3, 9, 2)));
        for text in ["", "3", "3.8", "3.8.x", "3.8.18.1", "300.1.2", "3.8.1zz3", "GCC 3.8.1"] {
            assert_eq!(Version::parse(text), None, "{text}");
        }
        assert_eq!(Version::from_hex(0x030c_0110), None);
    }
}
