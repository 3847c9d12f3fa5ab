//! The table of limits in the documentation is what the constants say. To write it anew after a change:
//! `WHOLESTACK_WRITE_DOCS=1 cargo test -p wholestack-recorder --test limits`

use std::fmt::Write;
use std::path::Path;

use abi::process::{
    EXITS, MAPPING_SEGMENTS, MAPPINGS_PER_SEGMENT, PAGE_SEGMENTS, PAGES_PER_SEGMENT, ROW_SEGMENTS, ROWS_PER_SEGMENT,
    RULES,
};
use abi::record::{COPY_BYTES, COPY_GAP, COPY_PIECE, HEAD, KERNEL_WORDS, SHORT_COPY_BYTES, TURNS, WORDS};
use objects::limits;

const INTRODUCTION: &str = "# Limits

What wholestack reads of other programs is bounded, and what it keeps has its place. This table is made of the constants
of the sources by `crates/recorder/tests/limits.rs`, which fails when the two differ.

| what | limit | and beyond |
|---|---|---|
";

const CUT: &str = "frames in the middle are left out, and a frame says how many";
const COPY_ENDS: &str = "`[stopped: end of the copied part of the stack]`";
const NO_ROOM: &str = "the summary says that there was no room; samples are deferred and walked in user space";
const NO_TABLE: &str = "the summary names the file and the reason; its code is walked without a table";
const UNSUPPORTED: &str = "`[stopped: unsupported unwind rule]` in that function";

fn of_stacks() -> Vec<(&'static str, u64, &'static str)> {
    vec![
        ("Frames of a stack that are kept", WORDS as u64, CUT),
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

fn table() -> String {
    let mut table = INTRODUCTION.to_owned();
    for (what, limit, beyond) in [of_stacks(), of_processes(), of_files()].concat() {
        writeln!(table, "| {what} | {} | {beyond} |", grouped(limit)).expect("a string takes everything");
    }
    table
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
