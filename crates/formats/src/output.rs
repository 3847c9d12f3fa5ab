//! Where a profile goes: a file that is whole or not there at all, or standard output.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, BufWriter, IsTerminal, Write};
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, fchown};
use std::path::{Path, PathBuf};

use profile::Profile;

use crate::unfinished::Unfinished;
use crate::{Error, Format};

/// Mode bit of directories in which only owners may rename and remove.
const STICKY: u32 = 0o1000;

/// A file that a profile will be written to, or `-` for standard output.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Output {
    path: PathBuf,
    format: Format,
}

impl Output {
    /// The output at `path`, in the format that its name says; `-` gets folded stacks.
    ///
    /// Fails where [`Output::with_format`] and [`Format::of_path`] do.
    pub fn create(path: &Path) -> Result<Output, Error> {
        let format = if is_stdout(path) { Format::Folded } else { Format::of_path(path)? };
        Output::with_format(path, format)
    }

    /// The output at `path` in a given format.
    ///
    /// Meant to be called before a recording starts, so that it fails now if it would fail then: where the
    /// directory is not there or not writable, where something stands at `path` that is not a file, or where binary
    /// data would go to a terminal. Nothing is left behind; what is at `path` stays until [`Output::finish`].
    pub fn with_format(path: &Path, format: Format) -> Result<Output, Error> {
        let output = Output { path: path.to_owned(), format };
        if is_stdout(path) {
            if format == Format::Pprof && io::stdout().is_terminal() {
                return Err(output.unsuitable("a pprof profile is binary and does not go to a terminal"));
            }
            return Ok(output);
        }
        output.check_target()?;
        drop(output.temporary()?);
        Ok(output)
    }

    /// Where it goes.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// In which format.
    pub fn format(&self) -> Format {
        self.format
    }

    /// Writes the profile, to a file without a name in the same directory that then takes the place of what is at the
    /// path. On any error that stays as it was and nothing else is left. A symbolic link is replaced, not followed.
    ///
    /// Under sudo the file is given to the user who called it, as far as that succeeds.
    pub fn finish(&self, profile: &Profile) -> Result<(), Error> {
        if is_stdout(&self.path) {
            return self.write(profile, io::stdout().lock()).map_err(|error| self.named(error));
        }
        self.check_target()?;
        let temporary = self.temporary()?;
        self.write(profile, temporary.file()).map_err(|error| self.named(error))?;
        hand_to_caller(temporary.file());
        temporary.file().sync_all().map_err(|source| self.failed("write", source))?;
        temporary.persist(&self.path).map_err(|source| self.failed("put the file in its place", source))
    }

    fn write(&self, profile: &Profile, out: impl Write) -> Result<(), Error> {
        let mut out = BufWriter::with_capacity(256 * 1024, out);
        self.format.write(profile, &mut out)?;
        Ok(out.flush()?)
    }

    /// Errors that only `finish` would run into are found by looking at what is at the path.
    fn check_target(&self) -> Result<(), Error> {
        let there = match fs::symlink_metadata(&self.path) {
            Ok(there) => there,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(source) => return Err(self.failed("look at the file", source)),
        };
        let kind = there.file_type();
        if kind.is_dir() {
            return Err(self.unsuitable("is a directory"));
        }
        if kind.is_fifo() || kind.is_socket() || kind.is_char_device() || kind.is_block_device() {
            return Err(self.unsuitable("is not an ordinary file"));
        }
        Ok(())
    }

    fn temporary(&self) -> Result<Unfinished, Error> {
        let temporary = Unfinished::new(self.directory())
            .map_err(|source| self.failed("create a file in the directory", source))?;
        self.check_sticky(temporary.file())?;
        Ok(temporary)
    }

    fn directory(&self) -> &Path {
        self.path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
    }

    /// In a directory such as /tmp one may create files but not replace those of others.
    fn check_sticky(&self, mine: &File) -> Result<(), Error> {
        let (Ok(mine), Ok(directory), Ok(there)) =
            (mine.metadata(), fs::metadata(self.directory()), fs::symlink_metadata(&self.path))
        else {
            return Ok(());
        };
        if may_replace(mine.uid(), directory.uid(), directory.mode(), there.uid()) {
            return Ok(());
        }
        Err(self.unsuitable("is someone else's file in a directory where only owners replace files"))
    }

    fn unsuitable(&self, what: &'static str) -> Error {
        Error::Unsuitable { path: self.path.clone(), what }
    }

    fn failed(&self, step: &'static str, source: io::Error) -> Error {
        Error::File { path: self.path.clone(), step, source }
    }

    /// A writer's error with the name of the file.
    fn named(&self, error: Error) -> Error {
        match error {
            Error::Io(source) => self.failed("write", source),
            other => other,
        }
    }
}

/// Whether user `me`, who may write the directory, may replace the file of user `file` in it.
fn may_replace(me: u32, directory: u32, directory_mode: u32, file: u32) -> bool {
    directory_mode & STICKY == 0 || [0, directory, file].contains(&me)
}

fn is_stdout(path: &Path) -> bool {
    path == Path::new("-")
}

/// Gives a file that root made to whoever called sudo. A file of root's is as good as none to that user, but the
/// profile is written: so this is not worth an error.
fn hand_to_caller(file: &File) {
    let made_by_root = file.metadata().is_ok_and(|file| file.uid() == 0);
    let caller = (std::env::var_os("SUDO_UID"), std::env::var_os("SUDO_GID"));
    if let (true, (Some(uid), Some(gid))) = (made_by_root, caller)
        && let (Some(uid), Some(gid)) = (number(&uid), number(&gid))
    {
        let _ = fchown(file, Some(uid), Some(gid));
    }
}

fn number(text: &OsStr) -> Option<u32> {
    text.to_str()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// unlink(2), EPERM: "The directory has the sticky bit set and the process's effective UID is neither the UID of
    /// the file to be deleted nor that of the directory containing it".
    #[test]
    fn in_a_sticky_directory_only_owners_replace() {
        for (me, may) in [(0, true), (1, true), (2, true), (3, false)] {
            assert_eq!(may_replace(me, 1, 0o1777, 2), may, "{me}");
            assert!(may_replace(me, 1, 0o777, 2), "{me}");
        }
    }
}
