//! Ctrl-C and the signals that end a recording.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGXFSZ};
use signal_hook::flag;

use crate::exit;

/// Whether the user wants to stop. The first signal asks, the second one ends the program at once.
pub(crate) struct Stop {
    asked: Arc<AtomicBool>,
}

impl Stop {
    /// Catches SIGINT, SIGTERM and SIGHUP from now on, and SIGXFSZ, so that a file that may not grow is an error of writing.
    pub(crate) fn catch() -> std::io::Result<Stop> {
        let asked = Arc::new(AtomicBool::new(false));
        for signal in [SIGINT, SIGTERM, SIGHUP] {
            // in this order: the first signal finds the flag unset, and sets it
            flag::register_conditional_shutdown(signal, i32::from(exit::INTERRUPTED), asked.clone())?;
            flag::register(signal, asked.clone())?;
        }
        // caught and not ignored: a command that is started would inherit that
        flag::register(SIGXFSZ, Arc::new(AtomicBool::new(false)))?;
        Ok(Stop { asked })
    }

    /// Whether a signal came.
    pub(crate) fn asked(&self) -> bool {
        self.asked.load(Ordering::Relaxed)
    }
}
