//! However a recording ends, nothing of it is left: no BPF program, map or link, no perf event, no file; and its
//! targets are as they were.

mod common;

use std::collections::BTreeSet;
use std::process::Command;
use std::time::{Duration, Instant};

use common::bpf::{self, Objects, wait_until_gone, wait_until_no_orphans};
use common::recorder::{Recorder, command, hang_guard, program};
use common::target::{Condition, Target, all_processes, condition, is_over, wait_until_it_ran};
use common::{compile, is_root, names_in, open_directory, wait_for};
use tempfile::TempDir;

/// A target and what it was like.
struct Scene {
    _programs: TempDir,
    target: Target,
    before: Condition,
    pid: String,
}

impl Scene {
    fn new() -> Scene {
        let programs = open_directory();
        let mut target = Target::start(&compile(programs.path(), "spin"), &[]);
        target.line();
        let before = condition(target.pid());
        before.assert_free();
        let pid = target.pid().to_string();
        Scene { _programs: programs, target, before, pid }
    }

    /// Nothing is left of a recorder that is gone.
    #[track_caller]
    fn assert_clean(&self, recorder: u32, objects: &Objects) {
        assert!(bpf::descriptors_of(recorder).is_empty());
        wait_until_gone(objects);
        wait_until_no_orphans();
        self.target.assert_unharmed(&self.before);
        assert!(bpf::descriptors_of(self.target.pid()).is_empty());
        wait_until_it_ran(self.target.pid());
    }
}

#[test]
fn after_every_way_to_end_it() {
    if !is_root() {
        return;
    }
    let scene = Scene::new();
    let most = hang_guard();
    for signal in [None, Some(libc::SIGINT), Some(libc::SIGTERM), Some(libc::SIGHUP), Some(libc::SIGKILL)] {
        let out = open_directory();
        let time = if signal.is_some() { most.as_str() } else { "1" };
        let mut recorder =
            Recorder::start(command(out.path(), &["record", "-o", "out.html", "-d", time, "-p", &scene.pid]));
        assert!(recorder.wait_until_sampling());
        let (pid, objects) = (recorder.pid(), bpf::used_by(recorder.pid()));
        assert!(objects.programs.len() >= 2 && objects.maps.len() >= 10 && !objects.links.is_empty(), "{objects:?}");
        bpf::assert_known(&objects);
        if let Some(signal) = signal {
            recorder.signal(signal);
        }
        let ended = recorder.wait();
        let written = match signal {
            Some(libc::SIGKILL) => vec![],
            _ => vec!["out.html"],
        };
        assert_eq!(names_in(out.path()), written, "{ended:?}");
        scene.assert_clean(pid, &objects);
    }
}

/// Killed without a chance to clean up, at moments spread over its start and its work.
#[test]
fn after_kill_9_at_any_moment() {
    if !is_root() {
        return;
    }
    let scene = Scene::new();
    let most = hang_guard();
    let start = |out: &TempDir| {
        Recorder::start(command(out.path(), &["record", "-o", "out.html", "-d", &most, "-p", &scene.pid]))
    };
    let out = open_directory();
    let began = Instant::now();
    let mut recorder = start(&out);
    assert!(recorder.wait_until_sampling());
    let starting = began.elapsed();
    recorder.signal(libc::SIGKILL);
    recorder.wait();

    let mut noise = 0x9e37_79b9_7f4a_7c15_u64;
    for _ in 0..20 {
        noise = noise.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let delay = starting.mul_f64(1.5 * (noise >> 40) as f64 / (1u64 << 24) as f64);
        let out = open_directory();
        let recorder = start(&out);
        let (pid, until) = (recorder.pid(), Instant::now() + delay);
        let mut objects = Objects::default();
        while Instant::now() < until {
            let held = bpf::used_by(pid);
            objects.programs.extend(held.programs);
            objects.maps.extend(held.maps);
            objects.links.extend(held.links);
            std::thread::sleep(Duration::from_millis(1));
        }
        recorder.signal(libc::SIGKILL);
        assert_eq!(recorder.wait().signal, Some(libc::SIGKILL));
        assert!(names_in(out.path()).is_empty(), "{:?} after {delay:?}", names_in(out.path()));
        scene.assert_clean(pid, &objects);
    }
}

/// A start that fails half-way: too few files may be opened, or the rights are not enough.
#[test]
fn after_a_start_that_fails() {
    if !is_root() {
        return;
    }
    let scene = Scene::new();
    let refused = |mut attempt: Command, what: &str| {
        let out = open_directory();
        attempt.current_dir(out.path());
        let recorder = Recorder::start(attempt);
        let pid = recorder.pid();
        let ended = recorder.wait().expect(3).told("wholestack check");
        assert!(
            ended.stderr.contains("Too many open files") || ended.stderr.contains("permitted"),
            "{what}: {ended:?}"
        );
        assert!(names_in(out.path()).is_empty(), "{what}");
        scene.assert_clean(pid, &Objects::default());
    };
    let arguments = ["record", "-d", "60", "-o", "out.html", "-p", &scene.pid];
    for files in [8, 12, 16, 20, 24] {
        let mut attempt = Command::new("prlimit");
        attempt.arg(format!("--nofile={files}:{files}")).arg(program()).args(arguments);
        refused(attempt, &format!("{files} files"));
    }
    let mut attempt = Command::new("setpriv");
    attempt.args(["--bounding-set=-bpf,-sys_admin"]).arg(program()).args(arguments);
    refused(attempt, "without CAP_BPF");
    let mut attempt = Command::new("setpriv");
    attempt.args(["--bounding-set=-perfmon,-sys_admin"]).arg(program()).args(arguments);
    refused(attempt, "without CAP_PERFMON");
}

/// A command that is recorded holds nothing that would outlive the recorder, and goes on when that is killed.
#[test]
fn a_command_goes_on_without_a_killed_recorder() {
    if !is_root() {
        return;
    }
    let directory = open_directory();
    let spin = compile(directory.path(), "spin");
    let out = open_directory();
    let path = spin.to_str().expect("text");
    let mut recorder = Recorder::start(command(out.path(), &["record", "-o", "out.html", "--", path]));
    assert!(recorder.wait_until_sampling());
    let pid = recorder.pid();
    let runs_spin = |pid: &u32| std::fs::read_link(format!("/proc/{pid}/exe")).is_ok_and(|exe| exe == spin);
    let mut command = None;
    wait_for("the command runs", || {
        command = all_processes().into_iter().find(runs_spin);
        command.is_some()
    });
    let command = command.expect("its id");
    let objects = bpf::used_by(pid);
    recorder.signal(libc::SIGKILL);
    recorder.wait();
    wait_until_gone(&objects);
    wait_until_no_orphans();
    assert!(bpf::descriptors_of(command).is_empty());
    wait_until_it_ran(command);
    condition(command).assert_free();
    // SAFETY: the process that this test had started.
    unsafe { libc::kill(command as i32, libc::SIGKILL) };
    wait_for("the command ends", || is_over(command));
}

/// `check` loads and attaches, too.
#[test]
fn after_check() {
    if !is_root() {
        return;
    }
    let out = open_directory();
    common::recorder::run(out.path(), &["check"]).expect(0);
    wait_until_no_orphans();
    assert!(names_in(out.path()).is_empty());
}

/// Temporary files in the usual places, by whatever name.
#[test]
fn no_file_is_left_in_temporary_directories() {
    if !is_root() {
        return;
    }
    let temporary = open_directory();
    let names = || -> BTreeSet<String> { names_in(temporary.path()).into_iter().collect() };
    let before = names();
    for arguments in [["record", "-d", "300ms", "-o", "out.html"], ["record", "-d", "300ms", "-o", "-"]] {
        let out = open_directory();
        let mut attempt = command(out.path(), &arguments);
        attempt.env("TMPDIR", temporary.path());
        Recorder::start(attempt).wait().expect(0);
    }
    assert_eq!(names(), before);
}
