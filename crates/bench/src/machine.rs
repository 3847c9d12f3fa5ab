//! What a reader must know of the machine.

use std::path::Path;

use crate::bpf;
use crate::procfs;
use crate::profiler::version;

/// Conditions that hold for the whole series.
pub fn conditions(wholestack: &Path) -> Vec<(&'static str, String)> {
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let model = procfs::cpu_model().unwrap_or_else(|| "unknown CPU".to_owned());
    let memory = procfs::machine_memory().map_or_else(String::new, |mib| format!(", {mib} MiB"));
    vec![
        ("machine", format!("{model}, {cores} CPUs{memory}{}", virtual_machine())),
        ("kernel", bpf::kernel()),
        ("measured", format!("{} at {}", version(wholestack), wholestack.display())),
        ("beside", version(Path::new("perf"))),
        ("command line", std::env::args().collect::<Vec<_>>().join(" ")),
    ]
}

/// The load average of the last minute, in words.
pub fn load() -> String {
    procfs::load().map_or_else(|| "unknown".to_owned(), |load| load.to_string())
}

fn virtual_machine() -> &'static str {
    let flags = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    if flags.split_whitespace().any(|flag| flag == "hypervisor") { ", virtual" } else { "" }
}

/// Today's date.
pub fn date() -> String {
    jiff::ZonedDateTime::now().strftime("%Y-%m-%d %H:%M").to_string()
}
