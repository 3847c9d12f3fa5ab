//! Ctrl-C and the signals that end a recording.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::flag;

use crate::exit;

/// Whether the user wants to stop. The first signal asks, the second one ends the program at once.
pub(crate) struct Stop {
    asked: Arc<AtomicBool>,
}

impl Stop {
    /// Catches SIGINT, SIGTERM and SIGHUP from now on.
    pub(crate) fn catch() -> std::io::Result<Stop> {
        let asked = Arc::new(AtomicBool::new(false));
        for signal in [SIGINT, SIGTERM, SIGHUP] {
            // in this order: the first signal finds the flag unset, and sets it
            flag::register_conditional_shutdown(signal, i32::from(exit::INTERRUPTED), asked.clone())?;
            flag::register(signal, asked.clone())?;
        }
        Ok(Stop { asked })
    }

    /// Whether a signal came.
    pub(crate) fn asked(&self) -> bool {
        self.asked.load(Ordering::Relaxed)
    }
}
