//! Ctrl-C: noted, so that everything that was started is ended by its owner's drop.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};

use anyhow::{Result, bail};

static ASKED: LazyLock<Arc<AtomicBool>> = LazyLock::new(|| Arc::new(AtomicBool::new(false)));
const STEP: Duration = Duration::from_millis(20);

/// Notes SIGINT, SIGTERM and SIGHUP from now on.
///
/// # Errors
/// What the kernel says.
pub fn catch() -> io::Result<()> {
    [libc::SIGINT, libc::SIGTERM, libc::SIGHUP]
        .into_iter()
        .try_for_each(|signal| signal_hook::flag::register(signal, Arc::clone(&ASKED)).map(drop))
}

/// # Errors
/// If the user asked to end.
pub fn check() -> Result<()> {
    if ASKED.load(Ordering::Relaxed) {
        bail!("interrupted")
    }
    Ok(())
}

/// Sleeps.
///
/// # Errors
/// As [`check`], and soon.
pub fn pause(time: Duration) -> Result<()> {
    let begun = Instant::now();
    while let Some(left) = time.checked_sub(begun.elapsed()).filter(|left| !left.is_zero()) {
        check()?;
        std::thread::sleep(left.min(STEP));
    }
    check()
}
