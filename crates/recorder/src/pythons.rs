//! Interpreters that were proven in a recording's processes, what is said of them, and the code objects of their samples.

use std::rc::Rc;

use abi::python::Entry;
use processes::memory::ProcessMemory;
use python::code_object::CodeObject;
use python::sampled::Sampled;
use rustc_hash::{FxHashMap, FxHashSet};
use rustix::fd::BorrowedFd;

use crate::interpreters::{Interpreters, Proven};
use crate::python_map::PythonMap;
use crate::ring::NewCode;

/// An interpreter that is in the sampler's map.
pub(crate) struct Known {
    /// Index in that map.
    pub(crate) index: u32,
    /// What was proven.
    pub(crate) found: Rc<Proven>,
    /// The object that has the eval loop.
    pub(crate) object: u32,
}

/// One line about a process for the user.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Status {
    /// What was found, or refused.
    pub(crate) text: String,
    /// Something was found: what is found later is not about the same.
    is_final: bool,
}

/// Bytes for code objects at most: a program may make new ones all the time.
pub(crate) const CODE_BYTES: usize = 256 << 20;

/// A code object in a process: number of the process, address, check.
type CodeKey = (u64, u64, u32);

/// Interpreters and code objects of a recording.
pub(crate) struct Pythons {
    /// Who looks at processes.
    pub(crate) interpreters: Interpreters,
    map: PythonMap,
    keeps_eval_loops: bool,
    /// By the sampler's id: number of the process, and the interpreter.
    by_id: FxHashMap<u32, (u64, Rc<Proven>)>,
    /// By number of the process: the object with the eval loop, and the interpreter.
    by_instance: FxHashMap<u64, (u32, Rc<Proven>)>,
    /// Processes to be looked at again.
    pub(crate) later: Vec<u32>,
    /// How many questions were asked.
    pub(crate) asked: u64,
    codes: FxHashMap<CodeKey, CodeObject>,
    /// What they need.
    code_bytes: usize,
    statuses: FxHashMap<u64, Vec<Status>>,
    /// Objects that are known to be no interpreter.
    pub(crate) not_python: FxHashSet<u32>,
}

impl Pythons {
    pub(crate) fn new(interpreters: Interpreters, map: PythonMap, keeps_eval_loops: bool) -> Pythons {
        Pythons {
            interpreters,
            map,
            keeps_eval_loops,
            by_id: FxHashMap::default(),
            by_instance: FxHashMap::default(),
            later: Vec::new(),
            asked: 0,
            codes: FxHashMap::default(),
            code_bytes: 0,
            statuses: FxHashMap::default(),
            not_python: FxHashSet::default(),
        }
    }

    /// Becomes readable when there are answers.
    pub(crate) fn ready(&self) -> BorrowedFd<'_> {
        self.interpreters.ready()
    }

    /// Reads a code object out of what the sampler sent of it, and of the process what is missing. False: there is no room for it.
    pub(crate) fn name(&mut self, code: &NewCode) -> bool {
        let Some((instance, found)) = self.by_id.get(&code.id) else { return true };
        let pieces = code.pieces.iter().map(|(address, bytes)| (*address, bytes.as_slice())).collect();
        let sampled = Sampled { address: code.code, check: code.check, pieces };
        let live = || ProcessMemory::open(code.pid).ok();
        let (layout, strings) = (found.code_layout(), found.string_layout());
        let object = sampled.read(live, &found.entry.code, &layout, &strings);
        // one that was sent again may lack what was there before
        let Some(object) = object else { return true };
        let bytes = bytes_of(&object);
        if self.code_bytes + bytes > CODE_BYTES {
            return false;
        }
        let before = self.codes.insert((*instance, code.code, code.check), object);
        self.code_bytes = self.code_bytes + bytes - before.as_ref().map_or(0, bytes_of);
        true
    }

    /// A code object of a process, if it could be read in time.
    pub(crate) fn code(&self, instance: u64, code: u64, check: u32) -> Option<&CodeObject> {
        self.codes.get(&(instance, code, check))
    }

    /// A process has an interpreter no more.
    pub(crate) fn remove(&mut self, known: Known) {
        self.map.remove(known.index);
    }

    /// Says of a process what is said of another one.
    pub(crate) fn copy_statuses(&mut self, from: u64, to: u64) {
        let statuses = self.statuses(from).to_vec();
        self.statuses.insert(to, statuses);
    }

    /// Lines about the interpreters of a process.
    pub(crate) fn statuses(&self, instance: u64) -> &[Status] {
        self.statuses.get(&instance).map(Vec::as_slice).unwrap_or_default()
    }

    /// What the sampler knows of the interpreter that a process has or had last.
    pub(crate) fn of_process(&self, instance: u64) -> Option<(Entry, Rc<Proven>)> {
        let (object, found) = self.by_instance.get(&instance)?;
        Some((self.entry_of(found, *object), found.clone()))
    }

    fn entry_of(&self, found: &Proven, object: u32) -> Entry {
        Entry { object, keeps_native: self.keeps_eval_loops.into(), ..found.entry }
    }

    /// Whether a place in an object is in the eval loop of the interpreter that a process has or had last.
    pub(crate) fn is_eval_loop(&self, instance: u64, object: u32, offset: u64) -> bool {
        let known = self.by_instance.get(&instance).filter(|(of, _)| *of == object);
        known.is_some_and(|(_, found)| found.eval_loop.at(offset).is_some())
    }

    /// Notes what is to be said of a process: beside what it had before it became another program, in place of what was only
    /// not ready.
    pub(crate) fn note(&mut self, instance: u64, texts: Vec<String>, is_final: bool) {
        let statuses = self.statuses.entry(instance).or_default();
        statuses.retain(|status| status.is_final);
        for text in texts {
            if statuses.iter().all(|status| status.text != text) {
                statuses.push(Status { text, is_final });
            }
        }
    }

    /// Enters an interpreter of a process into the sampler's map; `None` if there is no room.
    pub(crate) fn insert(&mut self, instance: u64, found: Rc<Proven>, object: u32) -> Option<Known> {
        let (index, id) = self.map.insert(&self.entry_of(&found, object), &found.eval_loop)?;
        self.by_id.insert(id, (instance, found.clone()));
        self.by_instance.insert(instance, (object, found.clone()));
        Some(Known { index, found, object })
    }
}

/// What a code object needs, with its place in the table.
fn bytes_of(object: &CodeObject) -> usize {
    let texts = object.name.text.len() + object.path.text.len() + object.line_table.bytes.len();
    size_of::<(CodeKey, CodeObject)>() + texts
}
