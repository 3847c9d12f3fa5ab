//! Names of code that a runtime made while it ran and listed in `/tmp/perf-PID.map`.
//!
//! Each line is `START SIZE NAME`, the numbers hexadecimal (Linux, tools/perf/Documentation/jit-interface.txt).

use std::fs::File;
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};

use crate::demangle::{MAX_NAME, cut};
use crate::intervals::Intervals;
use crate::root::Root;

/// The most that is read of a map, in bytes.
const MAX_BYTES: u64 = 256 << 20;
/// The most entries that are kept.
const MAX_ENTRIES: usize = 4 << 20;
/// One past the highest address of user space on any 64-bit machine: 56 bits (x86_64 with five levels).
const USER_END: u64 = 1 << 56;
/// How much is read at once, in bytes.
const CHUNK: usize = 1 << 20;

/// Why a process has no perf map that can be used.
#[derive(Debug, thiserror::Error)]
pub enum PerfMapError {
    /// The process is gone or may not be looked at.
    #[error("process {pid}: {source}")]
    Process {
        /// The process.
        pid: u32,
        /// What the kernel says.
        source: io::Error,
    },
    /// The process has no map.
    #[error("no perf map at {}", .0.display())]
    Missing(PathBuf),
    /// The map is a symbolic link, a FIFO or otherwise not a regular file, or cannot be opened.
    #[error("perf map {}: {source}", path.display())]
    NotOpened {
        /// The map, as the process sees it.
        path: PathBuf,
        /// What the kernel says.
        source: io::Error,
    },
    /// The map belongs neither to the user of the process nor to root: anybody may have written it.
    #[error("perf map {} belongs to user {owner}, the process to user {user}", path.display())]
    WrongOwner {
        /// The map, as the process sees it.
        path: PathBuf,
        /// The map's owner.
        owner: u32,
        /// The effective user of the process.
        user: u32,
    },
    /// The map could not be read.
    #[error("perf map {}: {source}", path.display())]
    NotRead {
        /// The map, as the process sees it.
        path: PathBuf,
        /// What the kernel says.
        source: io::Error,
    },
}

/// The perf map of a process. Keeps the file open, so that it can be read after the process is gone.
#[derive(Debug)]
pub struct PerfMap {
    file: File,
    path: PathBuf,
    /// How far the file has been read, in bytes.
    read: u64,
    /// What follows is the rest of a line that was too long.
    skipping: bool,
    entries: Entries,
}

#[derive(Default, Debug)]
struct Entries {
    names: String,
    /// Position and length of each range's name.
    ranges: Intervals<(u32, u32)>,
    ignored: u64,
}

impl PerfMap {
    /// Opens and reads the map of a process.
    ///
    /// # Errors
    /// [`PerfMapError`]. A process may make its map later: after [`PerfMapError::Missing`] it is worth another try.
    pub fn open(pid: u32) -> Result<PerfMap, PerfMapError> {
        let gone = |source| PerfMapError::Process { pid, source };
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).map_err(gone)?;
        let (user, inner_pid) = user_and_inner_pid(&status)
            .ok_or_else(|| gone(io::Error::new(io::ErrorKind::InvalidData, "unexpected /proc/PID/status")))?;
        let root = Root::open(Path::new(&format!("/proc/{pid}/root"))).map_err(gone)?;
        PerfMap::open_in(&root, inner_pid, user)
    }

    fn open_in(root: &Root, inner_pid: u32, user: u32) -> Result<PerfMap, PerfMapError> {
        let path = PathBuf::from(format!("/tmp/perf-{inner_pid}.map"));
        let file = root.open_regular_itself(&path).map_err(|source| match source.kind() {
            io::ErrorKind::NotFound => PerfMapError::Missing(path.clone()),
            _ => PerfMapError::NotOpened { path: path.clone(), source },
        })?;
        let owner = file.metadata().map_err(|source| PerfMapError::NotOpened { path: path.clone(), source })?.uid();
        if owner != user && owner != 0 {
            return Err(PerfMapError::WrongOwner { path, owner, user });
        }
        PerfMap::read_from(file, path)
    }

    /// Reads an open file; `path` is for errors.
    pub(crate) fn read_from(file: File, path: PathBuf) -> Result<PerfMap, PerfMapError> {
        let mut map = PerfMap { file, path, read: 0, skipping: false, entries: Entries::default() };
        map.refresh()?;
        Ok(map)
    }

    /// Reads what was appended since the last time. A map that became shorter is read anew. A last line without an
    /// end is left for the next time.
    ///
    /// # Errors
    /// [`PerfMapError::NotRead`]; what was read before stays.
    pub fn refresh(&mut self) -> Result<(), PerfMapError> {
        let failed = |source| PerfMapError::NotRead { path: self.path.clone(), source };
        let size = self.file.metadata().map_err(failed)?.len();
        if size < self.read {
            (self.read, self.skipping, self.entries) = (0, false, Entries::default());
        }
        let mut buffer = vec![0; CHUNK];
        while self.read < MAX_BYTES {
            let got = self.file.read_at(&mut buffer, self.read).map_err(failed)?;
            let part = &buffer[..got];
            let Some(end) = part.iter().rposition(|byte| *byte == b'\n') else {
                if got < CHUNK {
                    break;
                }
                // no line is that long: pass over it
                if !self.skipping {
                    self.entries.add_line(part);
                }
                (self.read, self.skipping) = (self.read + got as u64, true);
                continue;
            };
            let lines = part[..end].split(|byte| *byte == b'\n');
            lines.skip(usize::from(self.skipping)).for_each(|line| self.entries.add_line(line));
            (self.read, self.skipping) = (self.read + end as u64 + 1, false);
        }
        Ok(())
    }

    /// The name of the code at an address.
    pub fn lookup(&self, address: u64) -> Option<&str> {
        self.entries.name(address)
    }

    /// How many ranges have names.
    #[cfg(any(test, fuzzing))]
    pub(crate) fn ranges(&self) -> usize {
        self.entries.ranges.len()
    }

    /// How many lines were no entries.
    pub fn ignored(&self) -> u64 {
        self.entries.ignored
    }
}

impl Entries {
    /// Adds an entry, over those that were there before.
    fn add_line(&mut self, line: &[u8]) {
        if line.is_empty() {
            return;
        }
        let has_room = self.ranges.len() < MAX_ENTRIES && (self.names.len() as u64) < MAX_BYTES;
        let entry = parse(line).filter(|_| has_room);
        let Some((start, end, name)) = entry else {
            self.ignored += 1;
            return;
        };
        let name_at = self.names.len();
        // one byte more than is kept: a name that is longer is seen to be
        self.names.push_str(&cut(String::from_utf8_lossy(name.get(..=MAX_NAME).unwrap_or(name)).into_owned()));
        match (u32::try_from(name_at), u32::try_from(self.names.len() - name_at)) {
            (Ok(at), Ok(length)) => self.ranges.put(start, end, (at, length)),
            _ => self.names.truncate(name_at),
        }
    }

    fn name(&self, address: u64) -> Option<&str> {
        let (at, length) = self.ranges.get(address)?;
        self.names.get(at as usize..at as usize + length as usize)
    }
}

/// Start, end and name of an entry that lies in user space.
fn parse(line: &[u8]) -> Option<(u64, u64, &[u8])> {
    let (start, rest) = number(line)?;
    let (size, name) = number(rest)?;
    let end = start.checked_add(size).filter(|end| *end <= USER_END)?;
    let name = name.trim_ascii();
    (start != 0 && size != 0 && !name.is_empty()).then_some((start, end, name))
}

/// A hexadecimal number, perhaps with `0x`, and what follows the blank behind it.
fn number(text: &[u8]) -> Option<(u64, &[u8])> {
    let text = text.trim_ascii_start();
    let end = text.iter().position(|byte| *byte == b' ' || *byte == b'\t')?;
    let digits = std::str::from_utf8(&text[..end]).ok()?;
    let digits = digits.strip_prefix("0x").or_else(|| digits.strip_prefix("0X")).unwrap_or(digits);
    if !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    Some((u64::from_str_radix(digits, 16).ok()?, &text[end + 1..]))
}

/// The effective user of a process, and its pid in its own pid namespace.
fn user_and_inner_pid(status: &str) -> Option<(u32, u32)> {
    let field = |name| status.lines().find_map(|line: &str| line.strip_prefix(name));
    let user = field("Uid:")?.split_whitespace().nth(1)?.parse().ok()?;
    let pid = field("NSpid:").or_else(|| field("Pid:"))?;
    Some((user, pid.split_whitespace().next_back()?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::io::Write;
    use std::os::unix::fs::{chown, symlink};

    const PID: u32 = 77;
    const USER: u32 = 12345;

    /// A root directory with `/tmp`, and the place of the map in it.
    fn root() -> (tempfile::TempDir, PathBuf) {
        let directory = tempfile::tempdir().unwrap();
        std::fs::create_dir(directory.path().join("tmp")).unwrap();
        let map = directory.path().join(format!("tmp/perf-{PID}.map"));
        (directory, map)
    }

    fn open(directory: &tempfile::TempDir) -> Result<PerfMap, PerfMapError> {
        PerfMap::open_in(&Root::open(directory.path()).unwrap(), PID, USER)
    }

    fn open_lines(lines: &[u8]) -> PerfMap {
        let (directory, path) = root();
        std::fs::write(path, lines).unwrap();
        open(&directory).unwrap()
    }

    #[test]
    fn entries_name_their_addresses() {
        let map = open_lines(b"1000 10 one\n0x2000 0x20 Foo::bar (int, char) [opt]\n3000\t8\ttab\n");
        for (address, name) in [
            (0xfff, None),
            (0x1000, Some("one")),
            (0x100f, Some("one")),
            (0x1010, None),
            (0x201f, Some("Foo::bar (int, char) [opt]")),
            (0x3007, Some("tab")),
        ] {
            assert_eq!(map.lookup(address), name);
        }
        assert_eq!(map.ignored(), 0);
    }

    #[test]
    fn later_entries_win() {
        let map = open_lines(b"1000 100 old\n1040 20 new\n1000 10 newest\n");
        let names = [0x1000, 0x1010, 0x1040, 0x105f, 0x1060].map(|address| map.lookup(address).unwrap());
        assert_eq!(names, ["newest", "old", "new", "new", "old"]);
    }

    #[test]
    fn hostile_lines_are_ignored() {
        let bad: &[&str] = &[
            "ffffffff81000000 1000 kernel",
            "1000 ffffffffffffffff overflow",
            "1000 0 empty",
            "0 10 null",
            "1000 10 ",
            "1000 10",
            "1000",
            " ",
            "-1000 10 sign",
            "+1000 10 sign",
            "10000000000000000 10 long",
            "x y z",
            "ffffffffffffff 2 beyond",
        ];
        let map = open_lines(format!("{}\n2000 10 good\n", bad.join("\n")).as_bytes());
        assert_eq!((map.lookup(0x2000), map.ranges()), (Some("good"), 1));
        assert_eq!(map.ignored(), bad.len() as u64);
    }

    #[test]
    fn names_are_decoded_and_cut() {
        let mut lines = b"1000 10 a\xffb\n2000 10 ".to_vec();
        lines.extend(vec![b'x'; 5 << 20]);
        lines.extend(b"\n3000 10 after\n");
        let map = open_lines(&lines);
        assert_eq!((map.lookup(0x1000), map.lookup(0x3000)), (Some("a\u{fffd}b"), Some("after")));
        let long = map.lookup(0x2000).unwrap();
        assert!(long.ends_with('…') && long.len() < MAX_NAME + 4, "{}", long.len());
    }

    #[test]
    fn bytes_that_are_no_text_do_not_make_a_name_too_long() {
        let mut lines = b"1000 10 ".to_vec();
        lines.extend(vec![0xff; MAX_NAME]);
        lines.push(b'\n');
        let map = open_lines(&lines);
        let name = map.lookup(0x1000).unwrap();
        assert!(name.ends_with('…') && name.len() <= MAX_NAME + '…'.len_utf8(), "{}", name.len());
    }

    #[test]
    fn a_growing_file_is_followed() {
        let (directory, path) = root();
        let mut writer = File::create(&path).unwrap();
        writer.write_all(b"1000 10 one\n2000 10 tw").unwrap();
        let mut map = open(&directory).unwrap();
        assert_eq!((map.lookup(0x1000), map.lookup(0x2000)), (Some("one"), None));
        writer.write_all(b"o\n3000 10 three\n").unwrap();
        std::fs::remove_file(&path).unwrap();
        map.refresh().unwrap();
        assert_eq!((map.lookup(0x2000), map.lookup(0x3000)), (Some("two"), Some("three")));
        writer.set_len(0).unwrap();
        writer.write_all(b"").unwrap();
        map.refresh().unwrap();
        assert_eq!(map.lookup(0x1000), None);
    }

    #[test]
    fn only_a_regular_file_is_opened() {
        let (directory, path) = root();
        assert!(matches!(open(&directory), Err(PerfMapError::Missing(_))));
        std::fs::write(directory.path().join("other"), "1000 10 secret\n").unwrap();
        symlink("../other", &path).unwrap();
        assert!(matches!(open(&directory), Err(PerfMapError::NotOpened { .. })));
        std::fs::remove_file(&path).unwrap();
        rustix::fs::mknodat(rustix::fs::CWD, &path, rustix::fs::FileType::Fifo, rustix::fs::Mode::RUSR, 0).unwrap();
        assert!(matches!(open(&directory), Err(PerfMapError::NotOpened { .. })));
        std::fs::remove_file(&path).unwrap();
        std::fs::create_dir(&path).unwrap();
        assert!(matches!(open(&directory), Err(PerfMapError::NotOpened { .. })));
    }

    #[test]
    fn links_on_the_way_stay_below_the_root() {
        let (directory, path) = root();
        std::fs::remove_dir(path.parent().unwrap()).unwrap();
        std::fs::create_dir_all(directory.path().join("var/tmp")).unwrap();
        symlink("/var/tmp", directory.path().join("tmp")).unwrap();
        std::fs::write(directory.path().join(format!("var/tmp/perf-{PID}.map")), "1000 10 inside\n").unwrap();
        assert_eq!(open(&directory).unwrap().lookup(0x1000), Some("inside"));
    }

    #[test]
    fn the_owner_must_be_the_process_or_root() {
        let (directory, path) = root();
        std::fs::write(&path, "1000 10 one\n").unwrap();
        for (owner, allowed) in [(0, true), (USER, true), (USER + 1, false)] {
            chown(&path, Some(owner), None).unwrap();
            match open(&directory) {
                Ok(_) => assert!(allowed),
                Err(PerfMapError::WrongOwner { owner: found, user, .. }) => {
                    assert!(!allowed && found == owner && user == USER);
                }
                Err(other) => panic!("{other}"),
            }
        }
    }

    #[test]
    fn a_real_process_is_found() {
        struct Child(std::process::Child);
        impl Drop for Child {
            fn drop(&mut self) {
                let _ = (self.0.kill(), self.0.wait());
                let _ = std::fs::remove_file(format!("/tmp/perf-{}.map", self.0.id()));
            }
        }
        let mut child = Child(std::process::Command::new("sleep").arg("1000").spawn().unwrap());
        let pid = child.0.id();
        assert!(matches!(PerfMap::open(pid), Err(PerfMapError::Missing(_))));
        std::fs::write(format!("/tmp/perf-{pid}.map"), "1000 10 one\n").unwrap();
        let mut map = PerfMap::open(pid).unwrap();
        child.0.kill().unwrap();
        child.0.wait().unwrap();
        map.refresh().unwrap();
        assert_eq!(map.lookup(0x1000), Some("one"));
        assert!(matches!(PerfMap::open(pid), Err(PerfMapError::Process { .. })));
    }

    #[test]
    fn the_pid_inside_counts() {
        let status = "Name:\tnode\nPid:\t4711\nUid:\t1\t2\t3\t4\nNSpid:\t4711\t300\t17\n";
        assert_eq!(user_and_inner_pid(status), Some((2, 17)));
        assert_eq!(user_and_inner_pid("Pid:\t4711\nUid:\t0\t0\t0\t0\n"), Some((0, 4711)));
        assert_eq!(user_and_inner_pid("Pid:\t4711\nUid:\t0\n"), None);
    }

    proptest! {
        #[test]
        fn any_bytes_are_read(
            bytes in prop::collection::vec(any::<u8>(), 0..300),
            lines in "([0-9a-fx]{0,18} [0-9a-f]{0,6} ?[a-z\n]{0,4}\n){0,8}",
            address: u64,
        ) {
            for input in [&bytes[..], lines.as_bytes()] {
                let map = open_lines(input);
                let _ = map.lookup(address);
                if let Some((start, end, _)) = input.split(|byte| *byte == b'\n').find_map(parse) {
                    prop_assert!(start < end && end <= USER_END);
                }
            }
        }
    }
}
