//! No room for the outputs.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::common::recorder::{Ended, Recorder, command, hang_guard, program};
use crate::common::target::Target;
use crate::common::{is_root, names_in, open_directory};
use crate::support::build::Workshop;

/// A file system of its own, unmounted when dropped.
struct Mounted(PathBuf);

impl Mounted {
    fn new(place: &Path, size: &str) -> Mounted {
        std::fs::create_dir(place).expect("a directory");
        let mount =
            Command::new("mount").args(["-t", "tmpfs", "-o", &format!("size={size}"), "none"]).arg(place).status();
        assert!(mount.expect("mount").success());
        Mounted(place.to_owned())
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(&self.0).status();
    }
}

/// Every format.
const OUTPUTS: [&str; 5] = ["out.html", "out.svg", "out.json", "out.pb.gz", "out.folded"];

/// Records a second of a program with ever new deep stacks: a profile of a megabyte or more. `limit` is what the
/// recorder is started by.
fn record(shop: &Workshop, directory: &Path, limit: &[&str], outputs: &[&str]) -> Ended {
    let mut target = Command::new(shop.path("deluge"));
    target.arg(hang_guard());
    let mut target = Target::of(target);
    assert!(target.line().starts_with("READY"));
    target.go();
    let pid = target.pid().to_string();
    let mut words = limit.to_vec();
    let program = program();
    words.push(program.to_str().expect("text"));
    words.extend(["record", "-F", "999", "-d", "1", "-p", &pid]);
    words.extend(outputs.iter().flat_map(|output| ["-o", *output]));
    let mut recorder = Command::new(words[0]);
    recorder.args(&words[1..]).current_dir(directory);
    Recorder::start(recorder).wait()
}

fn shop() -> Workshop {
    let shop = Workshop::new();
    shop.c("deluge", "deluge.c", &[]);
    shop
}

/// The first write is what fails, or one far on: each time each output that finds no room is named, nothing of it is left,
/// and those that do are whole.
#[test]
fn a_disk_that_fills_up() {
    if !is_root() {
        return;
    }
    let shop = shop();
    for size in ["4k", "64k", "256k"] {
        let directory = open_directory();
        let mounted = Mounted::new(&directory.path().join("here"), size);
        let mut outputs: Vec<String> = OUTPUTS.iter().map(|name| format!("here/{name}")).collect();
        outputs.push("elsewhere.folded".to_owned());
        let outputs: Vec<&str> = outputs.iter().map(String::as_str).collect();
        let ended = record(&shop, directory.path(), &[], &outputs).expect(1);
        let written = names_in(&mounted.0);
        for name in OUTPUTS {
            let failed = ended.stderr.contains(&format!("here/{name}: cannot write: No space left on device"));
            let wrote = ended.stderr.lines().any(|line| line == format!("wrote here/{name}"));
            assert_eq!((failed, wrote), (!written.contains(&name.to_owned()), !failed), "{size} {name}: {ended:?}");
        }
        assert!(written.iter().all(|name| OUTPUTS.contains(&name.as_str())), "{written:?}");
        assert!(written.len() < OUTPUTS.len(), "{size} is room enough");
        println!("LIVE full disk of {size}: {written:?} found room");
        ended.told("wrote elsewhere.folded");
        let text = std::fs::read_to_string(directory.path().join("elsewhere.folded")).expect("a profile");
        assert!(text.ends_with('\n') && text.contains(";main;deeper"), "whole");
    }
}

/// `ulimit -f`: the kernel signals first and says why afterwards.
#[test]
fn files_may_not_be_so_large() {
    if !is_root() {
        return;
    }
    let shop = shop();
    let directory = open_directory();
    let ended = record(&shop, directory.path(), &["prlimit", "--fsize=65536:65536"], &["out.html", "out.folded"]);
    ended.expect(1).told("out.folded: cannot write: File too large");
    assert!(!names_in(directory.path()).contains(&"out.folded".to_owned()));
}

/// Standard output that has no room is no reader that has seen enough.
#[test]
fn standard_output_without_room() {
    if !is_root() {
        return;
    }
    let directory = open_directory();
    let full = std::fs::File::options().write(true).open("/dev/full").expect("/dev/full");
    // an idle machine's profile is empty, and nothing always finds room
    let busy = "i=0; while [ $i -lt 200000 ]; do i=$((i + 1)); done";
    let words = ["record", "-F", "999", "-o", "-", "-o", "out.html", "--", "sh", "-c", busy];
    let mut unwritten = command(directory.path(), &words);
    unwritten.stdin(Stdio::null()).stdout(full).stderr(Stdio::piped());
    let mut recorder = Recorder::start_as_is(unwritten);
    let mut errors = recorder.child().stderr.take().expect("its errors");
    let mut told = String::new();
    std::io::Read::read_to_string(&mut errors, &mut told).expect("text");
    assert_eq!(recorder.wait().code, Some(1), "{told}");
    assert!(told.contains("No space left on device") && told.contains("wrote out.html"), "{told}");
    assert_eq!(names_in(directory.path()), ["out.html"]);
}
