//! What is recorded: a process, two, the machine; processes that live for a moment only.

use std::path::{Path, PathBuf};

use crate::support::build::Workshop;
use crate::support::folded::Stack;
use crate::support::judge::Judge;
use crate::support::needs;
use crate::support::record::Recording;
use crate::support::workload::{Truth, Workload};

fn split(stack: &Stack) -> Option<String> {
    let frames = stack.from("main")?;
    match frames.as_slice() {
        ["main", "outer", "middle", "inner", leaf @ ("leaf60" | "leaf30" | "leaf10")] => Some((*leaf).to_owned()),
        ["main", "outer", calls @ .., "leaf_deep"] if calls.len() == 61 => Some("leaf_deep".to_owned()),
        ["main", "outer", rest @ ..] if !rest.last().is_some_and(|last| last.starts_with("leaf")) => {
            Some(String::new())
        }
        ["main"] | ["main", "clock_gettime", ..] => Some(String::new()),
        _ => None,
    }
}

/// A copy of `split` under a name of its own, so that nothing else on the machine is taken for it.
fn named(shop: &Workshop, name: &str) -> PathBuf {
    shop.c(&format!("{name}{}", std::process::id() % 100_000), "split.c", &[])
}

fn name(program: &Path) -> String {
    program.file_name().expect("a name").to_string_lossy().into_owned()
}

/// Two of three processes that run.
#[test]
fn two_processes() {
    needs!("cc");
    let shop = Workshop::new();
    let programs = ["first", "second", "other"].map(|name| named(&shop, name));
    let mut workloads = programs.each_ref().map(|program| Workload::start(&[program.as_os_str(), "2".as_ref()]));
    let recording = Recording::at(999).processes(&[workloads[0].pid(), workloads[1].pid()]);
    workloads.iter_mut().for_each(Workload::go);
    let truths = workloads.each_mut().map(Workload::done);
    workloads.iter_mut().for_each(Workload::end);
    let recorded = recording.finish();
    for which in [0, 1] {
        let judge = Judge::of(&recorded, &name(&programs[which]), "C, -p of two", 999);
        judge.samples_for(truths[which].cpu).chains(&truths[which], split).end();
    }
    assert!(recorded.of(&name(&programs[2])).is_empty(), "a process that was not asked for was recorded");
}

/// A process that is there before the recording, and is there after it.
#[test]
fn running_process_at_99_hertz() {
    needs!("cc");
    let shop = Workshop::new();
    let program = named(&shop, "running");
    let mut workload = Workload::start(&[program.as_os_str(), "6".as_ref()]);
    let recording = Recording::at(99).processes(&[workload.pid()]);
    workload.go();
    let truth = workload.done();
    let recorded = recording.stop();
    workload.end();
    Judge::of(&recorded, &name(&program), "C, -p", 99).samples_for(truth.cpu).chains(&truth, split).end();
}

/// The whole machine: a process that was there before, and processes that begin and end within a fifth of a second.
#[test]
fn whole_machine() {
    needs!("cc");
    let shop = Workshop::new();
    let (old, young) = (named(&shop, "old"), named(&shop, "young"));
    let mut workload = Workload::start(&[old.as_os_str(), "5".as_ref()]);
    let recording = Recording::at(99).machine();
    workload.go();
    let mut sums = Truth::default();
    for _ in 0..25 {
        let mut command = std::process::Command::new(&young);
        let output = command.arg("0.2").env("GATE", "0").output().expect("running a workload");
        let truth = Truth::parse(&String::from_utf8_lossy(&output.stdout));
        sums.cpu += truth.cpu;
        truth.shares.into_iter().for_each(|(leaf, amount)| *sums.shares.entry(leaf).or_default() += amount);
    }
    let truth = workload.done();
    workload.end();
    let recorded = recording.stop();
    let judge = Judge::of(&recorded, &name(&old), "machine: old process", 99);
    judge.samples_for(truth.cpu).chains(&truth, split).end();
    // a process's start (exec, dynamic linking) is not in the time that it reports: 25 of them, 2 ms each
    let judge = Judge::of(&recorded, &name(&young), "machine: 0.2 s processes", 99).chain_at_least(0.96);
    judge.samples_for(sums.cpu + 0.05).chains(&sums, split).end();
}
