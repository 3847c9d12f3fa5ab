//! Loads the BPF object into the kernel, with maps sized for the machine and the recording.

use aya::maps::{ArrayOfMaps, HashMap, Map, MapData, PerCpuArray, RingBuf};
use aya::programs::{PerfEvent, RawTracePoint};
use aya::{Ebpf, EbpfLoader, Pod, VerifierLogLevel};

use abi::counter::Counter;
use abi::process::Process;

use crate::bpf_object::{ObjectError, object};
use crate::btf::{BtfError, KernelTypes};
use crate::exits::ExitMap;
use crate::sampling::TRACEPOINTS;

/// A process entry.
#[repr(transparent)]
#[derive(Clone, Copy)]
pub struct ProcessPod(pub Process);

// SAFETY: plain integers in C layout without padding, as the assertions in `abi` check.
unsafe impl Pod for ProcessPod {}

/// Where a task keeps its thread pointer: base of FS (arch/x86/include/asm/processor.h), or TPIDR_EL0, which is the first one
/// in `uw` (arch/arm64/include/asm/processor.h).
#[cfg(target_arch = "x86_64")]
const THREAD_POINTER: [(&str, &str); 2] = [("task_struct", "thread"), ("thread_struct", "fsbase")];
#[cfg(target_arch = "aarch64")]
const THREAD_POINTER: [(&str, &str); 2] = [("task_struct", "thread"), ("thread_struct", "uw")];

/// Why the sampler could not be loaded.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The object does not belong to this program.
    #[error(transparent)]
    Object(#[from] ObjectError),
    /// The kernel's types are not to be had.
    #[error(transparent)]
    Btf(#[from] BtfError),
    /// A map or the object was refused.
    #[error("the kernel refused the BPF object: {0}")]
    Bpf(#[from] aya::EbpfError),
    /// A program was refused.
    #[error("the kernel refused the BPF program {name}: {source}")]
    Program {
        /// Its name.
        name: &'static str,
        /// What the kernel said.
        source: aya::programs::ProgramError,
    },
    /// A map is missing or of another kind than expected.
    #[error("BPF map {name}: {source}")]
    Map {
        /// Its name.
        name: &'static str,
        /// What was wrong.
        source: aya::maps::MapError,
    },
    /// Something is not in the object.
    #[error("the BPF object has no {0}")]
    Missing(&'static str),
}

/// How large the maps are to be.
#[derive(Clone, Copy, Debug)]
pub struct Sizes {
    /// CPUs that the kernel may have.
    pub cpus: u32,
    /// Processes at a time.
    pub processes: u32,
    /// (thread, stack) pairs between two drains.
    pub counts: u32,
    /// Bytes of the ring buffer, a power of two.
    pub ring: u32,
    /// Bytes of stack that a deferred sample carries at most.
    pub copy: u32,
    /// Only followed processes are sampled.
    pub follow: bool,
    /// Each sample comes with what it was walked from.
    pub evidence: bool,
}

/// The loaded sampler: programs and the maps that user space works with.
pub struct Sampler {
    /// Owns the programs and their links.
    pub bpf: Ebpf,
    /// Known processes.
    pub processes: HashMap<MapData, u32, ProcessPod>,
    /// When a process's known mappings became void.
    pub stale: HashMap<MapData, u32, u64>,
    /// What code without unwind information says of its callers.
    pub exits: ExitMap,
    /// Followed processes.
    pub followed: HashMap<MapData, u32, u32>,
    /// Outer maps of the arenas.
    pub mappings: ArrayOfMaps<MapData>,
    /// See `mappings`.
    pub pages: ArrayOfMaps<MapData>,
    /// See `mappings`.
    pub rows: ArrayOfMaps<MapData>,
    /// Distinct rules.
    pub rules: MapData,
    /// What is known of interpreters.
    pub pythons: MapData,
    /// Where their eval loops are.
    pub eval_loops: MapData,
    /// The two counts maps.
    pub counts: [MapData; 2],
    /// What is changed while the sampler runs.
    pub control: MapData,
    /// New stacks and deferred samples.
    pub ring: RingBuf<MapData>,
    /// The sampler's counters.
    pub counters: PerCpuArray<MapData, [u64; Counter::COUNT]>,
}

/// Loads the object and verifies its programs; nothing runs yet.
pub fn load(sizes: Sizes) -> Result<Sampler, LoadError> {
    let object = object()?;
    let types = KernelTypes::load()?;
    let [thread, register] = types.offsets(THREAD_POINTER)?;
    let [flags, mm, tgid, pid, length] = types.offsets([
        ("task_struct", "flags"),
        ("task_struct", "mm"),
        ("task_struct", "tgid"),
        ("task_struct", "pid"),
        ("vm_unmapped_area_info", "length"),
    ])?;
    let wake = u64::from(sizes.ring / 4);
    let mut bpf = EbpfLoader::new()
        // no program needs the kernel's types from aya, which takes its time to read them
        .btf(None)
        .verifier_log_level(VerifierLogLevel::STATS)
        .override_global("FOLLOW", &u32::from(sizes.follow), true)
        .override_global("EVIDENCE", &u32::from(sizes.evidence), true)
        .override_global("WAKE_BYTES", &wake, true)
        .override_global("COPY_LIMIT", &sizes.copy, true)
        .override_global("TASK_FLAGS", &flags, true)
        .override_global("TASK_MM", &mm, true)
        .override_global("TASK_THREAD_POINTER", &(thread + register), true)
        .override_global("TASK_TGID", &tgid, true)
        .override_global("TASK_PID", &pid, true)
        .override_global("UNMAPPED_LENGTH", &length, true)
        .map_max_entries("scratch", sizes.cpus)
        .map_max_entries("deferred", sizes.cpus)
        .map_max_entries("code_records", sizes.cpus)
        .map_max_entries("processes", sizes.processes)
        .map_max_entries("stale", sizes.processes)
        .map_max_entries("followed", sizes.processes)
        .map_max_entries("counts_0", sizes.counts)
        .map_max_entries("counts_1", sizes.counts)
        .map_max_entries("ring", sizes.ring)
        .load(object)?;
    load_programs(&mut bpf)?;
    Ok(Sampler {
        processes: typed(&mut bpf, "processes")?,
        stale: typed(&mut bpf, "stale")?,
        exits: typed(&mut bpf, "exits")?,
        followed: typed(&mut bpf, "followed")?,
        mappings: typed(&mut bpf, "mappings")?,
        pages: typed(&mut bpf, "pages")?,
        rows: typed(&mut bpf, "rows")?,
        rules: array_data(&mut bpf, "rules")?,
        pythons: array_data(&mut bpf, "pythons")?,
        eval_loops: array_data(&mut bpf, "eval_loops")?,
        counts: [hash_data(&mut bpf, "counts_0")?, hash_data(&mut bpf, "counts_1")?],
        control: array_data(&mut bpf, "control")?,
        ring: typed(&mut bpf, "ring")?,
        counters: typed(&mut bpf, "counters")?,
        bpf,
    })
}

fn load_programs(bpf: &mut Ebpf) -> Result<(), LoadError> {
    let program = bpf.program_mut("sample").ok_or(LoadError::Missing("program sample"))?;
    let program: &mut PerfEvent = program.try_into().map_err(|source| LoadError::Program { name: "sample", source })?;
    program.load().map_err(|source| LoadError::Program { name: "sample", source })?;
    for (name, _) in TRACEPOINTS {
        let program = bpf.program_mut(name).ok_or(LoadError::Missing(name))?;
        let program: &mut RawTracePoint = program.try_into().map_err(|source| LoadError::Program { name, source })?;
        program.load().map_err(|source| LoadError::Program { name, source })?;
    }
    Ok(())
}

fn typed<M: TryFrom<Map, Error = aya::maps::MapError>>(bpf: &mut Ebpf, name: &'static str) -> Result<M, LoadError> {
    let map = bpf.take_map(name).ok_or(LoadError::Missing(name))?;
    M::try_from(map).map_err(|source| LoadError::Map { name, source })
}

fn array_data(bpf: &mut Ebpf, name: &'static str) -> Result<MapData, LoadError> {
    match bpf.take_map(name) {
        Some(Map::Array(data)) => Ok(data),
        _ => Err(LoadError::Missing(name)),
    }
}

fn hash_data(bpf: &mut Ebpf, name: &'static str) -> Result<MapData, LoadError> {
    match bpf.take_map(name) {
        Some(Map::HashMap(data)) => Ok(data),
        _ => Err(LoadError::Missing(name)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_verify_with_room_to_spare() {
        let sizes = Sizes {
            cpus: 2,
            processes: 1024,
            counts: 4096,
            ring: 1 << 22,
            copy: 1 << 14,
            follow: true,
            evidence: true,
        };
        let sampler = load(sizes).expect("loads as root on this kernel");
        for (name, program) in sampler.bpf.programs() {
            let info = program.info().expect("loaded");
            let verified = info.verified_instruction_count().unwrap_or(0);
            println!("{name}: {verified} instructions verified, {} bytes", info.size_jitted());
            assert!(verified < 400_000, "{name}: far below the limit of a million");
        }
    }
}
