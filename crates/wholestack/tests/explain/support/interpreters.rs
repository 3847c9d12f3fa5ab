//! The interpreters of this machine, and those that `cargo xtask interpreters` has got.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::rc::Rc;

use tempfile::TempDir;

use super::parked::Parked;
use super::{compile, workloads};

/// The versions that are explained.
const MINORS: std::ops::RangeInclusive<u32> = 6..=15;
/// Bundles of `cargo xtask interpreters` with interpreters for this architecture.
const SUITES: [&str; 4] = ["sid", "trixie", "bookworm", "bullseye"];
const STANDALONE: [&str; 3] = ["standalone-3.10", "standalone-3.11", "standalone-3.14"];
const BUILT: [&str; 2] = ["free-threaded", "musl"];
/// A program linked here needs a newer libc than this one has.
const OLD_SUITE: &str = "bullseye";

/// An interpreter that can be started.
#[derive(Clone)]
pub(crate) struct Interpreter {
    /// Tells it from others: `pyenv 3.12.1`, `sid-amd64 python3.14`, `/usr/bin/python3.11`.
    pub(crate) name: String,
    /// The 14 in 3.14.
    pub(crate) minor: u32,
    /// The program, as it sees itself.
    pub(crate) program: PathBuf,
    /// Whose root directory is another, which is also where its files are.
    root: Option<PathBuf>,
    /// Where tests put files that it is to find.
    files: Option<Rc<TempDir>>,
}

impl Interpreter {
    fn here(name: String, program: &Path) -> Option<Interpreter> {
        let minor = minor_of(program)?;
        Some(Interpreter { name, minor, program: program.to_owned(), root: None, files: None })
    }

    /// One of a tree; the workloads are copied there.
    fn in_tree(bundle: &str, tree: &Path, program: &Path) -> Option<Interpreter> {
        let files = files_in(tree);
        let name = format!("{bundle} {}", program.file_name()?.display());
        let inside = Path::new("/").join(program.strip_prefix(tree).ok()?);
        let minor = minor_of(program)?;
        Some(Interpreter { name, minor, program: inside, root: Some(tree.to_owned()), files: Some(files) })
    }

    /// A library, run by a program that is nothing without it.
    fn of_library(bundle: &str, tree: Option<&Path>, library: &Path) -> Option<Interpreter> {
        let files = files_in(tree.unwrap_or(&std::env::temp_dir()));
        let minor =
            library.file_name()?.to_str()?.strip_prefix("libpython3.")?.split_once(".so").map(|(minor, _)| minor)?;
        let program = files.path().join(format!("python3.{minor}-shared"));
        // its libc is another than the one that this is linked with
        let options = [library.as_os_str(), "-Wl,--unresolved-symbols=ignore-in-shared-libs".as_ref()];
        compile("shared.c", &program, &options).unwrap_or_else(|error| panic!("{error}"));
        let name = format!("{bundle} {}", library.file_name()?.display());
        let program = match tree {
            Some(tree) => Path::new("/").join(program.strip_prefix(tree).ok()?),
            None => program,
        };
        let minor = minor.trim_end_matches(['d', 'm']).parse().ok()?;
        Some(Interpreter { name, minor, program, root: tree.map(Path::to_owned), files: Some(files) })
    }

    /// Whether it runs below another root directory.
    pub(crate) fn is_in_tree(&self) -> bool {
        self.root.is_some()
    }

    /// The program's file, as we see it.
    pub(crate) fn file(&self) -> PathBuf {
        match &self.root {
            Some(root) => root.join(self.program.strip_prefix("/").unwrap_or(&self.program)),
            None => self.program.clone(),
        }
    }

    /// Starts the program, with variables.
    pub(crate) fn command(&self, variables: &[(&str, &Path)]) -> Command {
        let mut command = match &self.root {
            None => Command::new(&self.program),
            Some(root) => {
                let mut command = below(root);
                command.arg(&self.program);
                command
            }
        };
        command.envs(variables.iter().copied());
        command
    }

    /// A file of ours where it finds it.
    pub(crate) fn lend(&self, file: &Path) -> PathBuf {
        let (Some(root), Some(files)) = (&self.root, &self.files) else { return file.to_owned() };
        let copy = files.path().join(file.file_name().expect("a name"));
        std::fs::copy(file, &copy).unwrap_or_else(|error| panic!("{}: {error}", copy.display()));
        Path::new("/").join(copy.strip_prefix(root).expect("below it"))
    }

    /// `park.py`, where the interpreter finds it.
    pub(crate) fn script(&self) -> PathBuf {
        let scripts = std::fs::read_dir(workloads()).expect("workloads").flatten().map(|entry| entry.path());
        let scripts = scripts.filter(|file| file.extension().is_some_and(|extension| extension == "py"));
        let copies: Vec<_> = scripts.map(|file| self.lend(&file)).collect();
        copies.into_iter().find(|file| file.ends_with("park.py")).expect("park.py")
    }

    /// Parks threads by the cases of `park.py`.
    pub(crate) fn park(&self, cases: &[&str]) -> Parked {
        self.park_with(cases, &[])
    }

    /// Parks threads, with variables.
    pub(crate) fn park_with(&self, cases: &[&str], variables: &[(&str, &Path)]) -> Parked {
        let mut command = self.command(variables);
        command.arg(self.script()).args(cases);
        Parked::start(command).keeping(self.files.clone())
    }
}

/// A command that runs the one which follows with another root directory.
fn below(root: &Path) -> Command {
    if rustix::process::geteuid().is_root() {
        let mut command = Command::new("chroot");
        command.arg(root);
        command
    } else {
        let mut command = Command::new("unshare");
        command.args(["--user", "--map-root-user", "--root"]).arg(root);
        command
    }
}

fn files_in(tree: &Path) -> Rc<TempDir> {
    let temporary = if tree.join("tmp").is_dir() { tree.join("tmp") } else { tree.to_owned() };
    Rc::new(tempfile::tempdir_in(&temporary).unwrap_or_else(|error| panic!("{}: {error}", temporary.display())))
}

/// The 13 in `python3.13`, `python3.13t`, `python3.13d`.
fn minor_of(program: &Path) -> Option<u32> {
    let name = program.file_name()?.to_str()?;
    name.strip_prefix("python3.")?.trim_end_matches(['d', 't']).parse().ok()
}

/// Programs called `python3.N` in a directory; neither links nor scripts.
fn programs_in(directory: &Path) -> Vec<PathBuf> {
    let is_program = |file: &PathBuf| {
        let metadata = file.symlink_metadata();
        metadata.is_ok_and(|metadata| metadata.is_file() && metadata.permissions().mode() & 0o111 != 0)
    };
    entries(directory).into_iter().filter(|file| minor_of(file).is_some() && is_program(file)).collect()
}

/// Files called `libpython3.N.so.1.0`.
fn libraries_in(directory: &Path) -> Vec<PathBuf> {
    let is_library = |file: &PathBuf| {
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        name.starts_with("libpython3.") && name.ends_with(".so.1.0")
    };
    entries(directory).into_iter().filter(is_library).collect()
}

pub(crate) fn entries(directory: &Path) -> Vec<PathBuf> {
    let mut entries: Vec<_> =
        std::fs::read_dir(directory).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
    entries.sort();
    entries
}

/// Where `cargo xtask interpreters` puts what it gets.
pub(crate) fn directory() -> PathBuf {
    let elsewhere = std::env::var_os("WHOLESTACK_INTERPRETERS").map(PathBuf::from);
    elsewhere.unwrap_or_else(|| Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name("interpreters"))
}

/// A bundle that was got completely.
pub(crate) fn bundle(name: &str) -> Option<PathBuf> {
    Some(directory().join(name)).filter(|bundle| bundle.join("CONTENTS").is_file())
}

/// As in the names of bundles.
fn architecture() -> &'static str {
    if cfg!(target_arch = "aarch64") { "arm64" } else { "amd64" }
}

fn triplet() -> String {
    format!("{}-linux-gnu", std::env::consts::ARCH)
}

/// All that can be started here.
pub(crate) fn all() -> Vec<Interpreter> {
    let mut all = installed();
    all.extend(pyenv());
    all.extend(bundled());
    for suite in SUITES {
        let name = format!("{suite}-{}", architecture());
        let Some(tree) = bundle(&name) else { continue };
        let programs = programs_in(&tree.join("usr/bin"));
        all.extend(programs.iter().filter_map(|program| Interpreter::in_tree(&name, &tree, program)));
        if suite != OLD_SUITE {
            let libraries = libraries_in(&tree.join("usr/lib").join(triplet()));
            all.extend(libraries.iter().filter_map(|library| Interpreter::of_library(&name, Some(&tree), library)));
        }
    }
    for name in STANDALONE {
        let name = format!("{name}-{}", architecture());
        let programs = bundle(&name).map(|bundle| programs_in(&bundle.join("bin"))).unwrap_or_default();
        all.extend(programs.iter().filter_map(|program| Interpreter::here(name.clone(), program)));
    }
    for name in BUILT {
        let Some(program) = bundle(name).map(|bundle| bundle.join("python")) else { continue };
        let version = Command::new(&program).arg("--version").output().expect("it runs").stdout;
        let minor = String::from_utf8_lossy(&version).split('.').nth(1).and_then(|minor| minor.parse().ok());
        let minor = minor.unwrap_or_else(|| panic!("{}: {version:?}", program.display()));
        all.push(Interpreter { name: name.to_owned(), minor, program, root: None, files: None });
    }
    all
}

/// The distribution's: a program, and a library that others link.
pub(crate) fn installed() -> Vec<Interpreter> {
    let programs = programs_in(Path::new("/usr/bin"));
    let mut found: Vec<_> =
        programs.iter().filter_map(|program| Interpreter::here(program.display().to_string(), program)).collect();
    let libraries = libraries_in(&Path::new("/usr/lib").join(triplet()));
    found.extend(libraries.iter().filter_map(|library| Interpreter::of_library("installed", None, library)));
    found
}

/// What pyenv has built.
pub(crate) fn pyenv() -> Vec<Interpreter> {
    let versions = entries(&pyenv_versions());
    let found = versions.iter().flat_map(|version| {
        let name = format!("pyenv {}", version.file_name().unwrap_or_default().display());
        programs_in(&version.join("bin"))
            .into_iter()
            .filter_map(move |program| Interpreter::here(name.clone(), &program))
    });
    // 3.6 and 3.7 have a second name, with what it was built with
    found.collect()
}

pub(crate) fn pyenv_versions() -> PathBuf {
    let root = std::env::var_os("PYENV_ROOT").map(PathBuf::from);
    let root = root.or_else(|| std::env::var_os("HOME").map(|home| Path::new(&home).join(".pyenv")));
    root.unwrap_or_default().join("versions")
}

/// What other programs have brought along.
fn bundled() -> Vec<Interpreter> {
    let home = std::env::var_os("HOME").map(PathBuf::from).unwrap_or_default();
    let mut prefixes = vec![
        PathBuf::from("/usr/local"),
        PathBuf::from("/usr/lib/google-cloud-sdk/platform/bundledpythonunix"),
        home.join("miniconda3"),
    ];
    prefixes.extend(entries(&home.join(".local/share/uv/python")));
    prefixes.extend(entries(Path::new("/opt")));
    let programs = prefixes.iter().flat_map(|prefix| programs_in(&prefix.join("bin")));
    programs.filter_map(|program| Interpreter::here(program.display().to_string(), &program)).collect()
}

/// What is not here, and how to get it.
pub(crate) fn missing() -> Vec<String> {
    let native = SUITES.iter().map(|suite| format!("{suite}-{}", architecture()));
    let standalone = STANDALONE.iter().filter(|_| architecture() == "amd64").map(|name| format!("{name}-amd64"));
    let names = native.chain(standalone).chain(BUILT.map(str::to_owned));
    let bundles = names.filter(|name| bundle(name).is_none());
    let mut missing: Vec<_> = bundles
        .map(|name| format!("{name} is not in {}: run `cargo xtask interpreters`", directory().display()))
        .collect();
    let here = all();
    let absent = MINORS.filter(|minor| !here.iter().any(|interpreter| interpreter.minor == *minor));
    missing.extend(absent.map(|minor| format!("there is no CPython 3.{minor} (pyenv install 3.{minor})")));
    missing
}
