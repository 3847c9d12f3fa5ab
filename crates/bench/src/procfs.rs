//! What /proc says of a process and of the machine.

use std::fs;
use std::os::fd::{AsRawFd, RawFd};
use std::time::Duration;

use anyhow::{Context, Result};
use rustix::time::{ClockId, clock_gettime};

/// Memory of a process in KiB, from `/proc/PID/status`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Memory {
    /// The most that was resident until now.
    pub peak: u64,
    /// Resident now.
    pub resident: u64,
    /// Of that: heap, stacks, private pages that were written.
    pub anonymous: u64,
    /// Of that: pages of files, and of BPF maps that are mapped.
    pub file: u64,
    /// Of that: shared memory.
    pub shared: u64,
}

impl Memory {
    /// Of a process that lives.
    pub fn of(pid: u32) -> Option<Memory> {
        Memory::parse(&fs::read_to_string(format!("/proc/{pid}/status")).ok()?)
    }

    fn parse(status: &str) -> Option<Memory> {
        Some(Memory {
            peak: kilobytes(status, "VmHWM")?,
            resident: kilobytes(status, "VmRSS")?,
            anonymous: kilobytes(status, "RssAnon")?,
            file: kilobytes(status, "RssFile")?,
            shared: kilobytes(status, "RssShmem")?,
        })
    }
}

/// Proportional set size in KiB: pages that several processes map count by their share.
pub fn proportional(pid: u32) -> Option<u64> {
    kilobytes(&fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).ok()?, "Pss")
}

fn field<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).map(str::trim)
}

fn kilobytes(text: &str, name: &str) -> Option<u64> {
    field(text, name)?.strip_suffix("kB")?.trim().parse().ok()
}

/// Ids of the BPF programs that a process holds.
///
/// # Errors
/// If the process ended or may not be looked at.
pub fn bpf_programs(pid: u32) -> Result<Vec<u32>> {
    let directory = format!("/proc/{pid}/fdinfo");
    let entries = fs::read_dir(&directory).with_context(|| directory.clone())?;
    // a descriptor that is closed meanwhile is none
    let infos = entries.filter_map(|entry| fs::read_to_string(entry.ok()?.path()).ok());
    let mut ids: Vec<u32> = infos.filter_map(|info| field(&info, "prog_id")?.parse().ok()).collect();
    ids.sort_unstable();
    ids.dedup();
    Ok(ids)
}

/// Kernel memory in bytes of the BPF map behind a descriptor of ours.
pub fn map_bytes(fd: &impl AsRawFd) -> Option<u64> {
    let fd: RawFd = fd.as_raw_fd();
    field(&fs::read_to_string(format!("/proc/self/fdinfo/{fd}")).ok()?, "memlock")?.parse().ok()
}

/// Open descriptors of a process.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Descriptors {
    /// All.
    pub all: usize,
    /// Perf events.
    pub events: usize,
    /// Links that run a BPF program at a perf event.
    pub sampling: usize,
}

impl Descriptors {
    /// Of a process that lives and may be looked at.
    pub fn of(pid: u32) -> Option<Descriptors> {
        let mut descriptors = Descriptors::default();
        for entry in fs::read_dir(format!("/proc/{pid}/fd")).ok()? {
            let Ok(entry) = entry else { continue };
            // one that is closed meanwhile is none
            let Ok(link) = fs::read_link(entry.path()) else { continue };
            let link = link.to_string_lossy();
            descriptors.all += 1;
            descriptors.events += usize::from(link.contains("[perf_event]"));
            if link.contains("bpf") {
                let info = format!("/proc/{pid}/fdinfo/{}", entry.file_name().to_string_lossy());
                let info = fs::read_to_string(info).unwrap_or_default();
                descriptors.sampling += usize::from(field(&info, "link_type") == Some("perf"));
            }
        }
        Some(descriptors)
    }
}

/// CPU seconds of the threads that a process has now, from the scheduler's nanoseconds.
pub fn cpu_seconds(pid: u32) -> Option<f64> {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).ok()?;
    let nanoseconds = threads.filter_map(|thread| {
        let text = fs::read_to_string(thread.ok()?.path().join("schedstat")).ok()?;
        text.split_whitespace().next()?.parse::<u64>().ok()
    });
    Some(nanoseconds.sum::<u64>() as f64 * 1e-9)
}

/// Runnable processes, averaged over a minute.
pub fn load() -> Option<f64> {
    fs::read_to_string("/proc/loadavg").ok()?.split_whitespace().next()?.parse().ok()
}

/// The model of the first CPU.
pub fn cpu_model() -> Option<String> {
    let text = fs::read_to_string("/proc/cpuinfo").ok()?;
    let line = text.lines().find(|line| line.starts_with("model name") || line.starts_with("CPU part"))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}

/// The machine's memory in MiB.
pub fn machine_memory() -> Option<u64> {
    Some(kilobytes(&fs::read_to_string("/proc/meminfo").ok()?, "MemTotal")? / 1024)
}

/// CLOCK_MONOTONIC, which the workloads tell their times by.
pub fn monotonic() -> Duration {
    let time = clock_gettime(ClockId::Monotonic);
    Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec.unsigned_abs() as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_of_a_status() {
        let status = "Name:\tVmRSS: 7 kB\nVmHWM:\t     180 kB\nVmRSS:\t     160 kB\nRssAnon:\t      60 kB\nRssFile:\t      90 kB\n\
                      RssShmem:\t      10 kB\nVmData:\t 5 kB\n";
        let memory = Memory { peak: 180, resident: 160, anonymous: 60, file: 90, shared: 10 };
        assert_eq!(Memory::parse(status), Some(memory));
        assert_eq!(Memory::parse("Name:\tkthreadd\n"), None, "a kernel thread has none");
    }

    #[test]
    fn memory_of_this_process_adds_up() {
        let memory = Memory::of(std::process::id()).expect("this process lives");
        assert_eq!(memory.resident, memory.anonymous + memory.file + memory.shared);
        assert!(memory.peak >= memory.resident && memory.resident > 0);
        assert!(proportional(std::process::id()).is_some_and(|pss| pss > 0));
    }

    #[test]
    fn fields_of_a_program() {
        let info = "pos:\t0\nprog_type:\t7\nprog_id:\t21\nrun_time_ns:\t0\n";
        assert_eq!(field(info, "prog_id"), Some("21"));
        assert_eq!(field(info, "prog"), None, "not a prefix of another name");
    }

    #[test]
    fn descriptors_of_this_process() {
        let files: Vec<_> = (0..8).map(|_| fs::File::open("/proc/self/stat").expect("opens")).collect();
        let descriptors = Descriptors::of(std::process::id()).expect("/proc is there");
        assert!(descriptors.all >= files.len(), "{descriptors:?}");
        assert_eq!((descriptors.events, descriptors.sampling), (0, 0));
    }

    #[test]
    fn cpu_time_has_that_of_this_thread() {
        let begun = thread_time();
        while thread_time() - begun < Duration::from_millis(50) {}
        // a tick that has not come yet is not in it
        assert!(cpu_seconds(std::process::id()).expect("this process lives") >= 0.03);
    }

    fn thread_time() -> Duration {
        let time = clock_gettime(ClockId::ThreadCPUTime);
        Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec.unsigned_abs() as u32)
    }

    #[test]
    fn fields_of_a_link() {
        let info = "pos:\t0\nlink_type:\tperf\nlink_id:\t7\nprog_id:\t27740\nperf_type:\t5\n";
        assert_eq!((field(info, "link_type"), field(info, "prog_id")), (Some("perf"), Some("27740")));
    }
}
