//! Layouts on live processes: of every interpreter that this machine has, the frames of parked threads are those that the
//! program itself sees; and no offset can be another one without being noticed.

#[path = "layout/garbage.rs"]
mod garbage;
#[path = "layout/refusals.rs"]
mod refusals;
#[path = "layout/targets.rs"]
mod targets;

use std::collections::BTreeMap;

use abi::python::{Python, Slot};
use objects::Architecture;
use python::Memory;
use python::layout::confirm::{Types, confirm};
use python::layout::frames::{ChainFacts, Process, Words, check_frames};
use python::layout::process::{Census, ThreadIdentity, check_runtime, check_thread_state};
use python::layout::{Layout, LayoutRefusal, Platform, debug_offsets};
use targets::{Interpreter, Live, Target};
use walk::cpython::{Chain, Step};

/// Links of a chain at most; the program's longest has 900 and a few.
const LIMIT: u32 = 5000;

/// A live target and the addresses in it.
struct Case {
    target: Target,
    types: Types,
    /// `_PyRuntime`; 3.6 has none.
    runtime: Option<u64>,
}

impl Case {
    fn of(target: Target) -> Option<Case> {
        let [code, frame, unicode, bytes] = Types::SYMBOLS.map(|name| target.symbol(name));
        let types = Types { code: code?, frame: frame?, unicode: unicode?, bytes: bytes? };
        let runtime = target.symbol("_PyRuntime");
        Some(Case { target, types, runtime })
    }

    fn layout(&self) -> Layout {
        let version = self.target.version;
        let memory = self.target.memory();
        let free_threaded = self.runtime.map(|runtime| debug_offsets::is_free_threaded(version, &memory, runtime));
        let free_threaded = free_threaded.is_some_and(|flag| flag.expect("debug offsets"));
        Layout::measured(version, Platform { architecture: self.target.architecture, musl: false, free_threaded })
            .expect("a measured version")
    }

    fn head_at(&self, layout: &Layout) -> Option<u64> {
        match (self.runtime, layout.runtime.interpreters_head) {
            (Some(runtime), Some(offset)) => Some(runtime.wrapping_add(offset.into())),
            _ => self.target.symbol("interp_head"),
        }
    }

    fn facts(&self, layout: &Layout) -> Python {
        layout.facts(self.types.code, Slot::default())
    }

    fn census(&self, layout: &Layout) -> Result<Census, LayoutRefusal> {
        Census::take(layout, &self.target.memory(), self.head_at(layout).expect("the list of interpreters"))
    }

    /// The states of the program's threads by the addresses that these have.
    fn states(&self, layout: &Layout, census: &Census) -> BTreeMap<u64, u64> {
        let memory = self.target.memory();
        // a thread that is in another interpreter has a state there, too, and its first one is older
        let states = census.interpreters.iter().flat_map(|interpreter| &interpreter.threads);
        states.map(|state| (memory.u64(state + u64::from(layout.thread.thread_id)).unwrap_or(0), *state)).collect()
    }

    /// Everything that proves a layout on this process.
    fn prove(&self, layout: &Layout) -> Result<Vec<ChainFacts>, LayoutRefusal> {
        let memory = self.target.memory();
        let facts = self.facts(layout);
        let census = self.census(layout)?;
        let states = self.states(layout, &census);
        if let Some(runtime) = self.runtime {
            debug_offsets::compare(layout, &memory, runtime)?;
            self.check_runtime(layout, runtime, &census, &states)?;
        }
        confirm(layout, &memory, &self.types)?;
        let process = Process { layout, facts: &facts, types: &self.types, memory: &memory };
        let mut chains = Vec::new();
        for thread in &self.target.threads {
            let expected = "must be that of a thread";
            let missing = LayoutRefusal::Live { field: "thread.thread_id", found: thread.thread_self, expected };
            let state = *states.get(&thread.thread_self).ok_or(missing)?;
            let identity = ThreadIdentity { thread_self: thread.thread_self, native: thread.native };
            check_thread_state(layout, &memory, &census, state, identity)?;
            chains.push(check_frames(&process, state, LIMIT)?);
        }
        // each of them waits in a function
        if chains.iter().any(|chain| chain.frames == 0) {
            return Err(LayoutRefusal::Live { field: "thread.current", found: 0, expected: "must lead to a frame" });
        }
        Ok(chains)
    }

    fn check_runtime(
        &self,
        layout: &Layout,
        runtime: u64,
        census: &Census,
        states: &BTreeMap<u64, u64>,
    ) -> Result<(), LayoutRefusal> {
        let facts = check_runtime(layout, &self.target.memory(), runtime, census)?;
        if let Some(key) = facts.key {
            self.check_slot(states, key)?;
        }
        let main = self.target.threads.last().and_then(|thread| states.get(&thread.thread_self).copied());
        if self.target.holds && layout.runtime.tstate_current.is_some() && facts.current != main {
            let (field, expected) = ("runtime.tstate_current", "must be the thread that holds the GIL");
            return Err(LayoutRefusal::Live { field, found: facts.current.unwrap_or(0), expected });
        }
        Ok(())
    }

    /// The key leads to the state of each thread: glibc's `struct pthread`, with 784 (x86_64) or 272 bytes (aarch64) in
    /// front of its slots of 16 bytes.
    fn check_slot(&self, states: &BTreeMap<u64, u64>, key: u32) -> Result<(), LayoutRefusal> {
        let first = if self.target.architecture == Architecture::X86_64 { 784 } else { 272 };
        for thread in &self.target.threads {
            let slot = thread.thread_self + first + u64::from(key) * 16 + 8;
            let found = self.target.memory().u64(slot).unwrap_or(0);
            if states.get(&thread.thread_self) != Some(&found) {
                let expected = "must lead to the state of the thread";
                return Err(LayoutRefusal::Live { field: "runtime.auto_tss_key", found, expected });
            }
        }
        Ok(())
    }

    /// What lies beside the key can look like a created key of the same number. The code that uses the key tells them apart.
    fn is_same_key(&self, name: &str, one: u32, other: u32) -> bool {
        let word = |offset: u32| self.target.memory().u64(self.runtime.unwrap_or(0).wrapping_add(offset.into()));
        name == "runtime.auto_tss_key" && word(one).map(|word| word >> 32) == word(other).map(|word| word >> 32)
    }

    /// Names of a state's frames, innermost first.
    fn names(&self, layout: &Layout, state: u64) -> Vec<String> {
        let memory = self.target.memory();
        let facts = self.facts(layout);
        let mut names = Vec::new();
        for step in Chain::new(&mut Words(&memory), &facts, state, LIMIT) {
            if let Step::Python { frame, .. } = step.expect("a sound chain") {
                let name = layout.code.qualname.unwrap_or(layout.code.name);
                let string = memory.u64(frame.code + u64::from(name)).expect("a name");
                names.push(text(layout, &memory, string));
            }
        }
        names
    }
}

/// A compact string.
fn text(layout: &Layout, memory: &Live, string: u64) -> String {
    let length = memory.u64(string + u64::from(layout.text.length)).expect("a length") as usize;
    let state = memory.u32(string + u64::from(layout.text.state)).expect("a state");
    let (kind, is_ascii) = ((state >> 2 & 7) as usize, state >> 6 & 1 == 1);
    let mut bytes = vec![0; length * kind];
    let data = if is_ascii { layout.text.ascii } else { layout.text.compact };
    memory.read(string + u64::from(data), &mut bytes).expect("characters");
    let units = bytes.chunks(kind).map(|unit| unit.iter().rev().fold(0, |all, byte| all << 8 | u32::from(*byte)));
    units.map(|unit| char::from_u32(unit).unwrap_or('?')).collect()
}

fn each_case(mut check: impl FnMut(&Interpreter, &Case)) {
    let interpreters = targets::interpreters();
    if interpreters.is_empty() {
        println!("SKIPPED: no Python interpreter here");
    }
    for interpreter in interpreters {
        match Target::start(&interpreter).and_then(Case::of) {
            Some(case) => check(&interpreter, &case),
            None => println!("SKIPPED: {} does not run here, or exports nothing", interpreter.name),
        }
    }
}

#[test]
fn frames_are_those_that_the_program_sees() {
    each_case(|interpreter, case| {
        let layout = case.layout();
        if case.head_at(&layout).is_none() {
            println!("SKIPPED: {} has no symbol of its list of interpreters", interpreter.name);
            return;
        }
        let chains = case.prove(&layout).unwrap_or_else(|refusal| panic!("{}: {refusal}", interpreter.name));
        let census = case.census(&layout).expect("a census");
        assert_eq!(census.interpreters.len(), case.target.interpreters, "{}", interpreter.name);
        let states = case.states(&layout, &census);
        assert_eq!(case.target.threads.len(), 6);
        for thread in &case.target.threads {
            let names = case.names(&layout, states[&thread.thread_self]);
            assert!(names == thread.names, "{}, thread {}: {names:?}", interpreter.name, thread.name);
        }
        let frames: usize = chains.iter().map(|chain| chain.frames).sum();
        let runs: usize = chains.iter().map(|chain| chain.runs).sum();
        println!("{} ({}): {frames} frames in {runs} runs", interpreter.name, case.target.version);
    });
}

#[test]
fn no_offset_can_be_another() {
    each_case(|interpreter, case| {
        let layout = case.layout();
        if case.head_at(&layout).is_none() {
            return;
        }
        case.prove(&layout).unwrap_or_else(|refusal| panic!("{}: {refusal}", interpreter.name));
        let mut unnoticed = Vec::new();
        for (name, value) in layout.offsets() {
            // a compiler lays a field at a multiple of its size
            for change in [-64, -32, -24, -16, -8, -4, 4, 8, 16, 24, 32, 64, 4096] {
                let Some(other) = value.checked_add_signed(change) else { continue };
                if case.prove(&layout.with(name, other)).is_ok() && !case.is_same_key(name, value, other) {
                    unnoticed.push((name, value, other));
                }
            }
        }
        assert_eq!(unnoticed, [], "{} ({})", interpreter.name, case.target.version);
    });
}
