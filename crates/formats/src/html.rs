//! An interactive flame graph in one self-contained HTML file.
//!
//! The page is `viewer/` (HTML, style and script as separate readable files, joined at compile time) with the profile
//! put in as base64 of a gzip stream; `data` describes that stream. Nothing that comes from a target is ever part of
//! the markup: base64 cannot close an element, and the script shows names as text only. The page's content security
//! policy forbids the network altogether and allows exactly this script and this style, by their hashes.

mod base64;
mod columns;
mod data;
mod strings;
mod tree;

use std::io::Write;

use flate2::{Compression, write::GzEncoder};
use profile::Profile;
use sha2::{Digest, Sha256};

use crate::Error;

/// The page with marks where the parts go in.
const PAGE: &str = include_str!("../viewer/viewer.html");

/// Its style.
const STYLE: &str = include_str!("../viewer/viewer.css");

/// Its script: one scope, in order of dependence.
const SCRIPT: &str = concat!(
    "'use strict';\n",
    include_str!("../viewer/profile.js"),
    include_str!("../viewer/qualified.js"),
    include_str!("../viewer/names.js"),
    include_str!("../viewer/palette.js"),
    include_str!("../viewer/samples.js"),
    include_str!("../viewer/trees.js"),
    include_str!("../viewer/search.js"),
    include_str!("../viewer/layout.js"),
    include_str!("../viewer/canvas.js"),
    include_str!("../viewer/details.js"),
    include_str!("../viewer/functions.js"),
    include_str!("../viewer/about.js"),
    include_str!("../viewer/app.js"),
    include_str!("../viewer/controls.js"),
    include_str!("../viewer/keys.js"),
    include_str!("../viewer/link.js"),
    include_str!("../viewer/main.js"),
);

/// Writes `profile` as a page.
///
/// # Errors
/// If writing to `out` fails.
pub fn write(profile: &Profile, out: &mut dyn Write) -> Result<(), Error> {
    let mut rest = PAGE;
    for (mark, part) in [("@@POLICY@@", &*policy()), ("@@STYLE@@", STYLE)] {
        rest = write_up_to(rest, mark, out)?;
        out.write_all(part.as_bytes())?;
    }
    rest = write_up_to(rest, "@@DATA@@", out)?;
    write_data(profile, out)?;
    rest = write_up_to(rest, "@@SCRIPT@@", out)?;
    out.write_all(SCRIPT.as_bytes())?;
    out.write_all(rest.as_bytes())?;
    Ok(())
}

/// Writes what comes before `mark` and gives back what comes after it.
fn write_up_to<'a>(page: &'a str, mark: &str, out: &mut dyn Write) -> Result<&'a str, Error> {
    let (before, after) = page.split_once(mark).unwrap_or((page, ""));
    out.write_all(before.as_bytes())?;
    Ok(after)
}

/// The content security policy: no network, no other script or style than ours.
fn policy() -> String {
    format!(
        "default-src 'none'; script-src {}; style-src {}; img-src data:; base-uri 'none'; form-action 'none'",
        source_hash(SCRIPT),
        source_hash(STYLE)
    )
}

/// A hash source as the policy wants it.
fn source_hash(text: &str) -> String {
    format!("'sha256-{}'", base64::encode(&Sha256::digest(text)))
}

/// Writes the profile's data as base64 of gzip.
fn write_data(profile: &Profile, out: &mut dyn Write) -> Result<(), Error> {
    let plain = data::encode(profile).map_err(std::io::Error::from)?;
    let mut gzip = GzEncoder::new(Vec::new(), Compression::new(6));
    gzip.write_all(&plain)?;
    out.write_all(base64::encode(&gzip.finish()?).as_bytes())?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parts_fit_into_the_page() {
        for mark in ["@@POLICY@@", "@@STYLE@@", "@@DATA@@", "@@SCRIPT@@"] {
            assert_eq!(PAGE.matches(mark).count(), 1, "{mark}");
        }
        // what would end the element early, or switch the parser to another state within a script
        let script = SCRIPT.to_lowercase();
        assert!(!script.contains("</script") && !script.contains("<!--") && !script.contains("<script"));
        assert!(!STYLE.to_lowercase().contains("</style"));
        // a carriage return is normalised by the parser and would change the hash
        assert!(!SCRIPT.contains('\r') && !STYLE.contains('\r'));
    }

    #[test]
    fn script_uses_no_markup_sink_and_no_network() {
        for word in
            ["innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "fetch(", "XMLHttpRequest"]
        {
            assert!(!SCRIPT.contains(word), "{word}");
        }
    }

    #[test]
    fn hash_sources_are_those_of_openssl() {
        // printf abc | openssl dgst -sha256 -binary | base64
        assert_eq!(source_hash("abc"), "'sha256-ungWv48Bz+pBQUDeXa4iI7ADYaOWF3qctBD/YfIAFa0='");
    }

    #[test]
    fn names_are_no_part_of_the_markup() {
        let mut builder = profile::Builder::default();
        let process = builder.process(1, "</script><b>process");
        let thread = builder.thread(process, 1, "<!--thread");
        builder.meta_mut().target = "</title><i>target".to_owned();
        builder.add(thread, None, 1);
        let mut page = Vec::new();
        write(&builder.finish(), &mut page).unwrap();
        let page = String::from_utf8(page).unwrap();
        assert!(!page.contains("<b>process") && !page.contains("<!--thread") && !page.contains("<i>target"));
        assert_eq!(page.to_lowercase().matches("</script>").count(), 2, "the data and the script");
    }
}
