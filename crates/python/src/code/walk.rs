//! All paths of a function, and what they call, compare and return.

use std::collections::{HashMap, VecDeque};
use std::ops::Range;

use super::callee::{self, Callee, Jump};
use super::machine::{Comparison, Flow, Machine, Target};
use super::state::{SP, State};
use super::value::{Access, Base, Root, Value};
use crate::file::{PythonFile, Slot};

/// Instructions that are carried out for one function, those of called ones included. The longest function of interest has
/// 400 instructions, and the paths through it come to 1,500.
const MAX_STEPS: usize = 12_000;
/// Of these, for one called function.
const MAX_STEPS_IN_CALLED: usize = 600;
/// Functions that are gone into from one another.
const MAX_DEPTH: u8 = 2;
/// States with which a place is reached that are followed.
const MAX_VISITS: usize = 6;
/// Calls whose arguments are remembered.
const MAX_CALLS: usize = 256;

/// A call that is given a thread-state key, or the place of one.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Lookup {
    /// Functions between the one at hand and the call; 0 is in the function itself.
    pub depth: u8,
    /// Address of the call or jump.
    pub site: u64,
    pub callee: Callee,
    pub argument: Value,
}

/// A comparison, and the address of its instruction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Compared {
    pub site: u64,
    pub values: Comparison,
}

/// How paths ended that did not end in a return.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(super) struct Ends {
    /// The first bytes that are no instruction.
    pub undecodable: Option<u64>,
    /// Where code ran on beyond its end.
    pub runs_off: Option<u64>,
    /// There was more than is looked at.
    pub too_long: bool,
}

/// What all paths came to.
#[derive(Default, Debug)]
pub(super) struct Found {
    pub lookups: Vec<Lookup>,
    /// What the function itself returns, with the address of the return.
    pub returned: Vec<(u64, Value)>,
    /// What the function itself compares.
    pub compared: Vec<Compared>,
    /// First arguments of calls, of called functions, too.
    pub arguments: Vec<Value>,
    pub ends: Ends,
}

/// Follows all paths of the function at an address.
pub(super) fn walk(file: &PythonFile<'_>, machine: &mut Machine, entry: u64) -> Found {
    let mut walk = Walk { file, machine, left: MAX_STEPS, found: Found::default() };
    walk.function(entry, State::start(), 0, MAX_STEPS);
    walk.found
}

struct Walk<'w, 'f> {
    file: &'w PythonFile<'f>,
    machine: &'w mut Machine,
    left: usize,
    found: Found,
}

/// What is still to be followed of one function.
struct Paths {
    entry: u64,
    /// The stack pointer at the beginning.
    sp: Value,
    depth: u8,
    queue: VecDeque<(u64, State)>,
    seen: HashMap<u64, Vec<State>>,
    returned: Vec<Value>,
}

impl Paths {
    fn push(&mut self, pc: u64, state: State) {
        let seen = self.seen.entry(pc).or_default();
        if seen.len() < MAX_VISITS && !seen.contains(&state) {
            seen.push(state.clone());
            self.queue.push_back((pc, state));
        }
    }

    /// What the function returns, if all paths agree.
    fn result(&self) -> Value {
        match self.returned.split_first() {
            Some((first, others)) if others.iter().all(|other| other == first) => *first,
            _ => Value::UNKNOWN,
        }
    }
}

impl Walk<'_, '_> {
    fn function(&mut self, entry: u64, state: State, depth: u8, limit: usize) -> Value {
        let mut paths = Paths {
            entry,
            sp: state.get(SP),
            depth,
            queue: VecDeque::new(),
            seen: HashMap::new(),
            returned: Vec::new(),
        };
        paths.push(entry, state);
        let stop = self.left.saturating_sub(limit);
        while let Some((pc, state)) = paths.queue.pop_front() {
            self.block(&mut paths, pc, state, stop);
            if self.left <= stop {
                self.found.ends.too_long |= depth == 0;
                return Value::UNKNOWN;
            }
        }
        paths.result()
    }

    /// Follows one path to the next place where it splits or ends.
    fn block(&mut self, paths: &mut Paths, mut pc: u64, mut state: State, stop: usize) {
        let Some(fragment) = self.file.fragment(pc) else { return };
        // behind a call that does not come back there is nothing but padding
        let mut after_call = false;
        while self.left > stop {
            if pc >= fragment.end {
                if !after_call && paths.depth == 0 {
                    self.found.ends.runs_off.get_or_insert(pc);
                }
                return;
            }
            let Some(step) = self.machine.step(self.file, pc, &mut state) else {
                if paths.depth == 0 {
                    self.found.ends.undecodable.get_or_insert(pc);
                }
                return;
            };
            self.left -= 1;
            self.note_comparison(paths, pc, step.compared);
            let next = pc.wrapping_add(step.length);
            after_call = match step.flow {
                Flow::Next => after_call && step.padding,
                Flow::Call(target) => {
                    if !self.call(paths, pc, target, &mut state) {
                        return;
                    }
                    true
                }
                Flow::Jump(target) => {
                    let leaves = state.get(SP) == paths.sp;
                    return self.jump(paths, pc, target, state, &fragment, leaves);
                }
                Flow::Branch(address) => {
                    self.jump(paths, pc, Target::Address(address), state.clone(), &fragment, false);
                    paths.push(next, state);
                    return;
                }
                Flow::Return => return self.leave(paths, pc, state.get(self.machine.convention().result)),
                Flow::End => return,
            };
            pc = next;
        }
    }

    fn leave(&mut self, paths: &mut Paths, pc: u64, value: Value) {
        paths.returned.push(value);
        if paths.depth == 0 && !self.found.returned.contains(&(pc, value)) {
            self.found.returned.push((pc, value));
        }
    }

    /// A jump; `leaves` if it is one with which a function can end: unconditional, and with the stack as at the beginning.
    fn jump(&mut self, paths: &mut Paths, pc: u64, target: Target, state: State, fragment: &Range<u64>, leaves: bool) {
        match target {
            Target::Address(address) if fragment.contains(&address) && address != paths.entry => {
                return paths.push(address, state);
            }
            _ => {}
        }
        let jump = match callee::of_jump(self.file, self.machine, target) {
            // a function whose symbol was stripped
            Jump::Within(address) if leaves && self.file.fragment(address).is_some_and(|f| f.start == address) => {
                Jump::Tail(Callee::Local(address))
            }
            jump => jump,
        };
        match jump {
            Jump::Within(address) => paths.push(address, state),
            Jump::Tail(callee) => {
                let mut state = state;
                if self.called(paths, pc, callee, &mut state) {
                    self.leave(paths, pc, state.get(self.machine.convention().result));
                }
            }
            Jump::Unknown => {}
        }
    }

    /// Whether the call comes back.
    fn call(&mut self, paths: &Paths, pc: u64, target: Target, state: &mut State) -> bool {
        let convention = self.machine.convention();
        if let Target::Value(value) = target
            && let Some(slot) = self.descriptor(value, state.get(convention.descriptor))
        {
            let result = Value { base: Base::Distance(Access::Descriptor { slot }), offset: 0, formed: pc, ..value };
            state.set(convention.descriptor, result);
            return true;
        }
        let callee = callee::of_call(self.file, self.machine, target);
        self.called(paths, pc, callee, state)
    }

    /// The slot of a thread-local descriptor, if it is its function that is called, with the descriptor as argument.
    fn descriptor(&self, function: Value, argument: Value) -> Option<u64> {
        let Base::Loaded { root: Root::Image, at, width: 8 } = function.base else { return None };
        let own = argument.base == Base::Address(Root::Image) && argument.offset == at;
        let slot = at as u64;
        (own && matches!(self.file.slot(slot), Slot::ThreadDescriptor { .. })).then_some(slot)
    }

    fn called(&mut self, paths: &Paths, pc: u64, callee: Callee, state: &mut State) -> bool {
        let convention = self.machine.convention();
        let argument = state.get(convention.arguments[0]);
        if self.found.arguments.len() < MAX_CALLS {
            self.found.arguments.extend(convention.arguments.iter().map(|&register| state.get(register)));
        }
        let mut result = Value::UNKNOWN;
        match callee {
            Callee::NoReturn => return false,
            Callee::Tss(_) | Callee::PlainKey(_) | Callee::Key(_) => {
                let lookup = Lookup { depth: paths.depth, site: pc, callee, argument };
                if !self.found.lookups.contains(&lookup) && self.found.lookups.len() < MAX_CALLS {
                    self.found.lookups.push(lookup);
                }
            }
            Callee::ThreadLocal => result = self.block_of_module(argument, pc),
            Callee::Local(address) if paths.depth < MAX_DEPTH && address != paths.entry => {
                let mut inner = state.clone();
                inner.set(SP, inner.get(SP).plus(-convention.pushed, pc));
                result = self.function(address, inner, paths.depth + 1, MAX_STEPS_IN_CALLED);
            }
            Callee::Local(_) | Callee::Other => {}
        }
        state.forget(convention.clobbered);
        state.set(convention.result, result);
        true
    }

    /// What `__tls_get_addr` returns: the address of a variable in the block of a module.
    fn block_of_module(&self, argument: Value, pc: u64) -> Value {
        let Value { base: Base::Address(Root::Image), offset: slot, via, .. } = argument else { return Value::UNKNOWN };
        let slot = slot as u64;
        match self.file.slot(slot) {
            Slot::ThreadModule { offset } => Value {
                base: Base::Address(Root::Thread(Access::Module { slot })),
                offset: offset as i64,
                formed: pc,
                via,
            },
            _ => Value::UNKNOWN,
        }
    }

    fn note_comparison(&mut self, paths: &Paths, site: u64, values: Option<Comparison>) {
        let Some(values) = values else { return };
        let compared = Compared { site, values };
        if paths.depth == 0 && !self.found.compared.contains(&compared) && self.found.compared.len() < MAX_CALLS {
            self.found.compared.push(compared);
        }
    }
}
