//! The line that shows that something is going on.

use std::io::{IsTerminal, Write, stderr};
use std::time::{Duration, Instant};

use recorder::Recording;

/// Between two changes of the line.
const EVERY: Duration = Duration::from_millis(500);

/// One line of a terminal, rewritten in place. Silent where there is no terminal.
pub(super) struct ProgressLine {
    active: bool,
    shown: Option<Instant>,
}

impl ProgressLine {
    pub(super) fn new(quiet: bool) -> ProgressLine {
        ProgressLine { active: !quiet && stderr().is_terminal(), shown: None }
    }

    /// Shows how far the recording is, if it is time.
    pub(super) fn show(&mut self, recording: &Recording) {
        if !self.active || self.shown.is_some_and(|shown| shown.elapsed() < EVERY) {
            return;
        }
        self.shown = Some(Instant::now());
        let progress = recording.progress();
        let mut err = stderr().lock();
        let _ = write!(
            err,
            "\r\x1b[Krecording {:.1} s, {} samples, {} processes, {} lost (Ctrl-C ends)",
            progress.elapsed.as_secs_f64(),
            progress.samples,
            progress.processes,
            progress.lost
        );
        let _ = err.flush();
    }

    /// Removes the line.
    pub(super) fn clear(&mut self) {
        if self.shown.take().is_some() {
            let mut err = stderr().lock();
            let _ = write!(err, "\r\x1b[K");
            let _ = err.flush();
        }
    }
}
