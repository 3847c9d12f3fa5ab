//! Commands that cannot be started, fail, or are killed.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use crate::common::recorder::{Ended, Recorder, command, run};
use crate::common::target::{all_processes, is_over};
use crate::common::{bpf, compile, is_root, names_in, open_directory, wait_for};

fn record(directory: &Path, command: &[&str]) -> Ended {
    let arguments: Vec<&str> = ["record", "-o", "out.html", "--"].iter().chain(command).copied().collect();
    run(directory, &arguments)
}

fn write(path: &Path, content: &[u8], mode: u32) {
    std::fs::write(path, content).expect("a file");
    std::fs::set_permissions(path, PermissionsExt::from_mode(mode)).expect("permissions");
}

/// Found before anything else, and so without rights.
#[test]
fn not_to_be_started() {
    let directory = open_directory();
    write(&directory.path().join("text"), b"not a program", 0o644);
    std::fs::create_dir(directory.path().join("folder")).expect("a directory");
    record(directory.path(), &["no-such-command-anywhere"]).expect(127).told("not found in PATH").told("full path");
    record(directory.path(), &["./no-such-file"]).expect(127).told("cannot run ./no-such-file");
    record(directory.path(), &["./text"]).expect(127).told("not an executable file");
    record(directory.path(), &["./folder"]).expect(127).told("not an executable file");
    record(directory.path(), &[""]).expect(127).told("cannot run");
    assert_eq!(names_in(directory.path()), ["folder", "text"]);
}

#[test]
fn its_exit_code_is_passed_on() {
    if !is_root() {
        return;
    }
    for (script, code) in [("exit 0", 0), ("exit 7", 7), ("exit 255", 255), ("kill -9 $$", 137), ("kill -15 $$", 143)] {
        let directory = open_directory();
        record(directory.path(), &["sh", "-c", script]).expect(code).told("wrote out.html");
        assert_eq!(names_in(directory.path()), ["out.html"]);
    }
}

/// A file that is executable by its mode only.
#[test]
fn garbage_that_is_to_be_run() {
    if !is_root() {
        return;
    }
    let directory = open_directory();
    let elf = [b"\x7fELF\x02\x01\x01".as_slice(), &[0; 9], &[0xff; 300]].concat();
    write(&directory.path().join("elf"), &elf, 0o755);
    write(&directory.path().join("interpreter"), b"#!/no/such/interpreter\n", 0o755);
    write(&directory.path().join("empty"), b"", 0o755);
    for (name, codes) in [("./elf", [126, 127].as_slice()), ("./interpreter", &[127]), ("./empty", &[0, 127])] {
        let ended = record(directory.path(), &[name]);
        assert!(ended.code.is_some_and(|code| codes.contains(&code)), "{name}: {ended:?}");
        assert!(!ended.stderr.contains("panicked"), "{ended:?}");
    }
}

/// A target that execs garbage goes on with what it was.
#[test]
fn a_target_that_tries_to_become_garbage() {
    if !is_root() {
        return;
    }
    let directory = open_directory();
    write(&directory.path().join("elf"), b"\x7fELF", 0o755);
    let script = "exec 2>/dev/null; i=0; while [ $i -lt 200 ]; do (exec ./elf); i=$((i+1)); done; exit 3";
    record(directory.path(), &["bash", "-c", script]).expect(3).told("wrote out.html");
}

/// Nothing of the recorder's is open in the command, which would keep it loaded.
#[test]
fn it_inherits_nothing() {
    if !is_root() {
        return;
    }
    let directory = open_directory();
    let listing = "ls -l /proc/self/fd > fds; env > environment; cat /proc/self/status > status";
    record(directory.path(), &["sh", "-c", listing]).expect(0);
    let read = |name: &str| std::fs::read_to_string(directory.path().join(name)).expect("written by the command");
    // what this test was started with is inherited by all
    let directly = |program: &str, argument: &str| {
        let output = std::process::Command::new(program).arg(argument).output().expect("started");
        String::from_utf8(output.stdout).expect("text")
    };
    let without = directly("ls", "/proc/self/fd");
    let fds = read("fds");
    for line in fds.lines().filter(|line| line.contains(" -> ")) {
        let number = line.split(" -> ").next().and_then(|part| part.rsplit(' ').next()).expect("a number");
        assert!(without.lines().any(|inherited| inherited == number), "descriptor {number} in:\n{fds}");
    }
    assert!(!read("environment").contains("WHOLESTACK_GATE"));
    let field = |name: &str| read("status").lines().find(|line| line.starts_with(name)).map(str::to_owned);
    let own = directly("cat", "/proc/self/status");
    let own_field = |name: &str| own.lines().find(|line| line.starts_with(name)).map(str::to_owned);
    for name in ["SigBlk", "SigIgn", "CapEff", "CapAmb", "NoNewPrivs"] {
        assert_eq!(field(name), own_field(name));
    }
}

/// A recorder that is killed before the command starts does not leave the launcher behind.
#[test]
fn the_launcher_ends_with_the_recorder() {
    if !is_root() {
        return;
    }
    let directory = open_directory();
    for delay in [0, 3, 10, 20, 40, 80] {
        let recorder = Recorder::start(command(directory.path(), &["record", "-q", "--", "sleep", "300"]));
        let pid = recorder.pid();
        let launcher = |child: &u32| {
            let stat = std::fs::read_to_string(format!("/proc/{child}/stat")).unwrap_or_default();
            let parent = stat.rsplit(')').next().and_then(|rest| rest.split_ascii_whitespace().nth(1)?.parse().ok());
            parent == Some(pid)
        };
        let mut children = Vec::new();
        wait_for("the launcher", || {
            children = all_processes().into_iter().filter(launcher).collect();
            !children.is_empty() || is_over(pid)
        });
        std::thread::sleep(std::time::Duration::from_millis(delay));
        recorder.signal(libc::SIGKILL);
        assert_eq!(recorder.wait().signal, Some(libc::SIGKILL));
        for child in children {
            let started = || std::fs::read(format!("/proc/{child}/comm")).is_ok_and(|comm| comm == b"sleep\n");
            wait_for("the launcher ends, or the command runs", || is_over(child) || started());
            if started() {
                // SAFETY: the command that this test had started.
                unsafe { libc::kill(child as i32, libc::SIGKILL) };
            }
        }
    }
    bpf::wait_until_no_orphans();
}

/// One that goes on when the time is over is left alone.
#[test]
fn one_that_outlives_the_recording() {
    if !is_root() {
        return;
    }
    let directory = open_directory();
    let spin = compile(directory.path(), "spin");
    let arguments = ["record", "-d", "200ms", "-o", "out.html", "--", spin.to_str().expect("text")];
    let ended = run(directory.path(), &arguments).expect(0).told("the command still runs, as process ");
    let pid = ended.stderr.rsplit(' ').next().and_then(|word| word.trim().parse::<u32>().ok()).expect("its id");
    assert!(!is_over(pid));
    crate::common::target::wait_until_it_ran(pid);
    crate::common::target::condition(pid).assert_free();
    // SAFETY: the process that this test had started.
    unsafe { libc::kill(pid as i32, libc::SIGKILL) };
}
