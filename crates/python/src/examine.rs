//! One interpreter in a process, step by step: what the file is, where things lie, where a thread's state is kept, and the way
//! there. What each step rests on is noted.

use abi::python::Python;

use crate::code::{Derived, KeyOf, Location, Place};
use crate::facts::PythonFacts;
use crate::file::Architecture;
use crate::layout::confirm::{Types, confirm};
use crate::layout::process::{Census, RuntimeFacts, check_runtime};
use crate::layout::{Layout, Platform, debug_offsets};
use crate::refusal::Step;
use crate::snapshot::Snapshot;
use crate::way::{self, Library};
use crate::{Memory, Refusal, Version};

/// A file of a process.
pub struct Subject<'a, M> {
    /// What the file says.
    pub facts: &'a PythonFacts,
    /// Address in the process less address in the file.
    pub bias: u64,
    /// The process's memory.
    pub memory: &'a M,
    /// Its C library.
    pub libc: Result<Library, Refusal>,
}

/// What came of a step.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Noted {
    /// The step.
    pub step: Step,
    /// What was found.
    pub result: String,
    /// What that rests on.
    pub evidence: Vec<String>,
}

/// What is known of an interpreter. To be proven on threads.
#[derive(Clone, Copy, Debug)]
pub struct Ready {
    /// Its version.
    pub version: Version,
    /// Where things lie.
    pub layout: Layout,
    /// What the walker must know.
    pub facts: Python,
    /// Its types.
    pub types: Types,
    /// Address of what holds the first interpreter's address.
    pub interpreters_at: u64,
    /// Where a thread's state is kept, as the code says.
    pub place: Place,
    /// Whether the structures of the version have that place, too.
    pub place_in_table: bool,
    /// The key under which threads keep their states; `None`: in a thread-local variable.
    pub key: Option<u32>,
    /// The C library.
    pub libc: Library,
}

/// What was found out, up to a refusal if there is one.
pub struct Examined {
    /// The version, if it is known.
    pub version: Option<Version>,
    /// The steps.
    pub steps: Vec<Noted>,
    /// What came of it.
    pub result: Result<Ready, Refusal>,
}

/// Examines an interpreter, up to what only threads can show.
pub fn examine<M: Memory>(subject: &Subject<'_, M>) -> Examined {
    let mut notes = Vec::new();
    let result = steps(subject, &mut notes);
    Examined { version: subject.facts.identity.version.ok(), steps: notes, result }
}

fn steps<M: Memory>(subject: &Subject<'_, M>, notes: &mut Vec<Noted>) -> Result<Ready, Refusal> {
    let version = identify(subject, notes)?;
    let platform = Platform {
        architecture: match subject.facts.architecture {
            Architecture::X86_64 => objects::Architecture::X86_64,
            Architecture::Aarch64 => objects::Architecture::Aarch64,
        },
        musl: subject.libc.as_ref().is_ok_and(|libc| libc.musl),
        free_threaded: version.minor >= 13
            && debug_offsets::is_free_threaded(version, subject.memory, subject.runtime()?)?,
    };
    let layout = Layout::measured(version, platform)?;
    // types are not whole before
    let interpreters_at = check(subject, &layout, notes)?;
    let types = lay_out(subject, &layout, notes)?;
    let (place, place_in_table) = place(subject, &layout, notes)?;
    let libc = subject.libc.clone()?;
    let (slot, key) = way(subject, place, &libc, notes)?;
    let facts = layout.facts(types.code, slot);
    Ok(Ready { version, layout, facts, types, interpreters_at, place, place_in_table, key, libc })
}

fn identify<M>(subject: &Subject<'_, M>, notes: &mut Vec<Noted>) -> Result<Version, Refusal> {
    let version = subject.facts.identity.version?;
    let evidence = subject.facts.identity.evidence.iter().map(ToString::to_string).collect();
    notes.push(Noted { step: Step::File, result: format!("defines CPython {version}"), evidence });
    Ok(version)
}

impl<M: Memory> Subject<'_, M> {
    fn runtime(&self) -> Result<u64, Refusal> {
        Ok(self.facts.runtime()?.wrapping_add(self.bias))
    }
}

fn lay_out<M: Memory>(subject: &Subject<'_, M>, layout: &Layout, notes: &mut Vec<Noted>) -> Result<Types, Refusal> {
    let kind = if layout.free_threaded { " without a GIL" } else { "" };
    let mut evidence = vec![format!("measured: {} offsets of {}{kind}", layout.offsets().len(), layout.version)];
    if layout.version.minor >= 13 {
        let agreed = debug_offsets::compare(layout, subject.memory, subject.runtime()?)?;
        evidence.push(format!("_Py_DebugOffsets of the live _PyRuntime: {} of them agree", agreed.len()));
    }
    let types = subject.facts.types(subject.bias)?;
    // it looks at few pages, in many reads
    let confirmed = confirm(layout, &Snapshot::new(subject.memory), &types)?;
    evidence.push(format!("the types of code objects, frames and strings: {} of them agree", confirmed.len()));
    notes.push(Noted { step: Step::Layout, result: "as measured".to_owned(), evidence });
    Ok(types)
}

/// Checks what the runtime says of itself. Address of what holds the newest interpreter's.
fn check<M: Memory>(subject: &Subject<'_, M>, layout: &Layout, notes: &mut Vec<Noted>) -> Result<u64, Refusal> {
    let Some(head) = layout.runtime.interpreters_head else {
        // 3.6 has no `_PyRuntime`; the variable is static
        let interpreters_at = subject.facts.interpreters()?.wrapping_add(subject.bias);
        notes.push(Noted {
            step: Step::Runtime,
            result: "before _PyRuntime".to_owned(),
            evidence: vec![format!("list of interpreters at {interpreters_at:#x} (interp_head)")],
        });
        Census::take(layout, subject.memory, interpreters_at)?;
        return Ok(interpreters_at);
    };
    let runtime = subject.runtime()?;
    let interpreters_at = runtime.wrapping_add(head.into());
    let census = Census::take(layout, subject.memory, interpreters_at)?;
    let RuntimeFacts { key, current } = check_runtime(layout, subject.memory, runtime, &census)?;
    let threads: usize = census.interpreters.iter().map(|interpreter| interpreter.threads.len()).sum();
    let mut evidence = vec![
        format!("_PyRuntime at {runtime:#x}"),
        format!("{} interpreters with {threads} thread states, linked in both directions", census.interpreters.len()),
    ];
    evidence.extend(key.map(|key| format!("autoTSSkey made, key {key}")));
    evidence.extend(current.map(|state| format!("thread state {state:#x} holds the GIL and is in the lists")));
    notes.push(Noted { step: Step::Runtime, result: "initialised".to_owned(), evidence });
    Ok(interpreters_at)
}

/// Bytes from the beginning of a `Py_tss_t` to its key (Include/pythread.h).
const KEY_IN_TSS: u32 = 4;

fn place<M: Memory>(
    subject: &Subject<'_, M>,
    layout: &Layout,
    notes: &mut Vec<Noted>,
) -> Result<(Place, bool), Refusal> {
    let derived = subject.facts.derived.as_ref().map_err(Clone::clone)?;
    let Derived { place, findings, refused } = derived;
    let place = *place;
    let mut evidence: Vec<String> = findings.iter().map(|finding| format!("code: {finding}")).collect();
    evidence.extend(refused.iter().map(|refused| format!("code: {refused}")));
    let table = check_table(layout, place)?;
    if !derived.is_confirmed() && table.is_none() {
        return Err(Refusal::OneSource(place));
    }
    let in_table = table.is_some();
    evidence.extend(table);
    notes.push(Noted { step: Step::Place, result: place.to_string(), evidence });
    Ok((place, in_table))
}

/// Compares with the table of the version, if that has the place; what it says.
fn check_table(layout: &Layout, place: Place) -> Result<Option<String>, Refusal> {
    let (Place::Key { at, .. }, Some(expected)) = (place, layout.runtime.auto_tss_key) else { return Ok(None) };
    let in_runtime = match at {
        Location::File { in_runtime, .. } => in_runtime,
        Location::Runtime { offset } => Some(offset),
    };
    if in_runtime != Some(u64::from(expected + KEY_IN_TSS)) {
        return Err(Refusal::PlaceDisagrees { place, version: layout.version, expected: expected + KEY_IN_TSS });
    }
    Ok(Some(format!("table of {}: autoTSSkey at _PyRuntime+{expected}, key 4 bytes behind", layout.version)))
}

fn way<M: Memory>(
    subject: &Subject<'_, M>,
    place: Place,
    libc: &Library,
    notes: &mut Vec<Noted>,
) -> Result<(abi::python::Slot, Option<u32>), Refusal> {
    let (slot, key, result) = match place {
        Place::Key { at, of } => {
            let key = subject.memory.u32(key_address(subject, at)?)?;
            if of == KeyOf::Int && key == u32::MAX {
                return Err(Refusal::Layout(crate::layout::LayoutRefusal::NotInitialised));
            }
            (way::of_key(key, libc)?, Some(key), format!("value of key {key}"))
        }
        Place::ThreadLocal(variable) => {
            let architecture = subject.facts.architecture;
            let slot = way::of_thread_local(&variable, subject.bias, architecture, subject.memory, libc)?;
            (slot, None, "thread-local variable".to_owned())
        }
    };
    let name = if libc.musl { "musl" } else { "glibc" };
    let evidence = vec![format!("{name}: state = {}", expression(&slot))];
    notes.push(Noted { step: Step::Way, result, evidence });
    Ok((slot, key))
}

/// The way as people write it: `*(*(tp+0x510)+0x88)`.
fn expression(slot: &abi::python::Slot) -> String {
    slot.steps.iter().take(slot.loads as usize).fold("tp".to_owned(), |inner, step| match step {
        0.. => format!("*({inner}+{step:#x})"),
        _ => format!("*({inner}-{:#x})", step.unsigned_abs()),
    })
}

fn key_address<M: Memory>(subject: &Subject<'_, M>, at: Location) -> Result<u64, Refusal> {
    Ok(match at {
        Location::File { address, .. } => address.wrapping_add(subject.bias),
        Location::Runtime { offset } => subject.runtime()?.wrapping_add(offset),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_place_than_the_table_has_is_refused() {
        let platform = Platform { architecture: objects::Architecture::X86_64, musl: false, free_threaded: false };
        let layout = Layout::measured(Version::release(3, 12, 1), platform).expect("known");
        let key = |offset| Place::Key { at: Location::Runtime { offset }, of: KeyOf::Tss };
        assert!(check_table(&layout, key(1544 + 4)).is_ok_and(|table| table.is_some()));
        let refused = check_table(&layout, key(1544));
        assert!(matches!(refused, Err(Refusal::PlaceDisagrees { expected: 1548, .. })), "{refused:?}");
    }
}
