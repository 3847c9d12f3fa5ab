//! What a table on disk is for.

use std::fs::File;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::time::{SystemTime, UNIX_EPOCH};

use crate::architecture::Architecture;
use crate::image::Image;

/// A file whose change time is less than this long ago may be written again without another change time, in seconds:
/// clocks of file systems go in steps, and what is written through a shared mapping changes the time only when the page
/// was clean before, which it is again after 30 s (`vm.dirty_expire_centisecs`).
const SETTLED: i64 = 60;

/// What a table is for: only a file with the same identity, size and architecture.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct CacheKey {
    pub(super) identity: Identity,
    pub(super) file_size: u64,
    pub(super) architecture: Architecture,
}

/// How a file is known again.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) enum Identity {
    /// Its linker gave it a name.
    BuildId(Vec<u8>),
    /// It is in the same place and was not changed.
    Place(Place),
}

/// A state of a file on this machine. Times are in seconds and nanoseconds.
///
/// Every write, truncation, and change of owner, mode, name or modification time sets the change time to the present,
/// and no system call sets it to anything else. So the contents of a file can only differ under the same change time if
/// the clock was set back or the device below the file system was written, which takes root; through a mapping that was
/// dirty before ([`SETTLED`]); or if another file system came under the same number, with a time that its maker chose.
/// Those are told by the number that is made of their UUID, and the ones that are images and nothing else (squashfs,
/// ISO 9660) by whole seconds and by not being writable.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct Place {
    /// `f_fsid` of statvfs(3).
    file_system: u64,
    device: u64,
    inode: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl CacheKey {
    /// The key of an image by its build-id; `None` for one without.
    pub fn of(image: &Image) -> Option<CacheKey> {
        Some(CacheKey::new(Identity::BuildId(image.build_id()?), image))
    }

    /// The key of an image of this file: by its build-id or else by the file's place and times; `None` for a file that
    /// has no build-id and cannot be told from what is written to it later. Both can be trusted as far as those who
    /// can write the file. Take it before the table is made, and again before the table is kept.
    pub fn of_file(image: &Image, file: &File) -> Option<CacheKey> {
        CacheKey::of(image).or_else(|| CacheKey::of_place(image, file, SystemTime::now()))
    }

    pub(super) fn of_place(image: &Image, file: &File, now: SystemTime) -> Option<CacheKey> {
        let place = Place::of(file).ok()?;
        let now = i64::try_from(now.duration_since(UNIX_EPOCH).ok()?.as_secs()).ok()?;
        (place.is_settled(now) && !place.is_of_image(file)).then(|| CacheKey::new(Identity::Place(place), image))
    }

    fn new(identity: Identity, image: &Image) -> CacheKey {
        CacheKey { identity, file_size: image.size(), architecture: image.architecture() }
    }

    /// Name of the file that holds the table, without its extension.
    pub(super) fn file_name(&self) -> String {
        let hex: String = self.identity.bytes().iter().map(|byte| format!("{byte:02x}")).collect();
        let place = if self.identity.kind() == 0 { "" } else { "place-" };
        format!("{place}{hex}-{:x}-{}", self.file_size, self.architecture)
    }
}

impl Place {
    fn of(file: &File) -> io::Result<Place> {
        let data = file.metadata()?;
        Ok(Place {
            file_system: file_system(file)?.f_fsid,
            device: data.dev(),
            inode: data.ino(),
            modified: (data.mtime(), data.mtime_nsec()),
            changed: (data.ctime(), data.ctime_nsec()),
        })
    }

    /// Whether what is written from now on will have another change time.
    fn is_settled(&self, now: i64) -> bool {
        now.checked_sub(self.changed.0).is_some_and(|age| age > SETTLED)
    }

    /// Whether the change time may have been chosen, and the file system be replaced by another one with the same.
    fn is_of_image(&self, file: &File) -> bool {
        self.changed.1 == 0 && file_system(file).map_or(true, |data| data.f_flag & libc::ST_RDONLY != 0)
    }
}

fn file_system(file: &File) -> io::Result<libc::statvfs> {
    let mut data = MaybeUninit::uninit();
    // SAFETY: the descriptor is open, and the place is one for what is written there.
    let result = unsafe { libc::fstatvfs(file.as_raw_fd(), data.as_mut_ptr()) };
    if result != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the call has succeeded, and so has written it.
    Ok(unsafe { data.assume_init() })
}

impl Identity {
    /// A number for each way.
    pub(super) fn kind(&self) -> u16 {
        match self {
            Identity::BuildId(_) => 0,
            Identity::Place(_) => 1,
        }
    }

    /// Bytes that differ where two identities of a kind do, at most [`MAX_BUILD_ID`](crate::limits::MAX_BUILD_ID).
    pub(super) fn bytes(&self) -> Vec<u8> {
        match self {
            Identity::BuildId(id) => id.clone(),
            Identity::Place(Place { file_system, device, inode, modified, changed }) => {
                let times = [modified.0, modified.1, changed.0, changed.1];
                let words = [*file_system, *device, *inode].into_iter().chain(times.map(i64::cast_unsigned));
                words.flat_map(u64::to_le_bytes).collect()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLACE: Place = Place { file_system: 7, device: 1, inode: 2, modified: (3, 4), changed: (1000, 6) };

    #[test]
    fn only_settled_files_have_a_key() {
        assert!(!PLACE.is_settled(1000 + SETTLED));
        assert!(PLACE.is_settled(1001 + SETTLED));
        assert!(!PLACE.is_settled(0) && !PLACE.is_settled(i64::MIN), "the clock was set back");
    }

    #[test]
    fn each_field_counts() {
        let others = [
            Place { file_system: 9, ..PLACE },
            Place { device: 9, ..PLACE },
            Place { inode: 9, ..PLACE },
            Place { modified: (9, 4), ..PLACE },
            Place { modified: (3, 9), ..PLACE },
            Place { changed: (9, 6), ..PLACE },
            Place { changed: (1000, 9), ..PLACE },
        ];
        let bytes = |place| Identity::Place(place).bytes();
        assert!(others.into_iter().all(|other| bytes(other) != bytes(PLACE)));
        assert!(bytes(PLACE).len() <= crate::limits::MAX_BUILD_ID);
    }
}
