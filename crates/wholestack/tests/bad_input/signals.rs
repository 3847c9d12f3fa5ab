//! Signals to the recorder.

use std::io::Write;
use std::os::fd::AsFd;
use std::process::Stdio;

use crate::common::bpf::{self, wait_until_gone};
use crate::common::recorder::{Recorder, command, hang_guard};
use crate::common::target::{Target, condition, is_over, wait_until_it_ran};
use crate::common::{compile, is_root, names_in, open_directory, wait_for};

/// Once: recording ends, the profile is written, the target goes on.
#[test]
fn one_signal_ends_the_recording() {
    if !is_root() {
        return;
    }
    let directory = open_directory();
    let mut target = Target::start(&compile(directory.path(), "spin"), &[]);
    target.line();
    let before = condition(target.pid());
    before.assert_free();
    let pid = target.pid().to_string();
    let most = hang_guard();
    for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP] {
        for arguments in [vec!["-p", &pid], vec![]] {
            let out = open_directory();
            let arguments: Vec<&str> =
                ["record", "-d", &most, "-o", "out.folded"].into_iter().chain(arguments).collect();
            let mut recorder = Recorder::start(command(out.path(), &arguments));
            assert!(recorder.wait_until_sampling());
            let objects = bpf::used_by(recorder.pid());
            assert!(!objects.programs.is_empty() && !objects.maps.is_empty());
            wait_until_it_ran(target.pid());
            recorder.signal(signal);
            let ended = recorder.wait().expect(0).told("wrote out.folded");
            let text = std::fs::read_to_string(out.path().join("out.folded")).expect("a profile");
            assert!(text.contains("main;outer;inner"), "{}\n{text}", ended.stderr);
            assert_eq!(names_in(out.path()), ["out.folded"]);
            wait_until_gone(&objects);
            target.assert_unharmed(&before);
        }
    }
}

/// Twice: 130 at once. The recorder is held in the writing of its first output, to a pipe that is full, so the second
/// signal comes before the second output.
#[test]
fn two_signals_end_it_at_once() {
    if !is_root() {
        return;
    }
    let directory = open_directory();
    let mut target = Target::start(&compile(directory.path(), "spin"), &[]);
    target.line();
    let out = open_directory();
    let most = hang_guard();
    let mut blocked = command(out.path(), &["record", "-d", &most, "-o", "-", "-o", "out.html"]);
    let (reader, writer) = std::io::pipe().expect("a pipe");
    fill(&writer);
    blocked.stdin(Stdio::null()).stdout(writer).stderr(Stdio::null());
    let mut recorder = Recorder::start_as_is(blocked);
    assert!(recorder.wait_until_sampling());
    let pid = recorder.pid();
    let objects = bpf::used_by(pid);
    // with something to write
    wait_until_it_ran(target.pid());
    recorder.signal(libc::SIGINT);
    // sampling is over, and what is left to do cannot be done
    wait_for("the end of the sampling", || bpf::held_by(pid).links.is_empty());
    assert!(!is_over(pid));
    recorder.signal(libc::SIGINT);
    assert_eq!(recorder.wait().code, Some(130));
    assert!(names_in(out.path()).is_empty(), "{:?}", names_in(out.path()));
    wait_until_gone(&objects);
    drop(reader);
}

/// Fills a pipe so that the next writer waits.
fn fill(writer: &std::io::PipeWriter) {
    use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
    let flags = fcntl_getfl(writer.as_fd()).expect("flags");
    fcntl_setfl(writer.as_fd(), flags | OFlags::NONBLOCK).expect("set");
    let mut into = writer;
    for size in [4096, 1] {
        while into.write(&vec![b'.'; size]).is_ok() {}
    }
    fcntl_setfl(writer.as_fd(), flags).expect("set");
}

/// In the first moments, at any of them: a profile that is whole, or nothing.
#[test]
fn a_signal_while_it_starts() {
    if !is_root() {
        return;
    }
    let directory = open_directory();
    let mut target = Target::start(&compile(directory.path(), "spin"), &[]);
    target.line();
    let before = condition(target.pid());
    let pid = target.pid().to_string();
    let most = hang_guard();
    for round in 0..12 {
        let out = open_directory();
        let recorder = Recorder::start(command(out.path(), &["record", "-d", &most, "-o", "out.html", "-p", &pid]));
        recorder.wait_until_maps(2 * round);
        recorder.signal(libc::SIGINT);
        let ended = recorder.wait();
        match (ended.code, ended.signal) {
            (Some(0), None) => assert_eq!(names_in(out.path()), ["out.html"]),
            // it came before signals were caught
            (None, Some(libc::SIGINT)) => assert!(names_in(out.path()).is_empty()),
            _ => panic!("{ended:?}"),
        }
    }
    bpf::wait_until_no_orphans();
    target.assert_unharmed(&before);
}

/// A command is not started any more when the user has given up before.
#[test]
fn a_signal_before_the_command_starts() {
    if !is_root() {
        return;
    }
    for round in 0..8 {
        let out = open_directory();
        let recorder = Recorder::start(command(out.path(), &["record", "-o", "out.html", "--", "touch", "started"]));
        recorder.wait_until_maps(3 * round);
        // if it has ended, nobody is there to be signalled
        // SAFETY: a child that was not waited for.
        unsafe { libc::kill(recorder.pid() as i32, libc::SIGINT) };
        let ended = recorder.wait();
        let names = names_in(out.path());
        match (ended.code, ended.signal) {
            (Some(130), None) => {
                assert!(ended.stderr.contains("before the command was started"), "{ended:?}");
                assert!(names.is_empty(), "{names:?}");
            }
            (Some(0), None) => assert!(names.contains(&"out.html".to_owned()), "{names:?}"),
            (None, Some(libc::SIGINT)) => assert!(names.is_empty(), "{names:?}"),
            _ => panic!("{ended:?}"),
        }
    }
    bpf::wait_until_no_orphans();
}
