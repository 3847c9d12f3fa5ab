//! The stand-in for the compiler: cargo runs this program instead of rustc (`RUSTC_WRAPPER`), and this program runs rustc.
//!
//! Crates for BPF get a hash (`-C metadata`) of their name and version only. Cargo's own comes from the path of the
//! checkout too, and decides the names, and with them the order, of functions. Their linker sees one LLVM only.

use std::ffi::{OsStr, OsString};
use std::os::unix::fs::symlink;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context, Result, bail};

use super::compile::TARGET;

/// Its presence tells this program to be a compiler; its value is the directory that has the LLVM.
const VARIABLE: &str = "WHOLESTACK_XTASK_LLVM";

/// Makes cargo run this program as its compiler. `directory` is made to have the `llvm` library and nothing else.
pub fn stand_in(cargo: &mut Command, llvm: &Path, directory: &Path) -> Result<()> {
    let this = std::env::current_exe().context("this program's own path is unknown")?;
    if !this.exists() {
        bail!("{} was replaced while running: run again", this.display());
    }
    let library = directory.join("libLLVM.so");
    std::fs::create_dir_all(directory)
        .and_then(|()| if library.is_symlink() { std::fs::remove_file(&library) } else { Ok(()) })
        .and_then(|()| symlink(llvm, &library))
        .with_context(|| format!("{} cannot be made", library.display()))?;
    cargo.env("RUSTC_WRAPPER", this).env(VARIABLE, directory);
    Ok(())
}

/// Runs as the compiler, if cargo started this program as one.
pub fn as_compiler() -> Option<ExitCode> {
    let llvm = std::env::var_os(VARIABLE)?;
    let mut arguments = std::env::args_os().skip(1);
    let mut rustc = Command::new(arguments.next()?);
    let arguments: Vec<_> = arguments.collect();
    if is_for_bpf(&arguments) {
        rustc.args(with_own_hash(arguments, &crate_hash())).env("LD_LIBRARY_PATH", library_path(llvm));
    } else {
        rustc.args(arguments);
    }
    let error = rustc.exec();
    eprintln!("error: {} does not start: {error}", rustc.get_program().display());
    Some(ExitCode::FAILURE)
}

fn is_for_bpf(arguments: &[OsString]) -> bool {
    arguments.windows(2).any(|pair| pair[0] == "--target" && pair[1] == TARGET)
}

/// Name and version of the package that cargo compiles.
fn crate_hash() -> OsString {
    let variable = |name| std::env::var_os(name).unwrap_or_default();
    let mut hash = OsString::from("metadata=");
    hash.push(variable("CARGO_PKG_NAME"));
    hash.push("-");
    hash.push(variable("CARGO_PKG_VERSION"));
    hash
}

fn with_own_hash(arguments: Vec<OsString>, hash: &OsStr) -> Vec<OsString> {
    let ours = |argument: OsString| {
        if argument.as_encoded_bytes().starts_with(b"metadata=") { hash.to_owned() } else { argument }
    };
    arguments.into_iter().map(ours).collect()
}

fn library_path(first: OsString) -> OsString {
    let Some(rest) = std::env::var_os("LD_LIBRARY_PATH") else { return first };
    let paths = std::iter::once(PathBuf::from(&first)).chain(std::env::split_paths(&rest));
    std::env::join_paths(paths).unwrap_or(first)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<OsString> {
        line.split(' ').map(OsString::from).collect()
    }

    #[test]
    fn crates_for_bpf_are_told_from_build_scripts() {
        assert!(is_for_bpf(&words("--crate-name walk --target bpfel-unknown-none -C metadata=1")));
        assert!(!is_for_bpf(&words("--crate-name build_script_build -C metadata=1")));
        assert!(!is_for_bpf(&words("--target x86_64-unknown-linux-gnu --cfg bpfel-unknown-none")));
    }

    #[test]
    fn the_hash_and_nothing_else_is_replaced() {
        let arguments = words("--crate-name walk -C metadata=96ab -C extra-filename=-96ab");
        let expected = words("--crate-name walk -C metadata=walk-1 -C extra-filename=-96ab");
        assert_eq!(with_own_hash(arguments, OsStr::new("metadata=walk-1")), expected);
    }

    #[test]
    fn the_linker_is_shown_one_llvm() {
        let directory = tempfile::tempdir().unwrap();
        let place = directory.path().join("llvm");
        for library in ["/one/libLLVM.so.1", "/other/libLLVM.so.2"] {
            let mut cargo = Command::new("cargo");
            stand_in(&mut cargo, Path::new(library), &place).unwrap();
            let files: Vec<_> = std::fs::read_dir(&place).unwrap().map(|entry| entry.unwrap().path()).collect();
            assert_eq!(files, [place.join("libLLVM.so")]);
            assert_eq!(std::fs::read_link(&files[0]).unwrap(), Path::new(library));
            assert!(cargo.get_envs().any(|(name, value)| name == VARIABLE && value == Some(place.as_os_str())));
        }
    }
}
