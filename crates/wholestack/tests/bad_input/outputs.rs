//! Outputs that cannot be written.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::common::recorder::{Ended, Recorder, command, program, run};
use crate::common::{NOBODY, is_root, names_in, open_directory};

/// A file system of its own, unmounted when dropped.
struct Mounted(PathBuf);

impl Mounted {
    fn new(place: &Path, options: &str) -> Mounted {
        std::fs::create_dir(place).expect("a directory");
        let mount = Command::new("mount").args(["-t", "tmpfs", "-o", options, "none"]).arg(place).status();
        assert!(mount.expect("mount").success());
        Mounted(place.to_owned())
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(&self.0).status();
    }
}

fn record(directory: &Path, output: &str) -> Ended {
    run(directory, &["record", "-d", "100ms", "-o", output])
}

/// All of this is found before the recording, and so without rights.
#[test]
fn what_cannot_be_written_is_said_before() {
    let directory = open_directory();
    record(directory.path(), "no/such/directory/out.html").expect(2).told("No such file or directory");
    std::fs::create_dir(directory.path().join("folder.html")).expect("a directory");
    record(directory.path(), "folder.html").expect(2).told("is a directory");
    std::fs::write(directory.path().join("file"), "").expect("a file");
    record(directory.path(), "file/out.html").expect(2).told("Not a directory");
    assert_eq!(names_in(directory.path()), ["file", "folder.html"]);
}

#[test]
fn special_files_are_not_replaced() {
    let directory = open_directory();
    let fifo = directory.path().join("fifo.html");
    rustix::fs::mknodat(rustix::fs::CWD, &fifo, rustix::fs::FileType::Fifo, rustix::fs::Mode::RUSR, 0).expect("FIFO");
    record(directory.path(), "fifo.html").expect(2).told("is not an ordinary file");
    let _socket = std::os::unix::net::UnixListener::bind(directory.path().join("socket.html")).expect("a socket");
    record(directory.path(), "socket.html").expect(2).told("is not an ordinary file");
    assert_eq!(names_in(directory.path()), ["fifo.html", "socket.html"]);
}

#[test]
fn a_read_only_file_system() {
    if !is_root() {
        return;
    }
    let directory = open_directory();
    let mounted = Mounted::new(&directory.path().join("here"), "ro");
    record(&mounted.0, "out.html").expect(2).told("Read-only file system");
    // also where the default name would go
    run(&mounted.0, &["record", "-d", "100ms"]).expect(2).told("Read-only file system");
}

#[test]
fn a_directory_of_somebody_else() {
    if !is_root() {
        return;
    }
    let directory = open_directory();
    let copy = directory.path().join("wholestack");
    std::fs::copy(program(), &copy).expect("a copy");
    std::fs::create_dir(directory.path().join("roots")).expect("a directory");
    let mut command = Command::new("setpriv");
    command.args([&format!("--reuid={NOBODY}"), "--clear-groups"]).arg(copy).args(["record", "-o", "roots/out.html"]);
    Recorder::start({
        command.current_dir(directory.path());
        command
    })
    .wait()
    .expect(2)
    .told("Permission denied");
    assert!(names_in(&directory.path().join("roots")).is_empty());
}

#[test]
fn a_full_disk() {
    if !is_root() {
        return;
    }
    let directory = open_directory();
    let mounted = Mounted::new(&directory.path().join("here"), "size=16k");
    std::fs::write(mounted.0.join("out.html"), "what was there before").expect("a file");
    let ended = run(&mounted.0, &["record", "-d", "100ms", "-o", "out.html", "-o", "../whole.html"]);
    // that one cannot be written keeps nothing from the other
    ended.expect(1).told("out.html: cannot write: No space left on device").told("wrote ../whole.html");
    assert_eq!(names_in(&mounted.0), ["out.html"]);
    let kept = std::fs::read_to_string(mounted.0.join("out.html")).expect("the file");
    assert_eq!(kept, "what was there before");
    assert_eq!(names_in(directory.path()), ["here", "whole.html"]);
}

#[test]
fn what_is_there_is_replaced_as_a_whole() {
    if !is_root() {
        return;
    }
    let directory = open_directory();
    let path = directory.path().join("out.folded");
    std::fs::write(&path, "x".repeat(1 << 20)).expect("a file");
    let burn = "i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done";
    run(directory.path(), &["record", "-F", "999", "-o", "out.folded", "--", "sh", "-c", burn]).expect(0);
    let text = std::fs::read_to_string(&path).expect("a profile");
    assert!(!text.contains("xxxx") && text.lines().count() > 0, "{text}");
    assert_eq!(names_in(directory.path()), ["out.folded"]);
}

#[test]
fn standard_output_closed_or_not_read() {
    if !is_root() {
        return;
    }
    let directory = open_directory();
    let arguments = ["record", "-d", "100ms", "-o", "-"];
    let mut closed = Command::new("sh");
    closed.args(["-c", "exec \"$@\" >&-", "sh"]).arg(program()).args(arguments).current_dir(directory.path());
    Recorder::start(closed).wait().expect(0);
    // a reader that goes away at once
    let mut unread = command(directory.path(), &arguments);
    unread.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut recorder = Recorder::start_as_is(unread);
    drop(recorder.child().stdout.take());
    let mut errors = recorder.child().stderr.take().expect("its errors");
    let ended = recorder.wait();
    let mut told = String::new();
    std::io::Read::read_to_string(&mut errors, &mut told).expect("text");
    assert_eq!(ended.code, Some(0), "{told}");
    assert!(!told.contains("panicked") && !told.contains("Broken pipe"), "{told}");
}

/// A terminal that is closed, or `2>&1 | head`: the profile counts, not what is said about it.
#[test]
fn standard_error_not_read() {
    if !is_root() {
        return;
    }
    for output in ["out.html", "out.pb.gz"] {
        let directory = open_directory();
        let mut unread = command(directory.path(), &["record", "-d", "100ms", "-o", output]);
        unread.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut recorder = Recorder::start_as_is(unread);
        drop(recorder.child().stderr.take());
        assert_eq!(recorder.wait().code, Some(0));
        assert_eq!(names_in(directory.path()), [output]);
    }
}
