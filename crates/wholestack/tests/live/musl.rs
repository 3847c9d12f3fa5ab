//! Programs with musl, whose C library has no unwind information: every stack reaches its thread's root, and every frame of the
//! program is in it, whatever function of the library is above.

use crate::support::build::{Workshop, source};
use crate::support::folded::{Stack, total};
use crate::support::judge::Judge;
use crate::support::needs;
use crate::support::record::{Recorded, Recording};
use crate::support::workload::Truth;

const NO_TABLES: [&str; 2] = ["-fno-asynchronous-unwind-tables", "-fno-unwind-tables"];

const KINDS: [&str; 7] = ["sorting", "copying", "allocating", "formatting", "reading", "locking", "signalling"];

/// Kinds of work, and a function of the library that most of it is in or below.
const LIBRARY: [(&str, &[&str]); 5] = [
    ("sorting", &["qsort", "qsort_r", "__qsort_r"]),
    ("copying", &["memcpy"]),
    ("formatting", &["snprintf"]),
    ("reading", &["read"]),
    ("signalling", &["raise"]),
];

/// What was done, if all callers are there.
fn chain(stack: &Stack) -> Option<String> {
    let frames = stack.user();
    let at = frames.iter().position(|frame| *frame == "main" || *frame == "thread")?;
    // what calls them is the library's, and its caller is the root
    let root = &frames[..at];
    if root.is_empty() || frames[at] == "main" && root[0] != "_start" {
        return None;
    }
    match &frames[at..] {
        [_, "work", kind, above @ ..] if KINDS.contains(kind) => {
            is_called_back(kind, above).then(|| (*kind).to_owned())
        }
        // between two kinds of work, and at the beginning and the end
        ["thread"] | [_, "work"] | [_, "work", "used" | "clock_gettime", ..] => Some(String::new()),
        ["main", ..] if !frames.contains(&"work") => Some(String::new()),
        _ => None,
    }
}

/// Whether what the library calls has the library between itself and the work.
fn is_called_back(kind: &str, above: &[&str]) -> bool {
    let at = |frame| above.iter().position(|one| *one == frame);
    match (kind, at("compare"), at("on_signal")) {
        ("sorting", Some(called), None) => called > 0 && matches!(above[called + 1..], [] | ["leaf_compare"]),
        // the function that sends it, and what the handler returns to
        ("signalling", None, Some(called)) => called > 1 && matches!(above[called + 1..], [] | ["leaf_handler"]),
        (_, None, None) => !above.contains(&"leaf_compare") && !above.contains(&"leaf_handler"),
        _ => false,
    }
}

fn recorded(options: &[&str]) -> (Recorded, Truth) {
    let shop = Workshop::new();
    let options = [options, &["-pthread"]].concat();
    let program = shop.compile("musl-gcc", "musl", &source("musl.c"), &options);
    let recorded = Recording::at(999).command(&[program.as_os_str(), "3".as_ref()]);
    let truth = Truth::parse(&recorded.stdout);
    (recorded, truth)
}

fn record(what: &str, options: &[&str]) {
    let (recorded, truth) = recorded(options);
    let judge = Judge::of(&recorded, "musl", what, 999);
    let mut judge = judge.samples_for(truth.cpu).chains(&truth, chain);
    for (kind, functions) in LIBRARY {
        let of_kind = recorded.of("musl").into_iter().filter(|stack| stack.user().contains(&kind));
        let inside = of_kind.clone().filter(|stack| functions.iter().any(|function| stack.has(function)));
        let (inside, all) = (total(inside), total(of_kind));
        judge.require(all >= 20 && 2 * inside > all, format!("{inside} of {all} samples of {kind} in {functions:?}"));
    }
    judge.end();
}

#[test]
fn dynamic_program() {
    needs!("musl-gcc");
    record("musl", &[]);
}

#[test]
fn static_program() {
    needs!("musl-gcc");
    record("musl, static", &["-static"]);
}

/// Neither the program nor the library has unwind information.
#[test]
fn without_tables() {
    needs!("musl-gcc");
    record("musl, static, no tables", &["-static", NO_TABLES[0], NO_TABLES[1]]);
}

/// Functions without symbols are found by what leads to them.
#[test]
fn stripped() {
    needs!("musl-gcc");
    let (recorded, truth) = recorded(&["-static", "-s", NO_TABLES[0], NO_TABLES[1]]);
    Judge::of(&recorded, "musl", "musl, static, no tables, stripped", 999).samples_for(truth.cpu).end();
}
