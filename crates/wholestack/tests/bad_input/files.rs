//! Files that targets map as code and that are not what they should be.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::common::bpf::{self, wait_until_gone};
use crate::common::recorder::{Ended, Recorder, command, hang_guard, run};
use crate::common::target::{Target, condition, wait_until_it_ran};
use crate::common::{compile, is_root, names_in, open_directory};

/// More memory than any of this is worth.
const MOST_MEMORY: u64 = 1 << 30;

/// A library with a loop in it, and where in the file that is.
struct Library {
    bytes: Vec<u8>,
    spin: usize,
}

impl Library {
    fn build(directory: &Path, name: &str, options: &[&str]) -> Library {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/common/programs/library.c");
        let path = directory.join(name);
        let mut cc = Command::new("cc");
        cc.args(["-shared", "-fPIC", "-O1", "-g"]).args(options).arg("-o").arg(&path).arg(&source);
        assert!(cc.status().expect("cc").success());
        // in these the text lies at the same place in the file and in memory: see `readelf -l`
        let symbols = Command::new("nm").arg("-D").arg(&path).output().expect("nm");
        let symbols = String::from_utf8(symbols.stdout).expect("text");
        let line = symbols.lines().find(|line| line.ends_with(" T spin")).expect("the loop");
        let spin = usize::from_str_radix(line.split(' ').next().expect("an address"), 16).expect("hexadecimal");
        Library { bytes: std::fs::read(&path).expect("the library"), spin }
    }

    fn u64_at(&self, at: usize) -> u64 {
        u64::from_le_bytes(self.bytes[at..at + 8].try_into().expect("8 bytes"))
    }

    fn set(&self, at: usize, bytes: &[u8]) -> Vec<u8> {
        let mut changed = self.bytes.clone();
        changed[at..at + bytes.len()].copy_from_slice(bytes);
        changed
    }

    /// Where the headers of sections are, of 64 bytes each (Elf64_Shdr), and how many.
    fn sections(&self) -> (usize, usize) {
        (self.u64_at(40) as usize, usize::from(u16::from_le_bytes([self.bytes[60], self.bytes[61]])))
    }

    /// Writes `value` at `offset` of each section header.
    fn with_sections(&self, offset: usize, value: u64) -> Vec<u8> {
        let (start, count) = self.sections();
        let mut changed = self.bytes.clone();
        for section in 1..count {
            let at = start + section * 64 + offset;
            changed[at..at + 8].copy_from_slice(&value.to_le_bytes());
        }
        changed
    }

    /// The build-id in its note.
    fn build_id(&self, directory: &Path) -> Vec<u8> {
        let (note, size) = self.section(directory, ".note.gnu.build-id");
        // a header of 12 bytes and the name "GNU" come before it
        self.bytes[note + 16..note + size].to_vec()
    }

    /// Offset and size of a section, as readelf has it.
    fn section(&self, directory: &Path, wanted: &str) -> (usize, usize) {
        let path = directory.join("to-be-read.so");
        std::fs::write(&path, &self.bytes).expect("a file");
        let output = Command::new("readelf").args(["-SW"]).arg(&path).output().expect("readelf");
        std::fs::remove_file(&path).expect("removed");
        let output = String::from_utf8_lossy(&output.stdout).into_owned();
        let line = output.lines().find(|line| line.split_whitespace().any(|word| word == wanted)).expect("the section");
        let fields: Vec<&str> = line[line.find(']').expect("a number") + 1..].split_whitespace().collect();
        let number = |at: usize| usize::from_str_radix(fields[at], 16).expect("hexadecimal");
        (number(3), number(4))
    }
}

/// Broken files, each with where its loop is; 0 if nothing can be run in it.
fn broken_files(directory: &Path) -> Vec<(String, Vec<u8>, usize)> {
    let plain = Library::build(directory, "plain.so", &[]);
    let packed = Library::build(directory, "packed.so", &["-gz=zlib"]);
    let spin = plain.spin;
    let (frames, frames_size) = plain.section(directory, ".eh_frame");
    let (header, _) = plain.section(directory, ".eh_frame_hdr");
    let (debug, _) = packed.section(directory, ".debug_info");
    // entries that are their own CIE, as many as there is room for
    let own_cie: Vec<u8> = [4u32, 4].iter().flat_map(|word| word.to_le_bytes()).cycle().take(frames_size).collect();
    let endless = vec![0xff; frames_size];
    let mut noise = 0x2545_f491_4f6c_dd1d_u64;
    let mut random = || {
        noise ^= noise << 13;
        noise ^= noise >> 7;
        noise ^= noise << 17;
        noise as u8
    };
    let random_bytes: Vec<u8> = (0..50_000).map(|_| random()).collect();
    let mut random_inside = plain.bytes.clone();
    for (at, byte) in random_inside.iter_mut().enumerate() {
        // the loop itself has to stay, and the magic number
        if at > 16 && !(spin - 16..spin + 16).contains(&at) && random() < 8 {
            *byte = random();
        }
    }
    let files = [
        ("random", random_bytes, 0),
        ("empty", Vec::new(), 0),
        ("magic-only", plain.bytes[..4].to_vec(), 0),
        ("header-only", plain.bytes[..64].to_vec(), 0),
        ("half", plain.bytes[..plain.bytes.len() / 2].to_vec(), if spin < plain.bytes.len() / 2 { spin } else { 0 }),
        ("no-sections", plain.bytes[..plain.sections().0].to_vec(), spin),
        ("sections-of-4-gb", plain.with_sections(32, 4 << 30), spin),
        ("sections-of-16-eb", plain.with_sections(32, u64::MAX), spin),
        ("sections-elsewhere", plain.with_sections(24, u64::MAX - 7), spin),
        ("entries-of-0-bytes", plain.with_sections(56, 0), spin),
        ("entries-of-16-eb", plain.with_sections(56, u64::MAX), spin),
        ("links-in-circles", plain.with_sections(40, 0x0000_0005_0000_0005), spin),
        ("many-sections", plain.set(60, &[0xff, 0xff]), spin),
        ("many-segments", plain.set(56, &[0xff, 0xff]), spin),
        ("segments-of-4-gb", plain.set(64 + 32, &(4u64 << 30).to_le_bytes()), spin),
        ("big-endian", plain.set(5, &[2]), spin),
        ("32-bit", plain.set(4, &[1]), spin),
        ("other-machine", plain.set(18, &[0xf3]), spin),
        ("frames-their-own-cie", plain.set(frames, &own_cie), spin),
        ("frames-endless", plain.set(frames, &endless), spin),
        ("frames-cut", plain.set(frames, &[0x14, 0, 0, 0x7f]), spin),
        ("search-table-of-4-g", plain.set(header + 8, &[0xff; 4]), spin),
        // Elf64_Chdr: type, reserved, size, alignment
        ("unpacks-to-16-eb", packed.set(debug + 8, &[0xff; 8]), packed.spin),
        ("unpacks-to-4-gb", packed.set(debug + 8, &(4u64 << 30).to_le_bytes()), packed.spin),
        ("packed-noise", packed.set(debug + 24, &[0x5a; 32]), packed.spin),
        ("changed-here-and-there", random_inside, spin),
    ];
    let ids = [&plain, &packed].map(|library| library.build_id(directory));
    let numbered = files.into_iter().zip(1u8..);
    numbered.map(|((name, bytes, spin), number)| (name.to_owned(), with_own_id(bytes, &ids, number), spin)).collect()
}

/// A file with the build-id of another counts as the same as that one: each gets its own.
fn with_own_id(mut bytes: Vec<u8>, ids: &[Vec<u8>], number: u8) -> Vec<u8> {
    for id in ids {
        if let Some(at) = bytes.windows(id.len()).position(|part| part == id) {
            bytes[at..at + id.len()].fill(number);
        }
    }
    bytes
}

/// One process maps them all and runs in each that has something to run.
#[test]
fn garbage_mapped_as_code() {
    if !is_root() {
        return;
    }
    let directory = open_directory();
    let files = broken_files(directory.path());
    let mut arguments = Vec::new();
    for (name, bytes, spin) in &files {
        let path = directory.path().join(format!("{name}.so"));
        std::fs::write(&path, bytes).expect("a file");
        arguments.extend([path.to_str().expect("text").to_owned(), format!("{spin:x}")]);
    }
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let mut target = Target::start(&compile(directory.path(), "mapped"), &arguments);
    target.line();
    target.go();
    target.line();
    let before = condition(target.pid());
    before.assert_free();
    let pid = target.pid().to_string();
    let out = open_directory();
    for lines in [&["--lines"][..], &[]] {
        let record = ["record", "-F", "999", "-d", "3", "-o", "out.html", "-o", "out.folded", "-p", &pid];
        let record: Vec<&str> = record.iter().chain(lines).copied().collect();
        let ended = run(out.path(), &record).expect(0).told("wrote out.html");
        assert!(ended.peak < MOST_MEMORY, "{} MB", ended.peak >> 20);
        let text = std::fs::read_to_string(out.path().join("out.folded")).expect("a profile");
        assert!(text.contains("main"), "the thread that runs sound code is whole:\n{text}");
        // the loop of a file that is sound enough is named, that of others is shown under the name of the file
        for name in ["no-sections", "sections-of-4-gb", "many-sections", "frames-endless", "packed-noise"] {
            let shown = text.contains(&format!("[{name}.so]")) || text.contains("spin");
            assert!(shown, "{name} is not seen:\n{text}");
        }
        target.assert_unharmed(&before);
    }
}

/// A target cuts off its own library at any moment, also while that is read: touching what is gone from a mapped file
/// raises SIGBUS, which would end the recorder.
#[test]
fn a_library_that_is_cut_off() {
    if !is_root() {
        return;
    }
    let directory = open_directory();
    let program = compile(directory.path(), "mapped");
    let own = std::fs::read("/proc/self/exe").expect("this test");
    for how in ['-', '~'] {
        let mut rounds = 0;
        let mut hit = false;
        // the second kind comes upon the reader in some of the rounds
        while rounds < 3 || how == '~' && !hit {
            rounds += 1;
            assert!(rounds < 1000, "never came upon the reader");
            let path = directory.path().join(format!("large-{rounds}.so"));
            // another file each time, which is in no cache
            let mut bytes = own.clone();
            renumber_build_id(&mut bytes, rounds);
            std::fs::write(&path, bytes).expect("a file");
            let cut = format!("{how}{}", path.display());
            let mut target = Target::start(&program, &[&cut, "0"]);
            target.line();
            if how == '~' {
                target.go();
                target.line();
            }
            let pid = target.pid().to_string();
            let (out, most) = (open_directory(), hang_guard());
            let mut recorder =
                Recorder::start(command(out.path(), &["record", "-d", &most, "-o", "out.folded", "-p", &pid]));
            assert!(recorder.wait_until_sampling());
            let objects = bpf::used_by(recorder.pid());
            if how == '-' {
                target.go();
                target.line();
            }
            let before = condition(target.pid());
            wait_until_it_ran(target.pid());
            recorder.signal(libc::SIGINT);
            let ended = recorder.wait().expect(0).told("wrote out.folded");
            hit |= ended.stderr.contains("a file was shortened while it was read");
            let text = std::fs::read_to_string(out.path().join("out.folded")).expect("a profile");
            assert!(text.contains("main"), "{text}");
            wait_until_gone(&objects);
            target.assert_unharmed(&before);
            std::fs::remove_file(&path).expect("removed");
        }
        println!("{rounds} rounds of {how}");
    }
}

/// Another build-id in its note (`namesz` 4, `descsz` 20, type 3, `GNU`).
fn renumber_build_id(bytes: &mut [u8], number: u32) {
    let header = [4u32, 20, 3].iter().flat_map(|word| word.to_le_bytes()).chain(*b"GNU\0").collect::<Vec<u8>>();
    // a file without one is in no cache anyway
    let Some(note) = bytes.windows(16).position(|part| part == header) else { return };
    bytes[note + 16..note + 20].copy_from_slice(&number.to_le_bytes());
    bytes[note + 20..note + 24].copy_from_slice(&std::process::id().to_le_bytes());
}

/// A map of JIT code that would never end, or make the reader wait for ever.
#[test]
fn a_perf_map_that_is_no_file() {
    if !is_root() {
        return;
    }
    let directory = open_directory();
    let program = compile(directory.path(), "jit");
    let kinds: [(&str, Make); 4] =
        [("a FIFO", make_fifo), ("a directory", make_directory), ("a link", make_link), ("endless", make_endless)];
    for (what, make) in kinds {
        let mut target = Target::start(&program, &[]);
        target.line();
        let map = PerfMap(PathBuf::from(format!("/tmp/perf-{}.map", target.pid())));
        make(&map.0);
        target.go();
        wait_until_it_ran(target.pid());
        let before = condition(target.pid());
        let out = open_directory();
        let ended = record_jit(out.path(), target.pid());
        assert!(ended.peak < MOST_MEMORY, "{what}: {} MB", ended.peak >> 20);
        let text = std::fs::read_to_string(out.path().join("out.folded")).expect("a profile");
        assert!(!text.is_empty() && !text.contains("root:"), "{what}: {text}");
        assert_eq!(names_in(out.path()), ["out.folded"]);
        target.assert_unharmed(&before);
    }
}

fn record_jit(out: &Path, pid: u32) -> Ended {
    run(out, &["record", "-F", "499", "-d", "500ms", "-o", "out.folded", "-p", &pid.to_string()]).expect(0)
}

/// Puts something where a perf map would be.
type Make = fn(&Path);

/// Removed when dropped.
struct PerfMap(PathBuf);

impl Drop for PerfMap {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir(&self.0).or_else(|_| std::fs::remove_file(&self.0));
    }
}

fn make_fifo(path: &Path) {
    rustix::fs::mknodat(rustix::fs::CWD, path, rustix::fs::FileType::Fifo, rustix::fs::Mode::RUSR, 0).expect("a FIFO");
}

fn make_directory(path: &Path) {
    std::fs::create_dir(path).expect("a directory");
}

fn make_link(path: &Path) {
    std::os::unix::fs::symlink("/etc/passwd", path).expect("a link");
}

/// Sparse: one line of 2 GB.
fn make_endless(path: &Path) {
    std::fs::File::create(path).and_then(|file| file.set_len(2 << 30)).expect("a file");
}
