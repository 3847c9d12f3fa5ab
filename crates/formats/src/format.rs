//! The formats and how they are told apart by name.

use std::io::Write;
use std::path::Path;

use profile::Profile;

use crate::{Error, folded, html, pprof, speedscope, svg};

/// A format.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Format {
    /// One page that shows and searches the profile.
    Html,
    /// A flame graph as a picture.
    Svg,
    /// JSON for speedscope.
    Speedscope,
    /// A gzipped protocol buffer for pprof.
    Pprof,
    /// Folded stacks, a line each.
    Folded,
}

impl Format {
    /// Every format.
    pub const ALL: &'static [Format] = &[Format::Html, Format::Svg, Format::Speedscope, Format::Pprof, Format::Folded];

    /// How the names of its files end, the usual ending first.
    pub fn extensions(self) -> &'static [&'static str] {
        match self {
            Format::Html => &[".html"],
            Format::Svg => &[".svg"],
            Format::Speedscope => &[".json"],
            Format::Pprof => &[".pb.gz", ".pb", ".pprof"],
            Format::Folded => &[".folded", ".collapsed"],
        }
    }

    /// The format that the name of a file says, in whatever case.
    pub fn of_path(path: &Path) -> Result<Format, Error> {
        let name = path.file_name().unwrap_or_default().to_string_lossy().to_ascii_lowercase();
        let ends =
            |format: &Format| format.extensions().iter().any(|end| name.len() > end.len() && name.ends_with(end));
        Format::ALL.iter().copied().find(ends).ok_or_else(|| Error::UnknownExtension {
            path: path.to_owned(),
            known: Format::ALL.iter().flat_map(|format| format.extensions()).copied().collect::<Vec<_>>().join(" "),
        })
    }

    /// Writes a profile in this format. `out` should be buffered, for formats write in small pieces.
    pub fn write(self, profile: &Profile, out: &mut dyn Write) -> Result<(), Error> {
        match self {
            Format::Html => html::write(profile, out),
            Format::Svg => svg::write(profile, out),
            Format::Speedscope => speedscope::write(profile, out),
            Format::Pprof => pprof::write(profile, out),
            Format::Folded => folded::write(profile, out),
        }
    }
}
