//! Code without unwind information: what it says of its caller is read once for each place, and told to the sampler.
//!
//! The sampler defers a sample whose walk comes to such a place for the first time. Here the code is decoded from there to
//! where it returns ([`objects::exits`]), and the rule goes into a map in which the sampler finds it the next time. With
//! the rule go the bytes at the place: memory that is in no file may have become other code, which the sampler then sees.

use std::os::unix::fs::FileExt;
use std::time::Instant;

use abi::process::place::IN_FILE;
use abi::process::{EXITS, Exit, Mapping, Place};
use abi::table::{Rule, cfa};
use aya::Pod;
use aya::maps::{HashMap, MapData};
use objects::exits::{Code, Exit as Found, exit, exit_after_call};
use processes::memory::read_memory;
use rustc_hash::FxHashMap;

use crate::known_objects::KnownObjects;

/// A [`Place`] as a key of a map.
#[repr(transparent)]
#[derive(Clone, Copy)]
pub struct PlacePod(Place);

/// An [`Exit`] as a value of a map.
#[repr(transparent)]
#[derive(Clone, Copy)]
pub struct ExitPod(Exit);

// SAFETY: plain integers in C layout without padding, as the assertions in `abi` check.
unsafe impl Pod for PlacePod {}
// SAFETY: as above.
unsafe impl Pod for ExitPod {}

/// The map that the sampler reads.
pub(crate) type ExitMap = HashMap<MapData, PlacePod, ExitPod>;

/// A process whose code is read.
#[derive(Clone, Copy)]
pub(crate) struct Process<'a> {
    pub(crate) pid: u32,
    pub(crate) mappings: &'a [Mapping],
    pub(crate) objects: &'a KnownObjects,
}

/// Places that are read in a second at most, and at once; each takes some ten microseconds. Programs have a few thousand
/// such places that are sampled. One whose stacks are full of ever new ones shall not take all of our time.
const READ_PER_SECOND: f64 = 4000.0;
const READ_AT_ONCE: f64 = 8000.0;

/// How many places may be read now.
struct Budget {
    left: f64,
    as_of: Instant,
}

impl Budget {
    fn new() -> Budget {
        Budget { left: READ_AT_ONCE, as_of: Instant::now() }
    }

    /// Whether one more may be read at this time.
    fn take(&mut self, now: Instant) -> bool {
        let since = now.saturating_duration_since(self.as_of).as_secs_f64();
        self.left = (self.left + since * READ_PER_SECOND).min(READ_AT_ONCE);
        self.as_of = now;
        let may = self.left >= 1.0;
        if may {
            self.left -= 1.0;
        }
        may
    }
}

/// What was read.
pub(crate) struct Exits {
    map: ExitMap,
    known: FxHashMap<Place, Exit>,
    /// Places in code that is in no file, by process.
    of_process: FxHashMap<u32, Vec<Place>>,
    budget: Budget,
}

impl Exits {
    /// Nothing yet.
    pub(crate) fn new(map: ExitMap) -> Exits {
        Exits { map, known: FxHashMap::default(), of_process: FxHashMap::default(), budget: Budget::new() }
    }

    /// What the code at `pc` says; [`Rule::NONE`] if it says nothing.
    pub(crate) fn rule(&mut self, process: Process<'_>, mapping: &Mapping, pc: u64, interrupted: bool) -> Rule {
        let mut bytes = [0; 8];
        let mut reader = process;
        if reader.read(pc, &mut bytes) < bytes.len() {
            // the end of a file or of memory, or a process that is gone: nothing that could be checked later
            return Rule::NONE;
        }
        let code = u64::from_le_bytes(bytes);
        let place = Place::new(process.pid, mapping, pc, interrupted);
        if let Some(known) = self.known.get(&place).filter(|known| known.code == code) {
            let known = *known;
            self.tell(place, known);
            return known.rule;
        }
        if !self.budget.take(Instant::now()) {
            // not remembered: it may be read another time
            return Rule::NONE;
        }
        let found = if interrupted { exit(&mut reader, pc) } else { exit_after_call(&mut reader, pc) };
        let rule = match found {
            // other registers are known where the thread was interrupted; elsewhere its frame pointer may lead on
            Found::Rule(rule) if interrupted || rule.cfa != cfa::REGISTER => rule,
            Found::Rule(_) | Found::Unclear(_) => Rule::NONE,
        };
        self.learn(place, Exit { rule, code });
        rule
    }

    /// A process is gone, and its id may come again.
    pub(crate) fn forget(&mut self, pid: u32) {
        for place in self.of_process.remove(&pid).unwrap_or_default() {
            self.known.remove(&place);
            // the sampler may have dropped it already
            let _ = self.map.remove(&PlacePod(place));
        }
    }

    fn learn(&mut self, place: Place, exit: Exit) {
        if self.known.len() >= 4 * EXITS {
            // code that changes all the time; what is needed comes back
            self.known.clear();
            self.of_process.clear();
        }
        if self.known.insert(place, exit).is_none() && place.how & IN_FILE == 0 {
            self.of_process.entry(place.owner).or_default().push(place);
        }
        self.tell(place, exit);
    }

    fn tell(&mut self, place: Place, exit: Exit) {
        // without it the sampler defers the next sample too
        let _ = self.map.insert(PlacePod(place), ExitPod(exit), 0);
    }
}

impl Process<'_> {
    /// The mapping around an address.
    pub(crate) fn mapping(&self, address: u64) -> Option<&Mapping> {
        let after = self.mappings.partition_point(|mapping| mapping.begin <= address);
        self.mappings[..after].last().filter(|mapping| address < mapping.end)
    }
}

impl Code for Process<'_> {
    /// Memory may differ from the file that it was mapped from; the file serves where the process is gone.
    fn read(&mut self, address: u64, into: &mut [u8]) -> usize {
        let Some(mapping) = self.mapping(address) else { return 0 };
        let length = into.len().min(usize::try_from(mapping.end - address).unwrap_or(usize::MAX));
        let into = &mut into[..length];
        if let Ok(count) = read_memory(self.pid, address, into) {
            return count;
        }
        let file = self.objects.get(mapping.object).and_then(|object| object.file.as_ref());
        let at = address - mapping.begin + mapping.file_offset;
        file.and_then(|file| file.file().read_at(into, at).ok()).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn places_are_read_at_a_bounded_rate() {
        let mut budget = Budget::new();
        let start = budget.as_of;
        let taken = |budget: &mut Budget, at| (0..100_000).filter(|_| budget.take(at)).count() as f64;
        assert_eq!(taken(&mut budget, start), READ_AT_ONCE);
        assert_eq!(taken(&mut budget, start + Duration::from_secs(1)), READ_PER_SECOND);
        assert_eq!(taken(&mut budget, start + Duration::from_secs(100)), READ_AT_ONCE);
    }
}
