//! What is known about this process and the machine before anything is tried.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Inode number of the initial user namespace (`PROC_USER_INIT_INO` in `include/linux/proc_ns.h`).
const INITIAL_USER_NAMESPACE: u64 = 0xefff_fffd;

/// What is known about this process and the machine.
#[derive(Clone, Debug)]
pub(super) struct Facts {
    /// As uname has it.
    pub(super) release: String,
    /// As uname has it.
    pub(super) machine: String,
    /// Effective user.
    pub(super) uid: u32,
    /// /proc/self/status.
    pub(super) status: Status,
    /// In the initial user namespace; `None` if /proc does not say.
    pub(super) initial_user_namespace: Option<bool>,
    /// In the initial pid namespace; `None` if /proc does not say.
    pub(super) initial_pid_namespace: Option<bool>,
    /// The file system is one that a container engine made.
    pub(super) container_image: bool,
    /// Where this program lies.
    pub(super) program: PathBuf,
    /// Its file system is mounted `nosuid`, which makes file capabilities void.
    pub(super) program_nosuid: bool,
    /// Lines of /proc/self/mountinfo.
    pub(super) mounts: Vec<Mount>,
}

/// What /proc/self/status says.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Status {
    /// Effective capabilities; `None` if it could not be read.
    pub(super) effective: Option<u64>,
    /// Capabilities that this process and what it starts can have at most.
    pub(super) bounding: Option<u64>,
    /// No program that this process starts gains rights.
    pub(super) no_new_privileges: bool,
    /// 0: none, 1: strict, 2: filter. `None` on a kernel without seccomp.
    pub(super) seccomp: Option<u32>,
}

/// A mount.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Mount {
    /// Where.
    pub(super) place: PathBuf,
    /// Type of the file system.
    pub(super) kind: String,
    /// Options of the file system and of this mount.
    pub(super) options: String,
}

impl Facts {
    pub(super) fn gather() -> Facts {
        let system = rustix::system::uname();
        let program = std::env::current_exe().unwrap_or_else(|_| PathBuf::from("wholestack"));
        let flags = rustix::fs::statvfs(&program).map(|statistics| statistics.f_flag);
        let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
        Facts {
            release: system.release().to_string_lossy().into_owned(),
            machine: system.machine().to_string_lossy().into_owned(),
            uid: rustix::process::geteuid().as_raw(),
            status: Status::parse(&std::fs::read_to_string("/proc/self/status").unwrap_or_default()),
            initial_user_namespace: initial_user_namespace(),
            initial_pid_namespace: recorder::in_initial_pid_namespace().ok(),
            container_image: ["/.dockerenv", "/run/.containerenv"].iter().any(|file| Path::new(file).exists()),
            program,
            program_nosuid: flags.is_ok_and(|flags| flags.contains(rustix::fs::StatVfsMountFlags::NOSUID)),
            mounts: mounts.lines().filter_map(Mount::parse).collect(),
        }
    }

    /// Whether the kernel counts this process's capabilities: those of another user namespace are worth nothing here.
    pub(super) fn capabilities_count(&self) -> bool {
        self.initial_user_namespace != Some(false)
    }

    /// Major and minor number of the kernel.
    pub(super) fn version(&self) -> Option<(u32, u32)> {
        let mut numbers = self.release.split(|c: char| !c.is_ascii_digit());
        Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
    }
}

fn initial_user_namespace() -> Option<bool> {
    std::fs::metadata("/proc/self/ns/user").ok().map(|found| found.ino() == INITIAL_USER_NAMESPACE)
}

impl Status {
    fn parse(text: &str) -> Status {
        let field =
            |name: &str| text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).map(str::trim);
        let set = |name: &str| field(name).and_then(|value| u64::from_str_radix(value, 16).ok());
        Status {
            effective: set("CapEff"),
            bounding: set("CapBnd"),
            no_new_privileges: field("NoNewPrivs") == Some("1"),
            seccomp: field("Seccomp").and_then(|value| value.parse().ok()),
        }
    }
}

impl Mount {
    /// `ID PARENT DEVICE ROOT PLACE OPTIONS [TAG...] - TYPE SOURCE OPTIONS` (proc_pid_mountinfo(5)).
    fn parse(line: &str) -> Option<Mount> {
        let (mount, file_system) = line.split_once(" - ")?;
        let mount: Vec<&str> = mount.split(' ').collect();
        let (kind, rest) = file_system.split_once(' ')?;
        let options = rest.rsplit(' ').next().unwrap_or_default();
        Some(Mount {
            place: PathBuf::from(mount.get(4)?),
            kind: kind.to_owned(),
            options: format!("{},{options}", mount.get(5)?),
        })
    }
}

/// A setting of the kernel, a number. `None` if it cannot be read.
pub(super) fn setting(path: &str) -> Option<i64> {
    std::fs::read_to_string(path).ok()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn status() {
        let text =
            "Name:\tCapEff: 1\nCapEff:\t000001fffeffffff\nCapBnd:\t0000000000000000\nNoNewPrivs:\t1\nSeccomp:\t2\n";
        let expected =
            Status { effective: Some(0x1ff_feff_ffff), bounding: Some(0), no_new_privileges: true, seccomp: Some(2) };
        assert_eq!(Status::parse(text), expected);
        assert_eq!(Status::parse(""), Status::default());
    }

    #[test]
    fn mounts() {
        let line = "36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - ext3 /dev/root rw,errors=continue";
        let mount = Mount::parse(line).expect("a mount");
        assert_eq!((mount.place.to_str(), mount.kind.as_str()), (Some("/mnt2"), "ext3"));
        assert_eq!(mount.options, "rw,noatime,rw,errors=continue");
        assert!(Mount::parse("1 2 3").is_none() && Mount::parse(" - ").is_none());
    }

    #[test]
    fn of_this_process() {
        let facts = Facts::gather();
        assert!(facts.version().is_some_and(|version| version > (3, 0)), "{}", facts.release);
        assert!(facts.mounts.iter().any(|mount| mount.kind == "proc"));
        assert!(facts.status.effective.is_some() && facts.program.is_absolute());
    }
}
