//! Names of stripped files, from where distributions put them.

mod common;

use common::*;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use symbols::{Named, NativeNamer, ObjectFile, Reason};

/// A program, its names, and the program stripped with its debug file beside it.
struct Split {
    directory: tempfile::TempDir,
    offsets: Vec<u64>,
    whole: Vec<Named>,
    build_id: String,
}

impl Split {
    fn new() -> Split {
        let directory = tempfile::tempdir().unwrap();
        let program = compile(directory.path(), CPP, &["-O2", "-g", "-Wl,--build-id"]);
        let segments = segments(&program);
        let addresses: Vec<u64> = section(&program, ".text").step_by(7).collect();
        let whole = name_all(&program, &addresses);
        assert!(whole.iter().filter(|named| named.functions.len() > 1).count() > 100);
        let notes = run("readelf", &["-n", program.to_str().unwrap()]);
        let build_id = notes.lines().find_map(|line| line.trim().strip_prefix("Build ID: ")).unwrap().to_owned();
        let split = Split {
            offsets: addresses.iter().map(|address| offset_of(&segments, *address)).collect(),
            whole,
            build_id,
            directory,
        };
        run("objcopy", &["--only-keep-debug", &split.path("program"), &split.path("program.debug")]);
        run("strip", &["-o", &split.path("stripped"), &split.path("program")]);
        fs::remove_file(split.path("program")).unwrap();
        split
    }

    fn path(&self, name: &str) -> String {
        self.directory.path().join(name).to_str().unwrap().to_owned()
    }

    /// `stripped` with a debug link to `program.debug`.
    fn link(&self) {
        let link = format!("--add-gnu-debuglink={}", self.path("program.debug"));
        run("objcopy", &[&link, &self.path("stripped"), &self.path("linked")]);
    }

    /// Puts the debug file at a path below the directory, and takes it from beside the program.
    fn put_at(&self, place: &str) {
        let place = self.directory.path().join(place);
        fs::create_dir_all(place.parent().unwrap()).unwrap();
        fs::rename(self.path("program.debug"), place).unwrap();
    }

    fn build_id_path(&self) -> String {
        format!(".build-id/{}/{}.debug", &self.build_id[..2], &self.build_id[2..])
    }

    /// Names with debug files below `directories`.
    fn name(&self, file: &ObjectFile, directories: &[&str]) -> (Vec<Named>, Vec<Reason>) {
        let directories = directories.iter().map(PathBuf::from).collect();
        let found = NativeNamer::with_debug_directories(directories).name(file, &self.offsets);
        (found.named, found.reasons)
    }

    fn open(&self, name: &str) -> ObjectFile {
        ObjectFile::open(Path::new(&self.path(name))).unwrap()
    }

    /// The file as a process with our directory as its root sees it.
    fn open_below_root(&self, name: &str, inside: &str) -> ObjectFile {
        let file = fs::File::open(self.path(name)).unwrap();
        ObjectFile::new(file, inside.into(), Some(self.directory.path().to_owned()))
    }
}

#[test]
fn by_build_id() {
    let split = Split::new();
    split.put_at(&format!("debug/{}", split.build_id_path()));
    let (names, reasons) = split.name(&split.open("stripped"), &[&split.path("nowhere"), &split.path("debug")]);
    assert!(names == split.whole && reasons.is_empty(), "{reasons:?}");
    let (names, reasons) = split.name(&split.open("stripped"), &[]);
    assert!(names != split.whole && reasons == [Reason::Stripped], "{reasons:?}");
}

#[test]
fn by_build_id_below_another_root_through_links() {
    let split = Split::new();
    split.put_at("usr/lib/debug/real.debug");
    let link = split.directory.path().join("usr/lib/debug").join(split.build_id_path());
    fs::create_dir_all(link.parent().unwrap()).unwrap();
    // absolute: below our own root there is no such file
    symlink("/usr/lib/debug/real.debug", &link).unwrap();
    let (names, reasons) = split.name(&split.open_below_root("stripped", "/bin/p"), &["/usr/lib/debug"]);
    assert!(names == split.whole && reasons.is_empty(), "{reasons:?}");
}

#[test]
fn by_debug_link() {
    for place in ["program.debug", ".debug/program.debug"] {
        let split = Split::new();
        split.link();
        split.put_at(place);
        let (names, reasons) = split.name(&split.open("linked"), &[]);
        assert!(names == split.whole && reasons.is_empty(), "{place}: {reasons:?}");
    }
    let split = Split::new();
    split.link();
    let inside = split.directory.path().strip_prefix("/").unwrap().to_owned();
    split.put_at(inside.join("program.debug").to_str().unwrap());
    let (names, reasons) = split.name(&split.open("linked"), &[&split.path("")]);
    assert!(names == split.whole && reasons.is_empty(), "{reasons:?}");
}

#[test]
fn by_debug_link_below_another_root() {
    let split = Split::new();
    split.link();
    split.put_at("usr/lib/debug/opt/program.debug");
    let (names, reasons) = split.name(&split.open_below_root("linked", "/opt/program"), &["/usr/lib/debug"]);
    assert!(names == split.whole && reasons.is_empty(), "{reasons:?}");
}

#[test]
fn debug_files_of_other_builds_are_refused() {
    let split = Split::new();
    split.link();
    let other = compile(split.directory.path(), C, &["-O2", "-g", "-Wl,--build-id"]);
    fs::copy(&other, split.path("program.debug")).unwrap();
    let wrong = split.directory.path().join(split.build_id_path());
    fs::create_dir_all(wrong.parent().unwrap()).unwrap();
    fs::copy(&other, &wrong).unwrap();
    let (names, reasons) = split.name(&split.open("linked"), &[&split.path("")]);
    assert!(names.iter().all(|named| named.functions.iter().all(|function| function.line == 0)));
    let expected =
        [Reason::OtherBuild(wrong), Reason::OtherBuild(split.path("program.debug").into()), Reason::Stripped];
    assert_eq!(reasons, expected);
}

#[test]
fn a_fifo_as_debug_file_does_not_hang() {
    let split = Split::new();
    split.link();
    for place in [split.path("program.debug"), split.path(&split.build_id_path())] {
        let _ = fs::remove_file(&place);
        fs::create_dir_all(Path::new(&place).parent().unwrap()).unwrap();
        run("mkfifo", &[&place]);
    }
    let (_, reasons) = split.name(&split.open("linked"), &[&split.path("")]);
    assert_eq!(reasons, [Reason::Stripped]);
}

/// As Fedora's find-debuginfo makes it: symbols of functions only, xz-compressed in the stripped file.
#[test]
fn mini_debug_information() {
    let split = Split::new();
    let (mini, debug) = (split.path("mini"), split.path("program.debug"));
    run("objcopy", &["-S", "--remove-section=.gdb_index", "--remove-section=.comment", &debug, &split.path("keep")]);
    run("strip", &["--strip-debug", "-o", &mini, &debug]);
    run("xz", &["-k", &mini]);
    let add = format!(".gnu_debugdata={mini}.xz");
    run("objcopy", &["--add-section", &add, &split.path("stripped"), &split.path("with")]);
    let (names, reasons) = split.name(&split.open("with"), &[]);
    assert_eq!(reasons, []);
    let got: Vec<&str> = names.iter().map(outer).collect();
    let expected: Vec<&str> = split.whole.iter().map(outer).collect();
    assert_eq!(got, expected);
    assert!(got.iter().any(|name| name.starts_with("count(")), "a function that .dynsym does not name");

    // damaged: the rest still works, and the reason is said
    let mut bytes = fs::read(format!("{mini}.xz")).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 0xff;
    fs::write(format!("{mini}.xz"), bytes).unwrap();
    run("objcopy", &["--add-section", &add, &split.path("stripped"), &split.path("damaged")]);
    let (_, reasons) = split.name(&split.open("damaged"), &[]);
    let damaged = PathBuf::from(split.path("damaged"));
    let stub = section(&damaged, ".plt").start + 16;
    assert!(outer(&name_all(&damaged, &[stub])[0]).ends_with("@plt"));
    assert!(
        matches!(&reasons[..], [Reason::BadSection { section, .. }, Reason::Stripped] if section == ".gnu_debugdata"),
        "{reasons:?}"
    );
}

/// One file in reach of two names keeps them apart by what is in it, not by where it is.
#[test]
fn a_replaced_file_is_read_anew() {
    let directory = tempfile::tempdir().unwrap();
    let program = compile(directory.path(), C, &["-O2", "-g"]);
    let namer = NativeNamer::new();
    let first = ObjectFile::open(&program).unwrap();
    assert_eq!(namer.name(&first, &[]).reasons, []);
    fs::remove_file(&program).unwrap();
    compile(directory.path(), C, &["-O2", "-s"]);
    let second = ObjectFile::open(&program).unwrap();
    assert_eq!(namer.name(&second, &[]).reasons, [Reason::Stripped]);
    assert_eq!(namer.name(&first, &[]).reasons, []);
}

/// What dwz moves to a common file is found there (the dwz tool is needed).
#[test]
fn debug_information_in_a_common_file() {
    let split = Split::new();
    let (debug, twin, common) = (split.path("program.debug"), split.path("twin.debug"), split.path("common"));
    fs::copy(&debug, &twin).unwrap();
    let before = fs::metadata(&debug).unwrap().len();
    run("dwz", &["-m", &common, "-M", &common, &debug, &twin]);
    assert!(fs::metadata(&debug).unwrap().len() < before / 2);
    split.put_at(&format!("debug/{}", split.build_id_path()));
    let directories = [&*split.path("debug")];
    let (names, reasons) = split.name(&split.open("stripped"), &directories);
    assert_eq!(reasons, []);
    let names_of = |all: &[Named]| -> Vec<Vec<(String, u32)>> {
        all.iter().map(|one| one.functions.iter().map(|f| (f.name.clone(), f.line)).collect()).collect()
    };
    assert_eq!(names_of(&names), names_of(&split.whole));

    fs::remove_file(&common).unwrap();
    let (names, reasons) = split.name(&split.open("stripped"), &directories);
    assert!(matches!(&reasons[..], [Reason::BadDebugInfo(what), ..] if what.contains("common")), "{reasons:?}");
    assert_eq!(names.iter().map(outer).collect::<Vec<_>>(), split.whole.iter().map(outer).collect::<Vec<_>>());
}
