//! Processes that are not there, end, or are not what they should be.

use std::path::Path;
use std::process::Command;

use crate::common::bpf::{self, wait_until_gone};
use crate::common::recorder::{Ended, Recorder, command, hang_guard, run};
use crate::common::target::{Target, condition, status_field, wait_until_it_ran};
use crate::common::{NOBODY, compile, is_root, names_in, open_directory, wait_for};

const OUT: [&str; 2] = ["-o", "out.html"];

fn record(directory: &Path, pid: u32) -> Ended {
    let (pid, most) = (pid.to_string(), hang_guard());
    run(directory, &["record", OUT[0], OUT[1], "-d", &most, "-p", &pid])
}

/// Refused with code 4, with nothing written.
#[track_caller]
fn refused(pid: u32, told: &str, remedy: &str) {
    let directory = open_directory();
    record(directory.path(), pid).expect(4).told(told).told(remedy);
    assert!(names_in(directory.path()).is_empty());
}

#[test]
fn not_there() {
    // above every possible pid_max (4,194,304)
    refused(4_194_305, "there is no process 4194305", "pgrep");
    let mut child = Command::new("true").spawn().expect("true");
    let pid = child.id();
    child.wait().expect("waited for");
    refused(pid, &format!("there is no process {pid}"), "wholestack record -- COMMAND");
}

#[test]
fn a_kernel_thread() {
    if !is_root() {
        return;
    }
    let kernel_thread = |pid: &u32| status_field(*pid, "Kthread").is_some_and(|flag| flag == "1");
    let pid = crate::common::target::all_processes().into_iter().find(kernel_thread).unwrap_or(2);
    refused(pid, "is a kernel thread", "without -p");
}

#[test]
fn a_zombie_whose_name_acts_on_terminals() {
    let directory = open_directory();
    let mut parent = Target::start(&compile(directory.path(), "zombie"), &[]);
    let zombie = parent.number();
    wait_for("the zombie", || status_field(zombie, "State").is_some_and(|state| state.starts_with('Z')));
    let before = condition(parent.pid());
    let empty = open_directory();
    let ended = record(empty.path(), zombie).expect(4).told("zombie");
    assert!(!ended.stderr.contains('\u{1b}') && !ended.stderr.contains('\r'), "{:?}", ended.stderr);
    assert!(names_in(empty.path()).is_empty());
    parent.assert_unharmed(&before);
}

#[test]
fn a_thread() {
    let directory = open_directory();
    let mut target = Target::start(&compile(directory.path(), "threads"), &[]);
    let thread = target.number();
    assert_ne!(thread, target.pid());
    let told = format!("{thread} is a thread of process {}", target.pid());
    refused(thread, &told, &format!("-p {}", target.pid()));
}

#[test]
fn another_users_process_without_the_rights() {
    if !is_root() {
        return;
    }
    let directory = open_directory();
    let mut target = Target::start(&compile(directory.path(), "spin"), &[]);
    target.line();
    let before = condition(target.pid());
    let pid = target.pid().to_string();
    let ended = Recorder::start(as_nobody(directory.path(), "", &["record", "-p", &pid])).wait();
    ended.expect(4).told(&format!("belongs to user 0, you are user {NOBODY}")).told("sudo");
    target.assert_unharmed(&before);
}

#[test]
fn no_rights_at_all() {
    if !is_root() {
        return;
    }
    let directory = open_directory();
    let spin = compile(directory.path(), "spin");
    let mut own = Command::new("setpriv");
    own.args(identity("")).arg(&spin);
    let mut own = Target::of(own);
    own.line();
    let pid = own.pid().to_string();
    let names = names_in(directory.path());
    let whole: &[&str] = &["record", "-d", "60"];
    let one = &["record", "-d", "60", "-p", &pid];
    let command = &["record", "--", "true"];
    for arguments in [whole, one, command] {
        let ended = Recorder::start(as_nobody(directory.path(), "", arguments)).wait();
        let ended = ended.expect(3).told("CAP_PERFMON").told("wholestack check");
        assert!(!ended.stderr.contains("still runs"), "{ended:?}");
    }
    // one of two is as good as none
    Recorder::start(as_nobody(directory.path(), "+bpf", whole)).wait().expect(3);
    let names_after: Vec<String> = names_in(directory.path()).into_iter().filter(|name| name != "wholestack").collect();
    assert_eq!(names_after, names, "nothing was written");
}

/// Runs a copy of wholestack, since its own directory may be closed to others, with no capabilities but these.
fn as_nobody(directory: &Path, capabilities: &str, arguments: &[&str]) -> Command {
    let copy = directory.join("wholestack");
    if !copy.exists() {
        std::fs::copy(crate::common::recorder::program(), &copy).expect("a copy");
    }
    let mut command = Command::new("setpriv");
    command.args(identity(capabilities)).arg(copy).args(arguments).current_dir(directory).env("HOME", "/nonexistent");
    command
}

fn identity(capabilities: &str) -> Vec<String> {
    let mut arguments = vec![format!("--reuid={NOBODY}"), format!("--regid={NOBODY}"), "--clear-groups".to_owned()];
    if !capabilities.is_empty() {
        arguments.push(format!("--inh-caps={capabilities}"));
        arguments.push(format!("--ambient-caps={capabilities}"));
    }
    arguments
}

#[test]
fn in_uninterruptible_sleep() {
    if !is_root() {
        return;
    }
    let directory = open_directory();
    let mut target = Target::start(&compile(directory.path(), "vfork"), &[]);
    target.line();
    let target_pid = target.pid();
    let state = || status_field(target_pid, "State").unwrap_or_default();
    wait_for("uninterruptible sleep", || state().starts_with('D'));
    let before = condition(target.pid());
    let out = open_directory();
    let pid = target.pid().to_string();
    let ended = run(out.path(), &["record", "-o", "out.html", "-d", "200ms", "-p", &pid]).expect(0);
    ended.told("0 samples").told("waiting is not sampled");
    assert_eq!(names_in(out.path()), ["out.html"]);
    target.assert_unharmed(&before);
    target.go();
    wait_for("the target goes on", || state().starts_with('S'));
}

#[test]
fn stopped_by_a_signal_it_stays_so() {
    if !is_root() {
        return;
    }
    let directory = open_directory();
    let mut target = Target::start(&compile(directory.path(), "spin"), &[]);
    target.line();
    target.signal(libc::SIGSTOP);
    wait_for("stopped", || status_field(target.pid(), "State").is_some_and(|state| state.starts_with('T')));
    let before = condition(target.pid());
    let pid = target.pid().to_string();
    let out = open_directory();
    run(out.path(), &["record", "-o", "out.html", "-d", "200ms", "-p", &pid]).expect(0).told("0 samples");
    target.assert_unharmed(&before);
    target.signal(libc::SIGCONT);
    wait_until_it_ran(target.pid());
}

/// Whenever it ends: either nothing was recorded, and that is said, or a whole profile is there.
#[test]
fn one_that_ends_while_the_recording_starts() {
    if !is_root() {
        return;
    }
    let directory = open_directory();
    let spin = compile(directory.path(), "spin");
    let (mut refused, mut recorded) = (0, 0);
    for round in 0..12 {
        let mut target = Target::start(&spin, &[]);
        target.line();
        let pid = target.pid().to_string();
        let out = open_directory();
        let most = hang_guard();
        let recorder = Recorder::start(command(out.path(), &["record", "-o", "out.html", "-d", &most, "-p", &pid]));
        recorder.wait_until_maps(3 * round);
        target.end();
        let ended = recorder.wait();
        match ended.code {
            Some(0) => {
                recorded += 1;
                assert_eq!(names_in(out.path()), ["out.html"]);
                ended.expect(0).told("wrote out.html");
            }
            _ => {
                refused += 1;
                assert!(names_in(out.path()).is_empty());
                let ended = ended.expect(4);
                let told = ["there is no process", "ended before the recording began", "has ended"];
                assert!(told.iter().any(|text| ended.stderr.contains(text)), "{ended:?}");
            }
        }
    }
    println!("{refused} refused, {recorded} recorded");
}

#[test]
fn one_that_ends_while_it_is_recorded() {
    if !is_root() {
        return;
    }
    let directory = open_directory();
    let mut target = Target::start(&compile(directory.path(), "spin"), &[]);
    target.line();
    let pid = target.pid().to_string();
    let out = open_directory();
    let most = hang_guard();
    let mut recorder = Recorder::start(command(out.path(), &["record", "-o", "out.folded", "-d", &most, "-p", &pid]));
    assert!(recorder.wait_until_sampling());
    let objects = bpf::used_by(recorder.pid());
    wait_until_it_ran(target.pid());
    target.end();
    recorder.wait().expect(0).told("wrote out.folded");
    let text = std::fs::read_to_string(out.path().join("out.folded")).expect("a profile");
    assert!(text.contains("main;outer;inner"), "named although it is gone:\n{text}");
    wait_until_gone(&objects);
}

#[test]
fn in_a_pid_namespace_of_its_own() {
    if !is_root() {
        return;
    }
    let out = open_directory();
    let mut inside = Command::new("unshare");
    inside.args(["--pid", "--fork", "--mount-proc"]).arg(crate::common::recorder::program());
    inside.args(["record", "-d", "60", "-o", "out.html"]).current_dir(out.path());
    Recorder::start(inside).wait().expect(3).told("pid namespace").told("wholestack check");
    assert!(names_in(out.path()).is_empty());
}
