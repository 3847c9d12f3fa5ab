//! Frames of unusual form, and samples at every instruction of prologues and epilogues.

use crate::support::build::Workshop;
use crate::support::folded::Stack;
use crate::support::judge::Judge;
use crate::support::needs;
use crate::support::record::Recording;
use crate::support::workload::Truth;

#[test]
fn alloca_large_and_realigned_frames() {
    needs!("cc");
    let shop = Workshop::new();
    let program = shop.c("frames", "frames.c", &[]);
    let recorded = Recording::at(999).command(&[program.as_os_str(), "3".as_ref()]);
    let truth = Truth::parse(&recorded.stdout);
    let chain = |stack: &Stack| {
        let frames = stack.from("main")?;
        match frames.as_slice() {
            ["main", "below", "with_vector", "vector_frame", "leaf_vector"] => Some("leaf_vector".to_owned()),
            ["main", "below", with, leaf] => {
                let same = with.strip_prefix("with_") == leaf.strip_prefix("leaf_");
                same.then(|| (*leaf).to_owned())
            }
            ["main"] | ["main", "below"] | ["main", "below", _] | ["main", "clock_gettime", ..] => Some(String::new()),
            _ => None,
        }
    };
    // until the program's table is there, samples carry a copy of the stack, and no copy holds a frame of 3 MB: on a loaded
    // machine that is some hundredths of a second, in which a third of the stacks stop by name
    let judge = Judge::of(&recorded, "frames", "C, frames", 999).root_at_least(0.98).chain_at_least(0.98);
    judge.samples_for(truth.cpu).chains(&truth, chain).end();
}

/// Most samples are in a prologue or an epilogue.
#[test]
fn nothing_but_calls() {
    needs!("cc");
    let shop = Workshop::new();
    let program = shop.c("calls", "calls.c", &["-O1"]);
    let recorded = Recording::at(999).command(&[program.as_os_str(), "3".as_ref()]);
    let truth = Truth::parse(&recorded.stdout);
    let chain = |stack: &Stack| {
        let frames = stack.from("main")?;
        match frames.as_slice() {
            ["main", "drive", calls @ ..] => {
                let first = calls.first().copied().unwrap_or("drive");
                let most = match first {
                    "fibonacci" => 16,
                    "many" => 101,
                    "variable" => 41,
                    _ => 0,
                };
                let right = calls.len() <= most && calls.iter().all(|call| *call == first);
                right.then(|| first.to_owned())
            }
            ["main"] | ["main", "clock_gettime", ..] => Some(String::new()),
            _ => None,
        }
    };
    Judge::of(&recorded, "calls", "C, calls", 999).samples_for(truth.cpu).chains(&truth, chain).end();
}

/// Calls that are the last instruction of their function: the return address belongs to the next one.
#[test]
fn calls_that_do_not_return() {
    needs!("cc");
    let shop = Workshop::new();
    let program = shop.c("noreturn", "noreturn.c", &["-falign-functions=1"]);
    let recorded = Recording::at(999).command(&[program.as_os_str(), "3".as_ref()]);
    let truth = Truth::parse(&recorded.stdout);
    let chain = |stack: &Stack| {
        let frames = stack.from("main")?;
        let leaf = match frames.as_slice() {
            ["main", "try", "last_call", "never_returns", "leaf_thrown"] => "leaf_thrown",
            ["main", "neighbour", "leaf_other"] => "leaf_other",
            ["main", "try", ..] | ["main"] | ["main", "neighbour"] | ["main", "clock_gettime", ..] => "",
            _ => return None,
        };
        Some(leaf.to_owned())
    };
    Judge::of(&recorded, "noreturn", "C, no return", 999).samples_for(truth.cpu).chains(&truth, chain).end();
}
