//! Registers and stack of a function at a place.

use super::value::{Base, Value};

/// Words on the stack that are remembered; a function spills at most some dozens.
const MAX_WORDS: usize = 64;

/// Number that stands for the stack pointer, on both architectures.
pub(crate) const SP: usize = 31;

/// What is known of registers and stack. Registers have the numbers that instructions give them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct State {
    registers: [Value; 32],
    stack: Vec<Word>,
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
        State { registers, stack: Vec::new() }
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
        word.map_or(Value::UNKNOWN, |word| match (width, word.width) {
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
