//! C without frame pointers: shares, recursion, static programs, a program whose file is gone.

use crate::support::build::Workshop;
use crate::support::folded::Stack;
use crate::support::judge::Judge;
use crate::support::needs;
use crate::support::record::Recording;
use crate::support::workload::{Truth, Workload};

/// The leaf of a stack of `split.c`, if all its callers are there.
fn split(depth: usize) -> impl Fn(&Stack) -> Option<String> {
    move |stack| {
        let frames = stack.from("main")?;
        let leaf = match frames.as_slice() {
            ["main", "outer", "middle", "inner", leaf @ ("leaf60" | "leaf30" | "leaf10")] => leaf,
            ["main", "outer", calls @ .., "leaf_deep"] if all_recursion(calls) && calls.len() == depth + 1 => {
                "leaf_deep"
            }
            // on the way to a leaf, or back
            ["main", "outer", calls @ ..] if all_recursion(calls) && calls.len() <= depth + 1 => "",
            ["main"] | ["main", "outer", "middle"] | ["main", "outer", "middle", "inner"] => "",
            ["main", "clock_gettime", ..] => "",
            _ => return None,
        };
        Some(leaf.to_owned())
    }
}

fn all_recursion(calls: &[&str]) -> bool {
    calls.iter().all(|call| *call == "recursion")
}

pub(crate) fn record_split(name: &str, options: &[&str], depth: usize, frequency: u32, seconds: &str) {
    let shop = Workshop::new();
    let program = shop.c("split", "split.c", options);
    let recorded = Recording::at(frequency).command(&[program.as_os_str(), seconds.as_ref()]);
    let truth = Truth::parse(&recorded.stdout);
    let judge = Judge::of(&recorded, "split", name, frequency);
    judge.samples_for(truth.cpu).chains(&truth, split(depth)).end();
}

#[test]
fn shares_at_99_hertz() {
    needs!("cc");
    record_split("C", &[], 60, 99, "8");
}

#[test]
fn shares_at_999_hertz() {
    needs!("cc");
    record_split("C", &[], 60, 999, "3");
}

#[test]
fn recursion_501_deep() {
    needs!("cc");
    record_split("C, 501 deep", &["-DDEPTH=500"], 500, 999, "3");
}

#[test]
fn recursion_1000_deep() {
    needs!("cc");
    record_split("C, 1000 deep", &["-DDEPTH=999"], 999, 999, "3");
}

#[test]
fn static_program() {
    needs!("cc");
    record_split("C, static", &["-static"], 60, 999, "3");
}

#[test]
fn static_position_independent_program() {
    needs!("cc");
    record_split("C, static-pie", &["-static-pie", "-fPIE"], 60, 999, "3");
}

/// Deeper than what is kept: both ends are there, and what is between them is marked.
#[test]
fn recursion_20000_deep() {
    needs!("cc");
    let shop = Workshop::new();
    let program = shop.c("split", "split.c", &["-DDEPTH=20000"]);
    let recorded = Recording::at(99).command(&[program.as_os_str(), "5".as_ref()]);
    let truth = Truth::parse(&recorded.stdout);
    let short = split(60);
    let chain = |stack: &Stack| {
        let frames = stack.from("main")?;
        let Some(cut) = frames.iter().position(|frame| *frame == "[frames left out]") else {
            // on the way down or up: not so deep yet
            return short(stack).or_else(|| {
                matches!(frames.as_slice(), ["main", "outer", calls @ ..] if all_recursion(calls)).then(String::new)
            });
        };
        let (before, after) = (&frames[..cut], &frames[cut + 1..]);
        let ["main", "outer", calls @ ..] = before else { return None };
        let (leaf, more) = after.split_last()?;
        let both_ends = calls.len() > 4000 && more.len() > 4000 && all_recursion(calls) && all_recursion(more);
        (both_ends && ["leaf_deep", "recursion"].contains(leaf)).then(|| (*leaf).to_owned())
    };
    let mut judge = Judge::of(&recorded, "split", "C, 20001 deep", 99).samples_for(truth.cpu).chains(&truth, chain);
    let cut = recorded.stacks.iter().filter(|stack| stack.has("[frames left out]")).count();
    judge.require(cut > 0, "no stack was cut".to_owned());
    judge.end();
}

/// Recorded by process id after its file was removed.
#[test]
fn deleted_executable() {
    needs!("cc");
    let shop = Workshop::new();
    let program = shop.c("deleted", "split.c", &[]);
    let mut workload = Workload::start(&[program.as_os_str(), "3".as_ref()]);
    std::fs::remove_file(&program).expect("removing the program");
    let recording = Recording::at(999).processes(&[workload.pid()]);
    workload.go();
    let truth = workload.done();
    workload.end();
    let recorded = recording.finish();
    let judge = Judge::of(&recorded, "deleted", "C, deleted executable", 999);
    judge.samples_for(truth.cpu).chains(&truth, split(60)).end();
}
