//! The proof on the threads of a live process: that the way leads each to its own state, and nowhere else.

use std::collections::HashMap;
use std::time::Duration;

use abi::python::Fault;
use processes::thread_pointer::{Patience, with_stopped};
use walk::cpython::state_of;

use crate::layout::LayoutRefusal;
use crate::layout::frames::{self, Words, check_frames};
use crate::layout::process::{Census, ThreadIdentity, check_thread_state};
use crate::refusal::Step;
use crate::snapshot::Snapshot;
use crate::{Memory, Noted, Ready, Refusal};

/// What changes while it is looked at is looked at again, so often at most.
const TRIES: usize = 5;

/// How much is looked at.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Effort {
    /// Threads that are asked for their thread pointers before it is looked whether that is enough. If none of so many can be
    /// stopped, as those of a frozen group, no others are asked.
    pub threads: usize,
    /// Threads that are asked at most.
    pub most_threads: usize,
    /// Threads whose keys are all looked at, at most: the others are like them.
    pub searched: usize,
    /// Links of a chain that are checked at most.
    pub links: u32,
    /// The same, of a thread that runs and is held for it.
    pub held_links: u32,
    /// How long such a thread is held at most.
    pub held: Duration,
    /// How long a thread is waited for until it stops.
    pub patience: Patience,
}

impl Effort {
    /// For one process that somebody asks about.
    pub const FULL: Effort = Effort {
        threads: usize::MAX,
        most_threads: usize::MAX,
        searched: 64,
        links: 4096,
        held_links: 256,
        held: Duration::from_millis(10),
        patience: Patience { uninterruptible: Duration::from_millis(50), other: Duration::from_secs(2) },
    };

    /// For many processes, which must hardly notice.
    pub const SMALL: Effort = Effort {
        threads: 8,
        most_threads: 256,
        searched: 4,
        links: 64,
        held_links: 32,
        held: Duration::from_millis(2),
        patience: Patience { uninterruptible: Duration::from_millis(10), other: Duration::from_millis(200) },
    };
}

/// A thread of the process.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Thread {
    /// Its number here.
    pub tid: u32,
    /// Its number in its own pid namespace.
    pub native: Option<u32>,
    /// x86_64: base of FS; aarch64: TPIDR_EL0.
    pub thread_pointer: u64,
}

/// The thread states of a process, by what `pthread_self` gives in their threads.
#[derive(Clone, Debug, Default)]
pub struct States {
    by_thread: HashMap<u64, Vec<Listed>>,
}

/// A listed thread state.
#[derive(Clone, Copy, Debug)]
struct Listed {
    state: u64,
    interpreter: u64,
}

impl States {
    /// Those that the interpreters of a runtime list now.
    ///
    /// # Errors
    /// If the lists cannot be followed.
    pub fn list<M: Memory>(ready: &Ready, memory: &M) -> Result<States, Refusal> {
        let census = again(|| Census::take(&ready.layout, memory, ready.interpreters_at))?;
        let mut states = States::default();
        for interpreter in census.interpreters {
            for state in interpreter.threads {
                let Ok(owner) = memory.u64(state.wrapping_add(ready.layout.thread.thread_id.into())) else { continue };
                let listed = Listed { state, interpreter: interpreter.address };
                states.by_thread.entry(owner).or_default().push(listed);
            }
        }
        Ok(states)
    }

    /// The states of a thread that does not run, the one that its slot leads to first; others are those of further
    /// interpreters that it is in. Of one interpreter a thread has one: another is that of a thread that is gone, where
    /// this one's stack lies now.
    ///
    /// # Errors
    /// Why there is none.
    pub fn of_thread<M: Memory>(&self, ready: &Ready, memory: &M, thread_pointer: u64) -> Result<Vec<u64>, Fault> {
        let first = state_of(&mut Words(memory), &ready.facts, thread_pointer)?;
        let field = |state: u64, offset: u32| memory.u64(state.wrapping_add(offset.into())).ok();
        let interpreter = field(first, ready.layout.thread.interp);
        let number = ready.layout.thread.native_thread_id;
        let number_of = |state: u64| number.and_then(|offset| field(state, offset));
        let mut found = vec![first];
        let mut seen: Vec<Option<u64>> = vec![interpreter];
        for listed in self.by_thread.get(&ready.thread_self(thread_pointer)).into_iter().flatten() {
            let is_other = !seen.contains(&Some(listed.interpreter)) && number_of(listed.state) == number_of(first);
            if is_other {
                seen.push(Some(listed.interpreter));
                found.push(listed.state);
            }
        }
        Ok(found)
    }
}

/// Tries again what may have changed under the look.
fn again<T>(mut look: impl FnMut() -> Result<T, LayoutRefusal>) -> Result<T, LayoutRefusal> {
    let mut result = look();
    for _ in 1..TRIES {
        if result.is_ok() {
            break;
        }
        result = look();
    }
    result
}

impl Ready {
    /// What `pthread_self` gives in a thread.
    pub(crate) fn thread_self(&self, thread_pointer: u64) -> u64 {
        thread_pointer.wrapping_add_signed(self.libc.thread_self.into())
    }
}

/// Proves an interpreter on threads.
///
/// # Errors
/// If no thread has a state, or what one has is not as it must be.
pub fn prove<M: Memory>(ready: &Ready, memory: &M, threads: &[Thread], effort: &Effort) -> Result<Noted, Refusal> {
    if threads.is_empty() {
        return Err(Refusal::NoThread);
    }
    let census = again(|| Census::take(&ready.layout, memory, ready.interpreters_at))?;
    let mut proof = Proof {
        ready,
        memory,
        effort,
        census,
        with_state: 0,
        of_other_number: 0,
        checked: 0,
        frames: 0,
        odd: Vec::new(),
        strange: Vec::new(),
    };
    for thread in threads {
        proof.check(thread)?;
    }
    if proof.strange.len() > proof.with_state
        && let Some(refusal) = proof.strange.pop()
    {
        return Err(refusal.into());
    }
    if proof.with_state == 0 {
        return Err(Refusal::NoState { threads: threads.len() });
    }
    proof.weigh_frames()?;
    Ok(proof.note(threads.len()))
}

struct Proof<'a, M> {
    ready: &'a Ready,
    memory: &'a M,
    effort: &'a Effort,
    census: Census,
    with_state: usize,
    /// Of those, threads whose states have another native id.
    of_other_number: usize,
    /// Threads whose frames are as they must be, and how many frames.
    checked: usize,
    frames: usize,
    /// Threads whose frames are not.
    odd: Vec<(u32, LayoutRefusal)>,
    /// What threads have in place of a state.
    strange: Vec<LayoutRefusal>,
}

impl<M: Memory> Proof<'_, M> {
    fn check(&mut self, thread: &Thread) -> Result<(), Refusal> {
        let ready = self.ready;
        let state = match state_of(&mut Words(self.memory), &ready.facts, thread.thread_pointer) {
            Ok(state) => state,
            // it has never run Python, or ended meanwhile
            Err(Fault::NoState | Fault::SlotUnreadable | Fault::StateUnreadable) => return Ok(()),
            // something else under the key: another C library's, in a namespace of its own (dlmopen)
            Err(fault) => {
                self.strange.push(LayoutRefusal::Chain { frames: 0, fault });
                return Ok(());
            }
        };
        self.check_state(thread, state)?;
        self.with_state += 1;
        self.of_other_number += usize::from(self.has_other_number(thread, state));
        if let Some(key) = ready.key
            && self.with_state <= self.effort.searched
        {
            self.search(key, thread, state)?;
        }
        match self.check_frames(thread, state) {
            Ok(facts) => {
                self.checked += 1;
                self.frames += facts.frames;
            }
            Err(refusal) => self.odd.push((thread.tid, refusal)),
        }
        Ok(())
    }

    fn check_state(&self, thread: &Thread, state: u64) -> Result<(), LayoutRefusal> {
        let thread_self = self.ready.thread_self(thread.thread_pointer);
        let identity = ThreadIdentity { thread_self, native: None };
        let (layout, memory) = (&self.ready.layout, self.memory);
        let check = |census: &Census| check_thread_state(layout, memory, census, state, identity).map(|_| ());
        // threads may have come since the census
        check(&self.census).or_else(|_| again(|| check(&Census::take(layout, memory, self.ready.interpreters_at)?)))
    }

    /// Whether a state does not have the thread's native id. After a fork that CPython was not told of (a C program's) it is
    /// that of the thread that forked.
    fn has_other_number(&self, thread: &Thread, state: u64) -> bool {
        let number = self.ready.layout.thread.native_thread_id.zip(thread.native);
        number.is_some_and(|(offset, native)| {
            self.memory.u64(state.wrapping_add(offset.into())).is_ok_and(|found| found != u64::from(native))
        })
    }

    /// That no other key of the thread leads to another state that passes. The same one may be kept by others, too: uWSGI does.
    fn search(&self, key: u32, thread: &Thread, state: u64) -> Result<(), Refusal> {
        let values = self.ready.libc.slots.values(self.memory, thread.thread_pointer);
        for (other, value) in values.into_iter().filter(|(other, _)| *other != key) {
            if value != state && self.census.interpreter_of(value).is_some() && self.check_state(thread, value).is_ok()
            {
                return Err(Refusal::OtherKey { key, other });
            }
        }
        Ok(())
    }

    /// A thread that waits stands still by itself; another one is held if that is needed.
    fn check_frames(&self, thread: &Thread, state: u64) -> Result<frames::ChainFacts, LayoutRefusal> {
        let ready = self.ready;
        let check = |links| {
            let memory = &Snapshot::new(self.memory);
            let process = frames::Process { layout: &ready.layout, facts: &ready.facts, types: &ready.types, memory };
            match check_frames(&process, state, links) {
                Err(LayoutRefusal::Chain { frames, fault: Fault::TooMany }) => {
                    Ok(frames::ChainFacts { frames, runs: 0 })
                }
                checked => checked,
            }
        };
        let refusal = match again(|| check(self.effort.links)) {
            Ok(facts) => return Ok(facts),
            Err(refusal) => refusal,
        };
        let held = with_stopped(thread.tid, self.effort.patience, self.effort.held, |_| check(self.effort.held_links));
        match held {
            Ok(held) if held.in_time => held.value,
            _ => Err(refusal),
        }
    }

    /// Names can be made that no compiler gives, and threads run on: a few threads that look odd refute nothing. If the
    /// structures were others, most would.
    fn weigh_frames(&self) -> Result<(), Refusal> {
        match self.odd.first() {
            Some((_, refusal)) if self.odd.len() > self.checked => Err(refusal.clone().into()),
            _ => Ok(()),
        }
    }

    fn note(&self, threads: usize) -> Noted {
        let mut evidence = vec![
            "thread_id is the thread pointer's, and the interpreter lists the state".to_owned(),
            format!(
                "{} frames of {} threads: code objects, names, instructions and ends as they must be",
                self.frames, self.checked
            ),
        ];
        if self.ready.layout.thread.native_thread_id.is_some() {
            let same = self.with_state - self.of_other_number;
            evidence.push(match self.of_other_number {
                0 => format!("native id of {same} threads is the thread's"),
                other => format!("native id of {same} threads is the thread's, of {other} that from before a fork"),
            });
        }
        evidence.extend(self.odd.iter().take(3).map(|(tid, refusal)| format!("not so of thread {tid}: {refusal}")));
        if let Some(key) = self.ready.key {
            let keys = self.ready.libc.slots.keys;
            evidence
                .push(format!("search: of all {keys} keys, none leads a thread to another state than key {key} does"));
        }
        let result = format!("{} of {threads} have a state of their own", self.with_state);
        Noted { step: Step::Threads, result, evidence }
    }
}
