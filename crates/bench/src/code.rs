//! Executables of this machine with the largest unwind tables.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Result, ensure};
use objects::{CacheKey, Image, UnwindTable};

use crate::interrupt;

/// Smaller files are left out.
const LEAST_BYTES: u64 = 4 << 20;
/// Where programs and libraries are on most machines.
const PLACES: [&str; 5] = ["/usr/bin", "/usr/lib", "/usr/libexec", "/usr/local", "/opt"];
/// Directories below each other that are looked into.
const DEPTH: u32 = 6;

/// A file and the rows of its table.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CodeFile {
    /// Where it is.
    pub path: PathBuf,
    /// Rows.
    pub rows: usize,
}

/// Some files.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Code {
    /// The files.
    pub files: Vec<CodeFile>,
}

impl Code {
    /// Rows of all.
    pub fn rows(&self) -> usize {
        self.files.iter().map(|file| file.rows).sum()
    }

    /// How many they are and which is the largest.
    pub fn describe(&self) -> String {
        let largest = self.files.iter().max_by_key(|file| file.rows);
        let largest = largest
            .map_or_else(String::new, |file| format!(", the largest {} with {}", file.path.display(), file.rows));
        format!("much code: {} files with {} rows{largest}", self.files.len(), self.rows())
    }
}

/// The largest files of this machine until their tables have `rows`, or all.
///
/// # Errors
/// If there are none, or the user interrupts.
pub fn largest(rows: usize) -> Result<Code> {
    let mut code = Code { files: Vec::new() };
    for path in candidates() {
        interrupt::check()?;
        if code.rows() >= rows {
            break;
        }
        if let Some(table) = table(&path) {
            code.files.push(CodeFile { path, rows: table.rows.len() });
        }
    }
    ensure!(!code.files.is_empty(), "no executable of {LEAST_BYTES} bytes or more on this machine");
    Ok(code)
}

fn table(path: &Path) -> Option<UnwindTable> {
    let image = Image::open(&File::open(path).ok()?).ok()?;
    // without a build-id it would be made anew at each start
    CacheKey::of(&image)?;
    UnwindTable::build(&image).ok().filter(|table| !table.rows.is_empty())
}

/// Large ELF files, the largest first, each once.
fn candidates() -> Vec<PathBuf> {
    let mut found = BTreeSet::new();
    let sysroot = rustc_sysroot().map(|root| root.join("lib"));
    PLACES.iter().map(PathBuf::from).chain(sysroot).for_each(|place| search(&place, DEPTH, &mut found));
    let mut seen = BTreeSet::new();
    found.into_iter().rev().filter(|(_, inode, _)| seen.insert(*inode)).map(|(_, _, path)| path).collect()
}

fn search(directory: &Path, depth: u32, found: &mut BTreeSet<(u64, (u64, u64), PathBuf)>) {
    let Ok(entries) = fs::read_dir(directory) else { return };
    for entry in entries.filter_map(Result::ok) {
        let Ok(facts) = fs::symlink_metadata(entry.path()) else { continue };
        if facts.is_dir() && depth > 0 {
            search(&entry.path(), depth - 1, found);
        } else if facts.is_file() && facts.len() >= LEAST_BYTES && is_elf(&entry.path()) {
            found.insert((facts.len(), (facts.dev(), facts.ino()), entry.path()));
        }
    }
}

fn is_elf(path: &Path) -> bool {
    use std::io::Read;
    let mut magic = [0; 4];
    File::open(path).and_then(|mut file| file.read_exact(&mut magic)).is_ok() && magic == *b"\x7fELF"
}

fn rustc_sysroot() -> Option<PathBuf> {
    let output = Command::new("rustc").args(["--print", "sysroot"]).output().ok()?;
    Some(PathBuf::from(String::from_utf8(output.stdout).ok()?.trim()))
}

/// rustc's LLVM and driver, if there is a toolchain, the C compiler, node and the C library.
pub fn well_known() -> Vec<PathBuf> {
    let mut files = compiler_libraries();
    let cc1 = Command::new("cc").arg("-print-prog-name=cc1").output().ok();
    files.extend(cc1.and_then(|output| Some(PathBuf::from(String::from_utf8(output.stdout).ok()?.trim()))));
    files.push("/usr/bin/node".into());
    files.extend(own_libc());
    files.retain(|path| is_elf(path));
    files
}

fn compiler_libraries() -> Vec<PathBuf> {
    let Some(Ok(entries)) = rustc_sysroot().map(|root| fs::read_dir(root.join("lib"))) else { return Vec::new() };
    let wanted = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.starts_with("libLLVM") || name.starts_with("librustc_driver")
    };
    let mut files: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).filter(wanted).collect();
    files.sort();
    files
}

/// The C library that this process maps.
fn own_libc() -> Option<PathBuf> {
    let maps = fs::read_to_string("/proc/self/maps").ok()?;
    let path =
        maps.lines().find_map(|line| Some(line.get(line.find('/')?..)?).filter(|path| path.contains("/libc.so")));
    path.map(PathBuf::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_listed_once_and_the_largest_first() {
        let directory = tempfile::tempdir().expect("a directory");
        let mut elf = vec![0; LEAST_BYTES as usize];
        elf[..4].copy_from_slice(b"\x7fELF");
        fs::write(directory.path().join("small"), &elf).expect("written");
        fs::hard_link(directory.path().join("small"), directory.path().join("twin")).expect("linked");
        elf.push(0);
        fs::write(directory.path().join("large"), &elf).expect("written");
        elf[0] = 0;
        fs::write(directory.path().join("no elf"), &elf).expect("written");
        fs::write(directory.path().join("short"), b"\x7fELF").expect("written");
        let mut found = BTreeSet::new();
        search(directory.path(), 0, &mut found);
        let names: Vec<_> =
            found.iter().rev().map(|(_, _, path)| path.file_name().expect("a name").to_owned()).collect();
        assert_eq!(names.len(), 3, "{names:?}");
        assert_eq!(names[0], "large");
    }

    #[test]
    fn the_c_library_of_this_process_is_found() {
        let path = own_libc().expect("the standard library needs it");
        assert!(is_elf(&path), "{}", path.display());
    }
}
