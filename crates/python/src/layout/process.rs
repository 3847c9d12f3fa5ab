//! A layout's proof on the runtime of a live process: its flags, its interpreters and their threads.
//!
//! Lists may change while they are read. What fails for that reason does not fail again.

use std::collections::HashSet;

use super::refusal::Reading;
use super::{Layout, LayoutRefusal};
use crate::Memory;
use crate::snapshot::Snapshot;

/// Interpreters at most.
pub const INTERPRETERS: usize = 4096;
/// Threads at most, of all interpreters.
pub const THREADS: usize = 1 << 17;
/// `PTHREAD_KEYS_MAX` of glibc; musl has 128.
const KEYS: u32 = 1024;

/// An interpreter in a process.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct InterpreterStates {
    /// Address of its state.
    pub address: u64,
    /// Its number; 0 is the main interpreter's. 3.6 has none.
    pub number: Option<u64>,
    /// Addresses of its threads' states, newest first.
    pub threads: Vec<u64>,
}

/// The interpreters of a process and their threads.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Census {
    /// Newest first.
    pub interpreters: Vec<InterpreterStates>,
}

impl Census {
    /// Takes it, from the address of what holds the newest interpreter's: `interpreters.head` of `_PyRuntime`; in 3.6 the
    /// variable `interp_head` of Python/pystate.c.
    ///
    /// # Errors
    /// [`LayoutRefusal::NotInitialised`] if there are no interpreters; if a list has no end, or a thread is listed that is not its
    /// interpreter's or not linked in both directions.
    pub fn take<M: Memory>(layout: &Layout, memory: &M, head_at: u64) -> Result<Census, LayoutRefusal> {
        // states lie close together, and each is asked three things
        let memory = &Snapshot::new(memory);
        let head = memory.u64(head_at).of("list of interpreters")?;
        if head == 0 {
            return Err(LayoutRefusal::NotInitialised);
        }
        let mut interpreters = Vec::new();
        let mut left = THREADS;
        for address in list(memory, head, layout.interpreter.next, "interpreters", INTERPRETERS)? {
            let number = layout.interpreter.id.map(|id| memory.u64(address.wrapping_add(id.into())));
            let number = number.transpose().of("number of an interpreter")?;
            let threads = threads(layout, memory, address, left)?;
            left -= threads.len();
            interpreters.push(InterpreterStates { address, number, threads });
        }
        Ok(Census { interpreters })
    }

    /// The interpreter that lists the state of a thread at this address.
    pub fn interpreter_of(&self, state: u64) -> Option<&InterpreterStates> {
        self.interpreters.iter().find(|interpreter| interpreter.threads.contains(&state))
    }
}

/// What the kernel and the C library say of a thread.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ThreadIdentity {
    /// What `pthread_self` gives in it.
    pub thread_self: u64,
    /// Its number in its own pid namespace, if known.
    pub native: Option<u32>,
}

/// What the runtime says of itself.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct RuntimeFacts {
    /// The key under which threads keep their state (3.7 to 3.14).
    pub key: Option<u32>,
    /// The state of the thread that holds the GIL, if one does (3.7 to 3.11).
    pub current: Option<u64>,
}

/// Checks the flags and the key of the runtime at `runtime`, and who holds the GIL. Before 3.7 there is nothing to check.
///
/// # Errors
/// [`LayoutRefusal::NotInitialised`] until `Py_Initialize` is done; else what is not as it must be.
pub fn check_runtime<M: Memory>(
    layout: &Layout,
    memory: &M,
    runtime: u64,
    census: &Census,
) -> Result<RuntimeFacts, LayoutRefusal> {
    check_flags(layout, memory, runtime)?;
    check_main(layout, memory, runtime, census)?;
    let mut facts = RuntimeFacts::default();
    if let Some(offset) = layout.runtime.auto_tss_key {
        facts.key = Some(check_key(memory, runtime.wrapping_add(offset.into()))?);
    }
    if let Some(offset) = layout.runtime.tstate_current {
        facts.current = check_current(memory, runtime.wrapping_add(offset.into()), census)?;
    }
    Ok(facts)
}

/// From 3.8 on four flags lie side by side: `preinitializing`, which is 0 again by then, `preinitialized`,
/// `core_initialized` and `initialized`. In 3.7 there are the last two, in the other order.
fn check_flags<M: Memory>(layout: &Layout, memory: &M, runtime: u64) -> Result<(), LayoutRefusal> {
    let (Some(core), Some(last)) = (layout.runtime.core_initialized, layout.runtime.initialized) else { return Ok(()) };
    let (neighbour, begin, expected) = match layout.version.minor {
        7 => (last.wrapping_add(4), last, &[1_u32, 1][..]),
        _ => (last.wrapping_sub(4), core.wrapping_sub(8), &[0, 1, 1, 1][..]),
    };
    if core != neighbour {
        let (field, found) = ("runtime.initialized", last.into());
        return Err(LayoutRefusal::Live { field, found, expected: "must lie beside runtime.core_initialized" });
    }
    let flag = |offset: u32| memory.u32(runtime.wrapping_add(offset.into())).of("flags of the runtime");
    let flags = (0..expected.len() as u32).map(|index| flag(begin.wrapping_add(4 * index)));
    if flags.collect::<Result<Vec<_>, _>>()? == expected {
        return Ok(());
    }
    match flag(last)? {
        0 => Err(LayoutRefusal::NotInitialised),
        found => {
            let expected = "must be 1 as the last flag of its kind";
            Err(LayoutRefusal::Live { field: "runtime.initialized", found: found.into(), expected })
        }
    }
}

/// The address of the newest interpreter is followed by that of the main one, which has the number 0, and by the number that
/// the next one gets.
fn check_main<M: Memory>(layout: &Layout, memory: &M, runtime: u64, census: &Census) -> Result<(), LayoutRefusal> {
    let offsets = &layout.runtime;
    let (Some(head), Some(main), Some(next)) =
        (offsets.interpreters_head, offsets.interpreters_main, offsets.interpreters_next)
    else {
        return Ok(());
    };
    let live = |field, found, expected| Err(LayoutRefusal::Live { field, found, expected });
    if main != head.wrapping_add(8) {
        return live("runtime.interpreters_main", main.into(), "must follow runtime.interpreters_head");
    }
    if next != main.wrapping_add(8) {
        return live("runtime.interpreters_next", next.into(), "must follow runtime.interpreters_main");
    }
    let word = |offset: u32| memory.u64(runtime.wrapping_add(offset.into())).of("interpreters of the runtime");
    let (main, next) = (word(main)?, word(next)?);
    let mut main_is_listed = false;
    let mut numbers = HashSet::new();
    for interpreter in &census.interpreters {
        let (number, is_main) = (interpreter.number.unwrap_or(0), interpreter.address == main);
        main_is_listed |= is_main;
        if number >= next || (number == 0) != is_main || !numbers.insert(number) {
            return live("interpreter.id", number, "must be one that was given once, 0 to the main interpreter");
        }
    }
    if !main_is_listed {
        return live("runtime.interpreters_main", main, "must be in the list of interpreters");
    }
    Ok(())
}

/// `Py_tss_t` (Include/pythread.h): a flag and the key.
fn check_key<M: Memory>(memory: &M, address: u64) -> Result<u32, LayoutRefusal> {
    let word = memory.u64(address).of("key of the thread state")?;
    let (created, key) = (word as u32, (word >> 32) as u32);
    match created {
        1 if key < KEYS => Ok(key),
        0 if key == 0 => Err(LayoutRefusal::NotInitialised),
        _ => {
            let expected = "must be 1 and the number of a key";
            Err(LayoutRefusal::Live { field: "runtime.auto_tss_key", found: word, expected })
        }
    }
}

fn check_current<M: Memory>(memory: &M, at: u64, census: &Census) -> Result<Option<u64>, LayoutRefusal> {
    let found = memory.u64(at).of("state of the thread with the GIL")?;
    if found == 0 {
        return Ok(None);
    }
    if census.interpreter_of(found).is_some() {
        return Ok(Some(found));
    }
    let expected = "must be 0 or the state of a thread";
    Err(LayoutRefusal::Live { field: "runtime.tstate_current", found, expected })
}

/// The states of an interpreter's threads, newest first.
fn threads<M: Memory>(layout: &Layout, memory: &M, interpreter: u64, limit: usize) -> Result<Vec<u64>, LayoutRefusal> {
    let head_at = interpreter.wrapping_add(layout.interpreter.threads_head.into());
    let head = memory.u64(head_at).of("list of threads")?;
    let states = list(memory, head, layout.thread.next, "threads", limit)?;
    let mut newer = 0;
    for state in &states {
        let field = |offset: u32| memory.u64(state.wrapping_add(offset.into())).of("thread state");
        let (owner, back) = (field(layout.thread.interp)?, field(layout.thread.prev)?);
        if owner != interpreter {
            let expected = "must be the interpreter that lists the thread";
            return Err(LayoutRefusal::Live { field: "thread.interp", found: owner, expected });
        }
        if back != newer {
            let expected = "must be the thread before it in the list";
            return Err(LayoutRefusal::Live { field: "thread.prev", found: back, expected });
        }
        newer = *state;
    }
    Ok(states)
}

/// Follows a list to its 0.
fn list<M: Memory>(
    memory: &M,
    head: u64,
    next: u32,
    what: &'static str,
    limit: usize,
) -> Result<Vec<u64>, LayoutRefusal> {
    let mut all = Vec::new();
    let mut at = head;
    while at != 0 {
        if all.len() == limit {
            return Err(LayoutRefusal::Endless { what, limit });
        }
        all.push(at);
        at = memory.u64(at.wrapping_add(next.into())).of(what)?;
    }
    Ok(all)
}

/// Checks that what should be a thread's state says so, and that an interpreter lists it. The interpreter's address.
///
/// # Errors
/// What is not as it must be.
pub fn check_thread_state<M: Memory>(
    layout: &Layout,
    memory: &M,
    census: &Census,
    state: u64,
    thread: ThreadIdentity,
) -> Result<u64, LayoutRefusal> {
    let field = |offset: u32| memory.u64(state.wrapping_add(offset.into())).of("thread state");
    let live = |field, found, expected| Err(LayoutRefusal::Live { field, found, expected });
    let thread_self = field(layout.thread.thread_id)?;
    if thread_self != thread.thread_self {
        return live("thread.thread_id", thread_self, "must be what pthread_self gives in the thread");
    }
    if let (Some(offset), Some(native)) = (layout.thread.native_thread_id, thread.native) {
        let found = field(offset)?;
        if found != u64::from(native) {
            return live("thread.native_thread_id", found, "must be the thread's number");
        }
    }
    match census.interpreter_of(state) {
        Some(interpreter) => Ok(interpreter.address),
        None => live("interpreter.threads_head", state, "must lead to all threads"),
    }
}
