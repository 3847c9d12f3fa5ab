//! What of a function that was followed is believed.

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use abi::table::{Rule, ra};
use iced_x86::{Code, Mnemonic, Register};

use super::beginnings::Beginning;
use super::facts::Thread;
use super::function::{Node, Step, Walked};
use super::rows;
use super::space::Space;

/// A function, judged.
#[derive(Default)]
pub(super) struct Function {
    /// Places and rules that are believed, by address.
    pub rows: Vec<(Range<u64>, Rule)>,
    /// All code that is reached: what may not be another function's beginning.
    pub reached: Vec<Range<u64>>,
    /// Functions that are called by what is believed to be reached.
    pub calls: HashSet<u64>,
    /// Functions that it may call or jump to, by all that is reached.
    pub leads_to: HashSet<u64>,
    /// Addresses of code that it takes.
    pub takes: HashSet<u64>,
    /// Whether some of what is reached is not believed to be its own, for want of knowing whether calls come back.
    pub undecided: bool,
    /// Whether a return that fits is reached.
    pub returns: bool,
    /// Whether it is known never to come back.
    pub never_returns: bool,
}

/// Judges a function. `returning` says of others whether they are known to come back.
pub(super) fn judge(
    space: &Space<'_>,
    walked: &Walked,
    entry: u64,
    beginning: &Beginning,
    returning: impl Fn(u64) -> bool,
) -> Function {
    let homing = homing(walked, &returning);
    let certain = certain(walked, entry, beginning, &homing, &returning);
    let nodes = || walked.nodes.iter().filter(|(vaddr, _)| certain.contains(*vaddr));
    let returns = !walked.unsound && homing.contains(&entry);
    let is_function = beginning.is_certain() || returns;
    let mut function = Function {
        calls: nodes().filter(|(_, node)| is_function || is_aligned(node)).filter_map(|(_, node)| node.calls).collect(),
        leads_to: walked.nodes.values().flat_map(Node::leads_to).collect(),
        takes: nodes().filter_map(|(_, node)| node.takes).collect(),
        undecided: certain.len() < walked.nodes.len(),
        returns,
        never_returns: !walked.unsound && walked.nodes.values().all(|node| node.steps.iter().all(Step::stays)),
        ..Function::default()
    };
    walked.nodes.iter().for_each(|(vaddr, node)| extend(&mut function.reached, *vaddr..node.next()));
    if walked.unsound || !(beginning.called || function.returns || begins_as_functions_do(space, entry)) {
        return function;
    }
    // a return that finds the stack as it was shows where the return address lay before
    let believed = if function.returns { ra::AT_CFA_MINUS_8 } else { ra::CHECKED };
    for (vaddr, node) in nodes() {
        let rule = rows::rule(&node.facts, believed);
        match function.rows.last_mut() {
            Some((range, last)) if range.end == *vaddr && *last == rule => range.end = node.next(),
            _ => function.rows.push((*vaddr..node.next(), rule)),
        }
    }
    function
}

/// Whether the stack is aligned as it must be for a call (AMD64 supplement, 3.2.2). In what is no function it hardly is.
fn is_aligned(node: &Node) -> bool {
    node.facts.depth().is_some_and(|depth| depth.rem_euclid(16) == 8)
}

impl Node {
    fn leads_to(&self) -> impl Iterator<Item = u64> {
        let tails = self.steps.iter().filter_map(|step| if let Step::Tail(to) = step { Some(*to) } else { None });
        tails.chain(self.calls)
    }
}

impl Step {
    fn stays(&self) -> bool {
        matches!(self, Step::To(_) | Step::BehindCall(_) | Step::BehindPointer(_))
    }
}

/// Places from which a return can be reached.
fn homing(walked: &Walked, returning: &impl Fn(u64) -> bool) -> HashSet<u64> {
    let mut before: HashMap<u64, Vec<u64>> = HashMap::new();
    let mut waiting = Vec::new();
    for (vaddr, node) in &walked.nodes {
        for step in &node.steps {
            match *step {
                Step::To(next) | Step::BehindCall(next) | Step::BehindPointer(next) => {
                    before.entry(next).or_default().push(*vaddr)
                }
                Step::Return => waiting.push(*vaddr),
                Step::Tail(function) if returning(function) => waiting.push(*vaddr),
                Step::Tail(_) | Step::Elsewhere => {}
            }
        }
    }
    closure(waiting, |vaddr, add| before.get(&vaddr).into_iter().flatten().for_each(|vaddr| add(*vaddr)))
}

/// Places that are the function's own, whether or not its calls come back.
fn certain(
    walked: &Walked,
    entry: u64,
    beginning: &Beginning,
    homing: &HashSet<u64>,
    returning: &impl Fn(u64) -> bool,
) -> HashSet<u64> {
    // where no return is reached, that cannot tell
    let never_returns = !homing.contains(&entry);
    let own = |vaddr: u64| homing.contains(&vaddr) || vaddr.wrapping_sub(entry) < beginning.size;
    closure(vec![entry], |vaddr, add| {
        let Some(node) = walked.nodes.get(&vaddr) else { return };
        for step in &node.steps {
            match *step {
                Step::To(next) => add(next),
                Step::BehindCall(next) if own(next) || node.calls.is_some_and(returning) => add(next),
                Step::BehindPointer(next) if own(next) || never_returns || node.facts.thread == Thread::New => {
                    add(next)
                }
                _ => {}
            }
        }
    })
}

/// All that is reached from the first ones.
fn closure(first: Vec<u64>, next: impl Fn(u64, &mut dyn FnMut(u64))) -> HashSet<u64> {
    let mut reached: HashSet<u64> = first.iter().copied().collect();
    let mut waiting = first;
    while let Some(vaddr) = waiting.pop() {
        next(vaddr, &mut |other| {
            if reached.insert(other) {
                waiting.push(other);
            }
        });
    }
    reached
}

/// Adds a piece of code behind all others.
fn extend(pieces: &mut Vec<Range<u64>>, piece: Range<u64>) {
    match pieces.last_mut() {
        Some(last) if last.end == piece.start => last.end = piece.end,
        _ => pieces.push(piece),
    }
}

/// Whether code begins by saving a register that functions keep, or by taking room on the stack.
pub(super) fn begins_as_functions_do(space: &Space<'_>, entry: u64) -> bool {
    let mut instruction = space.instruction(entry);
    if let Some(marker) = instruction.filter(|first| first.mnemonic() == Mnemonic::Endbr64) {
        instruction = space.instruction(marker.next_ip());
    }
    let Some(instruction) = instruction else { return false };
    match instruction.code() {
        Code::Push_r64 => {
            use Register::{R12, R13, R14, R15, RBP, RBX};
            [RBX, RBP, R12, R13, R14, R15].contains(&instruction.op0_register())
        }
        Code::Sub_rm64_imm8 | Code::Sub_rm64_imm32 => instruction.op0_register() == Register::RSP,
        _ => false,
    }
}
