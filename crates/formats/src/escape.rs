//! Names are chosen by the programs that are profiled: what they may not do to a terminal, a line or a page.
//!
//! Characters that steer rather than show are written as `\u{HEX}`, with the digits of their code point: control
//! characters (so no terminal escape sequence survives), line and paragraph separators, blanks other than the
//! plain one, marks that are invisible or turn the direction of writing, and non-characters, which XML forbids.

use std::borrow::Cow;
use std::fmt::Write as _;

/// Whether a character steers rather than shows.
fn steers(c: char) -> bool {
    c.is_control()
        || (c.is_whitespace() && c != ' ')
        || matches!(c, '\u{61c}' | '\u{180e}' | '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}')
        || matches!(c, '\u{2060}'..='\u{2069}' | '\u{feff}' | '\u{fdd0}'..='\u{fdef}')
        || u32::from(c) & 0xfffe == 0xfffe
}

/// `text` with the characters that `which` names as `\u{HEX}`.
fn escape(text: &str, which: impl Fn(char) -> bool) -> Cow<'_, str> {
    if !text.contains(&which) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        if which(c) { push_escaped(&mut out, c) } else { out.push(c) }
    }
    Cow::Owned(out)
}

/// Appends `\u{HEX}`.
fn push_escaped(out: &mut String, c: char) {
    // writing to a String cannot fail
    let _ = write!(out, "\\u{{{:x}}}", u32::from(c));
}

/// For places that show a text: what steers is escaped, everything else stays, backslashes too.
pub(crate) fn visible(text: &str) -> Cow<'_, str> {
    escape(text, steers)
}

/// For one frame of a folded stack; see [`crate::folded`] for the rules. Two different texts stay different.
pub(crate) fn folded(text: &str) -> Cow<'_, str> {
    if text.is_empty() {
        return Cow::Borrowed("\\u{}");
    }
    let inner = text.trim_matches(' ');
    // alone, it may stand before the blank of the count
    let is_comment = text == "#" || text.starts_with("# ");
    if inner.len() == text.len() && !text.contains(|c| steers(c) || matches!(c, ';' | '\\')) && !is_comment {
        return Cow::Borrowed(text);
    }
    let before = text.len() - text.trim_start_matches(' ').len();
    let after = if inner.is_empty() { 0 } else { before + inner.len() };
    let mut out = String::with_capacity(text.len() + 16);
    for (at, c) in text.char_indices() {
        let outside = at < before || at >= after;
        match c {
            '\\' => out.push_str("\\\\"),
            ' ' if outside => push_escaped(&mut out, c),
            '#' if at == 0 && is_comment => push_escaped(&mut out, c),
            c if c == ';' || steers(c) => push_escaped(&mut out, c),
            c => out.push(c),
        }
    }
    Cow::Owned(out)
}

/// The suffixes by which readers of folded stacks tell kinds of frames; `text` must not end in one by itself.
pub(crate) fn without_suffix(text: Cow<'_, str>) -> Cow<'_, str> {
    match text.strip_suffix(']') {
        Some(rest) if ["_[k", "_[i", "_[j", "_[w"].iter().any(|end| rest.ends_with(end)) => {
            Cow::Owned(format!("{rest}\\u{{5d}}"))
        }
        _ => text,
    }
}

/// The innermost frame of a line. Readers take a last word of digits for a count: the blank before it is escaped.
pub(crate) fn innermost(frame: &str) -> Cow<'_, str> {
    match frame.rsplit_once(' ') {
        Some((head, word)) if word.bytes().all(|b| b.is_ascii_digit() || b == b'.') => {
            Cow::Owned(format!("{head}\\u{{20}}{word}"))
        }
        _ => Cow::Borrowed(frame),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_steers_is_escaped() {
        assert_eq!(visible("a\x1b[31mb"), "a\\u{1b}[31mb");
        assert_eq!(
            visible("a\u{9b}b\u{202e}c\u{2028}d\u{ffff}\u{a0}"),
            "a\\u{9b}b\\u{202e}c\\u{2028}d\\u{ffff}\\u{a0}"
        );
        assert_eq!(visible("[u8; 4] C:\\ übel 日本"), "[u8; 4] C:\\ übel 日本");
    }

    #[test]
    fn folded_frames_hold_no_separator() {
        assert_eq!(folded("plain name"), "plain name");
        assert_eq!(folded("<[u8; 4]>::fmt"), "<[u8\\u{3b} 4]>::fmt");
        assert_eq!(folded("a\nb\tc"), "a\\u{a}b\\u{9}c");
        assert_eq!(folded("a\\u{a}"), "a\\\\u{a}");
        assert_eq!(folded("  x "), "\\u{20}\\u{20}x\\u{20}");
        assert_eq!(folded("  "), "\\u{20}\\u{20}");
        assert_eq!(folded("# x"), "\\u{23} x");
        assert_eq!(folded("#"), "\\u{23}");
        assert_eq!(folded("#x"), "#x");
        assert_eq!(folded(""), "\\u{}");
    }

    #[test]
    fn a_name_cannot_pass_for_another_kind() {
        assert_eq!(without_suffix("x_[k]".into()), "x_[k\\u{5d}");
        assert_eq!(without_suffix("x[k]".into()), "x[k]");
    }

    #[test]
    fn a_name_cannot_end_in_a_count() {
        assert_eq!(innermost("worker 12"), "worker\\u{20}12");
        assert_eq!(innermost("worker 1.5"), "worker\\u{20}1.5");
        assert_eq!(innermost("worker #2"), "worker #2");
        assert_eq!(innermost("12"), "12");
    }
}
