//! Every row that `readelf` decodes is in our table.

mod common;

use std::collections::HashMap;
use std::path::Path;

use abi::table::{Rule, bx, cfa, fp, ra, unsupported};
use common::{compile, library, mapped_files, output, table};

/// A row of readelf's: CFA, rbp, rbx, rsp, return address, in its words.
#[derive(Clone, Debug, Default)]
struct Line {
    cfa: String,
    rbp: String,
    rbx: String,
    rsp: String,
    ra: String,
}

/// A function of readelf's.
#[derive(Debug)]
struct Function {
    signal: bool,
    begin: u64,
    end: u64,
    /// Rows with the addresses at which they begin.
    lines: Vec<(u64, Line)>,
}

/// Reads `readelf --debug-dump=frames-interp`.
fn functions(path: &Path) -> Vec<Function> {
    let text = output("readelf", &["--wide", "--debug-dump=frames-interp,no-follow-links", path.to_str().unwrap()]);
    let mut cies: HashMap<String, (bool, Line)> = HashMap::new();
    let mut functions: Vec<Function> = Vec::new();
    // the CIE that rows are for, if they are for one
    let mut cie = None;
    let mut columns: Vec<String> = Vec::new();
    for line in text.lines() {
        // a register in another one is `r10 (r10)`
        let words: Vec<&str> = line.split_whitespace().filter(|word| !word.starts_with('(')).collect();
        match words[..] {
            [offset, _, _, "CIE", augmentation, ..] => {
                cies.insert(offset.to_owned(), (augmentation.contains('S'), Line::default()));
                cie = Some(offset.to_owned());
            }
            [_, _, _, "FDE", of, range] => {
                let (signal, line) = cies[of.strip_prefix("cie=").unwrap()].clone();
                let (begin, end) = range.strip_prefix("pc=").unwrap().split_once("..").unwrap();
                let (begin, end) = (hex(begin), hex(end));
                functions.push(Function { signal, begin, end, lines: vec![(begin, line)] });
                cie = None;
            }
            ["LOC", ..] => columns = words.iter().map(|&word| word.to_owned()).collect(),
            [address, _, ..] if address.len() == 16 => {
                let cell =
                    |name: &str| columns.iter().position(|column| column == name).map_or("u", |i| words[i]).to_owned();
                let (cfa, ra) = (cell("CFA"), cell("ra"));
                let line = Line { cfa, rbp: cell("rbp"), rbx: cell("rbx"), rsp: cell("rsp"), ra };
                match &cie {
                    Some(cie) => cies.get_mut(cie).unwrap().1 = line,
                    None => functions.last_mut().unwrap().push(hex(address), line),
                }
            }
            _ => {}
        }
    }
    functions
}

impl Function {
    /// Of two rows for one address, the later holds.
    fn push(&mut self, address: u64, line: Line) {
        self.lines.retain(|(at, _)| *at != address);
        self.lines.push((address, line));
    }
}

fn hex(text: &str) -> u64 {
    u64::from_str_radix(text, 16).unwrap()
}

/// `rsp+16` as register and offset.
fn register_and_offset(text: &str) -> Option<(&str, i32)> {
    let at = text.find(['+', '-'])?;
    Some((&text[..at], text[at..].parse().ok()?))
}

/// A register that has another one's value: `r9`, by DWARF number.
fn register_number(text: &str) -> Option<i32> {
    text.strip_prefix('r')?.parse().ok()
}

fn same(line: &Line, signal: bool, rule: &Rule) -> bool {
    if line.ra == "u" {
        return *rule == Rule::END;
    }
    if signal && line.cfa == "exp" {
        return *rule == Rule::SIGNAL;
    }
    // in longjmp, the caller's stack pointer is in a register, and not the CFA
    let is_cfa = matches!(line.rsp.as_str(), "u" | "s");
    let register = register_number(&line.ra);
    if !is_cfa || line.ra != "c-8" && register.is_none() {
        return *rule == Rule::unsupported(unsupported::RETURN_ADDRESS);
    }
    let cfa_is_same = match register_and_offset(&line.cfa) {
        Some(("rsp", offset)) => (rule.cfa, rule.cfa_offset) == (cfa::SP, offset),
        Some(("rbp", offset)) => (rule.cfa, rule.cfa_offset) == (cfa::FP, offset),
        Some((name, offset)) => {
            let register = objects::Architecture::X86_64.register_name(rule.register);
            (rule.cfa, &*register, rule.cfa_offset) == (cfa::REGISTER, name, offset)
        }
        None => line.cfa == "exp" && matches!(rule.cfa, cfa::DEREF_FP | cfa::DEREF_SP | cfa::PLT),
    };
    let rbp_is_same = match line.rbp.as_str() {
        "u" | "s" => rule.fp == fp::SAME,
        "exp" => matches!(rule.fp, fp::AT_FP | fp::AT_SP) || common::may_have_given_back(rule),
        text if register_number(text).is_some() => rule.fp == fp::LOST,
        _ => register_and_offset(&line.rbp) == Some(("c", rule.fp_offset)) && rule.fp == fp::AT_CFA,
    };
    let rbx_is_same = match line.rbx.as_str() {
        "u" | "s" => rule.bx_offset == bx::SAME,
        text => match register_and_offset(text) {
            // what is saved at the CFA itself is not followed
            Some(("c", offset)) if offset != 0 => rule.bx_offset == offset,
            _ => rule.bx_offset == bx::LOST,
        },
    };
    let ra_is_same = match register {
        Some(number) => (rule.ra, rule.extra) == (ra::REGISTER, number),
        None => rule.ra == ra::AT_CFA_MINUS_8,
    };
    cfa_is_same && rbp_is_same && rbx_is_same && ra_is_same
}

/// Compares a file; returns how many rows there were.
fn compare(path: &Path) -> usize {
    let (image, table) = table(path);
    let functions = functions(path);
    let mut rows = 0;
    for function in &functions {
        let ends = function.lines.iter().skip(1).map(|(at, _)| *at).chain([function.end]);
        for ((begin, line), end) in function.lines.iter().zip(ends) {
            // BOLT leaves rows that begin where their function ends
            for address in [*begin, end - 1].into_iter().filter(|address| address >= begin) {
                let rule = table.lookup(image.vaddr_to_file_offset(address).unwrap());
                assert!(same(line, function.signal, &rule), "{path:?} at {address:#x}: {line:?}, but {rule:?}");
            }
            rows += 1;
        }
    }
    let covered = functions.iter().filter(|function| function.begin < function.end).count();
    assert_eq!(table.stats.fdes as usize, covered, "{path:?}");
    assert_eq!((table.stats.bad_fdes, table.stats.lost_fdes, table.stats.broken_framing), (0, 0, 0), "{path:?}");
    assert!(rows > 0, "{path:?}");
    rows
}

#[test]
fn libraries_of_this_process() {
    let files = mapped_files();
    assert!(files.len() >= 3, "an executable, libc and its loader: {files:?}");
    for path in files {
        compare(&path);
    }
}

#[test]
fn a_large_cplusplus_library() {
    assert!(compare(&library("libstdc++.so.6")) > 10_000);
}

#[test]
fn programs_of_gcc() {
    let directory = tempfile::tempdir().unwrap();
    let builds: [&[&str]; 6] = [
        &["-O2", "-fcf-protection=full", "-Wl,-z,ibtplt", "-Wl,-z,lazy"],
        &["-O2", "-fcf-protection=none", "-Wl,-z,lazy"],
        &["-O2", "-Wl,-z,now", "-no-pie"],
        &["-O0", "-fno-omit-frame-pointer"],
        &["-O2", "-static"],
        &["-O3", "-mno-red-zone", "-fstack-protector-all", "-Wl,-z,noseparate-code"],
    ];
    for flags in builds {
        compare(&compile(directory.path(), "realign.c", flags));
    }
}

#[test]
fn two_executable_segments_with_different_distances() {
    let directory = tempfile::tempdir().unwrap();
    let flags = ["-O2", "-no-pie", "-nostdlib", "-static", "-Wl,--section-start=.far=0x7654320"];
    let path = compile(directory.path(), "sections.c", &flags);
    let executable = |s: &&objects::Segment| s.is_executable();
    let image = common::open(&path);
    let distances: Vec<u64> = image.segments().iter().filter(executable).map(|s| s.vaddr - s.file_offset).collect();
    assert!(distances.len() == 2 && distances[0] != distances[1], "{distances:x?}");
    compare(&path);
}

#[test]
fn debug_frame_where_there_is_no_eh_frame() {
    let directory = tempfile::tempdir().unwrap();
    let flags = ["-O2", "-g", "-nostdlib", "-static", "-fno-asynchronous-unwind-tables", "-fno-unwind-tables"];
    let path = compile(directory.path(), "sections.c", &flags);
    let sections = output("readelf", &["--sections", "--wide", path.to_str().unwrap()]);
    assert!(sections.contains(" .debug_frame ") && !sections.contains(" .eh_frame "), "{sections}");
    compare(&path);
}

#[test]
fn deeply_remembered_states() {
    let directory = tempfile::tempdir().unwrap();
    compare(&compile(directory.path(), "trampolines.s", &["-shared", "-nostdlib"]));
}
