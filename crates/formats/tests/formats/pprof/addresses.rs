//! Addresses lead to the right place of real programs, whatever their segments look like.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::Decoded;
use super::tool::pprof;
use crate::synthetic::{At, Author};
use formats::pprof::messages;
use profile::{Kind, Profile};

const SOURCE: &str = "
static volatile int sink;
__attribute__((noinline)) void first(void) { sink++; }
__attribute__((noinline)) void second(void) { sink--; }
int main(void) { first(); second(); return 0; }
";

fn compiled(directory: &Path, arguments: &[&str]) -> PathBuf {
    let (source, program) = (directory.join("program.c"), directory.join("program"));
    std::fs::write(&source, SOURCE).unwrap();
    let status = Command::new("cc").args(["-g", "-O1"]).args(arguments).arg("-o").arg(&program).arg(&source).status();
    assert!(status.unwrap().success(), "{arguments:?}");
    program
}

fn output(command: &str, arguments: &[&str], program: &Path) -> String {
    let output = Command::new(command).args(arguments).arg(program).output().unwrap();
    assert!(output.status.success());
    String::from_utf8(output.stdout).unwrap()
}

fn hex(digits: &str) -> u64 {
    u64::from_str_radix(digits.trim_start_matches("0x"), 16).unwrap()
}

/// The address of a symbol, by nm.
fn address(program: &Path, symbol: &str) -> u64 {
    let symbols = output("nm", &[], program);
    let line = symbols.lines().find(|line| line.split(' ').next_back() == Some(symbol)).unwrap();
    hex(line.split(' ').next().unwrap())
}

/// A loaded segment.
#[derive(Clone, Copy)]
struct Segment {
    offset: u64,
    address: u64,
    size: u64,
}

/// Loaded segments, by readelf.
fn segments(program: &Path) -> Vec<Segment> {
    let headers = output("readelf", &["-lW"], program);
    let lines = headers.lines().filter_map(|line| line.trim().strip_prefix("LOAD "));
    // offset, virtual address, physical address, size in the file, size in memory
    let numbers = lines.map(|line| line.split_whitespace().take(5).map(hex).collect::<Vec<_>>());
    numbers.map(|n| Segment { offset: n[0], address: n[1], size: n[4] }).collect()
}

/// The offset of a symbol in the file.
fn offset(program: &Path, symbol: &str) -> u64 {
    let address = address(program, symbol);
    let segments = segments(program);
    let segment = segments.iter().find(|one| (one.address..one.address + one.size).contains(&address)).unwrap();
    address - segment.address + segment.offset
}

fn build_id(program: &Path) -> String {
    let notes = output("readelf", &["-nW"], program);
    notes.split_once("Build ID: ").unwrap().1.split_whitespace().next().unwrap().to_owned()
}

/// A profile of the program that calls its functions by wrong names.
fn misnamed(program: &Path) -> Profile {
    let mut author = Author::default();
    author.module("/another/module", None);
    let module = Some(author.module(program.to_str().unwrap(), Some(&build_id(program))));
    let thread = author.task(1, "program", "program");
    let mut frame = |name: &str, symbol| {
        author.frame(name, Kind::Native, At { module, offset: offset(program, symbol) + 4, ..At::default() })
    };
    let [main, first, second] = [frame("x", "main"), frame("y", "first"), frame("z", "second")];
    author.add(thread, &[main, first], 30);
    author.add(thread, &[main, second], 12);
    author.builder.finish()
}

/// What pprof does (`elfexec`): of the segments that overlap the mapping and do not begin on a later page than it, the
/// one that has the address; by that the address in the mapping becomes one in the file.
fn found_by_pprof(decoded: &Decoded, segments: &[Segment], location: &str) -> u64 {
    let by_name = |one: &&messages::Location| decoded.function_name(one.line[0].function_id) == location;
    let location = decoded.0.location.iter().find(by_name).unwrap();
    let mapping = &decoded.0.mapping[location.mapping_id as usize - 1];
    let size = mapping.memory_limit - mapping.memory_start;
    let (low, high) = (mapping.file_offset, mapping.file_offset + size);
    let offset = location.address - mapping.memory_start + mapping.file_offset;
    let fits = |one: &&Segment| {
        low < one.offset + one.size
            && one.offset < high
            && one.offset - one.address % 4096 <= low
            && (one.offset..one.offset + one.size).contains(&offset)
    };
    let segment = segments.iter().find(fits).unwrap();
    location.address - mapping.memory_start + mapping.file_offset - segment.offset + segment.address
}

#[test]
fn addresses_lead_to_the_functions() {
    for arguments in [
        &["-Wl,--build-id"][..],
        &["-Wl,--build-id", "-no-pie"],
        &["-Wl,--build-id", "-Wl,-z,noseparate-code"],
        // code whose address and offset in the file differ
        &["-Wl,--build-id", "-Wl,-Ttext=0x345000"],
        &["-Wl,--build-id", "-no-pie", "-Wl,-Ttext-segment=0x10000000"],
    ] {
        let directory = tempfile::tempdir().unwrap();
        let program = compiled(directory.path(), arguments);
        let decoded = Decoded::of(&misnamed(&program));
        let segments = segments(&program);
        for (name, symbol) in [("x", "main"), ("y", "first"), ("z", "second")] {
            let found = found_by_pprof(&decoded, &segments, name);
            assert_eq!(found, address(&program, symbol) + 4, "{arguments:?}: {symbol}");
        }
    }
}

/// The pprof of the Go distribution takes the beginning of a mapping for that of the first executable segment; these
/// programs are so small that it is.
#[test]
fn go_tool_pprof_finds_the_functions() {
    for arguments in [&["-Wl,--build-id"][..], &["-Wl,--build-id", "-no-pie"]] {
        let directory = tempfile::tempdir().unwrap();
        let program = compiled(directory.path(), arguments);
        let forced = "-symbolize=force:local";
        let traces = pprof(&misnamed(&program), &["-traces", "-sample_index=samples", forced]);
        let lines: Vec<&str> = traces.lines().map(str::trim).collect();
        for stack in [["30   first", "main"], ["12   second", "main"]] {
            assert!(lines.windows(2).any(|window| window == stack), "{arguments:?}: {traces}");
        }
        let disassembly = pprof(&misnamed(&program), &["-disasm=first|second", "-sample_index=samples", forced]);
        for count in ["30", "12"] {
            let counted = |line: &str| line.split_whitespace().next() == Some(count) && line.contains("program.c:");
            assert!(disassembly.lines().any(counted), "{arguments:?}: {disassembly}");
        }
    }
}
