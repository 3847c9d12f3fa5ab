//! Threads with names.

use crate::support::build::Workshop;
use crate::support::folded::Stack;
use crate::support::judge::Judge;
use crate::support::needs;
use crate::support::record::Recording;
use crate::support::workload::Workload;

#[test]
fn each_thread_under_its_name() {
    needs!("cc");
    let shop = Workshop::new();
    let program = shop.c("threads", "threads.c", &["-pthread"]);
    let mut workload = Workload::start(&[program.as_os_str(), "3".as_ref()]);
    let recording = Recording::at(999).processes(&[workload.pid()]);
    workload.go();
    let truth = workload.done();
    let recorded = recording.stop();
    workload.end();
    let chain = |stack: &Stack| {
        let Some(number) = stack.parts[1].strip_prefix("worker ") else { return Some(String::new()) };
        let frames = stack.from("thread")?;
        match frames.as_slice() {
            ["thread", "through", work] => (*work == format!("work_{number}")).then(|| (*work).to_owned()),
            ["thread"] | ["thread", "through" | "clock_gettime", ..] => Some(String::new()),
            _ => None,
        }
    };
    Judge::of(&recorded, "threads", "C, 8 threads", 999).samples_for(truth.cpu).chains(&truth, chain).end();
}
