//! What a register or a word on the stack holds: a base and bytes added to it.

/// How a thread-local variable's block is reached.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Access {
    /// At a distance from the thread pointer that the code itself has (local-exec).
    ThreadPointer,
    /// At a distance from the thread pointer that lies in this slot (initial-exec).
    Distance {
        /// Address of the slot.
        slot: u64,
    },
    /// In the block of the module whose number lies in this slot (`__tls_get_addr`).
    Module {
        /// Address of the slot: the module's number, then an offset.
        slot: u64,
    },
    /// Where the descriptor in this slot says.
    Descriptor {
        /// Address of the slot: a function, then its argument.
        slot: u64,
    },
}

/// Where memory begins that values are loaded from.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Root {
    /// Address zero of the file, before relocation.
    Image,
    /// A dynamic symbol of another file.
    Import(u32),
    /// A thread's variables.
    Thread(Access),
    /// What a register held at the beginning, or behind a call: 32 times the number of the call, and that of the register.
    Given(u16),
}

/// What a value is counted from.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Base {
    /// Nothing: it is a number.
    Number,
    /// An address.
    Address(Root),
    /// What is to be added to the thread pointer to reach a variable.
    Distance(Access),
    /// The stack pointer at the beginning.
    Stack,
    /// What `width` bytes at an address held.
    Loaded { root: Root, at: i64, width: u8 },
    /// Anything.
    Unknown,
}

/// How an address came to be.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Via {
    /// A number in an instruction.
    Number,
    /// Relative to the instruction.
    Relative,
    /// Read from a slot that holds this dynamic symbol's address.
    Symbol(u32),
    /// Read from another slot.
    Slot,
    /// From the thread pointer.
    Thread,
}

/// A base and bytes added to it. Two are equal if they hold the same, no matter where from.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Value {
    pub base: Base,
    pub offset: i64,
    /// Address of the instruction that made it.
    pub formed: u64,
    pub via: Via,
}

impl PartialEq for Value {
    fn eq(&self, other: &Value) -> bool {
        self.base == other.base && self.offset == other.offset
    }
}

impl Eq for Value {}

impl Value {
    pub(crate) const UNKNOWN: Value = Value { base: Base::Unknown, offset: 0, formed: 0, via: Via::Number };

    pub(crate) fn number(number: u64, formed: u64) -> Value {
        Value { base: Base::Number, offset: number as i64, formed, via: Via::Number }
    }

    pub(crate) fn address(address: u64, formed: u64, via: Via) -> Value {
        Value { base: Base::Address(Root::Image), offset: address as i64, formed, via }
    }

    pub(crate) fn thread_pointer(formed: u64) -> Value {
        Value { base: Base::Address(Root::Thread(Access::ThreadPointer)), offset: 0, formed, via: Via::Thread }
    }

    pub(crate) fn as_number(self) -> Option<u64> {
        (self.base == Base::Number).then_some(self.offset as u64)
    }

    pub(crate) fn is_unknown(self) -> bool {
        self.base == Base::Unknown
    }

    /// The value with a number of bytes added, by the instruction at `formed`.
    pub(crate) fn plus(self, bytes: i64, formed: u64) -> Value {
        match self.base {
            Base::Unknown => Value::UNKNOWN,
            _ => Value { offset: self.offset.wrapping_add(bytes), formed, ..self },
        }
    }

    /// The sum of two.
    pub(crate) fn sum(self, other: Value, formed: u64) -> Value {
        match (self.base, other.base) {
            (_, Base::Number) => self.plus(other.offset, formed),
            (Base::Number, _) => other.plus(self.offset, formed),
            (Base::Address(Root::Thread(Access::ThreadPointer)), Base::Distance(access))
            | (Base::Distance(access), Base::Address(Root::Thread(Access::ThreadPointer))) => Value {
                base: Base::Address(Root::Thread(access)),
                offset: self.offset.wrapping_add(other.offset),
                formed,
                via: Via::Thread,
            },
            _ => Value::UNKNOWN,
        }
    }

    /// The difference of two.
    pub(crate) fn difference(self, other: Value, formed: u64) -> Value {
        match other.base {
            Base::Number => self.plus(other.offset.wrapping_neg(), formed),
            _ if self == other && !self.is_unknown() => Value::number(0, formed),
            _ => Value::UNKNOWN,
        }
    }

    /// The low four bytes, zero-extended. `fixed`: addresses of the file are numbers.
    pub(crate) fn low(self, fixed: bool) -> Value {
        match self.base {
            Base::Number => Value { offset: i64::from(self.offset as u32), ..self },
            Base::Address(Root::Image) if fixed && u32::try_from(self.offset).is_ok() => self,
            Base::Loaded { root, at, width: 4 | 8 } if self.offset == 0 => {
                Value { base: Base::Loaded { root, at, width: 4 }, ..self }
            }
            Base::Loaded { width: 1 | 2, .. } if self.offset == 0 => self,
            _ => Value::UNKNOWN,
        }
    }
}
