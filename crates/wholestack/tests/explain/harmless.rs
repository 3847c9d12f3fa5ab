//! A process is the same after it was explained, and after an explanation that was killed.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::common::recorder::program;
use crate::explained::explain;
use crate::support::interpreters;
use crate::support::parked::Parked;

fn busy() -> Option<Parked> {
    let interpreter = interpreters::installed().into_iter().next()?;
    Some(interpreter.park(&["busy", "worker", "deep"]))
}

/// Threads that are stopped or traced.
fn stopped(pid: u32) -> Vec<String> {
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).expect("it lives");
    let states = tasks.flatten().filter_map(|task| state(&task.path()));
    states.filter(|state| state.starts_with(['t', 'T'])).collect()
}

fn state(task: &Path) -> Option<String> {
    let status = std::fs::read_to_string(task.join("status")).ok()?;
    let state = status.lines().find_map(|line| line.strip_prefix("State:\t"))?.to_owned();
    let tracer = status.lines().find_map(|line| line.strip_prefix("TracerPid:\t"))?;
    Some(if tracer == "0" { state } else { format!("t, traced by {tracer}") })
}

/// CPU time of a process, in ticks.
fn cpu(pid: u32) -> u64 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).expect("it lives");
    let fields: Vec<&str> = stat.rsplit(')').next().expect("fields").split_whitespace().collect();
    [11, 12].map(|index| fields[index].parse::<u64>().expect("a number")).iter().sum()
}

/// So many explanations are killed, at moments drawn by lot over the time that one takes.
const KILLS: u32 = 200;
/// So many are made; 10,000 with `WHOLESTACK_HARDSHIP=long`.
const EXPLANATIONS: u32 = 100;

#[test]
fn killed_at_any_moment() {
    let Some(parked) = busy() else { return println!("SKIPPED: there is no /usr/bin/python3.N") };
    let started = std::time::Instant::now();
    explain(parked.pid);
    let whole = started.elapsed();
    for round in 0..KILLS {
        let mut command = Command::new(program());
        command.args(["explain", &parked.pid.to_string()]).stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = command.spawn().expect("started");
        // the golden ratio spreads moments evenly, however many there are
        let share = f64::from(round) * 0.618_033_988_749_895 % 1.0;
        std::thread::sleep(Duration::from_secs_f64(whole.as_secs_f64() * share));
        child.kill().expect("killed");
        child.wait().expect("a child of ours");
        // the kernel lets go of what it traced before it reports the end
        assert_eq!(stopped(parked.pid), Vec::<String>::new(), "round {round}");
    }
    let before = cpu(parked.pid);
    crate::common::wait_for("it goes on", || cpu(parked.pid) > before);
    let report = explain(parked.pid);
    assert_eq!(report.mismatches(&parked), Vec::<String>::new());
}

#[test]
fn explained_again_and_again() {
    let Some(parked) = busy() else { return println!("SKIPPED: there is no /usr/bin/python3.N") };
    let long = std::env::var_os("WHOLESTACK_HARDSHIP").is_some_and(|value| value == "long");
    for _ in 0..if long { 10_000 } else { EXPLANATIONS } {
        let report = explain(parked.pid);
        assert_eq!(report.mismatches(&parked), Vec::<String>::new());
        assert_eq!(stopped(parked.pid), Vec::<String>::new());
    }
    assert!(parked.end().success());
}

/// One's own processes need no root, where Yama does not forbid it.
#[test]
fn without_root() {
    if !crate::common::is_root() {
        // then all other tests show it
        return;
    }
    let scope = std::fs::read_to_string("/proc/sys/kernel/yama/ptrace_scope").unwrap_or_default();
    if !matches!(scope.trim(), "" | "0") {
        return println!("SKIPPED: ptrace_scope is {}", scope.trim());
    }
    let directory = crate::common::open_directory();
    let copy = directory.path().join("wholestack");
    std::fs::copy(program(), &copy).expect("a copy");
    let script = "import time\ndef sleeping():\n    print('READY', flush=True)\n    time.sleep(1000)\nsleeping()";
    let Some(python) = interpreters::installed().into_iter().next() else {
        return println!("SKIPPED: there is no /usr/bin/python3.N");
    };
    let as_nobody = |command: &mut Command| {
        use std::os::unix::process::CommandExt;
        command.uid(crate::common::NOBODY).gid(crate::common::NOBODY).current_dir("/");
    };
    let mut target = Command::new(&python.program);
    target.args(["-c", script]).stdout(Stdio::piped());
    as_nobody(&mut target);
    let mut child = target.spawn().expect("started");
    let mut line = String::new();
    let mut output = std::io::BufReader::new(child.stdout.take().expect("its output"));
    std::io::BufRead::read_line(&mut output, &mut line).expect("a line");
    let mut command = Command::new(copy);
    command.args(["explain", &child.id().to_string()]);
    as_nobody(&mut command);
    let explained = command.output().expect("it runs");
    let text = String::from_utf8_lossy(&explained.stdout).into_owned();
    // and another user's are refused by name
    let mut root = Command::new(directory.path().join("wholestack"));
    root.args(["explain", &std::process::id().to_string()]);
    as_nobody(&mut root);
    let refused = root.output().expect("it runs");
    child.kill().expect("killed");
    child.wait().expect("a child of ours");
    assert!(explained.status.success() && text.contains("sleeping (<string>:4)"), "{explained:?}");
    assert_eq!(refused.status.code(), Some(3), "{refused:?}");
    assert!(String::from_utf8_lossy(&refused.stderr).contains("belongs to user"), "{refused:?}");
}
