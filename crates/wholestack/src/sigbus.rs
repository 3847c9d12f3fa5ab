//! A file that is shortened while it is mapped must not end the recording.
//!
//! Executable files are read through memory mappings. Their owner may truncate one meanwhile; touching what is gone
//! raises SIGBUS. The handler puts zeros there: the decoders take any bytes, and name what they cannot use.

use std::sync::atomic::{AtomicBool, Ordering};

/// Set when a file was shortened under a mapping.
static SHORTENED: AtomicBool = AtomicBool::new(false);

/// Whether a file was shortened while it was read.
pub(crate) fn happened() -> bool {
    SHORTENED.load(Ordering::Relaxed)
}

/// Installs the handler.
pub(crate) fn install() -> std::io::Result<()> {
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
    const PAGE: usize = 4096;
    // SAFETY: the kernel gives a valid siginfo for SA_SIGINFO; si_addr is set for SIGBUS of memory accesses.
    let (code, address) = unsafe { ((*info).si_code, (*info).si_addr() as usize) };
    let replaced = code == libc::BUS_ADRERR && {
        // SAFETY: replaces the page at the address that just faulted, which has no bytes behind it, by zeros. Only a
        // mapping of a file that became shorter faults like this.
        let page = unsafe {
            libc::mmap(
                (address & !(PAGE - 1)) as *mut libc::c_void,
                PAGE,
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
