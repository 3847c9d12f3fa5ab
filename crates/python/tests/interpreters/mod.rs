//! Every CPython 3.6 to 3.15 on the machine, by what the files are: programs that say so when they are run.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use python::Version;

/// Roots of other systems whose interpreters are run by chroot, separated by colons.
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
    /// The root that it needs, if not the machine's own.
    pub root: Option<PathBuf>,
    /// The program, in that root.
    pub program: PathBuf,
    /// Its version.
    pub version: Version,
    /// Built without the global lock.
    pub is_free_threaded: bool,
}

impl Interpreter {
    /// A command that runs it.
    pub fn command(&self) -> Command {
        command(self.root.as_deref(), &self.program)
    }
}

/// All of them, each file once.
pub fn all() -> Vec<Interpreter> {
    let trees = std::env::var(TREES).unwrap_or_default();
    let trees = trees.split(':').filter(|tree| !tree.is_empty()).map(|tree| Some(PathBuf::from(tree)));
    let mut found = BTreeMap::new();
    for root in [None].into_iter().chain(trees) {
        let at = root.clone().unwrap_or_else(|| PathBuf::from("/"));
        for directory in DIRECTORIES.iter().flat_map(|pattern| directories(&at, pattern)) {
            for file in programs(&directory) {
                let program = Path::new("/").join(file.strip_prefix(&at).expect("below the root"));
                found.entry(file).or_insert_with(|| identify(root.as_deref(), &program));
            }
        }
    }
    let mut all: Vec<Interpreter> = found.into_values().flatten().collect();
    all.sort_by_key(|interpreter| interpreter.version);
    all
}

fn directories(root: &Path, pattern: &str) -> Vec<PathBuf> {
    let home = std::env::var("HOME").unwrap_or_default();
    let pattern = pattern.replacen('~', &home, 1);
    let mut found = vec![root.to_path_buf()];
    for part in pattern.split('/').filter(|part| !part.is_empty()) {
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

/// Files of a directory that are called `python3.` and a number, links followed, scripts left out.
fn programs(directory: &Path) -> Vec<PathBuf> {
    let is_one = |path: &PathBuf| {
        let name = path.file_name().and_then(|name| name.to_str()).and_then(|name| name.strip_prefix("python3."));
        name.is_some_and(|rest| rest.trim_end_matches('t').parse::<u8>().is_ok())
    };
    let is_elf = |path: &PathBuf| fs::read(path).is_ok_and(|bytes| bytes.starts_with(b"\x7fELF"));
    let files = entries(directory).into_iter().filter(is_one).filter_map(|path| fs::canonicalize(path).ok());
    files.filter(is_elf).collect()
}

fn identify(root: Option<&Path>, program: &Path) -> Option<Interpreter> {
    let output = command(root, program).args(["-c", IDENTIFY]).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    let mut words = text.split_whitespace();
    let (name, hex, free_threaded) = (words.next()?, words.next()?, words.next()?);
    let version = Version::from_hex(hex.parse().ok()?)?;
    (name == "cpython" && version >= Version::release(3, 6, 0)).then(|| Interpreter {
        root: root.map(Path::to_path_buf),
        program: program.to_path_buf(),
        version,
        is_free_threaded: free_threaded != "0",
    })
}

fn command(root: Option<&Path>, program: &Path) -> Command {
    let mut command = match root {
        Some(root) => {
            let mut command = Command::new("chroot");
            command.arg(root).arg(program);
            command
        }
        None => Command::new(program),
    };
    command.env_remove("PYTHONPATH").env_remove("PYTHONHOME").arg("-I").stdin(Stdio::null()).stderr(Stdio::inherit());
    command
}
