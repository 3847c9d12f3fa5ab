//! Rust in release mode, as lld links it: segments whose addresses are not their file offsets.

use std::process::Command;

use crate::support::build::{Workshop, must};
use crate::support::folded::Stack;
use crate::support::judge::Judge;
use crate::support::needs;
use crate::support::record::Recording;
use crate::support::workload::Truth;

/// Inlined functions of the standard library are in between; they are not the point here.
fn chain(stack: &Stack) -> Option<String> {
    let frames = stack.from("generics::main")?;
    let own: Vec<&str> = frames.into_iter().filter(|frame| !frame.ends_with("_[i]")).collect();
    let ["generics::main", rest @ ..] = own.as_slice() else { return None };
    let ["generics::drive", rest @ ..] = rest else {
        // the program's look at its own CPU time
        return Some(String::new());
    };
    let is_wrap = |frame: &&&str| frame.contains("Wrap<") && frame.ends_with("::eval");
    let wraps = rest.iter().filter(is_wrap).count();
    let leaf =
        ["Leaf60", "Leaf30", "Leaf10"].into_iter().find(|leaf| rest.last().is_some_and(|last| names(last, leaf)));
    match leaf {
        Some(leaf) if wraps == 20 => Some(leaf.to_owned()),
        Some(_) => None,
        None => Some(String::new()),
    }
}

/// `<generics::Leaf60 as generics::Node>::eval`
fn names(frame: &str, leaf: &str) -> bool {
    !frame.contains("Wrap<") && frame.contains(leaf) && frame.ends_with("::eval")
}

fn record(name: &str, options: &[&str], frequency: u32, seconds: &str, check: impl Fn(&str)) {
    let shop = Workshop::new();
    let program = shop.rust("generics", "generics.rs", options);
    check(&must(Command::new("readelf").arg("-lW").arg(&program)));
    let recorded = Recording::at(frequency).command(&[program.as_os_str(), seconds.as_ref()]);
    let truth = Truth::parse(&recorded.stdout);
    Judge::of(&recorded, "generics", name, frequency).samples_for(truth.cpu).chains(&truth, chain).end();
}

/// Whether the executable segment lies in the file where it lies in memory.
fn offset_is_address(headers: &str) -> bool {
    let mut lines = headers.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    let text = lines.find(|fields| fields.first() == Some(&"LOAD") && fields.contains(&"E")).expect("a text segment");
    let number = |text: &str| u64::from_str_radix(text.trim_start_matches("0x"), 16).expect("a number");
    number(text[1]) == number(text[2])
}

/// What rustc takes by itself on x86_64.
#[test]
fn linked_by_lld_at_99_hertz() {
    needs!("rustc", "readelf");
    record("Rust, lld", &[], 99, "8", |headers| assert!(!offset_is_address(headers)));
}

#[test]
fn linked_by_lld_at_999_hertz() {
    needs!("rustc", "readelf");
    record("Rust, lld", &[], 999, "3", |headers| assert!(!offset_is_address(headers)));
}

#[test]
fn linked_by_bfd() {
    needs!("rustc", "readelf");
    record("Rust, bfd", &["-C", "linker-features=-lld"], 999, "3", |headers| assert!(offset_is_address(headers)));
}

/// No unwind information for the program's own functions, but frame pointers.
#[test]
fn frame_pointers_without_unwind_information() {
    needs!("rustc", "readelf");
    let options = ["-C", "panic=abort", "-C", "force-unwind-tables=no", "-C", "force-frame-pointers=yes"];
    record("Rust, frame pointers", &options, 999, "3", |_| ());
}
