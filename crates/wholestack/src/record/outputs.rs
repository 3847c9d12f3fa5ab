//! Where a profile goes.

use std::path::{Path, PathBuf};

use formats::Output;

use crate::exit::Failure;

/// Checks the outputs that were asked for, or takes the default one.
pub(super) fn open(paths: &[PathBuf], name: &str) -> Result<Vec<Output>, Failure> {
    let default = [default_path(name)];
    let paths = if paths.is_empty() { &default } else { paths };
    let mut outputs: Vec<Output> = Vec::new();
    for path in paths {
        if outputs.iter().any(|output| place(output.path()) == place(path)) {
            return Err(Failure::usage(format!("{}: given twice as an output", path.display())));
        }
        outputs.push(Output::create(path).map_err(Failure::usage)?);
    }
    Ok(outputs)
}

/// The same for all ways to write one path. The file itself is not followed if it is a link: it would be replaced.
fn place(path: &Path) -> PathBuf {
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    match (directory.canonicalize(), path.file_name()) {
        (Ok(directory), Some(name)) if path != Path::new("-") => directory.join(name),
        _ => path.to_owned(),
    }
}

/// `wholestack-NAME-TIME.html` in the current directory.
fn default_path(name: &str) -> PathBuf {
    let safe = |c: char| if c.is_ascii_alphanumeric() || "._+-".contains(c) { c } else { '_' };
    let name: String = name.chars().map(safe).take(64).collect();
    let time = jiff::ZonedDateTime::now().strftime("%Y%m%d-%H%M%S");
    Path::new(&format!("wholestack-{name}-{time}.html")).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_targets_are_tamed() {
        let path = default_path("../../etc/\u{1b}[31mpass wd\n");
        let text = path.to_str().expect("ASCII");
        assert!(text.starts_with("wholestack-.._.._etc__") && text.ends_with(".html"), "{text}");
        assert_eq!(path.components().count(), 1);
        assert!(default_path(&"x".repeat(10_000)).as_os_str().len() < 128);
    }
}
