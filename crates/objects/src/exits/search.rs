//! All paths from a place to the returns of its function.

use std::cmp::{Ordering, Reverse};
use std::collections::{BinaryHeap, HashMap};

use iced_x86::{Code as Opcode, ConditionCode, Decoder, DecoderOptions, FlowControl, Instruction};

use super::Code;
use super::bytes::{Bytes, MAX_INSTRUCTION};
use super::effect::{self, Effects, Flow};
use super::state::{RBP, RBX, RSP, State, Stores, Sum, Value};

/// Instructions that are looked at, those that are reached again with less known included.
const MAX_STEPS: usize = 1500;
/// Of these, after the first return. More finds hardly any that disagree: see the module's documentation.
const MAX_STEPS_BEHIND_RETURN: usize = 200;

/// Instructions of a called function that are looked at for a return, and functions for which that is done.
const MAX_STEPS_IN_CALLED: usize = 300;
const MAX_CALLED: usize = 4;

/// Instructions from a comparison to a jump by a table; compilers need two to six.
const MAX_TABLE_JUMP: usize = 10;

/// A return that was reached.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Return {
    /// The CFA.
    pub cfa: Sum,
    /// What rbp holds.
    pub fp: Value,
    /// What rbx holds.
    pub bx: Value,
    /// Whether only the branch of a `switch` for all other values leads to it.
    pub by_default: bool,
}

/// How paths ended that did not end in a return to the caller.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(super) struct Ends {
    /// A jump whose target is known only when it runs; also a return to an address that was pushed.
    pub indirect_jump: bool,
    /// A return with a stack pointer of unknown origin, or a transfer that is not modelled.
    pub unknown: bool,
    /// A return that does not fit with the calls before it.
    pub unaligned: bool,
    /// Bytes that are no instruction.
    pub undecodable: bool,
    /// An address that cannot be read.
    pub outside: bool,
    /// None of these: it was not followed to its end.
    pub too_long: bool,
}

/// What all paths came to.
pub(super) struct Found {
    pub returns: Vec<Return>,
    pub ends: Ends,
    pub stores: Stores,
}

/// Follows all paths from a place, the shortest first.
pub(super) fn search(code: &mut impl Code, pc: u64, state: State) -> Found {
    let mut search = Search::new(code, pc, state, MAX_STEPS, MAX_CALLED);
    search.run();
    Found { returns: search.returns, ends: search.ends, stores: search.effects.stores }
}

/// Whether the function at an address is seen to return, with the stack as it was on entry: code that lies behind a call
/// that does not come back has another depth.
pub(super) fn comes_back(code: &mut impl Code, function: u64) -> bool {
    let mut search = Search::new(code, function, State::start(), MAX_STEPS_IN_CALLED, 0);
    search.run();
    search.returned
}

/// A path that is to be followed further.
struct Path {
    /// Instructions from the start.
    length: usize,
    address: u64,
    state: State,
}

struct Search<'a, C: Code> {
    bytes: Bytes<'a, C>,
    effects: Effects,
    /// What is known where paths began or branched, with each pair of stack and frame pointer.
    known: HashMap<(u64, Value, Value), State>,
    waiting: BinaryHeap<Reverse<Path>>,
    returns: Vec<Return>,
    ends: Ends,
    /// Whether an instruction that returns was reached with the stack as it was at the start.
    returned: bool,
    /// Functions that are called, and whether they come back. At most `most_called`.
    called: HashMap<u64, bool>,
    most_called: usize,
    steps: usize,
    most: usize,
}

impl<'a, C: Code> Search<'a, C> {
    fn new(code: &'a mut C, pc: u64, state: State, most: usize, most_called: usize) -> Search<'a, C> {
        Search {
            bytes: Bytes::new(code),
            effects: Effects::new(),
            known: HashMap::new(),
            waiting: BinaryHeap::from([Reverse(Path { length: 0, address: pc, state })]),
            returns: Vec::new(),
            ends: Ends::default(),
            returned: false,
            called: HashMap::new(),
            most_called,
            steps: 0,
            most,
        }
    }

    fn run(&mut self) {
        while let Some(Reverse(path)) = self.waiting.pop() {
            self.follow(path);
            if self.ends.too_long {
                break;
            }
        }
    }

    /// Follows a path to its end or its next branch, both ways of which wait.
    fn follow(&mut self, path: Path) {
        let Path { mut length, mut address, mut state } = path;
        if !self.arrive(address, &mut state) {
            return;
        }
        loop {
            if self.steps >= self.most {
                self.ends.too_long = true;
                return;
            }
            self.steps += 1;
            length += 1;
            let instruction = self.decode(address);
            let next = instruction.next_ip();
            if instruction.is_invalid() || next < address {
                let cut_off = self.bytes.instruction(address).1 < MAX_INSTRUCTION;
                self.ends.outside |= cut_off;
                self.ends.undecodable |= !cut_off;
                return;
            }
            let calls = state.calls;
            let flow = self.effects.apply(&instruction, &mut state);
            if state.calls != calls && self.is_seen_to_return(&instruction) {
                // what lies behind this call is code of this function, however the stack was aligned
                state.calls = calls;
            }
            match flow {
                Flow::Next => address = next,
                Flow::Jump { target, falls } => {
                    if falls {
                        self.waiting.push(Reverse(Path { length, address: next, state: state.clone() }));
                        state.by_default |= is_unsigned_above(&instruction) && self.jumps_by_table(next);
                    }
                    return self.waiting.push(Reverse(Path { length, address: target, state }));
                }
                Flow::Return => {
                    self.returned |= state.get(RSP) == Some(Sum::own(RSP));
                    return self.arrive_at_return(&state);
                }
                // a linkage stub may have pushed arguments before, for the dynamic linker to take
                Flow::Leave if length > 1 => return self.arrive_at_return(&state),
                Flow::IndirectJump | Flow::Leave => return self.ends.indirect_jump = true,
                Flow::Foreign => return self.ends.unknown = true,
                Flow::Halt => return,
            }
        }
    }

    /// Whether an instruction calls a function that is seen to return.
    fn is_seen_to_return(&mut self, call: &Instruction) -> bool {
        if call.code() != Opcode::Call_rel32_64 {
            return false;
        }
        let target = call.near_branch_target();
        if let Some(known) = self.called.get(&target) {
            return *known;
        }
        if self.called.len() >= self.most_called {
            return false;
        }
        let comes_back = comes_back(self.bytes.code(), target);
        self.called.insert(target, comes_back);
        comes_back
    }

    fn decode(&mut self, address: u64) -> Instruction {
        let (bytes, readable) = self.bytes.instruction(address);
        Decoder::with_ip(64, &bytes[..readable], address, DecoderOptions::NONE).decode()
    }

    /// Whether the code from `address` on goes to a jump whose target is known only when it runs.
    fn jumps_by_table(&mut self, mut address: u64) -> bool {
        for _ in 0..MAX_TABLE_JUMP {
            let instruction = self.decode(address);
            if instruction.flow_control() != FlowControl::Next || instruction.is_invalid() {
                return effect::flow(&instruction) == Flow::IndirectJump;
            }
            address = instruction.next_ip();
        }
        false
    }

    /// Whether a path brings something new to a place. If so, it goes on with what holds on all paths to there.
    fn arrive(&mut self, address: u64, state: &mut State) -> bool {
        let key = (address, state.get(RSP), state.get(RBP));
        if let Some(known) = self.known.get_mut(&key) {
            let less = known.join(state);
            state.clone_from(known);
            return less;
        }
        self.known.insert(key, state.clone());
        true
    }

    fn arrive_at_return(&mut self, state: &State) {
        let Some(cfa) = state.get(RSP).and_then(|rsp| rsp.plus(8)) else {
            return self.ends.unknown = true;
        };
        if cfa.base == Sum::own(RSP).base && cfa.offset < 8 {
            self.ends.indirect_jump = true;
        } else if !state.calls.fit(cfa) {
            self.ends.unaligned = true;
        } else {
            let found = Return { cfa, fp: state.get(RBP), bx: state.get(RBX), by_default: state.by_default };
            if self.returns.iter().all(|other| other.by_default) && !found.by_default {
                self.most = self.most.min(self.steps + MAX_STEPS_BEHIND_RETURN);
            }
            if !self.returns.contains(&found) {
                self.returns.push(found);
            }
        }
    }
}

/// Whether a branch is taken if an unsigned number is too large.
fn is_unsigned_above(instruction: &Instruction) -> bool {
    matches!(instruction.condition_code(), ConditionCode::a | ConditionCode::ae)
}

impl Ord for Path {
    fn cmp(&self, other: &Path) -> Ordering {
        (self.length, self.address).cmp(&(other.length, other.address))
    }
}

impl PartialOrd for Path {
    fn partial_cmp(&self, other: &Path) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Path {
    fn eq(&self, other: &Path) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Path {}
