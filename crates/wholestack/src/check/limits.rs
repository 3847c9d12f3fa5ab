//! Limits and places.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::{Access, access};
use rustix::process::{Resource, Rlimit, getrlimit};

use crate::check::facts::Facts;
use crate::check::item::Item;

/// Open files beside those for each CPU: executables of a whole machine.
const FILES: u64 = 1024;
/// Files for each CPU: process events, sampling event, link of the sampler.
const FILES_PER_CPU: u64 = 3;

pub(super) fn items(facts: &Facts) -> Vec<Item> {
    vec![open_files(), locked_memory(), page_size(), cache(facts), tracefs(facts)]
}

fn open_files() -> Item {
    const NAME: &str = "open files";
    let limit = getrlimit(Resource::Nofile);
    let cpus = std::thread::available_parallelism().map_or(1, |count| count.get() as u64);
    let wanted = FILES + FILES_PER_CPU * cpus;
    let found = format!("limit {}, at most {}", shown(limit.current), shown(limit.maximum));
    match limit {
        Rlimit { maximum: Some(most), .. } if most < wanted => Item::limited(
            NAME,
            found,
            format!("one file is kept open for each executable that runs, and some for each CPU: with {most} some programs may stay without names"),
        )
        .remedy("ulimit -Hn 65536 (as root), or LimitNOFILE=65536 in a systemd service, or docker run --ulimit nofile=65536"),
        _ => Item::ok(NAME, found, "enough; wholestack raises its own limit as far as it may"),
    }
}

fn locked_memory() -> Item {
    let limit = getrlimit(Resource::Memlock);
    let bytes =
        |limit: Option<u64>| limit.map_or_else(|| "unlimited".to_owned(), |bytes| format!("{} KB", bytes / 1024));
    Item::ok(
        "locked memory",
        format!("limit {}, at most {}", bytes(limit.current), bytes(limit.maximum)),
        "need not be raised: since Linux 5.11 BPF maps do not count, and perf buffers have an allowance of their own",
    )
}

fn shown(limit: Option<u64>) -> String {
    limit.map_or_else(|| "unlimited".to_owned(), |limit| limit.to_string())
}

fn page_size() -> Item {
    Item::ok("page size", format!("{} bytes", rustix::param::page_size()), "any will do")
}

fn cache(facts: &Facts) -> Item {
    const NAME: &str = "cache";
    let Some(directory) = recorder::cache_directory() else {
        return Item::limited(
            NAME,
            "no home directory",
            "unwind tables are made anew at each start, which takes longer",
        )
        .remedy("set XDG_CACHE_HOME to a directory of your own");
    };
    let found = directory.display().to_string();
    match obstacle(&directory, facts.uid) {
        None => Item::ok(NAME, found, "unwind tables are kept there from one recording to the next"),
        Some(obstacle) => Item::limited(
            NAME,
            format!("{found}: {obstacle}"),
            "unwind tables are made anew at each start, which takes longer",
        )
        .remedy(match facts.uid {
            0 => format!("sudo install -d -m 700 -o root {found}"),
            _ => "set XDG_CACHE_HOME to a directory of your own".to_owned(),
        }),
    }
}

/// What keeps the directory from being used or made.
fn obstacle(directory: &Path, uid: u32) -> Option<String> {
    match std::fs::symlink_metadata(directory) {
        Ok(there) if !there.is_dir() => Some("is not a directory".to_owned()),
        Ok(there) if there.uid() != uid => Some(format!("belongs to user {}", there.uid())),
        Ok(there) if there.mode() & 0o022 != 0 => Some("others may write to it".to_owned()),
        Ok(_) => access(directory, Access::WRITE_OK | Access::EXEC_OK).err().map(|error| error.to_string()),
        Err(_) => {
            let above: Option<PathBuf> = directory.ancestors().skip(1).find(|above| above.exists()).map(Path::to_owned);
            let above = above?;
            let error = access(&above, Access::WRITE_OK | Access::EXEC_OK).err()?;
            Some(format!("cannot be made in {}: {error}", above.display()))
        }
    }
}

fn tracefs(facts: &Facts) -> Item {
    let place =
        facts.mounts.iter().find(|mount| mount.kind == "tracefs").map(|mount| mount.place.display().to_string());
    Item::ok(
        "tracefs",
        place.unwrap_or_else(|| "not mounted".to_owned()),
        "not needed: wholestack uses raw tracepoints",
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn obstacles() {
        let directory = tempfile::tempdir().expect("a directory");
        let uid = rustix::process::geteuid().as_raw();
        let path = directory.path();
        assert_eq!(obstacle(path, uid), None);
        assert_eq!(obstacle(&path.join("not/there/yet"), uid), None);
        assert!(obstacle(path, uid + 1).is_some_and(|text| text.contains("belongs to user")));
        std::fs::set_permissions(path, PermissionsExt::from_mode(0o777)).expect("mode");
        assert!(obstacle(path, uid).is_some_and(|text| text.contains("others may write")));
        std::fs::write(path.join("file"), "").expect("a file");
        assert!(obstacle(&path.join("file"), uid).is_some_and(|text| text.contains("not a directory")));
        assert!(obstacle(&path.join("file/below"), uid).is_some(), "nothing can be made below a file");
    }
}
