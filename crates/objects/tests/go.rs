//! The rules of a Go program, which come from `.gopclntab`, against its `.debug_frame`, as readelf decodes it.

mod common;

use std::collections::BTreeMap;
use std::process::Command;

use abi::table::{Rule, cfa, fp};
use common::{output, table};

const SOURCE: &str = r#"package main

import "fmt"

func main() { fmt.Println("Go") }
"#;

/// Places and the offsets of the CFA from the stack pointer there; and the last bytes of functions.
fn rows(path: &str) -> BTreeMap<u64, i32> {
    let text = output("readelf", &["--wide", "--debug-dump=frames-interp", path]);
    let mut rows = BTreeMap::new();
    for line in text.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [address, cfa, ..] = words[..] else { continue };
        let offset = cfa.strip_prefix("rsp").and_then(|offset| offset.parse().ok());
        if let (Ok(address @ 1..), Some(offset)) = (u64::from_str_radix(address, 16), offset) {
            // of two rows for one place, the later holds
            rows.insert(address, offset);
        }
    }
    rows
}

#[test]
fn distances_are_those_of_debug_frame() {
    let directory = tempfile::tempdir().unwrap();
    let source = directory.path().join("main.go");
    std::fs::write(&source, SOURCE).unwrap();
    for options in [&["-ldflags=-compressdwarf=false"][..], &["-ldflags=-compressdwarf=false", "-gcflags=all=-N -l"]] {
        let program = directory.path().join("program");
        let mut command = Command::new("go");
        command.env("CGO_ENABLED", "0").env("GOFLAGS", "").current_dir(&directory);
        let built = command.arg("build").args(options).arg("-o").arg(&program).arg(&source).output();
        let built = built.expect("Go is needed");
        assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
        let (image, table) = table(&program);
        let (mut same, mut roots, mut elsewhere, mut saved) = (0, 0, 0, 0);
        for (address, offset) in rows(program.to_str().unwrap()) {
            let rule = table.lookup(image.vaddr_to_file_offset(address).unwrap());
            match rule.cfa {
                cfa::SP => {
                    assert_eq!(rule.cfa_offset, offset, "at {address:#x}");
                    same += 1;
                    saved += usize::from((rule.fp, rule.fp_offset) == (fp::AT_CFA, -16));
                    assert!(offset > 8 || rule.fp == fp::SAME, "at {address:#x}: {rule:?}");
                }
                cfa::END => roots += 1,
                cfa::OTHER_STACK | cfa::NONE => elsewhere += 1,
                // the trampolines of signal handlers
                _ => assert_eq!(rule, Rule::SIGNAL, "at {address:#x}"),
            }
        }
        println!(
            "{options:?}: {same} the same, {saved} with a saved frame pointer, {roots} roots, {elsewhere} elsewhere"
        );
        assert!(same > 5000 && saved > same / 3, "{same} the same, {saved} with a saved frame pointer");
        assert!((1..200).contains(&roots) && (1..200).contains(&elsewhere), "{roots} roots, {elsewhere} elsewhere");
    }
}

/// Whatever one byte is changed to, there is a table or an error.
#[test]
fn damaged_tables() {
    let directory = tempfile::tempdir().unwrap();
    let source = directory.path().join("main.go");
    std::fs::write(&source, "package main\n\nfunc main() { println() }\n").unwrap();
    let program = directory.path().join("program");
    let mut command = Command::new("go");
    command.env("CGO_ENABLED", "0").env("GOFLAGS", "").current_dir(&directory);
    let built = command.args(["build", "-ldflags=-s -w", "-o"]).arg(&program).arg(&source).status();
    assert!(built.expect("Go is needed").success());
    let whole = std::fs::read(&program).unwrap();
    let sections = output("readelf", &["-SW", program.to_str().unwrap()]);
    let line = sections.lines().find(|line| line.contains(".gopclntab")).unwrap();
    let fields: Vec<&str> = line.split("PROGBITS").nth(1).unwrap().split_whitespace().collect();
    let begin = usize::from_str_radix(fields[1], 16).unwrap();
    let size = usize::from_str_radix(fields[2], 16).unwrap();
    // every byte of the header, some of the rest
    let places = (0..72).chain((72..size).step_by(size / 150));
    for (number, place) in places.enumerate() {
        let mut bytes = whole.clone();
        bytes[begin + place] ^= [0xff, 0x01, 0x80][number % 3];
        let image = objects::Image::from_bytes(bytes).unwrap();
        let table = objects::UnwindTable::build(&image).unwrap();
        common::assert_consistent(&table);
    }
}
