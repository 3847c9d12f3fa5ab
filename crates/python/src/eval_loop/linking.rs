//! The code at an eval loop's beginning that links its frame into the thread's chain, in 3.11 and 3.12.
//!
//! It stores the address of its `_PyCFrame`, a local variable, in the thread state, and compilers let it fill that variable later.
//! A thread that is interrupted between the two has a `_PyCFrame` that holds what an earlier eval loop left at this place of the
//! stack, which looks right in every way. Only the place in the code tells. All is filled before the first branch that follows,
//! which checks for recursion (`_PyEval_EvalFrameDefault`, Python/ceval.c of both versions).

use std::ops::Range;

use iced_x86::{Decoder, DecoderOptions, FlowControl, Instruction, Mnemonic, OpKind, Register};

use crate::file::{Architecture, PythonFile};

/// `cframe` in `PyThreadState` of 3.11 and 3.12 (measured, see [`crate::layout`]).
const CFRAME: u64 = 56;
/// Instructions that are read at most.
const MOST: usize = 200;

/// Addresses of the code, of the function that begins at `address`; `None` if none is like it.
pub(super) fn find(file: &PythonFile<'_>, address: u64) -> Option<Range<u64>> {
    if file.architecture() != Architecture::X86_64 {
        return None;
    }
    let mut decoder = Decoder::with_ip(64, file.code(address), address, DecoderOptions::NONE);
    let mut locals: Vec<Register> = Vec::new();
    let mut is_stored = false;
    for instruction in decoder.iter().take(MOST) {
        match instruction.flow_control() {
            FlowControl::Next => {}
            FlowControl::ConditionalBranch if !is_stored => {}
            FlowControl::ConditionalBranch | FlowControl::Call if is_stored => return Some(address..instruction.ip()),
            _ => return None,
        }
        is_stored |= stores_local(&instruction, &locals);
        note(&instruction, &mut locals);
    }
    None
}

/// Whether an instruction stores the address of a local variable where a thread state has its `_PyCFrame`.
fn stores_local(instruction: &Instruction, locals: &[Register]) -> bool {
    instruction.mnemonic() == Mnemonic::Mov
        && instruction.op0_kind() == OpKind::Memory
        && instruction.op1_kind() == OpKind::Register
        && instruction.memory_displacement64() == CFRAME
        && instruction.memory_index() == Register::None
        && instruction.memory_base() != Register::RSP
        && locals.contains(&instruction.op1_register())
}

/// Keeps in mind which registers have addresses of local variables.
fn note(instruction: &Instruction, locals: &mut Vec<Register>) {
    if instruction.op_count() == 0 || instruction.op0_kind() != OpKind::Register {
        return;
    }
    let register = instruction.op0_register();
    locals.retain(|local| local.full_register() != register.full_register());
    let is_local = matches!(instruction.memory_base(), Register::RSP | Register::RBP);
    if instruction.mnemonic() == Mnemonic::Lea && is_local {
        locals.push(register);
    }
}
