//! Up to 3.10: the code before an eval loop has linked its frame, and the code after it has unlinked it.
//!
//! `tstate->frame = f` near the entry, `f` being what the function is given, and `tstate->frame = f->f_back` before it returns.

use std::collections::BTreeMap;
use std::ops::Range;

use crate::code::callee::{self, Callee};
use crate::code::machine::{Flow, Machine, Store, Target};
use crate::code::state::State;
use crate::code::value::{Base, Root};

use super::{Code, Found, Truth, blocks, may_be_state};

/// Instructions on all paths to the first link, or from an unlink to the return, at most. Some dozens are usual.
const MOST: usize = 2000;

/// All of it; `None` if the code is not like this.
pub(super) fn find(code: &Code<'_, '_>, machine: &mut Machine) -> Option<Vec<Found>> {
    let arguments: Vec<u16> = machine.convention().arguments[..2].iter().map(|register| *register as u16).collect();
    let links = |store: &Store| {
        let is_argument = arguments.iter().any(|given| store.value.base == Base::Address(Root::Given(*given)));
        is_frame_of_state(code, store) && is_argument && store.value.offset == 0
    };
    let mut paths = Paths::new();
    let linked = paths.follow(code, machine, code.entry, links)?;
    let jumps = blocks::jumps(code, machine);
    let mut unlinked = Vec::new();
    let back = i64::from(code.links.back);
    blocks::each(code, machine, &jumps, |stretch| {
        for executed in stretch {
            let unlinks = |store: &Store| {
                let is_back =
                    matches!(store.value.base, Base::Loaded { root: Root::Given(_), at, width: 8 } if at == back);
                is_frame_of_state(code, store) && is_back && store.value.offset == 0
            };
            if executed.stores.iter().any(unlinks) {
                unlinked.push(executed.code.end);
            }
        }
    });
    if !linked || unlinked.is_empty() {
        return None;
    }
    for begin in unlinked {
        paths.follow(code, machine, begin, |_| false)?;
    }
    paths.leave_out_entered(&jumps);
    Some(paths.ranges().into_iter().map(|range| (range, Truth::Unlinked)).collect())
}

fn is_frame_of_state(code: &Code<'_, '_>, store: &Store) -> bool {
    store.width == 8 && store.address.offset == i64::from(code.links.current) && may_be_state(store.address)
}

/// Instructions that were reached.
struct Paths {
    seen: BTreeMap<u64, Reached>,
}

struct Reached {
    end: u64,
    /// Whether the next one follows.
    goes_on: bool,
}

impl Paths {
    fn new() -> Paths {
        Paths { seen: BTreeMap::new() }
    }

    /// Follows all paths from an address to a store that ends them, or to the function's end. Whether there is such a store; `None`
    /// if a path leads where the code does not say.
    fn follow(
        &mut self,
        code: &Code<'_, '_>,
        machine: &mut Machine,
        begin: u64,
        is_last: impl Fn(&Store) -> bool,
    ) -> Option<bool> {
        let mut queue = vec![(begin, State::given())];
        let mut was_last = false;
        while let Some((mut pc, mut state)) = queue.pop() {
            loop {
                if !code.holds(pc) || self.seen.contains_key(&pc) {
                    break;
                }
                if self.seen.len() == MOST {
                    return None;
                }
                let step = machine.step(code.file, pc, &mut state)?;
                let next = pc + step.length;
                let goes_on = matches!(step.flow, Flow::Next | Flow::Branch(_) | Flow::Call(_));
                let is_last = step.stores.iter().any(&is_last);
                self.seen.insert(pc, Reached { end: next, goes_on: goes_on && !is_last });
                if is_last {
                    was_last = true;
                    break;
                }
                pc = match step.flow {
                    Flow::Next => next,
                    Flow::Branch(target) => {
                        queue.push((target, state.clone()));
                        next
                    }
                    Flow::Call(target) if never_returns(code, machine, target) => {
                        self.seen.insert(pc, Reached { end: next, goes_on: false });
                        break;
                    }
                    Flow::Call(_) => {
                        state.pass_call(machine.convention().clobbered);
                        next
                    }
                    Flow::Jump(Target::Address(target)) => target,
                    Flow::Jump(Target::Value(_)) => return None,
                    Flow::Return | Flow::End => break,
                };
            }
        }
        Some(was_last)
    }

    /// Leaves out what is also reached from elsewhere, where a frame is linked.
    fn leave_out_entered(&mut self, jumps: &blocks::Jumps) {
        let is_entered =
            |seen: &BTreeMap<u64, Reached>, (from, to): &(u64, u64)| seen.contains_key(to) && !seen.contains_key(from);
        while let Some((_, entered)) = jumps.iter().find(|jump| is_entered(&self.seen, jump)) {
            let mut at = *entered;
            while let Some(reached) = self.seen.remove(&at).filter(|reached| reached.goes_on) {
                at = reached.end;
            }
        }
    }

    /// Neighbours joined.
    fn ranges(&self) -> Vec<Range<u64>> {
        let mut ranges: Vec<Range<u64>> = Vec::new();
        for (begin, reached) in &self.seen {
            match ranges.last_mut() {
                Some(last) if last.end == *begin => last.end = reached.end,
                _ => ranges.push(*begin..reached.end),
            }
        }
        ranges
    }
}

fn never_returns(code: &Code<'_, '_>, machine: &mut Machine, target: Target) -> bool {
    callee::of_call(code.file, machine, target) == Callee::NoReturn
}
