//! The table of limits in the documentation is what the constants say. To write it anew after a change:
//! `WHOLESTACK_WRITE_DOCS=1 cargo test -p wholestack-recorder --test limits`

use std::fmt::Write;
use std::path::Path;

use abi::process::{
    EXITS, MAPPING_SEGMENTS, MAPPINGS_PER_SEGMENT, PAGE_SEGMENTS, PAGES_PER_SEGMENT, ROW_SEGMENTS, ROWS_PER_SEGMENT,
    RULES,
};
use abi::python::{ENTRIES, EVAL_LOOPS, FRAMES, PIECES};
use abi::record::{
    COPY_BYTES, COPY_GAP, COPY_PIECE, DEFERRED_FRAMES, FRAGMENT_BYTES, HEAD, KERNEL_WORDS, READS, SHORT_COPY_BYTES,
    TURNS, WORDS,
};
use aya_obj::Object;
use objects::limits;
use python::prove::Effort;

const INTRODUCTION: &str = "# Limits

What wholestack reads of other programs is bounded, and what it keeps has its place. This table is made of the constants
of the sources by `crates/recorder/tests/limits.rs`, which fails when the two differ.

| what | limit | and beyond |
|---|---|---|
";

const KNOWN: &str = "
## Python frames that are not shown

| where | what is shown instead |
|---|---|
| Samples that were taken before an interpreter was found and proven | eval loops as native frames, the innermost with `[python: interpreter not proven yet]` |
| A second file with an interpreter in one process | the first that was proven is walked; the summary names the other, whose eval loops are native frames |
| Up to 3.10: an interpreter that runs a sub-interpreter in its own thread. The C library's key leads to the state of the first of them, whose frames are fewer than the eval loops | `[python: Python frames that cannot be told to eval loops]` |
| 3.11: the sub-interpreter in this case. From 3.12 on: the interpreter that runs it, since the key leads to the state of the one that runs now | its eval loops are native frames, with `[python: eval loop of another interpreter or greenlet]` |
| Code objects of one recording: programs may make new ones all the time | they are kept in 256 MB, and the summary says so if that was not enough; those that found no room are `[python: code object gone]` |
| Free-threaded 3.14 and 3.15, pre-releases that were not measured, files without exported symbols, PyPy | the interpreter is refused by name; its eval loops are native frames |
| Up to 3.10: the class of a method | its plain name: code objects have no other |
";

const CUT: &str = "those in the middle are left out, and a frame says so";
const COPY_ENDS: &str = "`[stopped: end of the copied part of the stack]`";
const NO_ROOM: &str = "the summary says that there was no room; samples are deferred and walked in user space";
const NO_TABLE: &str = "the summary names the file and the reason; its code is walked without a table";
const NO_PYTHON: &str = "the summary says that there was no room; eval loops are native frames";
const REFUSED: &str = "the interpreter is refused, and the summary says so; its eval loop is native frames";
const WAY_ENDS: &str = "`[python: unreadable Python frame]`, and native frames";
const REST: &str = "the rest is read from the process; if it has ended, `[python: code object gone]`";
const UNSUPPORTED: &str = "`[stopped: unsupported unwind rule]` in that function";

fn of_stacks() -> Vec<(&'static str, u64, &'static str)> {
    vec![
        ("Words of a stack that are kept; a native frame is one, a Python frame two", WORDS as u64, CUT),
        ("of these, innermost ones", HEAD as u64, ""),
        ("Frames that are walked", TURNS.into(), "`[stopped: deeper than a walk may go]`"),
        ("Kernel frames of a stack", KERNEL_WORDS as u64, "the outermost are left out, as by the kernel's own default"),
        ("Bytes of stack that come with a deferred sample", COPY_BYTES as u64, COPY_ENDS),
        ("the same while user space is behind, or at high rates", SHORT_COPY_BYTES as u64, COPY_ENDS),
        (
            "Bytes of unreadable stack in a deferred sample",
            u64::from(COPY_GAP) * COPY_PIECE as u64,
            "the copy ends there",
        ),
    ]
}

fn of_processes() -> Vec<(&'static str, u64, &'static str)> {
    vec![
        ("Executable mappings of a process in the sampler", MAPPINGS_PER_SEGMENT as u64, "the highest are left out"),
        (
            "Executable mappings of a process that are followed",
            processes::MAX_RANGES as u64,
            "later ones are not known",
        ),
        ("Executable mappings of all processes", (MAPPING_SEGMENTS * MAPPINGS_PER_SEGMENT) as u64, NO_ROOM),
        ("Pages of code of all tables", (PAGE_SEGMENTS * PAGES_PER_SEGMENT) as u64, NO_ROOM),
        ("Rows of all tables", (ROW_SEGMENTS * ROWS_PER_SEGMENT) as u64, NO_ROOM),
        ("Distinct rules of all tables", RULES as u64, UNSUPPORTED),
        ("Places without unwind information that are known at a time", EXITS as u64, "the oldest are read again"),
    ]
}

fn of_files() -> Vec<(&'static str, u64, &'static str)> {
    vec![
        ("Rows of one table", limits::MAX_ROWS as u64, NO_TABLE),
        ("Distinct rules of one table", limits::MAX_RULES as u64, UNSUPPORTED),
        ("Pages of one table", limits::MAX_PAGES as u64, NO_TABLE),
        ("Bytes of `.eh_frame`", limits::MAX_FRAME_BYTES as u64, NO_TABLE),
        ("Functions of one file", limits::MAX_FDES as u64, NO_TABLE),
        ("Common information entries of one file", limits::MAX_CIES as u64, NO_TABLE),
        ("Rows of one function", limits::MAX_ROWS_PER_FDE as u64, UNSUPPORTED),
        ("Nested `DW_CFA_remember_state`", limits::MAX_REMEMBERED as u64, UNSUPPORTED),
        ("Operations of a DWARF expression", limits::MAX_OPERATIONS as u64, UNSUPPORTED),
        ("Functions and rows of a Go program", limits::MAX_GO_ROWS as u64, "its code is walked without a table"),
        ("Bytes of a symbol's name", symbols::MAX_NAME as u64, "the name is cut"),
    ]
}

fn of_python() -> Vec<(&'static str, u64, &'static str)> {
    vec![
        // the first one means that there is none
        ("Processes with a Python interpreter at a time", ENTRIES as u64 - 1, NO_PYTHON),
        ("Files with a Python interpreter", EVAL_LOOPS as u64, NO_PYTHON),
        ("Pieces of native code of an eval loop", PIECES as u64, REFUSED),
        (
            "Threads of a process that are asked for their thread pointers to prove its interpreter",
            Effort::SMALL.most_threads as u64,
            "it is refused if none of these has a thread state",
        ),
        ("Python frames of a stack", FRAMES.into(), "`[python: deeper than a walk may go]`, and native frames"),
        ("Python frames whose way comes with a deferred sample", DEFERRED_FRAMES.into(), WAY_ENDS),
        ("Words of memory of that way", READS as u64, WAY_ENDS),
        (
            "Code objects that come with a sample",
            of_sampler("MOST"),
            "the others come with the next sample of this stack",
        ),
        ("Bytes of memory that come of a code object", FRAGMENT_BYTES as u64, REST),
        ("of these, of its name and of its file name, with the string's head", of_sampler("STRING"), REST),
        ("of these, of its line table", of_sampler("LINES"), REST),
        ("Code objects of which the sampler knows that they were sent", codes(), "the oldest are sent again"),
        (
            "Python frames of a thread in `explain`",
            python::stack::MAX_FRAMES.into(),
            "`[stopped: deeper than a walk may go]`",
        ),
    ]
}

/// A constant of the part of the sampler that reads code objects.
fn of_sampler(name: &str) -> u64 {
    let source = include_str!("../../../bpf/src/code.rs");
    let constant = source.lines().find_map(|line| {
        line.trim_start_matches("pub ").strip_prefix("const ")?.strip_prefix(name)?.strip_prefix(": ")
    });
    let value = constant.and_then(|constant| constant.split_once(" = ")?.1.strip_suffix(';')?.parse().ok());
    value.unwrap_or_else(|| panic!("bpf/src/code.rs has no number {name}"))
}

/// Elements of the sampler's map of code objects.
fn codes() -> u64 {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../bpf/prebuilt/sampler-x86_64.o");
    let object = std::fs::read(path).expect("it is there");
    let object = Object::parse(&object).expect("a BPF object");
    object.maps["codes"].max_entries().into()
}

fn table() -> String {
    let mut table = INTRODUCTION.to_owned();
    for (what, limit, beyond) in [of_stacks(), of_processes(), of_python(), of_files()].concat() {
        writeln!(table, "| {what} | {} | {beyond} |", grouped(limit)).expect("a string takes everything");
    }
    table + KNOWN
}

/// Digits in groups of three.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let begins_group = |index: usize| index > 0 && (digits.len() - index).is_multiple_of(3);
    digits.char_indices().fold(String::new(), |mut text, (index, digit)| {
        if begins_group(index) {
            text.push(',');
        }
        text.push(digit);
        text
    })
}

#[test]
fn the_documented_limits_are_those_of_the_sources() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/limits.md");
    let table = table();
    if std::env::var_os("WHOLESTACK_WRITE_DOCS").is_some() {
        std::fs::write(&path, &table).expect("docs can be written");
    }
    let documented = std::fs::read_to_string(&path).expect("docs/limits.md is there");
    assert!(documented == table, "docs/limits.md differs from the constants: see the head of this test's file");
}
