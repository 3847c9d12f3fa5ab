//! What the kernel knows of a profiler's BPF programs and maps.

use std::collections::BTreeMap;
use std::fs::File;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use abi::counter::Counter;
use anyhow::{Context, Result};
use aya::maps::{ArrayOfMaps, Map, MapData, PerCpuArray};
use aya::programs::{ProgramInfo, loaded_programs};
use aya::sys::{Stats, enable_stats};
use serde::Serialize;

use crate::procfs;

/// Runs and time of a program since it was loaded.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Runs {
    /// How often it ran while run-time statistics were on.
    pub count: u64,
    /// How long that took, in nanoseconds.
    pub nanoseconds: u64,
}

impl Runs {
    /// Nanoseconds of one; `None` without any.
    pub fn mean(self) -> Option<f64> {
        (self.count > 0).then(|| self.nanoseconds as f64 / self.count as f64)
    }

    /// Those since `before`.
    pub fn since(self, before: Runs) -> Runs {
        Runs {
            count: self.count.saturating_sub(before.count),
            nanoseconds: self.nanoseconds.saturating_sub(before.nanoseconds),
        }
    }
}

/// Lets the kernel measure BPF programs until the result is dropped. Costs two clock readings a run.
///
/// # Errors
/// Without the right to it.
pub fn measure() -> Result<OwnedFd> {
    enable_stats(Stats::RunTime).context("no run-time statistics of BPF programs")
}

/// The programs that a process holds, by name.
///
/// # Errors
/// If the process ended or the kernel does not say.
pub fn runs(pid: u32) -> Result<BTreeMap<String, Runs>> {
    let named = programs(pid)?.into_iter().map(|info| {
        let name = info.name_as_str().unwrap_or_default().to_owned();
        (name, Runs { count: info.run_count(), nanoseconds: info.run_time().as_nanos() as u64 })
    });
    Ok(named.collect())
}

fn programs(pid: u32) -> Result<Vec<ProgramInfo>> {
    let ids = procfs::bpf_programs(pid)?;
    // others' programs may be unloaded while they are listed
    Ok(loaded_programs().filter_map(Result::ok).filter(|info| ids.contains(&info.id())).collect())
}

/// Ids of the maps that a process's programs use.
fn map_ids(pid: u32) -> Result<Vec<u32>> {
    let mut ids = Vec::new();
    for program in programs(pid)? {
        ids.extend(program.map_ids().context("maps of a BPF program")?.unwrap_or_default());
    }
    ids.sort_unstable();
    ids.dedup();
    Ok(ids)
}

/// Kernel memory in bytes of the maps that a process's programs use, by name; the maps within a map of maps count for it.
///
/// # Errors
/// If the process ended or the kernel does not say.
pub fn map_bytes(pid: u32) -> Result<BTreeMap<String, u64>> {
    let mut sizes = BTreeMap::new();
    for id in map_ids(pid)? {
        let data = MapData::from_id(id).context("a BPF map")?;
        let info = data.info().context("a BPF map")?;
        let name = info.name_as_str().unwrap_or_default().to_owned();
        let mut bytes = locked(&data)?;
        if let Ok(outer) = ArrayOfMaps::try_from(Map::ArrayOfMaps(data)) {
            bytes += inner_bytes(&outer);
        }
        *sizes.entry(name).or_default() += bytes;
    }
    Ok(sizes)
}

fn inner_bytes(outer: &ArrayOfMaps<MapData>) -> u64 {
    // unused places are errors
    (0..outer.len()).filter_map(|index| locked(&outer.get(&index, 0).ok()?).ok()).sum()
}

fn locked(data: &MapData) -> Result<u64> {
    let fd = File::from(data.fd().as_fd().try_clone_to_owned()?);
    procfs::map_bytes(&fd).context("the size of a BPF map")
}

/// The sampler's own counters, summed over CPUs.
///
/// # Errors
/// If the process has no sampler of this version's making.
pub fn counters(pid: u32) -> Result<[u64; Counter::COUNT]> {
    for id in map_ids(pid)? {
        let data = MapData::from_id(id).context("a BPF map")?;
        if data.info().context("a BPF map")?.name_as_str() != Some("counters") {
            continue;
        }
        let map = PerCpuArray::<MapData, [u64; Counter::COUNT]>::try_from(Map::PerCpuArray(data));
        let per_cpu = map.and_then(|map| map.get(&0, 0)).context("counters of another version")?;
        let sum = |index: usize| per_cpu.iter().map(|counters| counters[index]).sum();
        return Ok(std::array::from_fn(sum));
    }
    anyhow::bail!("the process has no map of counters")
}

/// The kernel's version as the kernel says it.
pub fn kernel() -> String {
    std::fs::read_to_string(Path::new("/proc/sys/kernel/osrelease")).unwrap_or_default().trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_between_two_looks() {
        let (before, after) = (Runs { count: 10, nanoseconds: 500 }, Runs { count: 30, nanoseconds: 4500 });
        let between = after.since(before);
        assert_eq!(between, Runs { count: 20, nanoseconds: 4000 });
        assert_eq!(between.mean(), Some(200.0));
        assert_eq!(Runs::default().mean(), None);
    }
}
