//! Finds a compiler, its LLVM and bpf-linker.
//!
//! A compiler serves if the source of its own core library lies beside it (core is compiled for BPF) and its LLVM is of
//! the major version that bpf-linker was built for, since bpf-linker loads that LLVM. Being a stable release is no hindrance.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use super::record::Record;
use crate::command::{asked, program};

/// The version of bpf-linker that objects are made with.
pub const BPF_LINKER: &str = "0.10.3";
/// The major version of LLVM that [`BPF_LINKER`] is built for.
const LLVM_MAJOR: &str = "22";
/// Names a compiler, before all others.
const VARIABLE: &str = "WHOLESTACK_BPF_RUSTC";

/// What compiles and links BPF programs.
#[derive(Debug)]
pub struct Toolchain {
    /// The compiler.
    pub rustc: PathBuf,
    /// The cargo that belongs to it, if one does.
    pub cargo: Option<PathBuf>,
    /// Its sysroot.
    pub sysroot: PathBuf,
    /// The shared library of its LLVM.
    pub llvm: PathBuf,
    /// The linker.
    pub bpf_linker: PathBuf,
    /// What it calls itself.
    pub record: Record,
}

/// A place where a compiler may be.
struct Candidate {
    what: String,
    rustc: Option<PathBuf>,
    /// Whether the cargo beside it came with it; Debian's is much older than the compiler.
    has_cargo: bool,
    remedy: &'static str,
}

/// The toolchain named by the variable, else the one that is `wanted`, else the first that serves.
pub fn find(wanted: Option<&Record>) -> Result<Toolchain> {
    let bpf_linker = linker().with_context(|| {
        format!("there is no bpf-linker; install it with `cargo install bpf-linker --version {BPF_LINKER} --locked`, or run with --install")
    })?;
    let mut found = Vec::new();
    let mut refused = String::new();
    for candidate in candidates(wanted) {
        match candidate.toolchain(&bpf_linker) {
            Ok(toolchain) => found.push(toolchain),
            Err(error) => refused += &format!("\n  {}: {error:#}", candidate.what),
        }
    }
    if found.is_empty() {
        bail!("no compiler here builds BPF programs; --install gets one{refused}");
    }
    let best = found.iter().position(|toolchain| Some(&toolchain.record) == wanted).unwrap_or(0);
    Ok(found.swap_remove(best))
}

fn candidates(wanted: Option<&Record>) -> Vec<Candidate> {
    if let Some(rustc) = std::env::var_os(VARIABLE) {
        return vec![Candidate {
            what: VARIABLE.to_owned(),
            rustc: Some(rustc.into()),
            has_cargo: false,
            remedy: "name a rustc whose rust-src is installed",
        }];
    }
    let mut candidates = vec![Candidate {
        what: "Debian's compiler, /usr/bin/rustc".to_owned(),
        rustc: Some("/usr/bin/rustc".into()),
        has_cargo: false,
        remedy: "apt-get install rustc-web rust-web-src",
    }];
    let releases = wanted.and_then(Record::rustc_release).into_iter().chain(["nightly"]);
    candidates.extend(releases.map(|release| Candidate {
        what: format!("rustup's toolchain {release}"),
        has_cargo: true,
        rustc: asked("rustup", &["which", "--toolchain", release, "rustc"]).map(|path| path.trim().into()),
        remedy: "rustup toolchain install nightly --component rust-src",
    }));
    candidates
}

impl Candidate {
    fn toolchain(&self, bpf_linker: &Path) -> Result<Toolchain> {
        let rustc = self.rustc.clone().filter(|path| path.exists());
        let rustc = rustc.with_context(|| format!("not installed ({})", self.remedy))?;
        let version = asked(&rustc, &["-vV"]).with_context(|| format!("{} does not run", rustc.display()))?;
        let llvm = llvm_version(&version)?;
        let sysroot = PathBuf::from(asked(&rustc, &["--print", "sysroot"]).context("it names no sysroot")?.trim());
        let core = sysroot.join("lib/rustlib/src/rust/library/core/Cargo.toml");
        if !core.exists() {
            bail!("the source of its core library is not at {} ({})", core.display(), self.remedy);
        }
        let record = Record {
            rustc: version.lines().next().unwrap_or_default().to_owned(),
            llvm: llvm.to_owned(),
            bpf_linker: asked(bpf_linker, &["--version"]).context("bpf-linker does not run")?.trim().to_owned(),
        };
        let llvm = llvm_library(&sysroot, llvm)?;
        let cargo = rustc.with_file_name("cargo");
        let cargo = (self.has_cargo && cargo.exists()).then_some(cargo);
        Ok(Toolchain { rustc, cargo, sysroot, llvm, bpf_linker: bpf_linker.to_owned(), record })
    }
}

/// The LLVM in what `rustc -vV` prints, if bpf-linker can load it.
fn llvm_version(text: &str) -> Result<&str> {
    let version = text.lines().find_map(|line| line.strip_prefix("LLVM version: "));
    let version = version.context("it does not say which LLVM it has")?;
    if version.split('.').next() != Some(LLVM_MAJOR) {
        bail!("it has LLVM {version}, bpf-linker {BPF_LINKER} needs {LLVM_MAJOR}");
    }
    Ok(version)
}

/// bpf-linker, in `PATH` or where cargo installs.
pub fn linker() -> Option<PathBuf> {
    let home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = home.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cargo")));
    program("bpf-linker").or_else(|| home.map(|home| home.join("bin/bpf-linker")).filter(|path| path.exists()))
}

/// The library below a sysroot: in `lib` for rustup's compilers, in `lib/x86_64-linux-gnu` for Debian's.
fn llvm_library(sysroot: &Path, version: &str) -> Result<PathBuf> {
    let short: Vec<_> = version.split('.').take(2).collect();
    let name = format!("libLLVM.so.{}", short.join("."));
    let lib = sysroot.join("lib");
    let mut found = Vec::new();
    for directory in
        std::iter::once(lib.clone()).chain(entries(&lib).filter(|path| path.to_string_lossy().ends_with("-linux-gnu")))
    {
        found.extend(
            entries(&directory)
                .filter(|path| path.file_name().is_some_and(|file| is_library(&file.to_string_lossy(), &name))),
        );
    }
    found.sort();
    found.into_iter().next().with_context(|| format!("its LLVM, {name}, is not below {}", lib.display()))
}

/// Whether a file is the library of that name, or the one that rustup marks with the compiler's version.
fn is_library(file: &str, name: &str) -> bool {
    file.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with("-rust-"))
}

fn entries(directory: &Path) -> impl Iterator<Item = PathBuf> + use<> {
    std::fs::read_dir(directory).into_iter().flatten().filter_map(|entry| Some(entry.ok()?.path()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_library_of_the_compiler_is_told_from_others() {
        let tree = tempfile::tempdir().unwrap();
        let below = |path: &str| tree.path().join(path);
        std::fs::create_dir_all(below("lib/x86_64-linux-gnu")).unwrap();
        for file in [
            "libLLVM.so.22.10",
            "libLLVM-14.so.1",
            "x86_64-linux-gnu/libLLVM.so.22.1",
            "x86_64-linux-gnu/libLLVM.so.21.1",
        ] {
            std::fs::write(below("lib").join(file), "").unwrap();
        }
        assert_eq!(llvm_library(tree.path(), "22.1.8").unwrap(), below("lib/x86_64-linux-gnu/libLLVM.so.22.1"));
        assert!(llvm_library(tree.path(), "22.2.0").is_err());
        std::fs::write(below("lib/libLLVM.so.22.2-rust-1.97.0-nightly"), "").unwrap();
        assert_eq!(llvm_library(tree.path(), "22.2.0").unwrap(), below("lib/libLLVM.so.22.2-rust-1.97.0-nightly"));
    }

    #[test]
    fn a_compiler_that_does_not_serve_is_refused_with_the_reason() {
        let tree = tempfile::tempdir().unwrap();
        let candidate = |rustc: &Path| Candidate {
            what: String::new(),
            rustc: Some(rustc.into()),
            has_cargo: false,
            remedy: "do this",
        };
        let error = candidate(&tree.path().join("none")).toolchain(Path::new("true")).unwrap_err();
        assert_eq!(error.to_string(), "not installed (do this)");
        let error = candidate(Path::new("/bin/false")).toolchain(Path::new("true")).unwrap_err();
        assert_eq!(error.to_string(), "/bin/false does not run");
        assert_eq!(llvm_version("rustc 1.96.0\nLLVM version: 22.1.8\n").unwrap(), "22.1.8");
        let error = llvm_version("rustc 1.63.0\nLLVM version: 14.0.6\n").unwrap_err();
        assert_eq!(error.to_string(), format!("it has LLVM 14.0.6, bpf-linker {BPF_LINKER} needs {LLVM_MAJOR}"));
        assert!(llvm_version("rustc 1.96.0\n").is_err());
    }
}
