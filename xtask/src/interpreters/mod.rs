//! `cargo xtask interpreters`: builds of CPython that this machine's distribution does not have, for tests to explain.
//!
//! Nothing is installed. Each bundle is a directory of its own: packages of other Debian suites unpacked ([`mod@debian`]),
//! a distribution that a Go module carries ([`mod@standalone`]), a build from Debian's source package ([`build`]).

mod apt;
mod build;
mod debian;
mod pyinstaller;
mod standalone;

use std::fmt::{Display, Formatter};
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context, Result, bail};

use crate::command;
use crate::tree;
use build::Variant;
use debian::Suite;

const EXAMPLES: &str = "Examples:
  cargo xtask interpreters                              all, below target/interpreters
  cargo xtask interpreters --list                       what there is, and what is here
  cargo xtask interpreters --only sid-amd64             one
  cargo xtask interpreters --only free-threaded --again anew, in the versions of today
  cargo xtask interpreters --into /var/tmp/interpreters elsewhere; tests look there if
                                                        WHOLESTACK_INTERPRETERS names it

Needs apt-get, apt-cache, dpkg-deb and Debian's archive keyring; go for standalone-*; cc, make (and musl-gcc) to build; python3-venv.
No right beyond writing to the directory is needed.";

/// Options of `interpreters`.
#[derive(clap::Args, Debug, Default)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// Where to put them; without it, `interpreters` in cargo's target directory
    #[arg(long, value_name = "DIR")]
    into: Option<PathBuf>,
    /// Only this one; may be given several times
    #[arg(long, value_name = "NAME")]
    only: Vec<String>,
    /// Get anew what is here already
    #[arg(long)]
    again: bool,
    /// Only say what there is
    #[arg(long)]
    list: bool,
}

/// Interpreters that come together.
struct Bundle {
    /// Its directory.
    name: &'static str,
    source: Source,
}

/// Where a bundle comes from.
enum Source {
    Debian(Suite),
    /// A version of [`standalone::MODULE`], and an architecture as Go calls it.
    Standalone(&'static str, &'static str),
    Build(Variant),
    PyInstaller,
}

const fn debian(name: &'static str, suite: Suite) -> Bundle {
    Bundle { name, source: Source::Debian(suite) }
}

const fn standalone(name: &'static str, version: &'static str, architecture: &'static str) -> Bundle {
    Bundle { name, source: Source::Standalone(version, architecture) }
}

/// All of them. What is of another architecture is read as files.
const BUNDLES: &[Bundle] = &[
    debian("sid-amd64", Suite::new("sid", "amd64", &["3.13", "3.14", "3.15"])),
    debian("sid-arm64", Suite::new("sid", "arm64", &["3.13", "3.14", "3.15"])),
    debian("trixie-amd64", Suite::new("trixie", "amd64", &["3.13"])),
    debian("trixie-arm64", Suite::new("trixie", "arm64", &["3.13"])),
    debian("bookworm-amd64", Suite::new("bookworm", "amd64", &["3.11"]).and(&["python3.11-dbg"])),
    debian("bookworm-arm64", Suite::new("bookworm", "arm64", &["3.11"])),
    debian("bullseye-amd64", Suite::new("bullseye", "amd64", &["3.9"])),
    debian("bullseye-arm64", Suite::new("bullseye", "arm64", &["3.9"])),
    standalone("standalone-3.10-amd64", "v0.0.0-3.10.16-20241219-1", "amd64"),
    standalone("standalone-3.11-amd64", "v0.0.0-3.11.11-20241219-1", "amd64"),
    standalone("standalone-3.14-amd64", "v0.0.0-3.14.6-20260610-1", "amd64"),
    standalone("standalone-3.14-arm64", "v0.0.0-3.14.6-20260610-1", "arm64"),
    Bundle { name: "free-threaded", source: Source::Build(Variant::FreeThreaded) },
    Bundle { name: "musl", source: Source::Build(Variant::Musl) },
    Bundle { name: "pyinstaller", source: Source::PyInstaller },
];

/// The file in a bundle that says what is in it; it is written last.
const CONTENTS: &str = "CONTENTS";

/// Gets what is not here; goes on after a failure, and then fails.
pub fn run(arguments: &Arguments) -> Result<()> {
    let into = match &arguments.into {
        Some(directory) => std::path::absolute(directory).context("no such directory")?,
        None => tree::target()?.join("interpreters"),
    };
    let wanted = wanted(&arguments.only)?;
    if arguments.list {
        wanted.iter().for_each(|bundle| println!("{:<24}{}", bundle.name, state(&into, bundle)));
        return Ok(());
    }
    std::fs::create_dir_all(&into).with_context(|| format!("{} cannot be made", into.display()))?;
    let failed: Vec<_> = wanted.iter().filter(|bundle| !get(&into, bundle, arguments.again)).collect();
    if !failed.is_empty() {
        let names: Vec<_> = failed.iter().map(|bundle| bundle.name).collect();
        bail!("{} of {} cannot be had: {}", failed.len(), wanted.len(), names.join(", "));
    }
    println!("all are in {}", into.display());
    Ok(())
}

/// Gets those of the newest Debian for this architecture, which takes seconds.
pub fn get_newest() -> Result<()> {
    let name = if cfg!(target_arch = "aarch64") { "sid-arm64" } else { "sid-amd64" };
    run(&Arguments { only: vec![name.to_owned()], ..Arguments::default() })
}

fn wanted(only: &[String]) -> Result<Vec<&'static Bundle>> {
    for name in only {
        if !BUNDLES.iter().any(|bundle| bundle.name == name) {
            let names: Vec<_> = BUNDLES.iter().map(|bundle| bundle.name).collect();
            bail!("no bundle is called {name}; there are {}", names.join(", "));
        }
    }
    let is_wanted = |bundle: &&Bundle| only.is_empty() || only.iter().any(|name| name == bundle.name);
    Ok(BUNDLES.iter().filter(is_wanted).collect())
}

/// What is in a bundle that is here, and made as it would be made now.
fn state(into: &Path, bundle: &Bundle) -> String {
    contents(into, bundle).map_or_else(|| format!("not here: {}", bundle.source), |contents| contents.join(", "))
}

fn contents(into: &Path, bundle: &Bundle) -> Option<Vec<String>> {
    let text = std::fs::read_to_string(into.join(bundle.name).join(CONTENTS)).ok()?;
    let mut lines = text.lines().map(str::to_owned);
    (lines.next()? == bundle.source.to_string()).then(|| lines.collect())
}

/// Gets a bundle unless it is here, and says which versions; whether that went well.
fn get(into: &Path, bundle: &Bundle, again: bool) -> bool {
    if !again && let Some(contents) = contents(into, bundle) {
        println!("{}: here already: {}", bundle.name, contents.join(", "));
        return true;
    }
    println!("{}: {}", bundle.name, bundle.source);
    let start = Instant::now();
    match make(into, bundle) {
        Ok(contents) => {
            println!("{}: {} ({:.0} s)", bundle.name, contents.join(", "), start.elapsed().as_secs_f64());
            true
        }
        Err(error) => {
            eprintln!("error: {}: {error:#}", bundle.name);
            false
        }
    }
}

/// Makes a bundle where it will be, since a build knows its own place; without its contents it counts for nothing.
fn make(into: &Path, bundle: &Bundle) -> Result<Vec<String>> {
    let place = into.join(bundle.name);
    if place.exists() {
        std::fs::remove_dir_all(&place).with_context(|| format!("{} cannot be removed", place.display()))?;
    }
    std::fs::create_dir_all(&place).with_context(|| format!("{} cannot be made", place.display()))?;
    let workshop = tempfile::tempdir_in(into).context("no temporary directory")?;
    let contents = match &bundle.source {
        Source::Debian(suite) => suite.unpack(&place, workshop.path())?,
        Source::Standalone(version, architecture) => {
            standalone::unpack(version, architecture, &place, workshop.path())?
        }
        Source::Build(variant) => variant.build(&place, workshop.path())?,
        Source::PyInstaller => pyinstaller::install(&place)?,
    };
    let text = format!("{}\n{}\n", bundle.source, contents.join("\n"));
    std::fs::write(place.join(CONTENTS), text).with_context(|| format!("{} cannot be written", place.display()))?;
    Ok(contents)
}

impl Display for Source {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> std::fmt::Result {
        match self {
            Source::Debian(suite) => write!(formatter, "{suite}"),
            Source::Standalone(version, architecture) => {
                write!(formatter, "{} {version} for {architecture}", standalone::MODULE)
            }
            Source::Build(variant) => write!(formatter, "{variant}"),
            Source::PyInstaller => write!(formatter, "{} of the Python Package Index", pyinstaller::REQUIREMENT),
        }
    }
}

/// Fails with what to do if one of these programs is missing.
fn require(programs: &[&str], remedy: &str) -> Result<()> {
    match programs.iter().find(|name| command::program(name).is_none()) {
        Some(missing) => bail!("there is no {missing}: {remedy}"),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bundle_is_here_if_it_was_finished_and_made_in_the_same_way() {
        let into = tempfile::tempdir().unwrap();
        let bundle = &BUNDLES[0];
        assert!(state(into.path(), bundle).starts_with("not here: "));
        std::fs::create_dir(into.path().join(bundle.name)).unwrap();
        assert_eq!(contents(into.path(), bundle), None);
        let file = into.path().join(bundle.name).join(CONTENTS);
        std::fs::write(&file, format!("{}\npython3.13 3.13.1\npython3.14 3.14.2\n", bundle.source)).unwrap();
        assert_eq!(state(into.path(), bundle), "python3.13 3.13.1, python3.14 3.14.2");
        std::fs::write(&file, "made in another way\npython3.13 3.13.1\n").unwrap();
        assert_eq!(contents(into.path(), bundle), None);
    }

    #[test]
    fn names_are_told_apart() {
        let names: std::collections::BTreeSet<_> = BUNDLES.iter().map(|bundle| bundle.name).collect();
        assert_eq!(names.len(), BUNDLES.len());
        assert_eq!(wanted(&[]).unwrap().len(), BUNDLES.len());
        assert_eq!(wanted(&["musl".to_owned()]).unwrap()[0].name, "musl");
        let error = wanted(&["must".to_owned()]).err().unwrap().to_string();
        assert!(error.starts_with("no bundle is called must; there are sid-amd64, "), "{error}");
    }
}
