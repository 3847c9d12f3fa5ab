//! Real interpreters, and compilers for programs that look like one.
#![allow(dead_code)]

pub mod program;

use std::path::{Path, PathBuf};
use std::process::Command;

use object::{Object, ObjectSymbol};

/// A file that is, or holds, an interpreter.
pub struct Build {
    pub path: PathBuf,
    pub data: Vec<u8>,
}

/// All interpreters of this machine, and those in the trees under `WHOLESTACK_PYTHON_TREES` (directories with `usr/bin` and
/// `usr/lib`, as `dpkg-deb -x` makes them, or with `bin` and `lib`).
pub fn builds() -> impl Iterator<Item = Build> {
    let mut paths = Vec::new();
    let home = std::env::var_os("HOME").map(PathBuf::from).unwrap_or_default();
    let pyenv = std::env::var_os("PYENV_ROOT").map_or(home.join(".pyenv"), PathBuf::from);
    for version in entries(&pyenv.join("versions")) {
        paths.extend(entries(&version.join("lib")));
        paths.extend(entries(&version.join("bin")));
    }
    let mut roots = vec![PathBuf::from("/"), PathBuf::from("/usr/lib/google-cloud-sdk/platform/bundledpythonunix")];
    match std::env::var_os("WHOLESTACK_PYTHON_TREES") {
        Some(trees) => roots.extend(entries(Path::new(&trees))),
        None => println!("NOT HERE: WHOLESTACK_PYTHON_TREES names no directory of unpacked packages"),
    }
    for root in roots {
        let here = ["", "usr/bin", "usr/lib/x86_64-linux-gnu", "usr/lib/aarch64-linux-gnu", "bin", "lib"];
        here.iter().for_each(|directory| paths.extend(entries(&root.join(directory))));
        for built in entries(&root.join("opt")) {
            ["bin", "lib"].iter().for_each(|directory| paths.extend(entries(&built.join(directory))));
        }
    }
    let name = |path: &PathBuf| {
        path.file_name().is_some_and(|name| {
            let name = name.to_string_lossy();
            name.starts_with("libpython") && name.contains(".so")
                || name.starts_with("python") && !name.ends_with("config")
        })
    };
    let mut paths: Vec<_> = paths.into_iter().filter(name).filter_map(|path| path.canonicalize().ok()).collect();
    paths.sort();
    paths.dedup();
    let read = |path: PathBuf| std::fs::read(&path).ok().map(|data| Build { path, data });
    paths.into_iter().filter(|path| path.is_file()).filter_map(read)
}

fn entries(directory: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(directory).into_iter().flatten();
    entries.filter_map(|entry| entry.ok().map(|entry| entry.path())).collect()
}

/// Address and size of a symbol that a file defines, read by another reader.
pub fn symbol(data: &[u8], name: &str) -> Option<(u64, u64)> {
    let file = object::File::parse(data).ok()?;
    let found = file
        .symbols()
        .chain(file.dynamic_symbols())
        .find(|symbol| !symbol.is_undefined() && symbol.name().is_ok_and(|found| found == name));
    found.map(|symbol| (symbol.address(), symbol.size()))
}

/// A compiler and the flags that select an architecture.
pub struct Compiler {
    pub name: &'static str,
    pub aarch64: bool,
    pub clang: bool,
    flags: &'static [&'static str],
}

impl Compiler {
    /// The flags that select the architecture.
    pub fn flags(&self) -> &'static [&'static str] {
        self.flags
    }
}

const COMPILERS: [Compiler; 4] = [
    Compiler { name: "gcc", aarch64: false, clang: false, flags: &[] },
    Compiler { name: "clang", aarch64: false, clang: true, flags: &["--target=x86_64-linux-gnu", "-fuse-ld=lld"] },
    Compiler { name: "aarch64-linux-gnu-gcc", aarch64: true, clang: false, flags: &[] },
    Compiler { name: "clang", aarch64: true, clang: true, flags: &["--target=aarch64-linux-gnu", "-fuse-ld=lld"] },
];

/// The compilers that can make a program.
pub fn compilers() -> Vec<&'static Compiler> {
    let works = |compiler: &&Compiler| {
        let directory = tempfile::tempdir().expect("a directory");
        let source = directory.path().join("empty.c");
        std::fs::write(&source, "int main(void) { return 0; }").expect("a file");
        let made = run(compiler, &source, &directory.path().join("empty"), &[]);
        if let Err(reason) = &made {
            let architecture = if compiler.aarch64 { "aarch64" } else { "x86_64" };
            println!("NOT HERE: {} does not make programs for {architecture}: {reason}", compiler.name);
        }
        made.is_ok()
    };
    COMPILERS.iter().filter(works).collect()
}

/// Compiles `tests/programs/states.c`; `None` if this compiler does not know one of the flags.
pub fn compile(compiler: &Compiler, flags: &[&str]) -> Option<Vec<u8>> {
    let directory = tempfile::tempdir().expect("a directory");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/states.c");
    let output = directory.path().join("made");
    match run(compiler, &source, &output, flags) {
        Ok(()) => Some(std::fs::read(output).expect("what was made")),
        Err(reason) => {
            println!("NOT HERE: {} {}: {reason}", compiler.name, flags.join(" "));
            None
        }
    }
}

fn run(compiler: &Compiler, source: &Path, output: &Path, flags: &[&str]) -> Result<(), String> {
    let mut command = Command::new(compiler.name);
    command.args(compiler.flags).arg("-w").args(flags).arg("-o").arg(output).arg(source).arg("-pthread");
    let result = command.output().map_err(|error| error.to_string())?;
    let complaint = || String::from_utf8_lossy(&result.stderr).lines().take(2).collect::<Vec<_>>().join(" ");
    if result.status.success() { Ok(()) } else { Err(complaint()) }
}
