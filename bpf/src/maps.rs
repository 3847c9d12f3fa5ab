//! Maps, and the constants that the loader sets. Sizes written here are the least; the loader raises them to fit the
//! machine and the rate.

use abi::counter::Counter;
use abi::process::{
    EXITS, Exit, MAPPING_SEGMENTS, MAPPINGS_PER_SEGMENT, Mapping, PAGE_SEGMENTS, PAGES_PER_SEGMENT, Place, Process,
    ROW_SEGMENTS, ROWS_PER_SEGMENT, RULES,
};
use abi::python::{ENTRIES, EVAL_LOOPS as EVAL_LOOP_COUNT, Entry, EvalLoop};
use abi::record::{CodeRecord, CountKey, Deferred, SHORT_COPY_BYTES};
use abi::table::{Page, Row, Rule};
use aya_ebpf::Global;
use aya_ebpf::bindings::BPF_F_MMAPABLE;
use aya_ebpf::btf_maps::{Array, ArrayOfMaps, HashMap, LruHashMap, PerCpuArray, RingBuf};
use aya_ebpf::macros::btf_map;
use walk::Walk;
use walk::cpython::{Block, Cursor};

use crate::registers::SAVED_WORDS;

const MMAPABLE: usize = BPF_F_MMAPABLE as usize;

/// Per-CPU memory of the sampler. Programs of one kind do not interrupt each other on a CPU unless the event is an
/// NMI that hits another event's program; `busy` catches that.
#[repr(C)]
pub struct Scratch {
    pub busy: u32,
    /// Always 0, but read out of a map: a search that starts at a constant is followed by the verifier path by path.
    pub zero: u32,
    /// Where the last mapping was found: neighbouring frames often lie in one mapping.
    pub last_mapping: u32,
    /// Index of the process's interpreter; 0 = none that is known.
    pub python: u32,
    /// Registers as the kernel saved them when the task entered it.
    pub saved: [u64; SAVED_WORDS],
    /// pc, stack pointer, frame pointer and link register of the sample: a walk moves those in its own registers.
    pub entry: [u64; 4],
    pub walk: Walk,
    /// Where a chain of Python frames is followed without a walk.
    pub cursor: Cursor,
    /// What was read for it last.
    pub block: Block,
}

/// What user space changes while the sampler runs.
#[repr(C)]
pub struct Control {
    /// Which of the two counts maps is written; the other one is being read.
    pub epoch: u32,
}

/// A segment of the mapping arena; an array element of its own, so that one look-up gives all of it.
#[repr(C)]
pub struct MappingSegment(pub [Mapping; MAPPINGS_PER_SEGMENT]);
#[repr(C)]
pub struct PageSegment(pub [Page; PAGES_PER_SEGMENT]);
#[repr(C)]
pub struct RowSegment(pub [Row; ROWS_PER_SEGMENT]);

#[btf_map(name = "processes")]
pub static PROCESSES: HashMap<u32, Process, 1024> = HashMap::new();
/// When (CLOCK_MONOTONIC, ns) memory of a process was given away that its known mappings had. What is known of it is void
/// until user space has learnt of everything up to then.
#[btf_map(name = "stale")]
pub static STALE: HashMap<u32, u64, 1024> = HashMap::new();
#[btf_map(name = "followed")]
pub static FOLLOWED: HashMap<u32, u32, 1024> = HashMap::new();
#[btf_map(name = "mappings")]
pub static MAPPINGS: ArrayOfMaps<Array<MappingSegment, 1, MMAPABLE>, MAPPING_SEGMENTS> = ArrayOfMaps::new();
#[btf_map(name = "pages")]
pub static PAGES: ArrayOfMaps<Array<PageSegment, 1, MMAPABLE>, PAGE_SEGMENTS> = ArrayOfMaps::new();
#[btf_map(name = "rows")]
pub static ROWS: ArrayOfMaps<Array<RowSegment, 1, MMAPABLE>, ROW_SEGMENTS> = ArrayOfMaps::new();
#[btf_map(name = "rules")]
pub static TABLE_RULES: Array<Rule, RULES, MMAPABLE> = Array::new();

/// What user space has read in code that has no rules.
#[btf_map(name = "exits")]
pub static PLACE_EXITS: LruHashMap<Place, Exit, EXITS> = LruHashMap::new();

#[btf_map(name = "counts_0")]
pub static COUNTS_0: HashMap<CountKey, u64, 4096> = HashMap::new();
#[btf_map(name = "counts_1")]
pub static COUNTS_1: HashMap<CountKey, u64, 4096> = HashMap::new();
/// Hashes of stacks that user space has, at the slot that their low bits name. Overwriting one costs that its stack
/// is sent again.
#[btf_map(name = "sent")]
pub static SENT: Array<u64, SENT_SLOTS> = Array::new();
pub const SENT_SLOTS: usize = 1 << 16;

/// What is known of CPython interpreters.
#[btf_map(name = "pythons")]
pub static PYTHONS: Array<Entry, ENTRIES, MMAPABLE> = Array::new();
/// Where their eval loops are.
#[btf_map(name = "eval_loops")]
pub static EVAL_LOOPS: Array<EvalLoop, EVAL_LOOP_COUNT, MMAPABLE> = Array::new();
/// A code object that was met: its address, and what tells it from others that lay there.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct CodeKey {
    pub code: u64,
    pub id: u32,
    pub check: u32,
}
/// Code objects that user space has. One that is forgotten is sent again.
#[btf_map(name = "codes")]
pub static CODES: LruHashMap<CodeKey, u32, { 1 << 15 }> = LruHashMap::new();
#[btf_map(name = "code_records")]
pub static CODE_RECORDS: Array<CodeRecord, 1> = Array::new();

#[btf_map(name = "ring")]
pub static RING: RingBuf<u8, { 1 << 22 }> = RingBuf::new();
#[btf_map(name = "scratch")]
pub static SCRATCH: Array<Scratch, 1> = Array::new();
#[btf_map(name = "deferred")]
pub static DEFERRED: Array<Deferred, 1> = Array::new();
#[btf_map(name = "counters")]
pub static COUNTERS: PerCpuArray<[u64; Counter::COUNT], 1> = PerCpuArray::new();
#[btf_map(name = "control")]
pub static CONTROL: Array<Control, 1, MMAPABLE> = Array::new();

/// 1: only processes in `followed`; 0: all.
#[unsafe(no_mangle)]
pub static FOLLOW: Global<u32> = Global::new(0);
/// The ring buffer wakes user space when more bytes than this are waiting.
#[unsafe(no_mangle)]
pub static WAKE_BYTES: Global<u64> = Global::new(1 << 20);
/// Bytes of stack that a deferred sample carries at most, by the rate of sampling.
#[unsafe(no_mangle)]
pub static COPY_LIMIT: Global<u32> = Global::new(SHORT_COPY_BYTES as u32);
/// 1: every stack is sent, and the registers and memory that it was made from: for those who check it.
#[unsafe(no_mangle)]
pub static EVIDENCE: Global<u32> = Global::new(0);
/// Offsets in bytes in the running kernel's structs, from its BTF.
#[unsafe(no_mangle)]
pub static TASK_FLAGS: Global<u32> = Global::new(0);
#[unsafe(no_mangle)]
pub static UNMAPPED_LENGTH: Global<u32> = Global::new(0);
#[unsafe(no_mangle)]
pub static TASK_MM: Global<u32> = Global::new(0);
/// Where a task keeps its thread pointer.
#[unsafe(no_mangle)]
pub static TASK_THREAD_POINTER: Global<u32> = Global::new(0);
#[unsafe(no_mangle)]
pub static TASK_TGID: Global<u32> = Global::new(0);
#[unsafe(no_mangle)]
pub static TASK_PID: Global<u32> = Global::new(0);
