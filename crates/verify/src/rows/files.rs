//! The files that are compared when none is named: what programs of all kinds run, and every kind of linker's output.

use std::path::{Path, PathBuf};
use std::process::Command;

/// A file that is looked for, and where it is.
pub(crate) struct Wanted {
    pub(crate) what: &'static str,
    pub(crate) path: Option<PathBuf>,
}

/// All that are looked for.
pub(crate) fn wanted() -> Vec<Wanted> {
    let sysroot = output("rustc", &["--print", "sysroot"]).map(|root| PathBuf::from(root).join("lib"));
    let of_rust = |prefix| sysroot.as_deref().and_then(|lib| largest(lib, prefix));
    let cc = |name: &str| output("cc", &[&format!("-print-file-name={name}")]).map(PathBuf::from);
    let cc_program = |name: &str| output("cc", &[&format!("-print-prog-name={name}")]).map(PathBuf::from);
    [
        ("the C library", cc("libc.so.6")),
        ("the dynamic linker", Some(PathBuf::from("/lib64/ld-linux-x86-64.so.2"))),
        ("libstdc++", cc("libstdc++.so.6")),
        ("libjvm", libjvm()),
        ("node", program("node")),
        ("libpython", libpython()),
        ("LLVM of the Rust toolchain (lld, BOLT: two executable segments)", of_rust("libLLVM")),
        ("rustc's driver (lld, BOLT)", of_rust("librustc_driver")),
        ("a Rust program: this one", std::env::current_exe().ok()),
        ("a Go program: go", program("go")),
        ("GCC's compiler of C (not position-independent)", cc_program("cc1")),
        ("perl", program("perl")),
        ("bash (position-independent)", program("bash")),
    ]
    .map(|(what, path)| Wanted { what, path: path.and_then(|path| path.canonicalize().ok()).filter(|p| p.is_file()) })
    .into()
}

fn output(program: &str, arguments: &[&str]) -> Option<String> {
    let output = Command::new(program).args(arguments).output().ok().filter(|output| output.status.success())?;
    Some(String::from_utf8(output.stdout).ok()?.trim().to_owned())
}

fn program(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|directory| directory.join(name)).find(|path| path.is_file())
}

/// The largest file of a directory with this prefix: others are linker scripts.
fn largest(directory: &Path, prefix: &str) -> Option<PathBuf> {
    let entries = std::fs::read_dir(directory).ok()?.flatten();
    let named = entries.filter(|entry| entry.file_name().to_string_lossy().starts_with(prefix));
    named.max_by_key(|entry| entry.metadata().map_or(0, |metadata| metadata.len())).map(|entry| entry.path())
}

fn libjvm() -> Option<PathBuf> {
    let entries = std::fs::read_dir("/usr/lib/jvm").ok()?.flatten();
    let mut libraries: Vec<PathBuf> =
        entries.map(|entry| entry.path().join("lib/server/libjvm.so")).filter(|path| path.is_file()).collect();
    libraries.sort();
    libraries.into_iter().next_back()
}

/// The shared library of the system's Python, or of the one in the path.
fn libpython() -> Option<PathBuf> {
    let system = largest(Path::new("/usr/lib/x86_64-linux-gnu"), "libpython3");
    system.or_else(|| {
        let says = "import sysconfig as s; print(s.get_config_var('LIBDIR') + '/' + s.get_config_var('INSTSONAME'))";
        output("python3", &["-c", says]).map(PathBuf::from)
    })
}
