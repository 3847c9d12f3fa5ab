//! Finding the separate debug file of a stripped executable, as gdb does: by build-id, then by `.gnu_debuglink`.

use std::fs::File;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use crate::contents::Input;
use crate::layout::Layout;
use crate::root::Root;
use crate::{ObjectFile, Reason};

/// The largest debug file of which a checksum is taken, in bytes.
const MAX_CHECKSUM: u64 = 8 << 30;
/// The most that is read of a section that links to another file, in bytes.
const MAX_LINK: u64 = 8 << 10;

/// A debug file.
pub(crate) struct DebugFile {
    pub(crate) file: File,
    pub(crate) layout: Layout,
}

/// Where to look: the roots (that of the process first) and the directories below each.
pub(crate) struct Places<'a> {
    roots: Vec<Root>,
    directories: &'a [PathBuf],
}

impl Places<'_> {
    /// The places for an executable.
    pub(crate) fn of<'a>(object: &ObjectFile, directories: &'a [PathBuf]) -> Places<'a> {
        let roots = object.root.as_deref().into_iter().chain([Path::new("/")]);
        Places { roots: roots.filter_map(|root| Root::open(root).ok()).collect(), directories }
    }

    /// The first file at a place that `accept` takes. What it refuses with a reason is noted.
    fn first<T>(&self, path: &Path, accept: &mut impl FnMut(File, &Path) -> Option<T>) -> Option<T> {
        self.roots.iter().find_map(|root| accept(root.open_regular(path).ok()?, path))
    }

    /// The file of a build-id; it must have that build-id itself.
    fn by_build_id(&self, id: &[u8], reasons: &mut Vec<Reason>) -> Option<DebugFile> {
        let (first, rest) = id.split_first()?;
        let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        let name = format!(".build-id/{first:02x}/{}.debug", hex(rest));
        self.directories.iter().find_map(|directory| {
            self.first(&directory.join(&name), &mut |file, path| {
                let found = read(file)?;
                if found.layout.build_id(&Input::File(&found.file)).as_deref() == Some(id) {
                    return Some(found);
                }
                reasons.push(Reason::OtherBuild(path.to_owned()));
                None
            })
        })
    }

    /// The file of a debug link: beside the executable, in `.debug` there, or below a directory of debug files.
    fn by_link(&self, executable: &Path, link: &Link, reasons: &mut Vec<Reason>) -> Option<DebugFile> {
        let beside = executable.parent()?;
        let inside = beside.strip_prefix("/").unwrap_or(beside);
        let mut places = vec![beside.join(&link.name), beside.join(".debug").join(&link.name)];
        places.extend(self.directories.iter().map(|directory| directory.join(inside).join(&link.name)));
        places.iter().filter(|place| *place != executable).find_map(|place| {
            self.first(place, &mut |file, path| {
                if checksum(&file)? == link.checksum {
                    return read(file);
                }
                reasons.push(Reason::OtherBuild(path.to_owned()));
                None
            })
        })
    }

    /// The debug file of an executable.
    pub(crate) fn debug_file(
        &self,
        object: &ObjectFile,
        layout: &Layout,
        reasons: &mut Vec<Reason>,
    ) -> Option<DebugFile> {
        let input = Input::File(&object.file);
        let by_id = layout.build_id(&input).and_then(|id| self.by_build_id(&id, reasons));
        by_id.or_else(|| self.by_link(&object.path, &Link::read(&input, layout)?, reasons))
    }

    /// The file that dwz made of what several debug files have in common (`.gnu_debugaltlink`).
    pub(crate) fn common_file(
        &self,
        input: &Input<'_>,
        layout: &Layout,
        reasons: &mut Vec<Reason>,
    ) -> Option<DebugFile> {
        let section = layout.section(".gnu_debugaltlink")?;
        let bytes = input.section(layout, section, MAX_LINK).ok()?;
        let end = bytes.iter().position(|byte| *byte == 0)?;
        let (path, id) = (Path::new(std::ffi::OsStr::from_bytes(&bytes[..end])), &bytes[end + 1..]);
        let same_build = &mut |file, _: &Path| {
            let found = read(file)?;
            (found.layout.build_id(&Input::File(&found.file)).as_deref() == Some(id)).then_some(found)
        };
        let by_path = || path.is_absolute().then(|| self.first(path, same_build)).flatten();
        let found = self.by_build_id(id, reasons).or_else(by_path);
        if found.is_none() {
            reasons.push(Reason::BadDebugInfo(format!("{} not found", path.display())));
        }
        found
    }
}

/// A `.gnu_debuglink`.
struct Link {
    name: PathBuf,
    checksum: u32,
}

impl Link {
    fn read(input: &Input<'_>, layout: &Layout) -> Option<Link> {
        let section = layout.section(".gnu_debuglink")?;
        Link::parse(&input.section(layout, section, MAX_LINK).ok()?)
    }

    /// A file name, zero, padding to four bytes, and the CRC-32 of the file.
    fn parse(bytes: &[u8]) -> Option<Link> {
        let end = bytes.iter().position(|byte| *byte == 0)?;
        let at = (end + 1).checked_next_multiple_of(4)?;
        let checksum = u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?);
        let name = Path::new(std::ffi::OsStr::from_bytes(&bytes[..end]));
        // a name, not a path
        (name.file_name()? == name.as_os_str()).then(|| Link { name: name.to_owned(), checksum })
    }
}

fn read(file: File) -> Option<DebugFile> {
    let layout = Layout::read(&Input::File(&file)).ok()?;
    Some(DebugFile { file, layout })
}

/// CRC-32 of a file.
fn checksum(file: &File) -> Option<u32> {
    if file.metadata().ok()?.len() > MAX_CHECKSUM {
        return None;
    }
    let (mut hasher, mut buffer, mut at) = (crc32fast::Hasher::new(), vec![0; 1 << 20], 0);
    while at <= MAX_CHECKSUM {
        match file.read_at(&mut buffer, at).ok()? {
            0 => return Some(hasher.finalize()),
            size => {
                hasher.update(&buffer[..size]);
                at += size as u64;
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn links_are_names() {
        let link = Link::parse(b"a.debug\0\x01\x02\x03\x04").unwrap();
        assert_eq!((link.name.to_str(), link.checksum), (Some("a.debug"), 0x0403_0201));
        assert_eq!(Link::parse(b"ab.debug\0\0\0\0\x01\x02\x03\x04").unwrap().checksum, 0x0403_0201);
        for bad in ["../a\0\0\0\0abcd", "/a\0\0abcd", "..\0\0abcd", "\0\0\0\0abcd", "abc\0ab", "abc"] {
            assert!(Link::parse(bad.as_bytes()).is_none(), "{bad:?}");
        }
    }

    proptest! {
        #[test]
        fn any_link_parses_or_not(bytes in prop::collection::vec(any::<u8>(), 0..40)) {
            let _ = Link::parse(&bytes);
        }
    }
}
