//! The sampler's maps of CPython interpreters: one element for each process that has one, and one for each file with an eval
//! loop.

use std::collections::VecDeque;

use abi::python::{ENTRIES, EVAL_LOOPS, Entry, EvalLoop as Pieces};
use aya::maps::MapData;
use python::eval_loop::EvalLoop;

use crate::mapped::Mapped;

/// The maps, and which of their elements are free.
pub(crate) struct PythonMap {
    memory: Mapped<Entry>,
    eval_loops: Mapped<Pieces>,
    /// Objects with an eval loop, by its index.
    objects: Vec<u32>,
    elements: Elements,
}

impl PythonMap {
    /// Empty. Element 0 stays as it is: no interpreter.
    pub(crate) fn new(map: &MapData, eval_loops: &MapData) -> std::io::Result<PythonMap> {
        Ok(PythonMap {
            memory: Mapped::new(map, ENTRIES)?,
            eval_loops: Mapped::new(eval_loops, EVAL_LOOPS)?,
            objects: Vec::new(),
            elements: Elements::default(),
        })
    }

    /// Puts an interpreter in, and gives it an id of its own; its index and the id. `None` if there is no room.
    pub(crate) fn insert(&mut self, entry: &Entry, eval_loop: &EvalLoop) -> Option<(u32, u32)> {
        let eval_loop = self.eval_loop(entry, eval_loop)?;
        let (index, id) = self.elements.take()?;
        if !self.memory.write(index as usize, &[Entry { id, eval_loop, ..*entry }]) {
            return None;
        }
        Mapped::<Entry>::publish();
        Some((index, id))
    }

    /// Index of an object's eval loop.
    fn eval_loop(&mut self, entry: &Entry, eval_loop: &EvalLoop) -> Option<u32> {
        if let Some(index) = self.objects.iter().position(|known| *known == entry.object) {
            return Some(index as u32);
        }
        let index = self.objects.len();
        if !self.eval_loops.write(index, &[eval_loop.for_sampler(&entry.python)?]) {
            return None;
        }
        self.objects.push(entry.object);
        Some(index as u32)
    }

    /// Frees an element.
    pub(crate) fn remove(&mut self, index: u32) {
        self.elements.give_back(index);
    }
}

/// Elements that are free, and the ids that were given out.
struct Elements {
    /// The one that was freed first is used first: a walk may still be reading one that was freed just now.
    free: VecDeque<u32>,
    next_id: u32,
}

impl Default for Elements {
    fn default() -> Elements {
        Elements { free: (1..ENTRIES as u32).collect(), next_id: 1 }
    }
}

impl Elements {
    /// A free element, and an id that no other one has had. `None` if there is no room, or ids have run out.
    fn take(&mut self) -> Option<(u32, u32)> {
        let next_id = self.next_id.checked_add(1)?;
        let index = self.free.pop_front()?;
        Some((index, std::mem::replace(&mut self.next_id, next_id)))
    }

    fn give_back(&mut self, index: u32) {
        self.free.push_back(index);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_as_there_is_room_for() {
        let mut elements = Elements::default();
        let all: Vec<(u32, u32)> = std::iter::from_fn(|| elements.take()).collect();
        // the first one is no interpreter, and neither is the id 0
        assert_eq!(all, (1..ENTRIES as u32).map(|number| (number, number)).collect::<Vec<_>>());
        assert_eq!(elements.take(), None);
        elements.give_back(77);
        assert_eq!(elements.take(), Some((77, ENTRIES as u32)));
        assert_eq!(elements.take(), None);
    }

    #[test]
    fn what_was_freed_first_is_used_first_under_another_id() {
        let mut elements = Elements::default();
        let (first, second) = (elements.take().expect("room"), elements.take().expect("room"));
        elements.give_back(second.0);
        elements.give_back(first.0);
        let rest: Vec<(u32, u32)> = std::iter::from_fn(|| elements.take()).collect();
        assert_eq!(rest.len(), ENTRIES - 1);
        assert_eq!(rest[rest.len() - 2..].iter().map(|(index, _)| *index).collect::<Vec<_>>(), [second.0, first.0]);
        let mut ids: Vec<u32> = rest.iter().chain([&first, &second]).map(|(_, id)| *id).collect();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), ENTRIES + 1, "no id is given out twice");
    }

    #[test]
    fn ids_do_not_begin_again() {
        let mut elements = Elements { next_id: u32::MAX - 1, ..Elements::default() };
        assert_eq!(elements.take(), Some((1, u32::MAX - 1)));
        assert_eq!(elements.take(), None);
    }
}
