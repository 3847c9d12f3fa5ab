//! Keeps what the sampler knows of processes: one entry per process, pointing at a run of mappings.

use std::rc::Rc;

use abi::process::{LOST, MAPPING_SEGMENTS, MAPPINGS_PER_SEGMENT, Mapping, PASSING, Process, flags};
use aya::maps::{ArrayOfMaps, HashMap, MapData, MapError};
use rustc_hash::FxHashMap;

use crate::arena::{Arena, ArenaError, Shape};
use crate::load::ProcessPod;
use crate::runs::Run;

/// So often a process is entered with doubt, and looked at again, at most; some milliseconds each.
const MOST_WAITS: u32 = 50;

/// Why a process could not be entered.
#[derive(Debug, thiserror::Error)]
pub(crate) enum EntryError {
    /// No room for its mappings.
    #[error(transparent)]
    Arena(#[from] ArenaError),
    /// The map of processes refused it.
    #[error("the map of processes: {0}")]
    Map(#[from] MapError),
}

/// Mappings in the arena; shared by a process and its children until they differ.
struct Entry {
    run: Rc<Run>,
    /// What is mapped where.
    places: Rc<[Place]>,
    process: Process,
}

/// First address, first one behind, object, and offset in its file.
type Place = (u64, u64, u32, u64);

fn place(mapping: &Mapping) -> Place {
    (mapping.begin, mapping.end, mapping.object, mapping.file_offset)
}

/// The map of processes and the arena of mappings.
pub(crate) struct ProcessMap {
    map: HashMap<MapData, u32, ProcessPod>,
    stale: HashMap<MapData, u32, u64>,
    arena: Arena<Mapping>,
    entries: FxHashMap<u32, Entry>,
    /// How often in a row a process was entered with doubt.
    waits: FxHashMap<u32, u32>,
}

impl ProcessMap {
    /// Empty.
    pub(crate) fn new(
        map: HashMap<MapData, u32, ProcessPod>,
        stale: HashMap<MapData, u32, u64>,
        mappings: ArrayOfMaps<MapData>,
    ) -> ProcessMap {
        let shape =
            Shape { name: "mappings", per_segment: MAPPINGS_PER_SEGMENT, segments: MAPPING_SEGMENTS, across: false };
        ProcessMap {
            map,
            stale,
            arena: Arena::new(mappings, shape),
            entries: FxHashMap::default(),
            waits: FxHashMap::default(),
        }
    }

    /// Enters a process or replaces what is known of it. `mappings` are sorted and at most [`MAPPINGS_PER_SEGMENT`]; they
    /// are what the process's events up to `as_of` (CLOCK_MONOTONIC, ns) tell. `python` is the index of its interpreter, or 0.
    /// False if that may be wrong since then: then its samples are deferred.
    pub(crate) fn set(
        &mut self,
        pid: u32,
        mappings: &[Mapping],
        flags: u32,
        python: u32,
        as_of: u64,
    ) -> Result<bool, EntryError> {
        let mappings = &mappings[..mappings.len().min(MAPPINGS_PER_SEGMENT)];
        let places: Rc<[Place]> = mappings.iter().map(place).collect();
        let may_pass = self.has_waited(pid) && self.has_all(pid, &places);
        let doubt = if self.is_stale(pid, as_of) && !(may_pass && self.is_passing(pid)) { flags::DOUBTED } else { 0 };
        let run = self.arena.insert(mappings)?;
        let process = Process { first_mapping: run.start, mappings: run.length, flags: flags | doubt, python };
        self.enter(pid, Rc::new(run), places, process)?;
        let is_sure = doubt == 0 && (may_pass && self.is_passing(pid) || self.still_fresh(pid, as_of));
        match is_sure {
            true => _ = self.waits.remove(&pid),
            false => *self.waits.entry(pid).or_default() += 1,
        }
        Ok(is_sure)
    }

    /// Whether a process has been doubted for long: one that maps memory all the time shall not be deferred for ever.
    fn has_waited(&self, pid: u32) -> bool {
        self.waits.get(&pid).is_some_and(|waits| *waits >= MOST_WAITS)
    }

    /// Whether the memory that was given away last concerned nothing that was entered.
    fn is_passing(&self, pid: u32) -> bool {
        self.stale.get(&pid, 0).is_ok_and(|since| since & (PASSING | LOST) == PASSING)
    }

    /// Whether all of this was entered before: nobody has looked whether memory that was given away concerns anything else.
    fn has_all(&self, pid: u32, places: &[Place]) -> bool {
        self.entries.get(&pid).is_some_and(|entry| places.iter().all(|place| entry.places.contains(place)))
    }

    /// Gives a child what its parent has, with an interpreter of its own; false if that is not known for certain.
    pub(crate) fn copy(&mut self, parent: u32, child: u32, python: u32, as_of: u64) -> Result<bool, EntryError> {
        let Some(entry) = self.entries.get(&parent) else { return Ok(false) };
        let (run, places) = (entry.run.clone(), entry.places.clone());
        let process = Process { python, ..entry.process };
        let known = process.flags & flags::DOUBTED == 0;
        if !known || self.is_stale(parent, as_of) || self.is_stale(child, as_of) {
            return Ok(false);
        }
        self.enter(child, run, places, process)?;
        Ok(self.still_fresh(child, as_of))
    }

    fn is_stale(&self, pid: u32, as_of: u64) -> bool {
        self.stale.get(&pid, 0).is_ok_and(|since| since > as_of)
    }

    /// The kernel may have given memory away between the look and the entry.
    fn still_fresh(&mut self, pid: u32, as_of: u64) -> bool {
        let stale = self.is_stale(pid, as_of);
        if stale {
            self.doubt(pid);
        }
        !stale
    }

    fn doubt(&mut self, pid: u32) {
        if let Some(entry) = self.entries.get_mut(&pid) {
            entry.process.flags |= flags::DOUBTED;
            if self.map.insert(pid, ProcessPod(entry.process), 0).is_err() {
                let _ = self.map.remove(&pid);
            }
        }
    }

    /// When memory of a process was given away and it is not known which.
    pub(crate) fn lost_at(&self, pid: u32) -> Option<u64> {
        self.stale.get(&pid, 0).ok().filter(|since| since & LOST != 0)
    }

    /// Removes a process that is gone.
    pub(crate) fn remove(&mut self, pid: u32) {
        if let Some(entry) = self.entries.remove(&pid) {
            // it can only be missing already
            let _ = self.map.remove(&pid);
            self.release(entry.run);
        }
        let _ = self.stale.remove(&pid);
        self.waits.remove(&pid);
    }

    /// Whether anything waits for [`ProcessMap::reclaim`].
    pub(crate) fn has_retired(&self) -> bool {
        self.arena.has_retired()
    }

    /// See [`Arena::reclaim`].
    pub(crate) fn reclaim(&mut self) {
        self.arena.reclaim();
    }

    fn enter(&mut self, pid: u32, run: Rc<Run>, places: Rc<[Place]>, process: Process) -> Result<(), EntryError> {
        if let Err(error) = self.map.insert(pid, ProcessPod(process), 0) {
            self.release(run);
            return Err(error.into());
        }
        if let Some(before) = self.entries.insert(pid, Entry { run, places, process }) {
            self.release(before.run);
        }
        Ok(())
    }

    fn release(&mut self, run: Rc<Run>) {
        if let Ok(run) = Rc::try_unwrap(run) {
            self.arena.retire(run);
        }
    }
}
