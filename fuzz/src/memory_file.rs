//! Regular files that are in memory only.

use std::fs::File;
use std::io::Write;

use rustix::fs::{MemfdFlags, memfd_create};

/// A file that holds these bytes.
///
/// # Panics
/// If the machine has no memory or no descriptor for it, which ends a fuzzer.
pub fn with(bytes: &[u8]) -> File {
    let fd = memfd_create("fuzz", MemfdFlags::CLOEXEC).expect("memfd_create");
    let mut file = File::from(fd);
    file.write_all(bytes).expect("a write to memory");
    file
}
