//! One function: all paths from its first instruction, and what is known at each place.

use std::collections::{BTreeMap, HashSet};

use iced_x86::{Instruction, Mnemonic, OpKind};

use super::facts::Facts;
use super::space::Space;
use crate::exits::effect::{Effects, Flow};
use crate::exits::state::{Place, RSP};
use crate::limits::{MAX_DERIVED_AGAIN, MAX_DERIVED_IN_FUNCTION};

/// What is known of other functions while one is followed.
pub(super) trait Others {
    /// Whether a function is known to begin there.
    fn begins(&self, vaddr: u64) -> bool;
    /// Whether the function that begins there is known never to come back.
    fn never_returns(&self, vaddr: u64) -> bool;
}

/// Where a path goes on or ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Step {
    /// Goes on within the function.
    To(u64),
    /// Goes on behind a call, if that comes back.
    BehindCall(u64),
    /// The same, of what only memory or a register says.
    BehindPointer(u64),
    /// Returns.
    Return,
    /// Jumps to the function that begins there, or to code that is described.
    Tail(u64),
    /// Jumps to where only memory or a register says.
    Elsewhere,
}

/// An instruction that is reached.
pub(super) struct Node {
    instruction: Instruction,
    /// What holds before it.
    pub facts: Facts,
    /// Where it leads; empty if it stops the thread, or calls what does not come back.
    pub steps: Vec<Step>,
    /// The function that it calls.
    pub calls: Option<u64>,
    /// The address of code that it takes.
    pub takes: Option<u64>,
    /// Set if it is only reached as the first thing behind a call: the call's return address.
    behind_call: Option<u64>,
}

impl Node {
    /// Address behind it.
    pub(super) fn next(&self) -> u64 {
        self.instruction.next_ip()
    }
}

/// All that is reached from a function's beginning.
pub(super) struct Walked {
    pub nodes: BTreeMap<u64, Node>,
    /// Whether something does not fit, so that nothing of it may be believed.
    pub unsound: bool,
    /// Instructions that were looked at.
    pub looked_at: usize,
}

/// Why a walk ends early.
enum Stop {
    /// A call is found not to come back; its return address.
    DeadCall(u64),
    Unsound,
}

/// Follows a function from its beginning.
pub(super) fn walk(space: &Space<'_>, others: &impl Others, entry: u64) -> Walked {
    let (mut dead, mut looked_at) = (HashSet::new(), 0);
    loop {
        let mut walk = Walk {
            space,
            others,
            entry,
            dead: &dead,
            effects: Effects::new(),
            nodes: BTreeMap::new(),
            waiting: Vec::new(),
            behind_calls: Vec::new(),
            looked_at,
        };
        let ended = walk.run();
        let returns_elsewhere = walk.effects.stores.wrote(Place { register: RSP, offset: 0 });
        let nodes = walk.nodes;
        looked_at = walk.looked_at;
        match ended {
            Err(Stop::DeadCall(call)) if dead.len() < MAX_DERIVED_AGAIN && dead.insert(call) => {}
            Ok(()) if !returns_elsewhere => return Walked { nodes, unsound: false, looked_at },
            _ => return Walked { nodes, unsound: true, looked_at },
        }
    }
}

/// A path that is to be followed further.
struct Path {
    vaddr: u64,
    facts: Facts,
    /// Set if nothing was done since a call: its return address.
    behind_call: Option<u64>,
}

struct Walk<'a, 'i, O: Others> {
    space: &'a Space<'i>,
    others: &'a O,
    entry: u64,
    /// Return addresses of calls that do not come back.
    dead: &'a HashSet<u64>,
    effects: Effects,
    nodes: BTreeMap<u64, Node>,
    waiting: Vec<Path>,
    /// Followed when nothing else is left: other paths to the same place are the more certain.
    behind_calls: Vec<Path>,
    looked_at: usize,
}

impl<O: Others> Walk<'_, '_, O> {
    fn run(&mut self) -> Result<(), Stop> {
        self.waiting.push(Path { vaddr: self.entry, facts: Facts::entry(), behind_call: None });
        while let Some(path) = self.waiting.pop().or_else(|| self.behind_calls.pop()) {
            if self.looked_at >= MAX_DERIVED_IN_FUNCTION {
                return Err(Stop::Unsound);
            }
            let vaddr = path.vaddr;
            if self.arrive(path)? {
                self.looked_at += 1;
                self.follow(vaddr)?;
            }
        }
        Ok(())
    }

    /// Brings what a path knows to a place; whether that place must be followed (again).
    fn arrive(&mut self, path: Path) -> Result<bool, Stop> {
        let Some(node) = self.nodes.get_mut(&path.vaddr) else {
            let Some(instruction) = self.space.instruction(path.vaddr) else {
                return Err(path.behind_call.map_or(Stop::Unsound, Stop::DeadCall));
            };
            let Path { vaddr, facts, behind_call } = path;
            let node = Node { instruction, facts, steps: Vec::new(), calls: None, takes: None, behind_call };
            self.nodes.insert(vaddr, node);
            return Ok(true);
        };
        let ours = (node.facts.depth(), node.facts.frame());
        let theirs = (path.facts.depth(), path.facts.frame());
        if ours.0 != theirs.0 && (ours.0.is_some() || theirs.0.is_some()) {
            match (path.behind_call, node.behind_call) {
                (Some(call), None) => return Err(Stop::DeadCall(call)),
                (None, Some(call)) => return Err(Stop::DeadCall(call)),
                _ => {}
            }
        }
        if path.behind_call.is_none() {
            node.behind_call = None;
        }
        Ok(node.facts.join(&path.facts))
    }

    /// Takes the step of the instruction at a place.
    fn follow(&mut self, vaddr: u64) -> Result<(), Stop> {
        let Some(node) = self.nodes.get(&vaddr) else { return Err(Stop::Unsound) };
        let instruction = node.instruction;
        let behind_call = node.behind_call.filter(|_| instruction.mnemonic() == Mnemonic::Nop);
        let (given_back, target) = (node.facts.is_given_back(), node.facts.constant(instruction.op0_register()));
        let mut facts = node.facts.clone();
        let flow = facts.apply(&instruction, &mut self.effects);
        let mut steps = Vec::new();
        match flow {
            Flow::Next if is_call(&instruction) => {
                let dead = self.dead.contains(&instruction.next_ip())
                    || called(&instruction).is_some_and(|function| self.others.never_returns(function));
                if !dead {
                    self.behind_call(&instruction, facts, &mut steps);
                }
            }
            Flow::Next => self.go(instruction.next_ip(), facts, behind_call, &mut steps)?,
            Flow::Jump { target, falls } => {
                if falls {
                    self.go(instruction.next_ip(), facts.clone(), None, &mut steps)?;
                }
                self.go(target, facts, None, &mut steps)?;
            }
            Flow::Return if given_back => steps.push(Step::Return),
            Flow::Return | Flow::Foreign => return Err(Stop::Unsound),
            Flow::IndirectJump | Flow::Leave => match target {
                Some(target) if instruction.op0_kind() == OpKind::Register => {
                    self.go(target, facts, None, &mut steps)?;
                }
                _ => steps.push(Step::Elsewhere),
            },
            Flow::Halt => {}
        }
        let takes = taken(&instruction).filter(|address| self.space.contains(*address));
        if let Some(node) = self.nodes.get_mut(&vaddr) {
            (node.steps, node.calls, node.takes) = (steps, called(&instruction), takes);
        }
        Ok(())
    }

    fn behind_call(&mut self, call: &Instruction, facts: Facts, steps: &mut Vec<Step>) {
        let vaddr = call.next_ip();
        // nothing of this function lies where another begins, or where there is no code to look at
        if self.is_foreign(vaddr) || !self.space.contains(vaddr) {
            return;
        }
        steps.push(if is_by_pointer(call) { Step::BehindPointer(vaddr) } else { Step::BehindCall(vaddr) });
        self.behind_calls.push(Path { vaddr, facts, behind_call: Some(vaddr) });
    }

    /// Goes on at an address.
    fn go(&mut self, vaddr: u64, facts: Facts, behind_call: Option<u64>, steps: &mut Vec<Step>) -> Result<(), Stop> {
        if self.is_foreign(vaddr) || !self.space.contains(vaddr) {
            return match behind_call {
                _ if facts.is_given_back() => {
                    steps.push(Step::Tail(vaddr));
                    Ok(())
                }
                Some(call) => Err(Stop::DeadCall(call)),
                None => Err(Stop::Unsound),
            };
        }
        steps.push(Step::To(vaddr));
        let path = Path { vaddr, facts, behind_call };
        if behind_call.is_some() {
            self.behind_calls.push(path)
        } else {
            self.waiting.push(path)
        }
        Ok(())
    }

    fn is_foreign(&self, vaddr: u64) -> bool {
        vaddr != self.entry && self.others.begins(vaddr)
    }
}

/// Whether it is a call that comes back behind itself; a call of the next instruction is a push.
fn is_call(instruction: &Instruction) -> bool {
    instruction.mnemonic() == Mnemonic::Call
        && (instruction.op0_kind() != OpKind::NearBranch64 || instruction.near_branch_target() != instruction.next_ip())
}

/// Whether a call leads to where a pointer of the program says. Through words at constant addresses it leads to functions of other
/// files, by name.
fn is_by_pointer(call: &Instruction) -> bool {
    call.op0_kind() == OpKind::Register || call.op0_kind() == OpKind::Memory && !call.is_ip_rel_memory_operand()
}

/// The function that an instruction calls directly.
fn called(instruction: &Instruction) -> Option<u64> {
    (is_call(instruction) && instruction.op0_kind() == OpKind::NearBranch64).then(|| instruction.near_branch_target())
}

/// The address that an instruction puts into a register.
pub(super) fn taken(instruction: &Instruction) -> Option<u64> {
    match instruction.mnemonic() {
        Mnemonic::Lea if instruction.is_ip_rel_memory_operand() => Some(instruction.ip_rel_memory_address()),
        Mnemonic::Mov if instruction.op0_kind() == OpKind::Register => match instruction.op1_kind() {
            OpKind::Immediate32 | OpKind::Immediate64 | OpKind::Immediate32to64 => Some(instruction.immediate(1)),
            _ => None,
        },
        _ => None,
    }
}
