//! Pid namespaces and owners.

use std::io;
use std::os::unix::fs::MetadataExt;

use crate::Proc;

/// Inode number of the initial pid namespace (`PROC_PID_INIT_INO` in `include/linux/proc_ns.h`).
const INITIAL_PID_NAMESPACE: u64 = 0xefff_fffc;
/// /proc/PID/status is about 1.5 KB; groups make it longer.
const STATUS: usize = 256 * 1024;

/// Whether this process is in the initial pid namespace, where ids are those that the kernel itself uses.
///
/// # Errors
/// If /proc is not mounted.
pub fn in_initial_pid_namespace() -> io::Result<bool> {
    let path = Proc::system().root().join("self/ns/pid");
    Ok(std::fs::metadata(path)?.ino() == INITIAL_PID_NAMESPACE)
}

/// The ids that a process has, from the namespace in which /proc was mounted to the process's own.
///
/// # Errors
/// If there is no such process.
pub fn namespace_pids(proc: &Proc, pid: u32) -> io::Result<Vec<u32>> {
    status_field(proc, pid, "NSpid")
}

/// The real user id of a process, as seen from our user namespace.
///
/// # Errors
/// If there is no such process.
pub fn owner(proc: &Proc, pid: u32) -> io::Result<u32> {
    status_field(proc, pid, "Uid")?.first().copied().ok_or_else(|| io::ErrorKind::InvalidData.into())
}

/// The process that a thread belongs to; a process belongs to itself.
///
/// # Errors
/// If there is no such thread.
pub fn thread_group(proc: &Proc, tid: u32) -> io::Result<u32> {
    status_field(proc, tid, "Tgid")?.first().copied().ok_or_else(|| io::ErrorKind::InvalidData.into())
}

/// Who traces a thread: a debugger. `Some(0)` never: the kernel writes 0 for nobody and for a tracer that cannot be seen
/// from here alike.
///
/// # Errors
/// If there is no such thread.
pub fn tracer(proc: &Proc, tid: u32) -> io::Result<Option<u32>> {
    Ok(status_field(proc, tid, "TracerPid")?.first().copied().filter(|tracer| *tracer != 0))
}

/// The numbers of a line of /proc/PID/status. Names in it are escaped, so a line is a line.
fn status_field(proc: &Proc, pid: u32, name: &str) -> io::Result<Vec<u32>> {
    let bytes = proc.read(pid, "status", STATUS)?;
    parse_status_field(&bytes, name).ok_or_else(|| io::ErrorKind::InvalidData.into())
}

fn parse_status_field(status: &[u8], name: &str) -> Option<Vec<u32>> {
    let lines = status.split(|byte| *byte == b'\n');
    let mut values = lines.filter_map(|line| line.strip_prefix(name.as_bytes())?.strip_prefix(b":"));
    let value = std::str::from_utf8(values.next()?).ok()?;
    value.split_ascii_whitespace().map(|number| number.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn fields() {
        let status = b"Name:\tNSpid:\\n\nUid:\t1000\t0\t0\t0\nNSpid:\t4711\t7\nNSpidx:\t9\n";
        assert_eq!(parse_status_field(status, "NSpid"), Some(vec![4711, 7]));
        assert_eq!(parse_status_field(status, "Uid"), Some(vec![1000, 0, 0, 0]));
        assert_eq!(parse_status_field(status, "Gid"), None);
    }

    proptest! {
        #[test]
        fn any_bytes(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = parse_status_field(&bytes, "Uid");
        }
    }
}
