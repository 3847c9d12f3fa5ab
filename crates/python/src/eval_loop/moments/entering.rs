//! From an eval loop's entry to where its `_PyCFrame` is linked and filled, in 3.11 and 3.12.
//!
//! It stores the address of this local variable in the thread state, and compilers let it fill that variable later. A thread that
//! is interrupted between the two has a `_PyCFrame` that holds what an earlier eval loop left at this place of the stack.

use std::ops::Range;

use crate::code::machine::{Flow, Machine, Target};
use crate::code::state::{SP, State};
use crate::code::value::{Base, Root, Value};
use crate::file::Architecture;

use super::{Code, covers, may_be_state};

/// Instructions that are read at most.
const MOST: usize = 400;

/// What was found.
pub(super) struct Entering {
    /// The code in which no frame is linked.
    pub code: Range<u64>,
    /// Addresses, as the rest of the code forms them, of where the eval loop keeps its current frame.
    pub current: Vec<Value>,
}

/// Reads on from the entry until all is filled, and then up to the next branch or call: what belongs to a frame is stored by then.
pub(super) fn find(code: &Code<'_, '_>, machine: &mut Machine) -> Option<Entering> {
    let (mut pc, mut state) = (code.entry, State::given());
    let mut cframe: Option<Value> = None;
    let mut is_filled = false;
    for _ in 0..MOST {
        let here = state.clone();
        let step = machine.step(code.file, pc, &mut state)?;
        if let (Some(cframe), true) = (cframe, is_filled)
            && !matches!(step.flow, Flow::Next)
        {
            return Some(Entering { code: code.entry..pc, current: aliases(code, cframe, &here) });
        }
        for store in &step.stores {
            if cframe.is_none()
                && store.width == 8
                && store.value.base == Base::Stack
                && store.address.offset == i64::from(code.links.current)
                && may_be_state(store.address)
            {
                cframe = Some(store.value);
            }
            let current = cframe.map(|cframe| cframe.plus(code.links.cframe_current.into(), pc));
            is_filled |= current.is_some_and(|current| covers(store, current));
        }
        pc = match step.flow {
            Flow::Next | Flow::Branch(_) => pc + step.length,
            Flow::Jump(Target::Address(target)) if code.holds(target) => target,
            Flow::Call(_) => {
                state.pass_call(machine.convention().clobbered);
                pc + step.length
            }
            _ => return None,
        };
    }
    None
}

/// The same place as seen behind the entry, where the stack pointer stays: by it, and by the frame pointer if the entry sets that up.
fn aliases(code: &Code<'_, '_>, cframe: Value, state: &State) -> Vec<Value> {
    let frame_pointer = match code.file.architecture() {
        Architecture::X86_64 => 5,
        Architecture::Aarch64 => 29,
    };
    let current = cframe.plus(code.links.cframe_current.into(), 0);
    let by = |register: usize, base: Base| {
        let from = state.get(register);
        (from.base == Base::Stack).then(|| Value { base, offset: current.offset.wrapping_sub(from.offset), ..current })
    };
    let by_frame_pointer = by(frame_pointer, Base::Address(Root::Given(frame_pointer as u16)));
    by(SP, Base::Stack).into_iter().chain(by_frame_pointer).collect()
}
