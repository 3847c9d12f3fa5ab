//! `wholestack check`: what it says must be so.

mod common;

use std::io::Read;
use std::os::fd::{FromRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::process::Command;

use common::recorder::{Ended, Recorder, program, run};
use common::{NOBODY, is_root, open_directory};
use serde_json::Value;

/// A copy that every user can start.
fn copy(directory: &Path) -> PathBuf {
    let copy = directory.join("wholestack");
    std::fs::copy(program(), &copy).expect("a copy");
    copy
}

fn ended(mut command: Command, directory: &Path) -> Ended {
    command.current_dir(directory).env("HOME", "/nonexistent");
    Recorder::start(command).wait()
}

fn report(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

fn item<'a>(report: &'a Value, name: &str) -> &'a Value {
    let items = report["items"].as_array().expect("items");
    items.iter().find(|item| item["name"] == name).unwrap_or_else(|| panic!("no item {name}"))
}

fn as_nobody(copy: &Path, capabilities: &str) -> Command {
    let mut command = Command::new("setpriv");
    command.args([format!("--reuid={NOBODY}"), format!("--regid={NOBODY}"), "--clear-groups".to_owned()]);
    if !capabilities.is_empty() {
        command.arg(format!("--inh-caps={capabilities}")).arg(format!("--ambient-caps={capabilities}"));
    }
    command.arg(copy);
    command
}

/// Starts the copy in some setting.
type Setting = fn(&Path) -> Command;

/// What `check` promises, `record` does, in every setting that can be made here.
#[test]
fn it_agrees_with_what_a_recording_does() {
    if !is_root() {
        return;
    }
    let directory = open_directory();
    let copy = copy(directory.path());
    let settings: [(&str, Setting, bool); 9] = [
        ("root", |copy| Command::new(copy), true),
        ("nobody", |copy| as_nobody(copy, ""), false),
        ("CAP_BPF", |copy| as_nobody(copy, "+bpf"), false),
        ("CAP_PERFMON", |copy| as_nobody(copy, "+perfmon"), false),
        ("CAP_BPF and CAP_PERFMON", |copy| as_nobody(copy, "+bpf,+perfmon"), true),
        ("CAP_SYS_ADMIN", |copy| as_nobody(copy, "+sys_admin"), true),
        ("a user namespace", |copy| unshare(&["--user", "--map-root-user"], copy), false),
        ("a pid namespace", |copy| unshare(&["--pid", "--fork", "--mount-proc"], copy), false),
        ("root without CAP_BPF", |copy| bounded(copy), false),
    ];
    for (name, setting, possible) in settings {
        let mut check = setting(&copy);
        check.args(["check", "--json"]);
        let checked = ended(check, directory.path());
        let report = report(&checked.stdout);
        let mut record = setting(&copy);
        record.args(["record", "-d", "100ms", "-o", "-"]);
        let recorded = ended(record, directory.path());
        assert_eq!(report["possible"], possible, "{name}: {report:#}");
        assert_eq!(checked.code, Some(if possible { 0 } else { 3 }), "{name}");
        assert_eq!(recorded.code, checked.code, "{name}: {recorded:?}");
        assert_text(name, &report);
    }
}

fn unshare(options: &[&str], copy: &Path) -> Command {
    let mut command = Command::new("unshare");
    command.args(options).arg(copy);
    command
}

fn bounded(copy: &Path) -> Command {
    let mut command = Command::new("setpriv");
    command.arg("--bounding-set=-bpf,-sys_admin").arg(copy);
    command
}

/// What holds for every report.
fn assert_text(setting: &str, report: &Value) {
    let items = report["items"].as_array().expect("items");
    assert!(items.len() > 25);
    for item in items {
        for field in ["name", "found", "meaning"] {
            assert!(item[field].as_str().is_some_and(|text| !text.is_empty()), "{setting}: {field} of {item}");
        }
        let remedies = item["remedies"].as_array().expect("remedies");
        match item["state"].as_str() {
            Some("ok") => assert!(remedies.is_empty(), "{setting}: {item}"),
            Some("limited" | "missing") => assert!(!remedies.is_empty(), "{setting}: nothing to do about {item}"),
            other => panic!("{setting}: {other:?}"),
        }
    }
    let missing = items.iter().any(|item| item["state"] == "missing");
    assert_eq!(report["possible"], !missing, "{setting}: {report:#}");
}

/// The kernel's own files and other programs are the oracles.
#[test]
fn facts_are_the_kernels() {
    if !is_root() {
        return;
    }
    let directory = open_directory();
    let report = report(&run(directory.path(), &["check", "--json"]).expect(0).stdout);
    let output = |program: &str, option: &str| {
        let output = Command::new(program).arg(option).output().expect(program);
        String::from_utf8(output.stdout).expect("text").trim().to_owned()
    };
    let found = |name: &str| item(&report, name)["found"].as_str().expect("text").to_owned();
    assert_eq!(found("kernel"), format!("Linux {} {}", output("uname", "-r"), output("uname", "-m")));
    assert_eq!(found("page size"), format!("{} bytes", output("getconf", "PAGESIZE")));
    for (name, file) in [
        ("unprivileged BPF", "unprivileged_bpf_disabled"),
        ("perf_event_paranoid", "perf_event_paranoid"),
        ("sampling rate", "perf_event_max_sample_rate"),
        ("perf_event_mlock_kb", "perf_event_mlock_kb"),
        ("kernel names", "kptr_restrict"),
    ] {
        let value = std::fs::read_to_string(format!("/proc/sys/kernel/{file}")).expect("a setting");
        assert_eq!(found(name), format!("kernel.{file} = {}", value.trim()));
    }
    let status = std::fs::read_to_string("/proc/self/status").expect("status");
    let effective = status.lines().find_map(|line| line.strip_prefix("CapEff:\t")).expect("capabilities");
    let effective = u64::from_str_radix(effective, 16).expect("hexadecimal");
    for (name, number) in [("CAP_BPF", 39), ("CAP_PERFMON", 38), ("CAP_SYS_PTRACE", 19), ("CAP_SYSLOG", 34)] {
        assert_eq!(found(name) == "held", effective >> number & 1 == 1, "{name}");
    }
}

/// The command that it gives to a user without rights gives the rights.
#[test]
fn its_remedy_helps() {
    if !is_root() {
        return;
    }
    let directory = open_directory();
    let copy = copy(directory.path());
    let check = || {
        let mut check = as_nobody(&copy, "");
        check.args(["check", "--json"]);
        ended(check, directory.path())
    };
    let before = check().expect(3);
    let before = report(&before.stdout);
    let remedies = item(&before, "CAP_BPF")["remedies"].as_array().expect("remedies");
    let line =
        remedies.iter().filter_map(|remedy| remedy.as_str()).find_map(|remedy| remedy.strip_prefix("sudo setcap "));
    let line = line.unwrap_or_else(|| panic!("the temporary directory is mounted nosuid? {before:#}"));
    let done = Command::new("setcap").args(line.split(' ')).status().expect("setcap (libcap2-bin)");
    assert!(done.success(), "setcap {line}");
    let after = check().expect(0);
    let after = report(&after.stdout);
    assert!(
        ["CAP_BPF", "CAP_PERFMON", "CAP_SYS_PTRACE", "CAP_CHECKPOINT_RESTORE", "CAP_SYSLOG", "other processes"]
            .iter()
            .all(|name| item(&after, name)["state"] == "ok"),
        "{after:#}"
    );
    let mut record = as_nobody(&copy, "");
    record.args(["record", "-o", "-", "-d", "100ms"]);
    ended(record, directory.path()).expect(0);
}

/// Kernel addresses are shown to whom the kernel shows them.
#[test]
fn kernel_names_are_said_as_they_are() {
    if !is_root() {
        return;
    }
    let directory = open_directory();
    let copy = copy(directory.path());
    for capabilities in ["", "+syslog"] {
        let mut check = as_nobody(&copy, capabilities);
        check.args(["check", "--json"]);
        let report = report(&ended(check, directory.path()).stdout);
        let mut list = as_nobody(Path::new("grep"), capabilities);
        list.args(["-q", "-m1", "-v", "^0000000000000000 ", "/proc/kallsyms"]);
        let shown = list.status().expect("grep").success();
        assert_eq!(item(&report, "kernel names")["state"] == "ok", shown, "{capabilities}: {report:#}");
    }
}

#[test]
fn text_without_a_terminal_is_plain() {
    let directory = open_directory();
    let ended = run(directory.path(), &["check"]);
    assert!(matches!(ended.code, Some(0 | 3)) && ended.stderr.is_empty(), "{ended:?}");
    assert!(!ended.stdout.contains('\u{1b}'));
    assert!(ended.stdout.starts_with("wholestack can"), "{}", ended.stdout);
    let states = ["ok ", "limited ", "missing "];
    let items: Vec<&str> =
        ended.stdout.lines().filter(|line| states.iter().any(|state| line.starts_with(state))).collect();
    assert!(items.len() > 25, "{}", ended.stdout);
    // the second column begins at the same place in every line
    assert!(items.iter().all(|line| line[..9].trim_end().len() < 9 && line.as_bytes()[9] != b' '), "{}", ended.stdout);
}

/// A terminal, with what it was shown.
fn on_a_terminal(environment: &[(&str, &str)]) -> String {
    let (mut master, mut slave) = (0, 0);
    let none = std::ptr::null_mut();
    // SAFETY: two results that outlive the call; no name, no settings.
    let opened = unsafe { libc::openpty(&mut master, &mut slave, none, none.cast(), none.cast()) };
    assert_eq!(opened, 0, "a terminal");
    // SAFETY: descriptors that were just made and that nobody else knows.
    let (master, slave) = unsafe { (OwnedFd::from_raw_fd(master), OwnedFd::from_raw_fd(slave)) };
    let mut command = Command::new(program());
    command.arg("check").env_remove("NO_COLOR").env("TERM", "xterm").envs(environment.iter().copied());
    let mut child = command.stdout(slave).spawn().expect("started");
    drop(command);
    let mut shown = Vec::new();
    // a terminal whose other end is closed gives EIO after what was written
    let _ = std::fs::File::from(master).read_to_end(&mut shown);
    child.wait().expect("it ends");
    String::from_utf8(shown).expect("text")
}

#[test]
fn colours_are_for_terminals_and_those_who_want_them() {
    assert!(on_a_terminal(&[]).contains("\u{1b}[3"));
    assert!(on_a_terminal(&[("NO_COLOR", "")]).contains("\u{1b}[3"), "an empty NO_COLOR says nothing");
    for environment in [("NO_COLOR", "1"), ("TERM", "dumb")] {
        let shown = on_a_terminal(&[environment]);
        assert!(!shown.contains('\u{1b}') && shown.contains("kernel"), "{shown}");
    }
}
