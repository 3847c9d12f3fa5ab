//! A program in other mount and process namespaces, whose file exists nowhere else.

use std::path::PathBuf;

use crate::support::build::Workshop;
use crate::support::folded::Stack;
use crate::support::judge::Judge;
use crate::support::needs;
use crate::support::record::Recording;
use crate::support::workload::{Truth, Workload};

fn chain(stack: &Stack) -> Option<String> {
    let frames = stack.from("main")?;
    match frames.as_slice() {
        ["main", "outer", "middle", "inner", leaf] => Some((*leaf).to_owned()),
        ["main", "outer", .., "leaf_deep"] if frames.len() == 64 => Some("leaf_deep".to_owned()),
        [.., last] if last.starts_with("leaf") => None,
        _ => Some(String::new()),
    }
}

/// A command that runs `split` from a file system that is mounted in its own namespace only.
fn secluded(shop: &Workshop, seconds: &str) -> (Vec<String>, PathBuf) {
    let program = shop.c("split", "split.c", &[]);
    let place = shop.path("place");
    std::fs::create_dir(&place).expect("a directory");
    let only_here = place.join("only_here");
    let script = format!(
        "mount -t tmpfs none {} && cp {} {} && exec {} {seconds}",
        place.display(),
        program.display(),
        only_here.display(),
        only_here.display(),
    );
    let command = ["unshare", "--mount", "--pid", "--fork", "sh", "-c", &script];
    (command.map(str::to_owned).to_vec(), only_here)
}

#[test]
fn as_a_command() {
    needs!("cc", "unshare", "mount");
    let shop = Workshop::new();
    let (command, only_here) = secluded(&shop, "3");
    let recorded = Recording::at(999).command(&command);
    assert!(!only_here.exists(), "the file is to be seen from outside");
    let truth = Truth::parse(&recorded.stdout);
    let judge = Judge::of(&recorded, "only_here", "namespaces, command", 999);
    judge.samples_for(truth.cpu).chains(&truth, chain).end();
}

#[test]
fn by_process_id() {
    needs!("cc", "unshare", "mount");
    let shop = Workshop::new();
    let (command, only_here) = secluded(&shop, "3");
    let mut workload = Workload::start(&command);
    let unshare = workload.pid();
    let children = std::fs::read_to_string(format!("/proc/{unshare}/task/{unshare}/children")).expect("/proc");
    let pid: u32 = children.trim().parse().expect("one child");
    let recording = Recording::at(999).processes(&[pid]);
    workload.go();
    let truth = workload.done();
    workload.end();
    let recorded = recording.finish();
    assert!(!only_here.exists(), "the file is to be seen from outside");
    let judge = Judge::of(&recorded, "only_here", "namespaces, -p", 999);
    judge.samples_for(truth.cpu).chains(&truth, chain).end();
}
