//! Between the two stores that push a frame, or pop one: of the current frame, and of its `previous`.
//!
//! What is `previous` then is what was left there, or 0. But the code is about to store the right one, or has just taken it off, and
//! so has it in a register.

use crate::code::machine::{Machine, Store};
use crate::code::state::SP;
use crate::code::value::{Base, Root, Value};
use crate::file::Architecture;

use super::blocks::{self, Executed};
use super::{Code, Found, Truth, covers, dwarf, may_be_state};

/// Instructions between the two stores at most. There are up to twenty.
const NEAR: usize = 128;

/// Finds them all. The current frame is kept at one of these addresses, or in the thread state.
pub(super) fn find(code: &Code<'_, '_>, machine: &mut Machine, current: Option<Vec<Value>>) -> Vec<Found> {
    let mut found = Vec::new();
    let jumps = blocks::jumps(code, machine);
    blocks::each(code, machine, &jumps, |stretch| {
        let search = Search { code, stretch, current: current.as_deref() };
        found.extend((0..stretch.len()).flat_map(|index| search.from(index)));
    });
    found
}

struct Search<'s, 'c, 'f> {
    code: &'s Code<'c, 'f>,
    stretch: &'s [Executed],
    current: Option<&'s [Value]>,
}

impl Search<'_, '_, '_> {
    /// What is pending behind an instruction.
    fn from(&self, index: usize) -> Option<Found> {
        self.pushed(index).or_else(|| self.popped(index))
    }

    /// The frame that an instruction makes the current one; `Err` if it does, but which one is not known.
    fn made_current(&self, instruction: &Executed) -> Option<Result<Value, ()>> {
        instruction.stores.iter().find_map(|store| match self.current {
            Some(places) => {
                let place = places.iter().find(|place| covers(store, **place))?;
                let is_known = store.width == 8 && store.address == *place && !store.value.is_unknown();
                Some(if is_known { Ok(store.value) } else { Err(()) })
            }
            None => {
                let is_it = store.width == 8
                    && store.address.offset == i64::from(self.code.links.current)
                    && may_be_state(store.address);
                (is_it && may_be_frame(store.value)).then_some(Ok(store.value))
            }
        })
    }

    /// From an instruction up to the next call, as far as is near.
    fn before_call(&self, index: usize) -> &[Executed] {
        let rest = self.stretch.get(index..).unwrap_or_default();
        let rest = &rest[..rest.len().min(NEAR)];
        rest.split(|executed| executed.is_call).next().unwrap_or_default()
    }

    /// The frame is the current one before it leads to its caller.
    fn pushed(&self, index: usize) -> Option<Found> {
        let frame = self.made_current(&self.stretch[index])?.ok()?;
        let previous = frame.plus(self.code.links.back.into(), 0);
        let is_set = |executed: &Executed| executed.stores.iter().any(|store| covers(store, previous));
        if self.stretch[index.saturating_sub(NEAR)..=index].iter().any(is_set) {
            return None;
        }
        let last = index + 1 + self.before_call(index + 1).iter().position(is_set)?;
        let stored = self.stretch[last].stores.iter().find(|store| covers(store, previous))?;
        let caller = if stored.width == 8 { stored.value } else { Value::UNKNOWN };
        let truth = self.register(caller, index, last).map_or(Truth::NoCaller, Truth::Caller);
        Some((self.stretch[index].code.end..self.stretch[last].code.end, truth))
    }

    /// The frame does not lead to its caller any more, but is the current one.
    fn popped(&self, index: usize) -> Option<Found> {
        let back = i64::from(self.code.links.back);
        let is_none =
            |store: &&Store| store.width == 8 && store.value.as_number() == Some(0) && !store.address.is_unknown();
        let cleared = self.stretch[index].stores.iter().find(is_none)?.address;
        // by the same register, or by another one with the frame's address
        let is_caller = |value: Value| {
            let Base::Loaded { root, at, width: 8 } = value.base else { return false };
            let is_same = cleared.base == Base::Address(root) && at == cleared.offset;
            value.offset == 0 && (is_same || at == back && cleared.offset == back)
        };
        let last = index
            + 1
            + self
                .before_call(index + 1)
                .iter()
                .position(|executed| matches!(self.made_current(executed), Some(Ok(frame)) if is_caller(frame)))?;
        let frame = self.made_current(&self.stretch[last])?.ok()?;
        let truth = self.register(frame, index, last).map_or(Truth::NoCaller, Truth::CallerIfNone);
        Some((self.stretch[index].code.end..self.stretch[last].code.end, truth))
    }

    /// The register that holds a value behind the instruction `first`, and up to `last`.
    fn register(&self, value: Value, first: usize, last: usize) -> Option<u8> {
        let architecture = self.code.file.architecture();
        let registers = match architecture {
            Architecture::X86_64 => 16,
            Architecture::Aarch64 => SP,
        };
        let holds =
            |register: &usize| self.stretch[first..last].iter().all(|executed| executed.after.get(*register) == value);
        (0..registers).filter(|_| !value.is_unknown()).find(holds).map(|register| dwarf(architecture, register))
    }
}

/// Frames are no numbers, and lie neither in the file nor, but for those behind an eval loop's last one, on the stack.
fn may_be_frame(value: Value) -> bool {
    matches!(value.base, Base::Loaded { .. } | Base::Address(Root::Given(_)) | Base::Unknown)
}
