//! What several tests share: real files, programs built here, and hand-made ELF files.
#![allow(dead_code, reason = "each test binary uses a part")]

use std::path::{Path, PathBuf};
use std::process::Command;

use abi::table::{Rule, cfa, fp};
use objects::{Image, UnwindTable};

pub mod elf;
pub mod meaning;

/// Runs a program and returns what it prints.
pub fn output(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).env("LC_ALL", "C").output().unwrap();
    assert!(output.status.success(), "{program} {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// Compiles and links `tests/programs/<source>`.
pub fn compile(directory: &Path, source: &str, flags: &[&str]) -> PathBuf {
    let name = [source, &flags.concat()].concat().replace(|c: char| !c.is_ascii_alphanumeric(), "_");
    let path = directory.join(name);
    let source = format!("{}/tests/programs/{source}", env!("CARGO_MANIFEST_DIR"));
    output("cc", &[flags, &["-o", path.to_str().unwrap(), &source]].concat());
    path
}

/// The shared libraries that this process has mapped, and its own executable. Not what other tests, in other threads, have
/// mapped to read it.
pub fn mapped_files() -> Vec<PathBuf> {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    let executable = maps.lines().filter(|line| line.split_whitespace().nth(1).is_some_and(|mode| mode.contains('x')));
    let paths = executable.filter_map(|line| line.split_whitespace().nth(5)).filter(|path| path.starts_with('/'));
    let mut paths: Vec<PathBuf> = paths.map(PathBuf::from).filter(|path| path.exists()).collect();
    paths.sort();
    paths.dedup();
    paths
}

/// A library that the C compiler links with.
pub fn library(name: &str) -> PathBuf {
    let path = PathBuf::from(output("cc", &[&format!("-print-file-name={name}")]).trim());
    assert!(path.is_absolute(), "cc finds no {name}");
    path.canonicalize().unwrap()
}

pub fn open(path: &Path) -> Image {
    Image::open(&std::fs::File::open(path).unwrap()).unwrap()
}

pub fn table(path: &Path) -> (Image, UnwindTable) {
    let image = open(path);
    let table = UnwindTable::build(&image).unwrap();
    assert_consistent(&table);
    (image, table)
}

/// What the documentation of the type promises.
pub fn assert_consistent(table: &UnwindTable) {
    assert_eq!(table.rules[0], abi::table::Rule::NONE);
    let mut next = 0;
    for page in &table.pages {
        assert_eq!(page.first_row, next);
        next += page.rows;
        let rows = &table.rows[page.first_row as usize..next as usize];
        assert!(rows.first().is_none_or(|row| row.low == 0));
        assert!(rows.iter().all(|row| row.low < 4096 && usize::from(row.rule) < table.rules.len()));
        assert!(rows.windows(2).all(|pair| pair[0].low < pair[1].low && pair[0].rule != pair[1].rule));
    }
    assert_eq!(next as usize, table.rows.len());
    assert_eq!(table.stats.rows as usize, table.rows.len());
}

/// Whether a rule is one that gcc's realigned functions get behind the instruction that restores rbp, of which their
/// unwind information does not tell. `cargo xtask verify edges` says whether they get it in the right places.
pub fn may_have_given_back(rule: &Rule) -> bool {
    rule.fp == fp::SAME && (rule.cfa == cfa::REGISTER || (rule.cfa, rule.cfa_offset) == (cfa::SP, 8))
}
