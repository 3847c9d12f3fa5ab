//! A flame graph as one SVG file: root at the top, callees below their callers, width by samples. A deep stack makes a
//! tall picture, and browsers show its top first: with the root at the bottom it would open on an empty page.
//!
//! It is drawn by the library [inferno](https://github.com/jonhoo/inferno), whose script in the file zooms and
//! searches. Inferno is used unmodified under the Common Development and Distribution License 1.0 (CDDL-1.0; its
//! source is at that address, the licence at <https://opensource.org/license/cddl-1-0>), and so is the script that
//! it puts into the picture.
//!
//! The topmost boxes are processes, below them threads whose names differ from their process's. Colours tell kinds;
//! the legend is in the line below the title. Boxes narrower than 1/10,000 of the whole are left out. The picture's
//! description (`<desc>`), which programs read and browsers do not show, says what is to be known of the recording, its
//! interpreters and its processes, a line each.

mod colours;
mod lines;
mod placeholders;

use std::borrow::Cow;
use std::io::{self, Write};

use inferno::flamegraph::{self, Direction, Options, TextTruncateDirection};
use jiff::{Timestamp, tz::TimeZone};
use profile::{Meta, Profile};

use crate::tree::Tree;
use crate::{Error, comments, escape};
use colours::Shade;
use lines::{Lines, SvgLabels};

/// Characters of the title that fit between the buttons.
const TITLE_CHARS: usize = 80;
/// How the element begins that holds all others.
const FRAME_OF_ALL: &str = "<svg ";
/// Characters of the command line that leave room for what stands beside it.
const COMMAND_CHARS: usize = 44;

/// Writes the picture.
pub fn write(profile: &Profile, out: &mut dyn Write) -> Result<(), Error> {
    let tree = Tree::new(profile, &SvgLabels(profile));
    let lines = Lines::new(&tree);
    if lines.is_empty() {
        return write_empty(&profile.meta, out);
    }
    let mut palette = colours::palette(&tree);
    let mut options = Options::default();
    options.title = title(&profile.meta);
    options.subtitle = Some(subtitle(&profile.meta, &tree, &lines));
    options.name_type = "Frame:".to_owned();
    options.bgcolors = Some(colours::BACKGROUND);
    options.palette_map = Some(&mut palette);
    options.text_truncate_direction = TextTruncateDirection::Right;
    options.factor = lines.factor();
    // what is too narrow is already left out
    options.min_width = 0.0;
    // keeps the order of the lines; inferno's own order tears `a` apart where `a!` is its sibling
    options.flame_chart = true;
    options.direction = Direction::Inverted;
    let mut svg = Vec::new();
    flamegraph::from_lines(&mut options, lines.last_first(), &mut svg)?;
    let svg = String::from_utf8(svg).map_err(io::Error::other)?;
    let head = svg.find(FRAME_OF_ALL).and_then(|start| Some(start + svg[start..].find('>')? + 1)).unwrap_or(0);
    out.write_all(&svg.as_bytes()[..head])?;
    writeln!(out, "{}", description(&profile.meta))?;
    placeholders::resolve(&svg[head..], out)?;
    Ok(())
}

/// What is to be known of the recording.
fn description(meta: &Meta) -> String {
    let lines = [comments::of_recording(meta), comments::of_processes(meta)].concat();
    let lines: Vec<String> = lines.iter().map(|line| markup(&escape::visible(line))).collect();
    format!("<desc>{}</desc>", lines.join("\n"))
}

fn title(meta: &Meta) -> String {
    let target = if meta.target.is_empty() { "wholestack" } else { &meta.target };
    cut(&escape::visible(target), TITLE_CHARS).into_owned()
}

/// Command line, time, duration, samples, and the legend.
fn subtitle(meta: &Meta, tree: &Tree, lines: &Lines) -> String {
    let mut parts = about(meta);
    parts.push(format!("{} samples", lines.total()));
    let lost = meta.losses.iter().fold(0_u64, |sum, lost| sum.saturating_add(lost.count));
    if lost > 0 {
        parts.push(format!("{lost} lost"));
    }
    let legend: Vec<String> =
        Shade::ALL.iter().filter(|shade| colours::occurs(**shade, tree)).map(|shade| shade.legend()).collect();
    format!("{}   {}", parts.join(", "), legend.join(" "))
}

/// What is said of a recording whatever came of it.
fn about(meta: &Meta) -> Vec<String> {
    let mut parts = Vec::new();
    if !meta.command_line.is_empty() {
        parts.push(cut(&escape::visible(&meta.command_line), COMMAND_CHARS).into_owned());
    }
    if let Ok(start) = Timestamp::try_from(meta.start)
        && start > Timestamp::UNIX_EPOCH
    {
        parts.push(start.to_zoned_datetime(TimeZone::system()).strftime("%Y-%m-%d %H:%M").to_string());
    }
    if !meta.duration.is_zero() {
        parts.push(format!("{:.1} s", meta.duration.as_secs_f64()));
    }
    if meta.frequency != 0 {
        parts.push(format!("{} Hz", meta.frequency));
    }
    parts
}

/// At most `most` characters of a text.
fn cut(text: &str, most: usize) -> Cow<'_, str> {
    match text.char_indices().nth(most) {
        None => Cow::Borrowed(text),
        Some(_) => Cow::Owned(text.chars().take(most - 1).chain(['…']).collect()),
    }
}

/// The picture of a profile without samples, which inferno takes for an error.
fn write_empty(meta: &Meta, out: &mut dyn Write) -> Result<(), Error> {
    let mut parts = about(meta);
    parts.push("no samples".to_owned());
    let (title, subtitle, description) = (markup(&title(meta)), markup(&parts.join(", ")), description(meta));
    writeln!(
        out,
        r##"<?xml version="1.0" encoding="UTF-8" standalone="no"?>
<svg version="1.1" width="1200" height="90" viewBox="0 0 1200 90" xmlns="http://www.w3.org/2000/svg">
{description}
<rect x="0" y="0" width="100%" height="90" fill="rgb(248,248,248)"/>
<text x="50%" y="24" text-anchor="middle" font-family="monospace" font-size="17">{title}</text>
<text x="50%" y="48" text-anchor="middle" font-family="monospace" font-size="12">{subtitle}</text>
</svg>"##
    )?;
    Ok(())
}

fn markup(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
