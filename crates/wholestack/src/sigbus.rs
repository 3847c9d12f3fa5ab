//! A file that is shortened while it is mapped must not end the recording.
//!
//! Executable files are read through memory mappings. Their owner may truncate one meanwhile; touching what is gone
//! raises SIGBUS. The handler puts zeros there: the decoders take any bytes, and name what they cannot use.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// Set when a file was shortened under a mapping.
static SHORTENED: AtomicBool = AtomicBool::new(false);

/// Bytes of a page; asking for it is not for a signal handler.
static PAGE: AtomicUsize = AtomicUsize::new(4096);

/// Whether a file was shortened while it was read.
pub(crate) fn happened() -> bool {
    SHORTENED.load(Ordering::Relaxed)
}

/// Installs the handler.
pub(crate) fn install() -> std::io::Result<()> {
    PAGE.store(rustix::param::page_size(), Ordering::Relaxed);
    // SAFETY: an all-zero sigaction is valid; the handler calls only what is safe in a signal handler.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = handler as *const () as usize;
        action.sa_flags = libc::SA_SIGINFO | libc::SA_RESTART;
        if libc::sigaction(libc::SIGBUS, &action, std::ptr::null_mut()) != 0 {
            return Err(std::io::Error::last_os_error());
        }
    }
    Ok(())
}

extern "C" fn handler(_signal: libc::c_int, info: *mut libc::siginfo_t, _context: *mut libc::c_void) {
    let page_size = PAGE.load(Ordering::Relaxed);
    // SAFETY: the kernel gives a valid siginfo for SA_SIGINFO; si_addr is set for SIGBUS of memory accesses.
    let (code, address) = unsafe { ((*info).si_code, (*info).si_addr() as usize) };
    let replaced = code == libc::BUS_ADRERR && {
        // SAFETY: replaces the page at the address that just faulted, which has no bytes behind it, by zeros. Only a
        // mapping of a file that became shorter faults like this.
        let page = unsafe {
            libc::mmap(
                (address & !(page_size - 1)) as *mut libc::c_void,
                page_size,
                libc::PROT_READ,
                libc::MAP_PRIVATE | libc::MAP_FIXED | libc::MAP_ANONYMOUS,
                -1,
                0,
            )
        };
        page != libc::MAP_FAILED
    };
    if replaced {
        SHORTENED.store(true, Ordering::Relaxed);
    } else {
        // SAFETY: back to the default; the access is tried again and ends the process as it would have.
        unsafe { libc::signal(libc::SIGBUS, libc::SIG_DFL) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::os::fd::AsRawFd;

    #[test]
    fn what_was_cut_off_reads_as_zeros() {
        let page_size = rustix::param::page_size();
        let mut file = tempfile::tempfile().expect("a file");
        file.write_all(&vec![7; 3 * page_size]).expect("written");
        // SAFETY: a new mapping at a place of the kernel's choice.
        let memory = unsafe {
            libc::mmap(std::ptr::null_mut(), 3 * page_size, libc::PROT_READ, libc::MAP_PRIVATE, file.as_raw_fd(), 0)
        };
        assert_ne!(memory, libc::MAP_FAILED);
        // SAFETY: within the mapping, which stays; the handler puts memory where there is none.
        let byte = |at: usize| unsafe { memory.cast::<u8>().add(at).read_volatile() };
        install().expect("a handler");
        assert_eq!((byte(0), byte(2 * page_size + 5), happened()), (7, 7, false));
        file.set_len(page_size as u64).expect("cut");
        assert_eq!((byte(5), byte(page_size + 5), byte(3 * page_size - 1)), (7, 0, 0));
        assert!(happened());
    }
}
