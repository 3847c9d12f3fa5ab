//! What is read of /proc/PID besides mappings: `stat`, `status`, `comm` and the command line, from a directory that
//! looks like one of /proc.
#![no_main]

use std::path::PathBuf;
use std::sync::LazyLock;

use fuzz::parts;
use libfuzzer_sys::fuzz_target;
use processes::stat::Stat;
use processes::{Proc, maps, namespaces};

const PID: u32 = 7;
/// Files by the number of a piece.
const FILES: [&str; 5] = ["stat", "status", "maps", "cmdline", "task/7/comm"];

static PROC: LazyLock<PathBuf> = LazyLock::new(|| {
    let root = std::env::temp_dir().join(format!("proc-{}", std::process::id()));
    std::fs::create_dir_all(root.join("7/task/7")).expect("a directory");
    root
});

fuzz_target!(|input: &[u8]| {
    for (kind, piece) in parts::of(input) {
        let kind = usize::from(kind) % FILES.len();
        if kind == 0
            && let Some(stat) = Stat::parse(piece)
        {
            assert!(stat.comm.as_bytes().len() < 16);
        }
        std::fs::write(PROC.join("7").join(FILES[kind]), piece).expect("a file");
    }
    let proc = Proc::at(PROC.as_path());
    let _ = (proc.stat(PID), proc.comm(PID, PID), proc.tids(PID), proc.pids());
    let _ =
        (namespaces::namespace_pids(&proc, PID), namespaces::owner(&proc, PID), namespaces::thread_group(&proc, PID));
    assert!(proc.command_line(PID).map_or(0, |line| line.len()) <= 4096);
    let (ranges, _) = maps::read(&proc, PID, maps::Wanted::All, 100);
    assert!(ranges.len() <= 100 && ranges.iter().all(|range| range.start < range.end));
});
