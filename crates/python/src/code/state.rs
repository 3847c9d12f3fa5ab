//! Registers and stack of a function at a place.

use super::value::{Base, Root, Value};

/// Words on the stack that are remembered; a function spills at most some dozens.
const MAX_WORDS: usize = 64;

/// Number that stands for the stack pointer, on both architectures.
pub(crate) const SP: usize = 31;

/// What is known of registers and stack. Registers have the numbers that instructions give them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct State {
    registers: [Value; 32],
    stack: Vec<Word>,
    /// Words of the stack hold what is not known, but stays the same.
    given: bool,
    /// How many calls were passed.
    calls: u16,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Word {
    at: i64,
    width: u8,
    value: Value,
}

impl State {
    /// At the beginning of a function: only the stack pointer is known.
    pub(crate) fn start() -> State {
        let mut registers = [Value::UNKNOWN; 32];
        registers[SP] = Value { base: Base::Stack, ..Value::UNKNOWN };
        State { registers, stack: Vec::new(), given: false, calls: 0 }
    }

    /// Somewhere in a function: all registers hold what is not known, but stays the same.
    pub(crate) fn given() -> State {
        let mut state = State { given: true, ..State::start() };
        (0..SP).for_each(|register| state.set(register, given(register, 0)));
        state
    }

    /// Behind a call, these registers hold something else that is not known.
    pub(crate) fn pass_call(&mut self, clobbered: &[usize]) {
        self.calls = self.calls.saturating_add(1);
        clobbered.iter().for_each(|&register| self.set(register, given(register, self.calls)));
    }

    pub(crate) fn get(&self, register: usize) -> Value {
        self.registers.get(register).copied().unwrap_or(Value::UNKNOWN)
    }

    pub(crate) fn set(&mut self, register: usize, value: Value) {
        if let Some(into) = self.registers.get_mut(register) {
            *into = value;
        }
    }

    /// Forgets these registers.
    pub(crate) fn forget(&mut self, registers: &[usize]) {
        registers.iter().for_each(|&register| self.set(register, Value::UNKNOWN));
    }

    /// Forgets what lies on the stack.
    pub(crate) fn forget_stack(&mut self) {
        self.stack.clear();
    }

    /// What was stored on the stack.
    pub(crate) fn load(&self, at: i64, width: u8, fixed: bool) -> Value {
        let word = self.stack.iter().find(|word| word.at == at && word.width >= width);
        let other = || match self.given {
            true => Value { base: Base::Loaded { root: Root::Given(SP as u16), at, width }, ..Value::UNKNOWN },
            false => Value::UNKNOWN,
        };
        word.map_or_else(other, |word| match (width, word.width) {
            (wanted, there) if wanted == there => word.value,
            (4, 8) => word.value.low(fixed),
            _ => Value::UNKNOWN,
        })
    }

    /// Stores on the stack; what overlaps is forgotten.
    pub(crate) fn store(&mut self, at: i64, width: u8, value: Value) {
        let end = at.saturating_add(width.into());
        self.stack.retain(|word| word.at >= end || word.at.saturating_add(word.width.into()) <= at);
        if !value.is_unknown() {
            if self.stack.len() == MAX_WORDS {
                self.stack.remove(0);
            }
            self.stack.push(Word { at, width, value });
        }
    }
}

fn given(register: usize, calls: u16) -> Value {
    match calls.checked_mul(SP as u16 + 1) {
        Some(before) => Value { base: Base::Address(Root::Given(before | register as u16)), ..Value::UNKNOWN },
        None => Value::UNKNOWN,
    }
}
