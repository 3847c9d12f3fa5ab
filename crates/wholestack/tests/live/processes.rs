//! Trees of processes: children with and without exec, shells, storms of short processes.

use crate::support::build::Workshop;
use crate::support::folded::{End, Stack, total};
use crate::support::judge::Judge;
use crate::support::needs;
use crate::support::record::Recording;
use crate::support::workload::Truth;

#[test]
fn children_without_exec() {
    needs!("cc");
    let shop = Workshop::new();
    let program = shop.c("fork", "fork.c", &[]);
    let recorded = Recording::at(999).command(&[program.as_os_str(), "3".as_ref()]);
    let truth = Truth::parse(&recorded.stdout);
    let chain = |stack: &Stack| {
        let frames = stack.from("main")?;
        let leaf = match frames.as_slice() {
            ["main", "work", "leaf_parent"] => "leaf_parent",
            ["main", "in_child", "work", "leaf_child"] => "leaf_child",
            ["main", "in_child", "in_grandchild", "work", "leaf_grandchild"] => "leaf_grandchild",
            [.., last] if last.starts_with("leaf_") => return None,
            _ => "",
        };
        Some(leaf.to_owned())
    };
    let judge = Judge::of(&recorded, "fork", "C, children", 999);
    judge.samples_for(truth.number("all_s")).chains(&truth, chain).end();
}

/// A shell that does nothing but start others: each under its own name.
#[test]
fn shell_with_short_commands() {
    needs!("sh", "ls", "sed", "date");
    let script = "i=0; while [ $i -lt 150 ]; do /bin/ls / >/dev/null; echo x | /bin/sed s/x/y/ >/dev/null; /bin/date >/dev/null; i=$((i+1)); done";
    let recorded = Recording::at(999).command(&["sh", "-c", script]);
    let chain = |stack: &Stack| (stack.end() == End::Whole).then(String::new);
    let all: Vec<&Stack> = recorded.stacks.iter().collect();
    let mut judge = Judge::among(&recorded, all, "shell and commands", 999).chains(&Truth::default(), chain);
    for name in ["sh", "ls", "sed", "date"] {
        let samples = total(recorded.of(name));
        judge.require(samples >= 10, format!("{samples} samples of {name}"));
    }
    judge.end();
}

/// Parent and child share a stack, on which the return address of `vfork` is not.
#[test]
fn vfork_and_posix_spawn() {
    needs!("cc", "/bin/true");
    let shop = Workshop::new();
    let program = shop.c("vforks", "vfork.c", &[]);
    let recorded = Recording::at(999).command(&[program.as_os_str(), "0.5".as_ref()]);
    let chain = |stack: &Stack| {
        if stack.has("by_vfork") || stack.has("by_spawn") || stack.has("vfork") {
            let frames = stack.from("main")?;
            matches!(frames.as_slice(), ["main", "child", "by_vfork" | "by_spawn", ..]).then(String::new)
        } else {
            (stack.end() != End::Stopped).then(String::new)
        }
    };
    let all: Vec<&Stack> = recorded.stacks.iter().collect();
    let mut judge = Judge::among(&recorded, all, "C, vfork", 999).chains(&Truth::default(), chain);
    let in_vfork = total(recorded.of("vforks").into_iter().filter(|stack| stack.has("vfork")));
    judge.require(in_vfork >= 100, format!("{in_vfork} samples in vfork"));
    judge.end();
}

/// 200 processes a second of two milliseconds each.
#[test]
fn storm_of_short_processes() {
    needs!("cc");
    let shop = Workshop::new();
    let (program, brief) = (shop.c("storm", "storm.c", &[]), shop.c("brief", "brief.c", &[]));
    for (frequency, count) in [(99, "1200"), (999, "600")] {
        let command = [program.as_os_str(), count.as_ref(), "200".as_ref(), brief.as_os_str()];
        let recorded = Recording::at(frequency).command(&command);
        let mut truth = Truth::parse(&recorded.stdout);
        truth.shares =
            [("brief60", 6.0), ("brief30", 3.0), ("brief10", 1.0)].map(|(name, share)| (name.to_owned(), share)).into();
        let chain = |stack: &Stack| {
            if stack.end() != End::Whole {
                return None;
            }
            match stack.from("main")?.as_slice() {
                ["main", "brief_work", leaf] => Some((*leaf).to_owned()),
                _ => Some(String::new()),
            }
        };
        let within = |stack: &&&Stack| stack.has("main") || stack.end() == End::Stopped;
        let of_brief = recorded.of("brief");
        let work: Vec<&Stack> = of_brief.iter().filter(within).copied().collect();
        Judge::among(&recorded, work, "storm: work", frequency).chains(&truth, chain).end();
        let all: Vec<&Stack> = recorded.stacks.iter().collect();
        let chain = |stack: &Stack| (stack.end() == End::Whole).then(String::new);
        let cpu = truth.number("user_s") + truth.number("system_s") + truth.cpu;
        let judge = Judge::among(&recorded, all, "storm: everything", frequency);
        judge.samples_for(cpu).chains(&Truth::default(), chain).end();
    }
}
