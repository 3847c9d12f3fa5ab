//! What can be seen of other processes and of the kernel.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

use crate::check::capabilities::{self, SYS_PTRACE, SYSLOG};
use crate::check::facts::{Facts, setting};
use crate::check::item::Item;

const KALLSYMS: &str = "/proc/kallsyms";
const KPTR: &str = "/proc/sys/kernel/kptr_restrict";
/// Lines of the list of symbols that are looked at: the first few may be at address 0 on any kernel.
const LINES: usize = 2000;
/// The most that a line of it has, in bytes.
const LINE: u64 = 1024;
/// Entries of /proc that are looked at.
const PROCESSES: usize = 10_000;

pub(super) fn items(facts: &Facts) -> Vec<Item> {
    vec![kernel_names(facts), other_processes(facts), proc_mount(facts)]
}

fn kernel_names(facts: &Facts) -> Item {
    const NAME: &str = "kernel names";
    let restrict = setting(KPTR);
    let found = restrict.map_or_else(
        || "kernel.kptr_restrict cannot be read".to_owned(),
        |value| format!("kernel.kptr_restrict = {value}"),
    );
    match addresses_shown() {
        Ok(true) => Item::ok(NAME, found, "kernel functions are named, from /proc/kallsyms"),
        Ok(false) => {
            let item = Item::limited(
                NAME,
                found,
                "the kernel hides its addresses: its functions have no names in the profile",
            );
            // kptr_restrict 2 hides them from everybody, 1 and (unless perf_event_paranoid is 1 or less) 0 from those
            // without CAP_SYSLOG
            let item = if restrict == Some(2) { item.remedy("sudo sysctl -w kernel.kptr_restrict=1") } else { item };
            if SYSLOG.is_held(facts) { item } else { item.remedies(capabilities::remedies(facts)) }
        }
        Err(error) => {
            Item::limited(NAME, format!("{KALLSYMS}: {error}"), "kernel functions have no names in the profile")
                .remedy("a kernel built with CONFIG_KALLSYMS=y, as those of the distributions are")
        }
    }
}

/// Whether the list of symbols has addresses for us.
fn addresses_shown() -> io::Result<bool> {
    let mut list = BufReader::new(File::open(KALLSYMS)?);
    for _ in 0..LINES {
        let mut line = Vec::new();
        if list.by_ref().take(LINE).read_until(b'\n', &mut line)? == 0 {
            break;
        }
        if line.split(|byte| *byte == b' ').next().is_some_and(|address| address.iter().any(|digit| *digit != b'0')) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Which rights do it depends on the kernel: newer ones let CAP_PERFMON read mappings. So it is tried.
fn other_processes(facts: &Facts) -> Item {
    const NAME: &str = "other processes";
    let Ok(processes) = processes() else {
        return Item::missing(NAME, "/proc cannot be listed", "wholestack learns there which processes run");
    };
    let seen: Vec<(bool, bool)> = processes.iter().filter_map(|pid| look_into(*pid)).collect();
    let all = seen.len();
    let mappings = seen.iter().filter(|(mappings, _)| *mappings).count();
    let roots = seen.iter().filter(|(_, root)| *root).count();
    let found = format!("mappings of {mappings} and files of {roots} of {all} processes can be seen");
    // one or a few that end meanwhile or are protected say nothing about the rights
    let most = |count: usize| all - count <= (all / 10).max(1) && count * 2 > all;
    match (most(mappings), most(roots)) {
        (true, true) => Item::ok(NAME, found, "processes of all users are unwound and named"),
        _ if SYS_PTRACE.is_held(facts) => Item::limited(
            NAME,
            found,
            "although CAP_SYS_PTRACE is held: a security module (AppArmor, SELinux, Yama) forbids it",
        )
        .remedy("in a container: --security-opt apparmor=unconfined, or --security-opt label=disable"),
        (true, false) => Item::limited(
            NAME,
            found,
            "files of other users' processes are found by their path only, those in containers not at all",
        )
        .remedies(capabilities::remedies(facts)),
        (false, _) => Item::limited(NAME, found, "the others are counted and neither unwound nor named")
            .remedies(capabilities::remedies(facts)),
    }
}

/// Ids of at most some thousand processes, kernel threads among them.
fn processes() -> io::Result<Vec<u32>> {
    let names = std::fs::read_dir("/proc")?.flatten().take(PROCESSES).map(|entry| entry.file_name());
    Ok(names.filter_map(|name| name.to_str()?.parse().ok()).collect())
}

/// Whether the mappings and the root directory of a process can be seen; `None` if it has none (kernel threads, zombies)
/// or is gone.
fn look_into(pid: u32) -> Option<(bool, bool)> {
    let mappings = File::open(format!("/proc/{pid}/maps")).and_then(|mut file| file.read(&mut [0; 64]));
    let mappings = match mappings {
        Ok(0) => return None,
        Ok(_) => true,
        Err(error) if matches!(error.raw_os_error(), Some(libc::ENOENT | libc::ESRCH)) => return None,
        Err(_) => false,
    };
    Some((mappings, std::fs::read_link(format!("/proc/{pid}/root")).is_ok()))
}

fn proc_mount(facts: &Facts) -> Item {
    const NAME: &str = "/proc";
    let mounted = facts.mounts.iter().rfind(|mount| mount.place == Path::new("/proc") && mount.kind == "proc");
    let Some(mounted) = mounted else {
        return Item::missing(NAME, "not mounted", "wholestack learns there which processes run")
            .remedy("sudo mount -t proc proc /proc");
    };
    let hide = mounted.options.split(',').find_map(|option| option.strip_prefix("hidepid="));
    match hide {
        None | Some("0" | "off") => Item::ok(NAME, "mounted", "shows all processes"),
        Some(hide) if SYS_PTRACE.is_held(facts) => {
            Item::ok(NAME, format!("mounted with hidepid={hide}"), "of no account to who holds CAP_SYS_PTRACE")
        }
        Some(hide) => Item::limited(
            NAME,
            format!("mounted with hidepid={hide}"),
            "processes of other users are not shown; their samples are counted without names",
        )
        .remedies(capabilities::remedies(facts)),
    }
}
