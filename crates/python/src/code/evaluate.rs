//! One function's answer, out of all its paths.

use super::callee::Callee;
use super::finding::{Finding, Form, Function, Instruction, KeyOf, Kind, Location, Place, Subject, ThreadLocal};
use super::machine::Machine;
use super::refusal::{FunctionRefusal, MAX_BODY, Refused};
use super::value::{Access, Base, Root, Value, Via};
use super::walk::{Found, Lookup, walk};
use crate::file::{Architecture, PythonFile, Slot};
use crate::memory::Memory;

/// CPython's state, which holds the key from 3.7 on.
const RUNTIME: &str = "_PyRuntime";
/// Bytes of the flag of a `Py_tss_t`, before its key (Include/pythread.h).
const FLAG: u64 = 4;
/// Bytes of the control block behind the thread pointer, before thread-local variables (AAELF64, "thread local storage").
const AARCH64_CONTROL_BLOCK: u64 = 16;

/// What a function's code says about the place of a thread's state.
///
/// # Errors
/// A [`FunctionRefusal`] for each reason why it says nothing.
pub fn evaluate(file: &PythonFile<'_>, function: Function) -> Result<Finding, Refused> {
    let symbol = file.symbol(function.name()).filter(|symbol| file.is_code(symbol.address));
    let Some(symbol) = symbol else {
        return Err(Refused { function, refusal: FunctionRefusal::Absent, address: None, body: Vec::new() });
    };
    let mut machine = Machine::of(file);
    let found = walk(file, &mut machine, symbol.address);
    let judge = Judge { file, machine: &machine, function };
    judge.judge(&found).map_err(|refusal| {
        let range = file.body(&symbol).unwrap_or_default();
        let length = usize::try_from(range.end.saturating_sub(range.start)).unwrap_or(MAX_BODY).min(MAX_BODY);
        let mut body = vec![0; length];
        if file.read(symbol.address, &mut body).is_err() {
            body.clear();
        }
        Refused { function, refusal, address: Some(symbol.address), body }
    })
}

struct Judge<'j, 'f> {
    file: &'j PythonFile<'f>,
    machine: &'j Machine,
    function: Function,
}

/// What one access comes to.
struct Answer {
    kind: Kind,
    place: Place,
    formed: u64,
    site: u64,
    callee: Option<String>,
}

impl Judge<'_, '_> {
    fn judge(&self, found: &Found) -> Result<Finding, FunctionRefusal> {
        let own = || found.lookups.iter().filter(|lookup| lookup.depth == 0);
        let inner = || found.lookups.iter().filter(|lookup| lookup.depth > 0);
        let answer = match self.key(own())? {
            Some(answer) => Some(answer),
            None => self.key(inner())?,
        };
        let answer = match answer {
            Some(answer) => Some(answer),
            None => self.variable(found)?,
        };
        match answer {
            Some(answer) => Ok(self.finding(answer)),
            None => Err(self.why(found)),
        }
    }

    /// Why nothing was found.
    fn why(&self, found: &Found) -> FunctionRefusal {
        let ends = found.ends;
        if ends.too_long {
            FunctionRefusal::TooLong
        } else if let Some(at) = ends.undecodable {
            FunctionRefusal::Undecodable { at }
        } else if let Some(at) = ends.runs_off {
            FunctionRefusal::RunsOff { at }
        } else if let Some(lookup) = found.lookups.first() {
            FunctionRefusal::UnknownKey { site: lookup.site }
        } else {
            FunctionRefusal::NoLookup
        }
    }

    /// The key that all lookups are for whose argument is known.
    fn key<'l>(&self, lookups: impl Iterator<Item = &'l Lookup>) -> Result<Option<Answer>, FunctionRefusal> {
        let mut first: Option<Answer> = None;
        for lookup in lookups {
            let Some(answer) = self.lookup(lookup)? else { continue };
            match &first {
                Some(first) if !first.place.agrees(&answer.place) => {
                    return Err(FunctionRefusal::Ambiguous { first: first.site, second: answer.site });
                }
                // one that says more about the key
                Some(Answer { place: Place::Key { of: KeyOf::Either, .. }, .. }) | None => first = Some(answer),
                Some(_) => {}
            }
        }
        Ok(first)
    }

    fn lookup(&self, lookup: &Lookup) -> Result<Option<Answer>, FunctionRefusal> {
        let (subject, of, callee) = match &lookup.callee {
            Callee::Tss(name) => (Subject::Struct, KeyOf::Tss, name),
            Callee::PlainKey(name) => (Subject::Key, KeyOf::Int, name),
            Callee::Key(name) => (Subject::Key, KeyOf::Either, name),
            _ => return Ok(None),
        };
        let argument = lookup.argument;
        let (root, at) = match subject {
            Subject::Struct => match argument.base {
                Base::Address(root @ (Root::Image | Root::Import(_))) => (root, argument.offset),
                Base::Number if self.file.is_fixed() => (Root::Image, argument.offset),
                Base::Number => return Err(self.no_variable(lookup.site, argument.offset)),
                _ => return Ok(None),
            },
            _ => match argument.low(self.file.is_fixed()).base {
                Base::Loaded { root: root @ (Root::Image | Root::Import(_)), at, width: 4 } => (root, at),
                Base::Number => return Err(self.no_variable(lookup.site, argument.offset)),
                _ => return Ok(None),
            },
        };
        let key = if subject == Subject::Struct { at.wrapping_add(FLAG as i64) } else { at };
        let size = if of == KeyOf::Tss { FLAG + 4 } else { 4 };
        let location = self.location(root, key, at, size, of).ok_or_else(|| self.no_variable(lookup.site, at))?;
        let form = match argument.via {
            Via::Symbol(symbol) if self.file.import_name(symbol) == Some(RUNTIME.as_bytes()) => Form::RuntimeOffset,
            Via::Symbol(_) | Via::Slot | Via::Thread => Form::Slot,
            Via::Number => Form::Absolute,
            Via::Relative => Form::Relative,
        };
        Ok(Some(Answer {
            kind: Kind { form, subject },
            place: Place::Key { at: location, of },
            formed: argument.formed,
            site: lookup.site,
            callee: Some(callee.clone()),
        }))
    }

    fn no_variable(&self, site: u64, place: i64) -> FunctionRefusal {
        FunctionRefusal::NoVariable { site, place: place as u64 }
    }

    /// The key at `key`, if the `size` bytes from `begin` on can be a variable: within `_PyRuntime` if there is one, but for
    /// an `int`, which has never been in it.
    fn location(&self, root: Root, key: i64, begin: i64, size: u64, of: KeyOf) -> Option<Location> {
        match root {
            Root::Import(symbol) => {
                let named = self.file.import_name(symbol) == Some(RUNTIME.as_bytes());
                let offset = u64::try_from(key).ok().filter(|offset| named && offset.is_multiple_of(4))?;
                Some(Location::Runtime { offset })
            }
            _ => {
                let (address, begin) = (key as u64, begin as u64);
                let fits = address.is_multiple_of(4) && self.file.is_variable(begin, size);
                let runtime = self.file.symbol(RUNTIME).filter(|symbol| symbol.size > 0 && of != KeyOf::Int);
                let in_runtime = match runtime {
                    Some(runtime) => {
                        let offset = address.checked_sub(runtime.address)?;
                        Some(offset)
                            .filter(|offset| offset + 4 <= runtime.size && begin >= runtime.address)
                            .map(Some)?
                    }
                    None => None,
                };
                fits.then_some(Location::File { address, in_runtime })
            }
        }
    }

    /// The thread-local variable that holds the state and survives the release of the GIL. CPython has another one beside it,
    /// for the state that holds the GIL, and each function has its own way to tell the two.
    fn variable(&self, found: &Found) -> Result<Option<Answer>, FunctionRefusal> {
        let mut tested = Vec::new();
        let mut pairs = Vec::new();
        for compared in &found.compared {
            match compared.values {
                (value, zero) if zero.as_number() == Some(0) => tested.push((compared.site, value)),
                (left, right) => pairs.push((compared.site, left, right)),
            }
        }
        let tested = || tested.iter().copied().filter(|(_, value)| is_variable(*value));
        let candidates: Vec<(u64, Value)> = match self.function {
            // it returns the one
            Function::GetThisThreadState => {
                found.returned.iter().copied().filter(|(_, value)| is_variable(*value)).collect()
            }
            // the other one may be none, and is tested for it; then the two are compared
            Function::Check => {
                let is_tested = |value: Value| tested().any(|(_, other)| other == value);
                let both = pairs.iter().filter(|(_, left, right)| is_variable(*left) && is_variable(*right));
                both.flat_map(|&(site, left, right)| match (is_tested(left), is_tested(right)) {
                    (true, false) => Some((site, right)),
                    (false, true) => Some((site, left)),
                    _ => None,
                })
                .collect()
            }
            // the one may be none, and is tested for it
            Function::Ensure | Function::Release => tested().collect(),
        };
        let mut first: Option<Answer> = None;
        for (site, value) in candidates {
            let answer = self.thread_local(site, value)?;
            match &first {
                Some(first) if !first.place.agrees(&answer.place) => {
                    return Err(FunctionRefusal::Ambiguous { first: first.site, second: answer.site });
                }
                Some(_) => {}
                None => first = Some(answer),
            }
        }
        Ok(first)
    }

    fn thread_local(&self, site: u64, value: Value) -> Result<Answer, FunctionRefusal> {
        let refusal = FunctionRefusal::NoVariable { site, place: value.offset as u64 };
        let Base::Loaded { root: Root::Thread(access), at: offset, .. } = value.base else { return Err(refusal) };
        let no_variable = FunctionRefusal::NoVariable { site, place: offset as u64 };
        let in_block = self.in_block(access, offset).ok_or(no_variable)?;
        let form = match access {
            Access::ThreadPointer => Form::LocalExec,
            Access::Distance { .. } => Form::InitialExec,
            Access::Module { .. } => Form::ModuleBlock,
            Access::Descriptor { .. } => Form::Descriptor,
        };
        Ok(Answer {
            kind: Kind { form, subject: Subject::Variable },
            place: Place::ThreadLocal(ThreadLocal { access, offset, in_block }),
            formed: value.formed,
            site,
            callee: None,
        })
    }

    /// The offset of eight bytes in this file's block of thread-local variables; `None` if they are not in it.
    fn in_block(&self, access: Access, offset: i64) -> Option<u64> {
        let tls = self.file.tls()?;
        let begin = match (access, self.file.architecture()) {
            // the block ends at the thread pointer, and begins as aligned as its segment (variant II of "ELF handling for
            // thread-local storage")
            (Access::ThreadPointer, Architecture::X86_64) => {
                let misaligned = tls.address % tls.alignment;
                tls.size.checked_next_multiple_of(tls.alignment)?.checked_sub(misaligned)?
            }
            // the block begins behind the control block (variant I)
            (Access::ThreadPointer, Architecture::Aarch64) => {
                AARCH64_CONTROL_BLOCK.checked_next_multiple_of(tls.alignment)?.wrapping_neg()
            }
            (Access::Distance { slot }, _) => match self.file.slot(slot) {
                Slot::ThreadDistance { offset } => offset,
                _ => return None,
            },
            (Access::Descriptor { slot }, _) => match self.file.slot(slot) {
                Slot::ThreadDescriptor { offset } => offset,
                _ => return None,
            },
            // what the slot says is in the offset already
            (Access::Module { .. }, _) => 0,
        };
        let in_block = begin.wrapping_add_signed(offset);
        let fits = in_block.checked_add(8).is_some_and(|end| end <= tls.size) && in_block.is_multiple_of(8);
        fits.then_some(in_block)
    }

    fn finding(&self, answer: Answer) -> Finding {
        Finding {
            function: self.function,
            kind: answer.kind,
            place: answer.place,
            formed: self.instruction(answer.formed),
            used: self.instruction(answer.site),
            callee: answer.callee,
        }
    }

    fn instruction(&self, address: u64) -> Instruction {
        let (length, text) = self.machine.text(self.file, address);
        let (bytes, available) = self.file.fetch(address);
        Instruction { address, bytes: bytes[..length.min(available)].to_vec(), text }
    }
}

/// Whether a value is what a thread-local variable of eight bytes held.
fn is_variable(value: Value) -> bool {
    matches!(value.base, Base::Loaded { root: Root::Thread(_), width: 8, .. }) && value.offset == 0
}
