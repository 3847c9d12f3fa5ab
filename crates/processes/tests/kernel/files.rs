//! Opening what is mapped.

use std::os::unix::fs::{MetadataExt, symlink};
use std::path::Path;
use std::process::Command;

use processes::object_file::{How, OpenFileError, OpenedFile, WayError, open_mapped_file, open_mapped_file_in};
use processes::{FileIdentity, MappedRange, Proc, Scope, build_id};

use crate::actor::{Actor, Follower, build, directory, proc_ranges};

/// The range of `path` in a process, from records (with build-id) and from /proc (with inode).
fn ranges_of(path: &Path) -> (Actor, [MappedRange; 2]) {
    let mut follower = Follower::start(Scope::All);
    let actor = Actor::run(Command::new(path));
    follower.follow();
    let process = follower.table.get(actor.pid).expect("known");
    let by_record = process.ranges.iter().find(|range| *range.path == *path).expect("mapped").clone();
    let by_scan = proc_ranges(actor.pid).find(by_record.start).expect("mapped").clone();
    assert!(matches!(by_record.identity, FileIdentity::BuildId(_)));
    assert!(matches!(by_scan.identity, FileIdentity::Inode { .. }));
    (actor, [by_record, by_scan])
}

/// A directory that looks like /proc for process `pid`, whose root is another directory.
fn fake_proc(pid: u32, root: &Path) -> Proc {
    let proc = directory();
    std::fs::create_dir(proc.join(pid.to_string())).expect("a directory");
    symlink(root, proc.join(pid.to_string()).join("root")).expect("a link");
    Proc::at(proc)
}

#[track_caller]
fn ways(result: Result<OpenedFile, OpenFileError>) -> [WayError; 3] {
    match result {
        Err(OpenFileError::NotFound { map_files, root, own_root, .. }) => [map_files, root, own_root],
        other => panic!("{other:?}"),
    }
}

#[test]
fn by_all_three_ways() {
    needs_root!();
    let program = build(&[]);
    let (actor, ranges) = ranges_of(&program);
    let inode = std::fs::metadata(&program).expect("it is there").ino();
    let nothing = Proc::at(directory());
    let elsewhere = fake_proc(actor.pid, Path::new("/"));
    for range in &ranges {
        for (proc, how) in [(&Proc::system(), How::MapFiles), (&elsewhere, How::Root), (&nothing, How::OwnRoot)] {
            let opened = open_mapped_file_in(proc, actor.pid, range).expect("it opens");
            assert_eq!((opened.how, opened.inode), (how, inode));
            assert!(opened.size > 1000 && opened.modified_ns > 0);
        }
    }
    actor.end();
    // the process is gone, the file is not
    let opened = open_mapped_file(1 << 30, &ranges[0]).expect("it opens");
    assert_eq!(opened.how, How::OwnRoot);
}

#[test]
fn deleted_and_replaced() {
    needs_root!();
    let program = build(&[]);
    let (actor, ranges) = ranges_of(&program);
    let id = build_id::of_file(&std::fs::File::open(&program).expect("it is there"));
    assert!(id.is_some());
    // another file takes its name
    std::fs::remove_file(&program).expect("removed");
    std::fs::copy("/usr/bin/env", &program).expect("copied");
    let deleted = proc_ranges(actor.pid).find(ranges[0].start).expect("mapped").clone();
    assert!(deleted.is_deleted());
    assert_eq!(deleted.file_path(), program.as_os_str());
    for range in [&ranges[0], &ranges[1], &deleted] {
        let opened = open_mapped_file(actor.pid, range).expect("it opens");
        assert_eq!((opened.how, opened.build_id()), (How::MapFiles, id));
        let errors = ways(open_mapped_file_in(&fake_proc(actor.pid, Path::new("/")), actor.pid, range));
        let [WayError::Missing, root, own_root] = errors else { panic!("{errors:?}") };
        let expected = |error: &WayError| matches!(error, WayError::OtherFile | WayError::Missing);
        assert!(expected(&root) && expected(&own_root), "{root} {own_root}");
    }
    actor.end();
}

#[test]
fn mappings_that_were_split() {
    needs_root!();
    let program = build(&[]);
    let (mut actor, _) = ranges_of(&program);
    let libc = proc_ranges(actor.pid);
    let libc = libc.iter().find(|range| range.path.to_string_lossy().contains("libc.so")).expect("mapped").clone();
    for protection in [7, 5] {
        actor.tell(&format!("mprotect {:x} 1000 {protection}", libc.start + 0x5000));
    }
    let opened = open_mapped_file(actor.pid, &libc).expect("it opens");
    assert_eq!(opened.how, How::MapFiles, "though no mapping has these bounds any more");
    actor.end();
}

/// What a process can put in the way of its files.
#[test]
fn hostile_roots() {
    needs_root!();
    let program = build(&[]);
    let (actor, ranges) = ranges_of(&program);
    let expect = |prepare: &dyn Fn(&Path), check: &dyn Fn(&WayError) -> bool| {
        let root = directory();
        let place = root.join(program.strip_prefix("/").expect("absolute"));
        std::fs::create_dir_all(place.parent().expect("a parent")).expect("directories");
        prepare(&place);
        let moved = program.with_extension("moved");
        std::fs::rename(&program, &moved).expect("moved away, so that our own root has none");
        for range in &ranges {
            let [_, error, _] = ways(open_mapped_file_in(&fake_proc(actor.pid, &root), actor.pid, range));
            assert!(check(&error), "{error}");
        }
        std::fs::rename(&moved, &program).expect("moved back");
    };
    let fifo = |place: &Path| assert!(Command::new("mkfifo").arg(place).status().expect("mkfifo runs").success());
    expect(&fifo, &|error| matches!(error, WayError::NotRegular));
    expect(&|place| symlink("/dev/zero", place).expect("a link"), &|error| matches!(error, WayError::NotRegular));
    expect(&|place| symlink("/usr/bin/env", place).expect("a link"), &|error| matches!(error, WayError::OtherFile));
    expect(&|place| symlink(place, place).expect("a link"), &|error| matches!(error, WayError::Os(_)));
    expect(&|place| std::fs::create_dir(place).expect("a directory"), &|error| matches!(error, WayError::NotRegular));
    expect(&|place| std::fs::write(place, b"\x7fELF\x02\x01").expect("a file"), &|error| {
        matches!(error, WayError::OtherFile)
    });
    expect(&|_| {}, &|error| matches!(error, WayError::Missing));
    actor.end();
}

#[test]
fn memory_without_a_file() {
    needs_root!();
    let mut actor = Actor::start();
    let address = actor.tell("mmap 0 3000 5");
    let memfd = actor.tell("memfd");
    let ranges = proc_ranges(actor.pid);
    let anonymous = ranges.find(address).expect("mapped");
    assert!(matches!(open_mapped_file(actor.pid, anonymous), Err(OpenFileError::NoFile { .. })));
    let opened = open_mapped_file(actor.pid, ranges.find(memfd).expect("mapped")).expect("a memfd can be opened");
    assert_eq!((opened.how, opened.size), (How::MapFiles, 8192));
    actor.end();
}

/// Build-ids of the system's files are those that readelf shows; cut files have none or the same.
#[test]
fn build_ids() {
    let directory = directory();
    for path in ["/usr/bin/env", "/proc/self/exe", "/etc/passwd"] {
        let output = Command::new("readelf").args(["-n", path]).output().expect("readelf runs");
        let output = String::from_utf8_lossy(&output.stdout).into_owned();
        let id = build_id::of_file(&std::fs::File::open(path).expect("it is there"));
        // readelf reads its own /proc/self/exe
        if path != "/proc/self/exe" {
            assert_eq!(id.is_some(), output.contains("Build ID"), "{path}");
            assert!(id.is_none_or(|id| output.contains(&id.to_string())), "{path}");
        }
        let bytes = std::fs::read(path).expect("readable");
        let cut = directory.join("cut");
        for length in (0..2000.min(bytes.len())).step_by(7) {
            std::fs::write(&cut, &bytes[..length]).expect("written");
            let of_cut = build_id::of_file(&std::fs::File::open(&cut).expect("it is there"));
            assert!(of_cut.is_none() || of_cut == id);
        }
    }
}
