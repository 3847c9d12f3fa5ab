//! Limits that are too low for a recorder (`ulimit`).

use std::process::Command;

use crate::common::bpf::{self, wait_until_no_orphans};
use crate::common::recorder::{Ended, Recorder, program};
use crate::common::target::{Condition, Target, condition, wait_until_it_ran};
use crate::common::{compile, is_root, names_in, open_directory};

/// A process that works.
struct Scene {
    _directory: tempfile::TempDir,
    target: Target,
    before: Condition,
}

impl Scene {
    fn new() -> Scene {
        let directory = open_directory();
        let mut target = Target::start(&compile(directory.path(), "spin"), &[]);
        target.line();
        let before = condition(target.pid());
        Scene { _directory: directory, target, before }
    }

    /// Records it, or everything, under a limit of `prlimit`; it is unharmed and nothing is left.
    fn record(&self, limit: &str, whole_machine: bool) -> Ended {
        let out = open_directory();
        let mut recorder = Command::new("prlimit");
        recorder.arg(limit).arg(program()).args(["record", "-d", "300ms", "-o", "out.folded"]);
        // what Rust says of itself without being asked to is enough
        recorder.current_dir(out.path()).env_remove("RUST_BACKTRACE");
        if !whole_machine {
            recorder.args(["-p", &self.target.pid().to_string()]);
        }
        let ended = Recorder::start(recorder).wait();
        let expected: &[&str] = if ended.code == Some(0) { &["out.folded"] } else { &[] };
        assert_eq!(names_in(out.path()), expected, "{limit}: {ended:?}");
        wait_until_no_orphans();
        self.target.assert_unharmed(&self.before);
        assert!(bpf::descriptors_of(self.target.pid()).is_empty());
        wait_until_it_ran(self.target.pid());
        ended
    }
}

/// Either it is enough, or that is what is said, and what to do.
#[test]
fn few_open_files() {
    if !is_root() {
        return;
    }
    let scene = Scene::new();
    for (files, whole_machine) in
        [(12, false), (20, false), (30, false), (32, false), (32, true), (40, false), (64, true)]
    {
        let ended = scene.record(&format!("--nofile={files}:{files}"), whole_machine);
        println!("LIVE {files} files: code {:?}", ended.code);
        if ended.code != Some(0) {
            ended.expect(3).told("Too many open files").told("`ulimit -Hn`");
        }
    }
}

/// The same of memory, where the kernel refuses; what our own memory allocator refuses ends the program with the words of
/// Rust's standard library.
#[test]
fn little_address_space() {
    if !is_root() {
        return;
    }
    let scene = Scene::new();
    for mib in [16_u64, 32, 64, 128, 192, 1024] {
        let ended = scene.record(&format!("--as={0}:{0}", mib << 20), false);
        println!("LIVE {mib} MiB of address space: code {:?}, signal {:?}", ended.code, ended.signal);
        let told = &ended.stderr;
        match (ended.code, ended.signal) {
            (Some(0), _) => assert!(told.contains("wrote out.folded"), "{ended:?}"),
            (Some(1 | 3), _) => assert!(told.contains("wholestack: ") && told.contains("memory"), "{ended:?}"),
            // the loader of the program itself
            (Some(127), _) => assert!(told.contains("error while loading shared libraries"), "{ended:?}"),
            (None, Some(libc::SIGABRT)) => assert!(told.contains("memory allocation of"), "{ended:?}"),
            (None, Some(libc::SIGSEGV)) if told.is_empty() => {}
            _ => panic!("{mib} MiB: {ended:?}"),
        }
    }
}
