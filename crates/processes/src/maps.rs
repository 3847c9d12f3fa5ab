//! /proc/PID/maps: `START-END PERM OFFSET MAJOR:MINOR INODE PATH`, a line for each mapping.
//!
//! The kernel escapes a newline in a path as `\012` and nothing else, not even the backslash; so a path in which
//! `\012` is written out cannot be told from one with a newline. A path is taken to have a newline: then it names a
//! file that does not exist, or one whose inode does not agree, and is not believed.

use std::fs::File;
use std::io::{self, Read};

use crate::range::normalize;
use crate::{FileIdentity, MappedRange, Proc};

/// How the reading of a process's mappings ended.
#[derive(Debug)]
pub enum MapsEnd {
    /// All were read.
    Complete,
    /// The process has no user memory: a kernel thread, a zombie, or one that is ending.
    NoMemory,
    /// There is no such process, or it ended meanwhile.
    Gone,
    /// Reading another user's mappings needs CAP_SYS_PTRACE.
    NotPermitted,
    /// There are more than the caller wanted.
    TooMany,
    /// Any other failure.
    Failed(io::Error),
}

/// Which mappings to read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Wanted {
    /// Executable ones.
    Executable,
    /// All.
    All,
}

/// `[vsyscall]` and above: memory of the kernel that /proc lists.
const KERNEL_HALF: u64 = 1 << 63;
/// Bytes of a line at most: a path of 4,096 bytes of which each could take four, and the numbers.
const LONGEST_LINE: usize = 4 * 4096 + 256;

/// Reads a process's mappings, at most `limit`, ascending. What was read before a failure is there too.
///
/// Each read is of one moment; mappings that change between two reads may be missing or stale.
pub fn read(proc: &Proc, pid: u32, wanted: Wanted, limit: usize) -> (Vec<MappedRange>, MapsEnd) {
    let (ranges, end) = match File::open(proc.path(pid, "maps")) {
        Ok(file) => read_lines(file, wanted, limit),
        Err(error) => (Vec::new(), end_of(error)),
    };
    // of a process that ends between two reads, the rest is silently missing
    let ended = matches!(end, MapsEnd::Complete) && proc.stat(pid).map_or(true, |stat| stat.is_exiting);
    (ranges, if ended { MapsEnd::Gone } else { end })
}

fn read_lines(mut file: impl Read, wanted: Wanted, limit: usize) -> (Vec<MappedRange>, MapsEnd) {
    let mut ranges = Vec::new();
    let mut buffer = vec![0; 64 * 1024];
    let mut filled = 0;
    let mut empty = true;
    loop {
        match file.read(&mut buffer[filled..]) {
            Ok(0) if empty => return (ranges, MapsEnd::NoMemory),
            Ok(0) => return (ranges, MapsEnd::Complete),
            Ok(count) => filled += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return (ranges, end_of(error)),
        }
        empty = false;
        let whole = buffer[..filled].iter().rposition(|byte| *byte == b'\n').map_or(0, |newline| newline + 1);
        for line in buffer[..whole].split(|byte| *byte == b'\n') {
            let Some(range) = parse_line(line).filter(|range| wanted.includes(range)) else { continue };
            if ranges.len() == limit {
                return (ranges, MapsEnd::TooMany);
            }
            ranges.push(range);
        }
        buffer.copy_within(whole..filled, 0);
        filled -= whole;
        if filled > LONGEST_LINE {
            return (ranges, MapsEnd::Failed(io::ErrorKind::InvalidData.into()));
        }
    }
}

fn end_of(error: io::Error) -> MapsEnd {
    match error.raw_os_error() {
        Some(libc::ENOENT | libc::ESRCH) => MapsEnd::Gone,
        Some(libc::EACCES | libc::EPERM) => MapsEnd::NotPermitted,
        _ => MapsEnd::Failed(error),
    }
}

impl Wanted {
    fn includes(self, range: &MappedRange) -> bool {
        range.start < KERNEL_HALF && (range.executable || self == Wanted::All)
    }
}

/// One line, without its newline; `None` if it is none.
pub fn parse_line(line: &[u8]) -> Option<MappedRange> {
    let mut rest = line;
    let start = hex(until(&mut rest, b'-')?)?;
    let end = hex(until(&mut rest, b' ')?)?;
    let permissions = until(&mut rest, b' ')?;
    let file_offset = hex(until(&mut rest, b' ')?)?;
    let major = u32::try_from(hex(until(&mut rest, b':')?)?).ok()?;
    let minor = u32::try_from(hex(until(&mut rest, b' ')?)?).ok()?;
    // the inode is the last field where there is no path
    let inode = until(&mut rest, b' ').unwrap_or_else(|| std::mem::take(&mut rest));
    let inode: u64 = std::str::from_utf8(inode).ok()?.parse().ok()?;
    let path = unescape(rest.trim_ascii_start());
    let identity = match inode {
        0 => FileIdentity::None,
        _ => FileIdentity::Inode { major, minor, inode, generation: 0 },
    };
    let (path, file_offset, identity) = normalize(&path, file_offset, identity);
    let executable = *permissions.get(2)? == b'x';
    let readable = *permissions.first()? == b'r';
    (start < end).then_some(MappedRange { start, end, file_offset, executable, readable, identity, path })
}

/// Takes what is before `separator`.
fn until<'a>(rest: &mut &'a [u8], separator: u8) -> Option<&'a [u8]> {
    let at = rest.iter().position(|byte| *byte == separator)?;
    let (taken, after) = rest.split_at(at);
    *rest = &after[1..];
    Some(taken)
}

fn hex(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() || digits.len() > 16 {
        return None;
    }
    digits.iter().try_fold(0u64, |number, digit| Some(number << 4 | u64::from(char::from(*digit).to_digit(16)?)))
}

fn unescape(path: &[u8]) -> Vec<u8> {
    let mut result = Vec::with_capacity(path.len());
    let mut rest = path;
    while let Some((first, after)) = rest.split_first() {
        match rest.strip_prefix(br"\012") {
            Some(after) => {
                result.push(b'\n');
                rest = after;
            }
            None => {
                result.push(*first);
                rest = after;
            }
        }
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::os::unix::ffi::OsStrExt;

    const LINE: &[u8] = b"7f5a1000-7f5a3000 r-xp 00026000 fe:01 326269                     /usr/lib/libc.so.6";

    fn line_of(name: &[u8]) -> Vec<u8> {
        [b"1000-2000 r-xp 00001000 08:01 77                             ", name].concat()
    }

    fn path_of(name: &[u8]) -> Option<Vec<u8>> {
        parse_line(&line_of(name)).map(|range| range.path.as_bytes().to_vec())
    }

    #[test]
    fn fields() {
        let range = parse_line(LINE);
        let expected = MappedRange {
            start: 0x7f5a_1000,
            end: 0x7f5a_3000,
            file_offset: 0x26000,
            executable: true,
            readable: true,
            identity: FileIdentity::Inode { major: 0xfe, minor: 1, inode: 326_269, generation: 0 },
            path: std::sync::Arc::from(std::ffi::OsStr::new("/usr/lib/libc.so.6")),
        };
        assert_eq!(range, Some(expected));
    }

    #[test]
    fn names() {
        assert_eq!(path_of(b"/a b  c "), Some(b"/a b  c ".to_vec()));
        assert_eq!(path_of(b"/a\\012b"), Some(b"/a\nb".to_vec()));
        assert_eq!(path_of(b"/a\\013"), Some(b"/a\\013".to_vec()));
        assert_eq!(path_of(b"/\xff\xfe"), Some(b"/\xff\xfe".to_vec()));
        let deleted = parse_line(&line_of(b"/x (deleted) (deleted)"));
        assert_eq!(deleted.map(|range| range.file_path().to_owned()), Some("/x (deleted)".into()));
        let anonymous = parse_line(b"1000-2000 rwxp 00000000 00:00 0 ");
        assert_eq!(anonymous.map(|range| (range.identity, range.path.len())), Some((FileIdentity::None, 0)));
    }

    /// Hands out at most a few bytes at a time.
    struct Slowly<'a>(&'a [u8], usize);

    impl Read for Slowly<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let count = self.0.len().min(self.1).min(buffer.len());
            buffer[..count].copy_from_slice(&self.0[..count]);
            self.0 = &self.0[count..];
            Ok(count)
        }
    }

    #[test]
    fn ends() {
        let text = [LINE, b"\n", &line_of(b"/x"), b"\n"].concat();
        for step in [1, 7, 100, 100_000] {
            let (ranges, end) = read_lines(Slowly(&text, step), Wanted::Executable, 10);
            assert!(matches!(end, MapsEnd::Complete) && ranges.len() == 2);
        }
        let (ranges, end) = read_lines(&text[..], Wanted::Executable, 1);
        assert!(matches!(end, MapsEnd::TooMany) && ranges.len() == 1);
        assert!(matches!(read_lines(&b""[..], Wanted::All, 1).1, MapsEnd::NoMemory));
        assert!(matches!(read_lines(&[b'x'; 100_000][..], Wanted::All, 1).1, MapsEnd::Failed(_)));
        assert!(matches!(read(&Proc::system(), 1 << 30, Wanted::All, 1).1, MapsEnd::Gone));
    }

    proptest! {
        #[test]
        fn any_bytes(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = parse_line(&bytes);
            let _ = read_lines(&bytes[..], Wanted::All, 10);
        }

        #[test]
        fn one_byte_changed(at in 0..LINE.len(), byte: u8) {
            let mut line = LINE.to_vec();
            line[at] = byte;
            if let Some(range) = parse_line(&line) {
                prop_assert!(range.start < range.end);
            }
        }

        /// What the kernel escapes comes back, whatever else is in the name.
        #[test]
        fn any_name(name in prop::collection::vec(1..=255u8, 0..50)) {
            let name = [b"/", &name[..]].concat();
            prop_assume!(!name.windows(4).any(|part| part == br"\012"));
            let escaped: Vec<u8> = name.iter().flat_map(|byte| match byte {
                b'\n' => br"\012".to_vec(),
                byte => vec![*byte],
            }).collect();
            prop_assume!(!name.starts_with(b"/SYSV") && !name.starts_with(b"/dev/zero"));
            prop_assert_eq!(path_of(&escaped), Some(name));
        }
    }
}
