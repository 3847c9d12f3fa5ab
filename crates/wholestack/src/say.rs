//! What is said to the user, on standard error.

use std::io::Write;

/// Prints a line to standard error, like `eprintln`, with two differences: that nobody listens (the terminal was closed, the
/// reader of a pipe is gone) is no reason to panic and lose a recording, and nothing in it acts on a terminal,
/// whatever a recorded process calls itself.
macro_rules! say {
    ($($part:tt)*) => { $crate::say::line(format_args!($($part)*)) };
}
pub(crate) use say;

/// See [`say`].
pub(crate) fn line(text: std::fmt::Arguments<'_>) {
    let text = plain(&text.to_string()) + "\n";
    // there is nobody else to tell
    let _ = std::io::stderr().lock().write_all(text.as_bytes());
}

/// A text without anything that a terminal would act on.
pub(crate) fn plain(text: &str) -> String {
    text.chars().map(|c| if c.is_control() || is_invisible(c) { '\u{fffd}' } else { c }).collect()
}

/// Characters that nobody sees and that change how others are read: directions, joiners, separators (Unicode 15, "Cf" and "Zl").
fn is_invisible(c: char) -> bool {
    matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_acts_on_a_terminal() {
        assert_eq!(plain("a\u{1b}[31mb\nc\rd\u{9b}1me\u{7}"), "a\u{fffd}[31mb\u{fffd}c\u{fffd}d\u{fffd}1me\u{fffd}");
        assert_eq!(plain("a\u{202e}b\u{2066}\u{200b}"), "a\u{fffd}b\u{fffd}\u{fffd}");
        assert_eq!(plain("Größe 12 µs"), "Größe 12 µs");
    }
}
