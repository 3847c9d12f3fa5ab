//! Interpreters of a Debian suite: packages and what they depend on, unpacked into a tree that can be a root directory.

use std::fmt::{Display, Formatter};
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use super::apt::Apt;
use super::require;
use crate::command::shown;

/// Directories that are links, as on an installed system.
const LINKS: [&str; 4] = ["bin", "sbin", "lib", "lib64"];
/// What no interpreter needs in order to run.
const LEFT_OUT: [&str; 5] = ["doc", "man", "locale", "lintian", "bug"];

/// A suite, and what is wanted of it.
pub struct Suite {
    suite: &'static str,
    architecture: &'static str,
    minors: &'static [&'static str],
    more: &'static [&'static str],
}

impl Suite {
    /// These versions of Python, each as a program and as a library.
    pub const fn new(suite: &'static str, architecture: &'static str, minors: &'static [&'static str]) -> Suite {
        Suite { suite, architecture, minors, more: &[] }
    }

    /// Further packages.
    pub const fn and(self, more: &'static [&'static str]) -> Suite {
        Suite { more, ..self }
    }

    /// Unpacks what the suite offers today; gives packages and versions. Fails if it offers nothing of a version.
    pub fn unpack(&self, place: &Path, workshop: &Path) -> Result<Vec<String>> {
        require(&["tar"], "install tar")?;
        let apt = Apt::new(self.suite, self.architecture, workshop)?;
        let mut contents = Vec::new();
        for package in self.packages() {
            match apt.version(&package)? {
                Some(version) => contents.push(format!("{package} {version}")),
                None => bail!("{} has no {package} for {}", self.suite, self.architecture),
            }
        }
        let archives = apt.fetch(&self.packages())?;
        println!("  {} packages to unpack", archives.len());
        lay_out(place).with_context(|| format!("{} cannot be filled", place.display()))?;
        archives.iter().try_for_each(|archive| unpack(archive, place))?;
        Ok(contents)
    }

    fn packages(&self) -> Vec<String> {
        let of_minor = |minor: &&str| [format!("python{minor}"), format!("libpython{minor}")];
        let more = self.more.iter().map(|package| (*package).to_owned());
        self.minors.iter().flat_map(of_minor).chain(more).collect()
    }
}

impl Display for Suite {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "Debian {} for {}: {}", self.suite, self.architecture, self.packages().join(", "))
    }
}

fn lay_out(place: &Path) -> std::io::Result<()> {
    for name in LINKS {
        std::fs::create_dir_all(place.join("usr").join(name))?;
        symlink(Path::new("usr").join(name), place.join(name))?;
    }
    ["tmp", "proc", "dev"].iter().try_for_each(|name| std::fs::create_dir(place.join(name)))
}

/// Unpacks without the package's scripts. Tar is told to follow [`LINKS`], which older packages have as directories.
fn unpack(archive: &Path, place: &Path) -> Result<()> {
    let mut from = Command::new("dpkg-deb");
    from.arg("--fsys-tarfile").arg(archive).stdin(Stdio::null()).stdout(Stdio::piped());
    let mut reader = from.spawn().with_context(|| format!("{} does not start", shown(&from)))?;
    let mut to = Command::new("tar");
    to.args(["--extract", "--keep-directory-symlink", "--no-same-owner", "--directory"]).arg(place);
    to.args(LEFT_OUT.map(|name| format!("--exclude=./usr/share/{name}"))).arg("--exclude=./usr/lib/debug");
    to.stdin(reader.stdout.take().context("no pipe")?);
    let written = to.status().with_context(|| format!("{} does not start", shown(&to)))?;
    let read = reader.wait().with_context(|| shown(&from))?;
    if !read.success() || !written.success() {
        bail!("{} | {} fails", shown(&from), shown(&to));
    }
    Ok(())
}
