//! Time in the kernel, above the right frames of the program.

use crate::support::build::Workshop;
use crate::support::folded::{Stack, total};
use crate::support::judge::Judge;
use crate::support::needs;
use crate::support::record::Recording;
use crate::support::workload::Truth;

/// What was done, by the program's frames.
fn chain(stack: &Stack) -> Option<String> {
    let frames = stack.from("main")?;
    let what = match frames.as_slice() {
        ["main", "reads", ..] => "reads",
        ["main", "faults", ..] => "faults",
        ["main", "calls", ..] => "calls",
        ["main", "user", ..] => "user",
        ["main"] | ["main", "clock_gettime", ..] => "",
        _ => return None,
    };
    Some(what.to_owned())
}

#[test]
fn system_calls_and_page_faults() {
    needs!("cc");
    let shop = Workshop::new();
    let program = shop.c("kernel", "kernel.c", &[]);
    let recorded = Recording::at(999).command(&[program.as_os_str(), "4".as_ref()]);
    let truth = Truth::parse(&recorded.stdout);
    let judge = Judge::of(&recorded, "kernel", "C, in the kernel", 999);
    let mut judge = judge.samples_for(truth.cpu).chains(&truth, chain);
    for (kernel, user) in [
        ("vfs_read_[k]", &["reads", "read"][..]),
        ("handle_mm_fault_[k]", &["faults", "touches"]),
        ("__vm_munmap_[k]", &["faults", "munmap"]),
        ("__do_sys_getppid_[k]", &["calls", "syscall"]),
    ] {
        let with: Vec<&Stack> =
            recorded.of("kernel").into_iter().filter(|stack| stack.kernel().contains(&kernel)).collect();
        let in_main = with.iter().copied().filter(|stack| stack.has("main"));
        let right = in_main.clone().filter(|stack| {
            // the kernel's frames come last, right above the call
            let parts = &stack.parts;
            let last = parts.iter().rposition(|part| !part.ends_with("_[k]")).expect("a process");
            stack.user().ends_with(user) && parts[last] == user[1] && parts.len() == last + 1 + stack.kernel().len()
        });
        let (all, right) = (total(in_main), total(right));
        judge.require(
            all >= 20 && right as f64 >= 0.99 * all as f64,
            format!("{kernel}: {right} of {all} samples above {user:?}"),
        );
    }
    judge.end();
}
