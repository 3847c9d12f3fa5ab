//! The code of an eval loop in stretches that are carried out from their first instruction to their last.

use std::collections::BTreeSet;
use std::ops::Range;

use crate::code::machine::{Flow, Machine, Step, Store, Target};
use crate::code::state::State;
use crate::file::PythonFile;

use super::Code;

/// Instructions of an eval loop at most. The largest one has 25,000.
const MOST: usize = 400_000;

/// Of a stretch; longer ones are cut in two. Each instruction keeps the registers behind it, some 1.5 KB.
const MOST_AT_ONCE: usize = 4096;

/// An instruction, and what holds behind it.
pub(super) struct Executed {
    pub code: Range<u64>,
    pub is_call: bool,
    pub stores: Vec<Store>,
    /// Registers and stack behind it.
    pub after: State,
}

/// Direct jumps within the code, from and to; a jump's own address is that of its instruction.
pub(super) type Jumps = Vec<(u64, u64)>;

/// Where jumps lead that name their target.
pub(super) fn jumps(code: &Code<'_, '_>, machine: &mut Machine) -> Jumps {
    let mut jumps = Vec::new();
    each_instruction(code, machine, |pc, step| {
        let target = match step.flow {
            Flow::Branch(target) | Flow::Jump(Target::Address(target)) => target,
            _ => return,
        };
        if code.holds(target) {
            jumps.push((pc, target));
        }
    });
    jumps
}

fn each_instruction(code: &Code<'_, '_>, machine: &mut Machine, mut visit: impl FnMut(u64, &Step)) {
    let mut left = MOST;
    for piece in code.pieces {
        let (mut pc, mut state) = (piece.start, State::given());
        while pc < piece.end && left > 0 {
            left -= 1;
            let Some(step) = machine.step(code.file, pc, &mut state) else {
                pc += alignment(code.file, pc);
                continue;
            };
            visit(pc, &step);
            pc += step.length.max(1);
        }
    }
}

/// How far the next instruction may be behind what is none.
fn alignment(file: &PythonFile<'_>, pc: u64) -> u64 {
    match file.architecture() {
        crate::file::Architecture::X86_64 => 1,
        crate::file::Architecture::Aarch64 => 4 - pc % 4,
    }
}

/// Goes through all stretches between places that jumps name. Where they begin, and for some registers behind calls, these hold what is
/// not known, but stays the same.
pub(super) fn each(code: &Code<'_, '_>, machine: &mut Machine, jumps: &Jumps, mut visit: impl FnMut(&[Executed])) {
    let begins: BTreeSet<u64> = jumps.iter().map(|(_, target)| *target).collect();
    let mut left = MOST;
    for piece in code.pieces {
        let (mut pc, mut state, mut stretch) = (piece.start, State::given(), Vec::new());
        while pc < piece.end && left > 0 {
            left -= 1;
            if begins.contains(&pc) || stretch.len() == MOST_AT_ONCE {
                visit(&stretch);
                (state, stretch) = (State::given(), Vec::new());
            }
            let Some(step) = machine.step(code.file, pc, &mut state) else {
                visit(&stretch);
                (state, stretch) = (State::given(), Vec::new());
                pc += alignment(code.file, pc);
                continue;
            };
            let next = pc + step.length.max(1);
            let is_call = matches!(step.flow, Flow::Call(_));
            if is_call {
                state.pass_call(machine.convention().clobbered);
            }
            stretch.push(Executed { code: pc..next, is_call, stores: step.stores, after: state.clone() });
            if matches!(step.flow, Flow::Jump(_) | Flow::Return | Flow::End) {
                visit(&stretch);
                (state, stretch) = (State::given(), Vec::new());
            }
            pc = next;
        }
        visit(&stretch);
    }
}
