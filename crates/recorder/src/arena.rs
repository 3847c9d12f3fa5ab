//! An arena: elements that BPF finds by number, in segments that are made when they are needed.
//!
//! ```text
//!  outer map (array of maps)      segment: an array map of one element that holds all of them
//!  ┌───┬───┬───┬ ─ ─            ┌──────────────────────────────────────┐
//!  │ 0 │ 1 │ 2 │                 │ [T; per segment]   mapped into both   │
//!  └───┴───┴───┴ ─ ─            └──────────────────────────────────────┘
//! ```
//! What is freed may still be read by a walk that began before. It is used again only after [`Arena::reclaim`],
//! which the owner calls behind a [`grace_period`].

use aya::maps::{ArrayOfMaps, MapData, MapError};
use aya_obj::generated::bpf_map_type::BPF_MAP_TYPE_ARRAY;

use crate::mapped::Mapped;
use crate::runs::{Run, Runs};

/// `BPF_F_MMAPABLE` of include/uapi/linux/bpf.h.
const BPF_F_MMAPABLE: u32 = 1 << 10;

/// Why there is no room.
#[derive(Debug, thiserror::Error)]
pub enum ArenaError {
    /// All segments are full.
    #[error("the {0} arena is full")]
    Full(&'static str),
    /// The kernel gave no memory for a segment.
    #[error("no memory for another segment of the {name} arena: {source}")]
    Segment {
        /// Of which arena.
        name: &'static str,
        /// What the kernel said.
        source: MapError,
    },
    /// The segment could not be mapped.
    #[error("cannot map a segment of the {name} arena: {source}")]
    Map {
        /// Of which arena.
        name: &'static str,
        /// What the kernel said.
        source: std::io::Error,
    },
}

/// What an arena is made of.
pub(crate) struct Shape {
    pub(crate) name: &'static str,
    /// Elements of a segment.
    pub(crate) per_segment: usize,
    /// Segments at most.
    pub(crate) segments: usize,
    /// Whether a run may reach from one segment into the next: where BPF looks up each element for itself.
    pub(crate) across: bool,
}

/// Elements of type `T`.
pub(crate) struct Arena<T> {
    shape: Shape,
    outer: ArrayOfMaps<MapData>,
    segments: Vec<Mapped<T>>,
    runs: Runs,
    retired: Vec<Run>,
}

impl<T: Copy> Arena<T> {
    /// An arena without segments behind `outer`.
    pub(crate) fn new(outer: ArrayOfMaps<MapData>, shape: Shape) -> Arena<T> {
        let runs = Runs::new(shape.per_segment as u32, shape.across);
        Arena { shape, outer, segments: Vec::new(), runs, retired: Vec::new() }
    }

    /// Puts `values` into a free run.
    pub(crate) fn insert(&mut self, values: &[T]) -> Result<Run, ArenaError> {
        let length = values.len() as u32;
        let run = loop {
            match self.runs.take(length) {
                Some(run) => break run,
                None => self.add_segment()?,
            }
        };
        self.write(run.start, values);
        Ok(run)
    }

    fn write(&mut self, start: u32, values: &[T]) {
        let (mut at, mut rest) = (start as usize, values);
        while !rest.is_empty() {
            let (segment, index) = (at / self.shape.per_segment, at % self.shape.per_segment);
            let (now, later) = rest.split_at(rest.len().min(self.shape.per_segment - index));
            let written = self.segments[segment].write(index, now);
            debug_assert!(written, "a run lies within its segments");
            (at, rest) = (at + now.len(), later);
        }
        Mapped::<T>::publish();
    }

    /// The element with this number.
    pub(crate) fn get(&self, index: u32) -> Option<T> {
        let index = index as usize;
        self.segments.get(index / self.shape.per_segment)?.get(index % self.shape.per_segment)
    }

    /// Frees a run; it is used again after the next [`Arena::reclaim`].
    pub(crate) fn retire(&mut self, run: Run) {
        self.retired.push(run);
    }

    /// Whether anything waits for [`Arena::reclaim`].
    pub(crate) fn has_retired(&self) -> bool {
        !self.retired.is_empty()
    }

    /// Makes what was retired usable again. Call it behind a [`grace_period`].
    pub(crate) fn reclaim(&mut self) {
        self.retired.drain(..).for_each(|run| self.runs.put(run));
    }

    fn add_segment(&mut self) -> Result<(), ArenaError> {
        let name = self.shape.name;
        if self.segments.len() >= self.shape.segments {
            return Err(ArenaError::Full(name));
        }
        let bytes = (self.shape.per_segment * size_of::<T>()) as u32;
        let map = aya_obj::Map::new_from_params(BPF_MAP_TYPE_ARRAY as u32, 4, bytes, 1, BPF_F_MMAPABLE);
        let map = MapData::create(map, name, None).map_err(|source| ArenaError::Segment { name, source })?;
        let mapped = Mapped::new(&map, self.shape.per_segment).map_err(|source| ArenaError::Map { name, source })?;
        let index = self.runs.segments();
        self.outer.set(index, &map, 0).map_err(|source| ArenaError::Segment { name, source })?;
        self.segments.push(mapped);
        self.runs.add_segment();
        Ok(())
    }
}

/// Returns when every BPF program that was running at the call has ended.
///
/// `membarrier(2)` with `MEMBARRIER_CMD_GLOBAL` waits for an RCU grace period, and BPF programs of perf events run
/// inside RCU read sections. Where it is refused (CPUs with `nohz_full`), a second is far beyond the longest walk.
pub(crate) fn grace_period() {
    // SAFETY: a system call without pointers.
    let result = unsafe { libc::syscall(libc::SYS_membarrier, libc::MEMBARRIER_CMD_GLOBAL, 0, 0) };
    if result != 0 {
        std::thread::sleep(std::time::Duration::from_secs(1));
    }
}
