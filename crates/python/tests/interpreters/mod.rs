//! Every CPython 3.6 to 3.15 on the machine, by what the files are: programs that say so when they are run.

#![allow(dead_code, reason = "each test program uses some of it")]

pub mod layouts;

use std::collections::BTreeMap;
use std::fs;
use std::io::Read as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use python::Version;

/// More of them, separated by colons: roots of other systems (`usr/bin`), run by chroot, and trees that are run in place (`bin`).
const TREES: &str = "WHOLESTACK_PYTHON_TREES";
/// Directories of programs; a `*` stands for any name.
const DIRECTORIES: [&str; 5] = [
    "/usr/bin",
    "/usr/local/bin",
    "/opt/*/bin",
    "~/.pyenv/versions/*/bin",
    "/usr/lib/google-cloud-sdk/platform/bundledpythonunix/bin",
];
const IDENTIFY: &str = "import sys, sysconfig; print(sys.implementation.name, sys.hexversion, \
                        int(sysconfig.get_config_var('Py_GIL_DISABLED') or 0))";

/// An interpreter that runs.
#[derive(Clone, Debug)]
pub struct Interpreter {
    /// Where it is.
    pub place: Place,
    /// Its version.
    pub version: Version,
    /// Built without the global lock.
    pub is_free_threaded: bool,
}

/// A program, and what it needs around it.
#[derive(Clone, Debug)]
pub struct Place {
    /// The file.
    pub file: PathBuf,
    /// The tree it belongs to, if not the machine.
    pub tree: Option<PathBuf>,
}

impl Place {
    /// A command that runs it.
    pub fn command(&self) -> Command {
        let is_root = |tree: &PathBuf| tree.join("usr/bin").is_dir();
        let mut command = match &self.tree {
            Some(tree) if is_root(tree) => {
                let mut command = Command::new("chroot");
                command.arg(tree).arg(Path::new("/").join(self.file.strip_prefix(tree).expect("below its root")));
                command
            }
            _ => Command::new(&self.file),
        };
        command.env_remove("PYTHONPATH").env_remove("PYTHONHOME").stdin(Stdio::null()).arg("-s");
        if let Some(tree) = self.tree.as_ref().filter(|tree| !is_root(tree)) {
            let libraries = std::env::join_paths([tree.clone(), tree.join("lib")]).expect("no colons");
            command.env("PYTHONHOME", tree).env("LD_LIBRARY_PATH", libraries);
        }
        command
    }
}

/// All of them, each file once.
pub fn all() -> Vec<Interpreter> {
    let trees = std::env::var(TREES).unwrap_or_default();
    let trees =
        trees.split(':').filter(|tree| !tree.is_empty()).filter_map(|tree| fs::canonicalize(tree).ok()).map(Some);
    let mut found = BTreeMap::new();
    for tree in [None].into_iter().chain(trees) {
        let directories: Vec<PathBuf> = match &tree {
            Some(tree) => vec![tree.join("usr/bin"), tree.join("bin")],
            None => DIRECTORIES.iter().flat_map(|pattern| directories(pattern)).collect(),
        };
        for file in directories.iter().flat_map(|directory| programs(directory)) {
            let Ok(about) = fs::metadata(&file) else { continue };
            found.entry((about.dev(), about.ino())).or_insert_with(|| identify(Place { file, tree: tree.clone() }));
        }
    }
    let mut all: Vec<Interpreter> = found.into_values().flatten().collect();
    all.sort_by_key(|interpreter| interpreter.version);
    all
}

fn directories(pattern: &str) -> Vec<PathBuf> {
    let home = std::env::var("HOME").unwrap_or_default();
    let mut found = vec![PathBuf::from("/")];
    for part in pattern.replacen('~', &home, 1).split('/').filter(|part| !part.is_empty()) {
        found = match part {
            "*" => found.iter().flat_map(|directory| entries(directory)).collect(),
            part => found.iter().map(|directory| directory.join(part)).collect(),
        };
    }
    found
}

fn entries(directory: &Path) -> Vec<PathBuf> {
    fs::read_dir(directory).into_iter().flatten().flatten().map(|entry| entry.path()).collect()
}

/// Files of a directory that are called `python3.` and a number, or so and a suffix; links are followed, scripts left out.
fn programs(directory: &Path) -> Vec<PathBuf> {
    let is_one = |path: &PathBuf| {
        let name = path.file_name().and_then(|name| name.to_str()).and_then(|name| name.strip_prefix("python3."));
        let name = name.map(|rest| rest.trim_end_matches("-shared").trim_end_matches(['d', 'm', 't']));
        name.is_some_and(|rest| rest.parse::<u8>().is_ok())
    };
    let files = entries(directory).into_iter().filter(is_one).filter_map(|path| fs::canonicalize(path).ok());
    files.filter(|path| is_elf(path)).collect()
}

fn is_elf(path: &Path) -> bool {
    let mut magic = [0; 4];
    fs::File::open(path).is_ok_and(|mut file| file.read_exact(&mut magic).is_ok()) && &magic == b"\x7fELF"
}

fn identify(place: Place) -> Option<Interpreter> {
    let output = place.command().args(["-c", IDENTIFY]).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    let mut words = text.split_whitespace();
    let (name, hex, free_threaded) = (words.next()?, words.next()?, words.next()?);
    let version = Version::from_hex(hex.parse().ok()?)?;
    let is_free_threaded = free_threaded != "0";
    (name == "cpython" && version >= Version::release(3, 6, 0)).then_some(Interpreter {
        place,
        version,
        is_free_threaded,
    })
}
