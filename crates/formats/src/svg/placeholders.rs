//! Characters that stand in for others on their way through inferno.
//!
//! Inferno splits what it is given at `;` and blanks and takes `_[k]` off names, and it cannot set a word in colour.
//! So what it must not see as such goes through it as a C1 control character and is put back in the picture. No
//! name holds a C1 control character by then, for [`crate::escape`] has replaced them.

use std::io::{self, Write};

use super::colours::{self, Shade};

/// What stands for a character of a name.
const CHARACTERS: &[(char, char)] = &[(' ', '\u{80}'), (';', '\u{81}'), ('[', '\u{82}'), (']', '\u{83}')];
/// What stands for nothing: it only tells labels apart.
pub(super) const NOTHING: &str = "\u{84}";
/// The first of those that stand for the squares of the legend.
const FIRST_SQUARE: u32 = 0x90;

/// The stand-in for a character; the character itself if it has none.
pub(super) fn of(c: char) -> char {
    CHARACTERS.iter().find(|(real, _)| *real == c).map_or(c, |(_, stand_in)| *stand_in)
}

/// The stand-in for the legend's square in the colour of `shade`.
pub(super) fn square(shade: Shade) -> char {
    char::from_u32(FIRST_SQUARE + shade as u32).unwrap_or('■')
}

/// Writes `svg` with what the stand-ins stand for.
pub(super) fn resolve(svg: &str, out: &mut dyn Write) -> io::Result<()> {
    let mut rest = svg;
    while let Some((at, c)) = rest.char_indices().find(|(_, c)| ('\u{80}'..='\u{9f}').contains(c)) {
        out.write_all(&rest.as_bytes()[..at])?;
        rest = &rest[at + c.len_utf8()..];
        if let Some((real, _)) = CHARACTERS.iter().find(|(_, stand_in)| *stand_in == c) {
            write!(out, "{real}")?;
        } else if let Some(shade) = Shade::ALL.iter().find(|shade| square(**shade) == c) {
            let colour = colours::base(*shade);
            write!(out, r#"<tspan fill="rgb({},{},{})">■</tspan>"#, colour.r, colour.g, colour.b)?;
        }
    }
    out.write_all(rest.as_bytes())
}
