//! Interpreters of this machine.

use std::fmt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};

/// Minor versions that are looked for: one for each way in which CPython ties frames to eval loops, and 3.12 beside 3.13, as
/// they begin their chains at different places.
const WANTED: [u32; 4] = [8, 11, 12, 13];
const VERSION: &str = "import sys; print('%d.%d.%d' % sys.version_info[:3])";

/// An interpreter.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Interpreter {
    /// Its program.
    pub path: PathBuf,
    /// 12 of 3.12.1.
    pub minor: u32,
    version: String,
}

impl fmt::Display for Interpreter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.version)
    }
}

impl Interpreter {
    fn at(path: &Path) -> Result<Interpreter> {
        let output = Command::new(path).args(["-c", VERSION]).stdin(Stdio::null()).output();
        let output = output.with_context(|| path.display().to_string())?;
        let version = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        let numbers = numbers(&version).filter(|[major, ..]| output.status.success() && *major == 3);
        let [_, minor, _] = numbers.with_context(|| format!("{} is no Python 3", path.display()))?;
        Ok(Interpreter { path: path.to_owned(), minor, version })
    }
}

/// Those that were asked for; else pyenv's newest of each wanted version; else `python3`.
///
/// # Errors
/// If one that was asked for does not run, or there is none.
pub fn choose(asked: &[PathBuf]) -> Result<Vec<Interpreter>> {
    if !asked.is_empty() {
        return asked.iter().map(|path| Interpreter::at(path)).collect();
    }
    let names = pyenv().and_then(|versions| std::fs::read_dir(versions).ok()).into_iter().flatten();
    let names: Vec<String> = names.filter_map(|entry| entry.ok()?.file_name().into_string().ok()).collect();
    let paths = newest(&names).filter_map(|name| Some(pyenv()?.join(name).join("bin/python3")));
    let mut found: Vec<Interpreter> = paths.filter_map(|path| Interpreter::at(&path).ok()).collect();
    if found.is_empty() {
        found.extend(Interpreter::at(Path::new("python3")));
    }
    ensure!(!found.is_empty(), "there is no python3; name one with --interpreter");
    Ok(found)
}

/// Where pyenv keeps interpreters.
fn pyenv() -> Option<PathBuf> {
    let root = std::env::var_os("PYENV_ROOT").map(PathBuf::from);
    let root = root.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".pyenv")))?;
    Some(root.join("versions"))
}

/// The newest of each wanted version, in their order.
fn newest(names: &[String]) -> impl Iterator<Item = &str> {
    WANTED.into_iter().filter_map(|wanted| {
        let of = |name: &&String| numbers(name).is_some_and(|[major, minor, _]| (major, minor) == (3, wanted));
        names.iter().filter(of).max_by_key(|name| numbers(name)).map(String::as_str)
    })
}

/// `None` of anything but three numbers: pre-releases, free-threaded builds, virtual environments.
fn numbers(version: &str) -> Option<[u32; 3]> {
    let parts: Vec<u32> = version.split('.').map(|part| part.parse().ok()).collect::<Option<_>>()?;
    parts.try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_of_each_wanted_version() {
        let names = ["3.12.9", "3.8.18", "3.12.10", "3.13.0t", "3.9.1", "2.7.18", "venv", "3.12.11rc1"];
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        assert_eq!(newest(&names).collect::<Vec<_>>(), ["3.8.18", "3.12.10"]);
    }

    #[test]
    fn what_was_asked_for_must_run() {
        assert!(choose(&["/nonexistent/python3".into()]).is_err());
        assert!(choose(&["/bin/true".into()]).is_err());
    }
}
