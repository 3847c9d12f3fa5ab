//! Code without unwind information: no tables, no frame pointers, or such as belong to another frame; code in no file.

use crate::c::record_split;
use crate::support::build::Workshop;
use crate::support::folded::Stack;
use crate::support::judge::Judge;
use crate::support::needs;
use crate::support::record::Recording;
use crate::support::workload::Truth;

const NO_TABLES: [&str; 2] = ["-fno-asynchronous-unwind-tables", "-fno-unwind-tables"];

#[test]
fn without_frame_pointers() {
    needs!("cc");
    record_split("C, no tables", &NO_TABLES, 60, 999, "3");
}

/// gcc gives leaves no frame of their own: there the frame pointer is that of the caller, and skips it.
#[test]
fn frame_pointers_but_in_leaves() {
    needs!("cc");
    let options = [NO_TABLES[0], NO_TABLES[1], "-fno-omit-frame-pointer"];
    record_split("C, no tables, frame pointers", &options, 60, 999, "3");
}

const WRITTEN: &str = "[code in no file]_[j]";

fn written(stack: &Stack) -> Option<String> {
    let frames = stack.from("main")?;
    match frames.as_slice() {
        ["main", "run", WRITTEN, leaf @ ("leaf60" | "leaf30" | "leaf10")] => Some((*leaf).to_owned()),
        ["main"] | ["main", "run"] | ["main", "run", WRITTEN] | ["main", "run", WRITTEN, WRITTEN] => {
            Some(String::new())
        }
        ["main", "clock_gettime", ..] => Some(String::new()),
        _ => None,
    }
}

/// What was written over is read again: some samples may hit the time between.
#[cfg(target_arch = "x86_64")]
#[test]
fn code_that_is_written_and_changed() {
    needs!("cc");
    let shop = Workshop::new();
    let program = shop.c("jit", "jit.c", &[]);
    let recorded = Recording::at(999).command(&[program.as_os_str(), "3".as_ref()]);
    let truth = Truth::parse(&recorded.stdout);
    let judge = Judge::of(&recorded, "jit", "C, code in no file", 999).root_at_least(0.97).chain_at_least(0.97);
    judge.samples_for(truth.cpu).chains(&truth, written).end();
}
