//! Which file is behind a mapping.

use std::fmt;

/// A GNU build-id: 1 to 20 bytes (the kernel reports no longer ones).
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct BuildId {
    length: u8,
    bytes: [u8; BuildId::MAX],
}

impl BuildId {
    /// Bytes at most.
    pub const MAX: usize = 20;

    /// `None` if `bytes` is empty or too long.
    pub fn new(bytes: &[u8]) -> Option<BuildId> {
        if bytes.is_empty() || bytes.len() > BuildId::MAX {
            return None;
        }
        let mut id = BuildId { length: bytes.len() as u8, bytes: [0; BuildId::MAX] };
        id.bytes[..bytes.len()].copy_from_slice(bytes);
        Some(id)
    }

    /// The id.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.length)]
    }
}

impl fmt::Display for BuildId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_bytes().iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for BuildId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Which file is behind a mapping, as the kernel says it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum FileIdentity {
    /// Its build-id (records only, from Linux 5.12).
    BuildId(BuildId),
    /// Device and inode. On overlayfs and btrfs these differ from what `stat` reports.
    Inode {
        /// Major number of the device.
        major: u32,
        /// Minor number of the device.
        minor: u32,
        /// Inode number.
        inode: u64,
        /// Generation of the inode; 0 where it is not known (/proc/PID/maps) or the file system has none.
        generation: u64,
    },
    /// No file that could be opened: anonymous memory, the vDSO, shared memory.
    None,
}

impl FileIdentity {
    /// Whether both are the same file; `None` if they cannot be compared.
    pub fn same_file(&self, other: &FileIdentity) -> Option<bool> {
        use FileIdentity::{BuildId, Inode};
        match (self, other) {
            (BuildId(a), BuildId(b)) => Some(a == b),
            (
                Inode { major: a, minor: b, inode: c, generation: d },
                Inode { major: e, minor: f, inode: g, generation: h },
            ) => Some(a == e && b == f && c == g && (*d == 0 || *h == 0 || d == h)),
            (FileIdentity::None, FileIdentity::None) => Some(true),
            (FileIdentity::None, _) | (_, FileIdentity::None) => Some(false),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn inode(inode: u64, generation: u64) -> FileIdentity {
        FileIdentity::Inode { major: 8, minor: 1, inode, generation }
    }

    #[test]
    fn build_id_bounds() {
        assert_eq!(BuildId::new(&[]), None);
        assert_eq!(BuildId::new(&[1; 21]), None);
        let id = BuildId::new(&[0xab, 0x01]).map(|id| (id.to_string(), id.as_bytes().to_vec()));
        assert_eq!(id, Some(("ab01".to_owned(), vec![0xab, 0x01])));
    }

    #[test]
    fn comparison() {
        let id = BuildId::new(&[1, 2]).map_or(FileIdentity::None, FileIdentity::BuildId);
        assert_eq!(inode(5, 0).same_file(&inode(5, 77)), Some(true));
        assert_eq!(inode(5, 76).same_file(&inode(5, 77)), Some(false));
        assert_eq!(inode(5, 0).same_file(&inode(6, 0)), Some(false));
        assert_eq!(id.same_file(&inode(5, 0)), None);
        assert_eq!(id.same_file(&id), Some(true));
        assert_eq!(id.same_file(&FileIdentity::None), Some(false));
    }
}
