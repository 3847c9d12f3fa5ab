//! What is loaded in the kernel, and who holds it.

use std::collections::BTreeSet;

use aya::maps::loaded_maps;
use aya::programs::{loaded_links, loaded_programs};

use super::wait_for;

/// Names of wholestack's programs; [`assert_known`] fails when one is missing here.
const NAMES: [&str; 4] = ["sample", "follow", "exec", "remap"];

/// Ids of BPF objects.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Objects {
    pub programs: BTreeSet<u32>,
    pub maps: BTreeSet<u32>,
    pub links: BTreeSet<u32>,
}

/// What a process holds by its descriptors. (`/proc/PID/fdinfo` has a line `prog_id:`, `map_id:` or `link_id:` each.)
pub fn held_by(pid: u32) -> Objects {
    let mut held = Objects::default();
    let Ok(entries) = std::fs::read_dir(format!("/proc/{pid}/fdinfo")) else { return held };
    for entry in entries.flatten() {
        let Ok(text) = std::fs::read_to_string(entry.path()) else { continue };
        let id = |name: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
            line.and_then(|value| value.trim().parse::<u32>().ok())
        };
        match (id("link_id"), id("map_id"), id("prog_id")) {
            (Some(link), _, _) => held.links.insert(link),
            (_, Some(map), _) => held.maps.insert(map),
            (_, _, Some(program)) => held.programs.insert(program),
            _ => continue,
        };
    }
    held
}

/// Whether a process samples on every CPU: follows processes by a perf event and samples by a link on each.
pub fn samples(pid: u32) -> bool {
    let Ok(entries) = std::fs::read_dir(format!("/proc/{pid}/fdinfo")) else { return false };
    let texts = entries.flatten().filter_map(|entry| std::fs::read_to_string(entry.path()).ok());
    let links = texts.filter(|text| text.contains("link_type:\tperf\n")).count();
    let events = descriptors_of(pid).iter().filter(|link| link.contains("perf_event")).count();
    links > 0 && links >= events
}

/// The programs of a recorder are those that are looked for elsewhere.
#[track_caller]
pub fn assert_known(objects: &Objects) {
    for program in loaded_programs().flatten().filter(|program| objects.programs.contains(&program.id())) {
        let name = program.name_as_str().unwrap_or_default();
        assert!(NAMES.contains(&name), "{name} is not among the names that this test knows");
    }
}

/// [`held_by`], and the maps that the programs use.
pub fn used_by(pid: u32) -> Objects {
    let mut used = held_by(pid);
    for program in loaded_programs().flatten().filter(|program| used.programs.contains(&program.id())) {
        used.maps.extend(program.map_ids().ok().flatten().unwrap_or_default());
    }
    used
}

/// Waits until the kernel has none of these any more. It frees them a moment after their last user is gone.
pub fn wait_until_gone(objects: &Objects) {
    let mut left = String::new();
    let gone = || {
        // an object that vanishes while it is listed is an error of the listing
        let programs: Vec<u32> = loaded_programs().flatten().map(|program| program.id()).collect();
        let maps: Vec<u32> = loaded_maps().flatten().map(|map| map.id()).collect();
        let links: Vec<u32> = loaded_links().flatten().map(|link| link.id()).collect();
        let there = |wanted: &BTreeSet<u32>, ids: &[u32]| ids.iter().any(|id| wanted.contains(id));
        left = format!("{objects:?} of {programs:?}, {maps:?}, {links:?}");
        !there(&objects.programs, &programs) && !there(&objects.maps, &maps) && !there(&objects.links, &links)
    };
    wait_for("BPF objects go away", gone);
}

/// Waits until every program of wholestack's in the kernel is held by some process: others may record meanwhile.
pub fn wait_until_no_orphans() {
    wait_for("orphaned BPF programs go away", || {
        let ours = |name: Option<&str>| name.is_some_and(|name| NAMES.contains(&name));
        let loaded: BTreeSet<u32> = loaded_programs()
            .flatten()
            .filter(|program| ours(program.name_as_str()))
            .map(|program| program.id())
            .collect();
        let held: BTreeSet<u32> =
            super::target::all_processes().iter().flat_map(|pid| held_by(*pid).programs).collect();
        loaded.is_subset(&held)
    });
}

/// Descriptors of BPF objects and perf events that a process has.
pub fn descriptors_of(pid: u32) -> Vec<String> {
    let Ok(entries) = std::fs::read_dir(format!("/proc/{pid}/fd")) else { return Vec::new() };
    let links = entries.flatten().filter_map(|entry| std::fs::read_link(entry.path()).ok());
    let links = links.map(|link| link.to_string_lossy().into_owned());
    links.filter(|link| link.contains("bpf") || link.contains("perf_event")).collect()
}
