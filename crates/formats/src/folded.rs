//! Folded stacks, one line each: `process;outermost;...;innermost COUNT`.
//!
//! The first frame is the name of the process; where the name of the thread differs from it, that is the second.
//! Equal lines are one. Lines are in the order of their frames, byte by byte, a stack before those it is the
//! beginning of; the order does not depend on the order of the samples.
//!
//! # Kinds
//! A kernel function ends in `_[k]`, an inlined one in `_[i]`, a just-in-time compiled one in `_[j]`, the suffixes
//! that flame graph tools colour by. A Python function has the name of its file in parentheses behind its own. Markers are in
//! brackets.
//!
//! There are only stacks: what is to be known of the recording is in the other formats, for not every reader of folded stacks
//! knows comments.
//!
//! # Escapes
//! A line is split at `;` and before its last blank, so names must not contain what splits. The rules are
//! unambiguous: a reader gets the name back by replacing `\u{HEX}` with the character of that code point, `\u{}`
//! with nothing, and `\\` with a backslash.
//!
//! | in a name | in the line |
//! |---|---|
//! | `\` | `\\` |
//! | `;`, control characters, line separators, blanks other than the plain one, invisible and direction marks | `\u{HEX}` |
//! | a plain blank at the beginning or the end | `\u{20}` |
//! | a blank before a last word of digits, in the innermost frame | `\u{20}` |
//! | `#` at the beginning, before a blank or alone, which would be a comment | `\u{23}` |
//! | the `]` of a name that ends like a kind (`_[k]`) without being one | `\u{5d}` |
//! | nothing at all | `\u{}` |

use std::io::Write;

use profile::{FrameId, Kind, Profile};

use crate::Error;
use crate::escape;
use crate::tree::{Labels, ROOT, Tree};

/// Writes the lines.
pub fn write(profile: &Profile, out: &mut dyn Write) -> Result<(), Error> {
    let tree = Tree::new(profile, &Folded(profile));
    let mut line = String::new();
    // (node, length of the line in front of it), next one last
    let mut open: Vec<(usize, usize)> = tree.nodes[ROOT].children.iter().rev().map(|child| (*child, 0)).collect();
    while let Some((node, front)) = open.pop() {
        line.truncate(front);
        let separator = if front == 0 { "" } else { ";" };
        let label = tree.label(node);
        let own = tree.nodes[node].own;
        if own > 0 {
            writeln!(out, "{line}{separator}{} {own}", escape::innermost(label))?;
        }
        line.push_str(separator);
        line.push_str(label);
        open.extend(tree.nodes[node].children.iter().rev().map(|child| (*child, line.len())));
    }
    Ok(())
}

/// Labels as they stand in a line.
struct Folded<'a>(&'a Profile);

impl Labels for Folded<'_> {
    fn task(&self, name: &str) -> String {
        escape::without_suffix(escape::folded(name)).into_owned()
    }

    fn frame(&self, frame: FrameId) -> String {
        let name = self.0.label(frame, self.0.meta.lines);
        let name = escape::without_suffix(escape::folded(&name));
        let suffix = match self.0.function_of(frame).kind {
            Kind::Kernel => "_[k]",
            Kind::Marker => "",
            _ if self.0.frames[frame.index()].inlined => "_[i]",
            Kind::Jit => "_[j]",
            Kind::Native | Kind::Python => "",
        };
        format!("{name}{suffix}")
    }
}
