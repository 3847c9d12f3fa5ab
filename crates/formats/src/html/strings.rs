//! The page's table of strings: sorted, each with the length of what it shares with its predecessor.

use std::borrow::Cow;

use super::columns;

/// Strings of the page, in their final order.
pub(super) struct Strings<'a> {
    raw: Vec<&'a str>,
}

impl<'a> Strings<'a> {
    /// The table of `texts`, which may repeat themselves.
    pub(super) fn new(texts: impl IntoIterator<Item = &'a str>) -> Strings<'a> {
        let mut raw: Vec<&str> = texts.into_iter().collect();
        raw.sort_unstable();
        raw.dedup();
        Strings { raw }
    }

    /// The number of a text, which must be one of those that `new` got.
    pub(super) fn number(&self, text: &str) -> u64 {
        // a search, not a hash: the targets choose the texts
        self.raw.partition_point(|known| *known < text) as u64
    }

    /// Appends the table: shared lengths and lengths of the rest as columns, in UTF-16 units as the page's script
    /// counts them, then all rests as UTF-8.
    pub(super) fn put(&self, out: &mut Vec<u8>) {
        let mut shared_lengths = Vec::with_capacity(self.raw.len());
        let mut rest_lengths = Vec::with_capacity(self.raw.len());
        let mut rests = Vec::new();
        let mut previous = Cow::Borrowed("");
        for text in self.raw.iter().map(|text| visible(text)) {
            let (shared, rest) = text.split_at(shared_prefix(&previous, &text));
            shared_lengths.push(utf16_length(shared));
            rest_lengths.push(utf16_length(rest));
            rests.extend_from_slice(rest.as_bytes());
            previous = text;
        }
        columns::put_column(out, shared_lengths.into_iter());
        columns::put_column(out, rest_lengths.into_iter());
        columns::put_bytes(out, &rests);
    }
}

fn utf16_length(text: &str) -> u64 {
    text.chars().map(|c| c.len_utf16() as u64).sum()
}

/// Length of what two texts share at their beginning, in bytes of whole characters.
fn shared_prefix(a: &str, b: &str) -> usize {
    a.chars().zip(b.chars()).take_while(|(a, b)| a == b).map(|(a, _)| a.len_utf8()).sum()
}

/// The text with characters that cannot be seen, or that would reorder others, written as escapes.
///
/// Names come from the targets: a control character could drive the terminal that a name is pasted into, and a
/// direction mark could make one name look like another.
pub(super) fn visible(text: &str) -> Cow<'_, str> {
    if !text.contains(is_unseen) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        if is_unseen(c) {
            out.extend(c.escape_default());
        } else {
            out.push(c);
        }
    }
    Cow::Owned(out)
}

fn is_unseen(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{ad}' | '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn unseen_characters_become_escapes() {
        assert_eq!(visible("a\x1b[31mb\nc"), "a\\u{1b}[31mb\\nc");
        assert_eq!(visible("x\u{202e}y"), "x\\u{202e}y");
        assert!(matches!(visible("Größe<T>::naïve 函数"), Cow::Borrowed(_)));
    }

    proptest! {
        #[test]
        fn nothing_unseen_is_left(text: String) {
            let shown = visible(&text);
            prop_assert!(!shown.contains(is_unseen));
        }

        #[test]
        fn shared_prefix_is_a_boundary(a: String, b: String) {
            let shared = shared_prefix(&a, &b);
            prop_assert_eq!(a.get(..shared), b.get(..shared));
            prop_assert!(a[shared..].chars().next().is_none_or(|c| !b[shared..].starts_with(c)));
        }
    }
}
