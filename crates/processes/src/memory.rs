//! Memory of another process.

use std::fs::File;
use std::io::{self, Write};

use rustix::fs::{MemfdFlags, memfd_create};

use crate::maps::{self, MapsEnd, Wanted};
use crate::{Proc, RangeKind};

/// Bytes that one call reads at most; a longer buffer is filled in part.
pub const MAX_READ: usize = 64 << 20;
/// Bytes that a vDSO has at most; real ones have 4 to 16 KB.
const MAX_VDSO: u64 = 256 * 1024;

/// Fills `buffer` from the memory of process `pid` at `address`; how many bytes were read. Fewer than asked for if
/// the memory ends, or beyond [`MAX_READ`]. Pages that are not in memory are brought in.
///
/// # Errors
/// `ESRCH`: no such process. `EPERM`: needs CAP_SYS_PTRACE. `EFAULT`: nothing can be read there.
pub fn read_memory(pid: u32, address: u64, buffer: &mut [u8]) -> io::Result<usize> {
    let length = buffer.len().min(MAX_READ);
    let invalid = |_| io::Error::from(io::ErrorKind::InvalidInput);
    let pid = libc::pid_t::try_from(pid).map_err(invalid)?;
    let address = usize::try_from(address).map_err(invalid)?;
    let local = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: length };
    let remote = libc::iovec { iov_base: address as *mut libc::c_void, iov_len: length };
    // SAFETY: the kernel writes at most `length` bytes to `buffer`, which is at least as long; the remote address is
    // only a number to it.
    match unsafe { libc::process_vm_readv(pid, &local, 1, &remote, 1, 0) } {
        -1 => Err(io::Error::last_os_error()),
        count => Ok(count as usize),
    }
}

/// The vDSO of a process, an ELF image.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct VdsoImage {
    /// Where it is mapped.
    pub start: u64,
    /// The image.
    pub bytes: Vec<u8>,
}

/// Reads the vDSO of a process.
///
/// # Errors
/// `NotFound`: the process is gone or has no vDSO; else as [`read_memory`].
pub fn vdso_image(pid: u32) -> io::Result<VdsoImage> {
    let (ranges, end) = maps::read(&Proc::system(), pid, Wanted::Executable, crate::MAX_RANGES);
    let Some(range) = ranges.iter().find(|range| range.kind() == RangeKind::Vdso) else {
        return Err(match end {
            MapsEnd::NotPermitted => io::ErrorKind::PermissionDenied.into(),
            MapsEnd::Failed(error) => error,
            _ => io::ErrorKind::NotFound.into(),
        });
    };
    let mut bytes = vec![0; range.length().min(MAX_VDSO) as usize];
    let count = read_memory(pid, range.start, &mut bytes)?;
    bytes.truncate(count);
    Ok(VdsoImage { start: range.start, bytes })
}

/// The vDSO of a process as a file, so that nothing else needs to know that it has none.
///
/// # Errors
/// As [`vdso_image`], and those of memfd_create(2).
pub fn vdso_file(pid: u32) -> io::Result<File> {
    let image = vdso_image(pid)?;
    let mut file = File::from(memfd_create("vdso", MemfdFlags::CLOEXEC)?);
    file.write_all(&image.bytes)?;
    Ok(file)
}
