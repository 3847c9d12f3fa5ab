//! What an instruction does to a [`State`], for both architectures.

use super::state::State;
use super::value::{Access, Base, Root, Value, Via};
use super::{aarch64, x86_64};
use crate::file::{Architecture, PythonFile, Slot};

/// Where a jump or call leads.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Target {
    /// Named by the instruction.
    Address(u64),
    /// What a register or a place in memory held.
    Value(Value),
}

/// Where control goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Flow {
    Next,
    Jump(Target),
    Branch(u64),
    Call(Target),
    Return,
    /// A trap, or what never comes back.
    End,
}

/// Two values that were compared.
pub(crate) type Comparison = (Value, Value);

/// What an instruction writes to memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Store {
    pub address: Value,
    /// Bytes.
    pub width: u8,
    pub value: Value,
}

/// An instruction that was carried out.
pub(crate) struct Step {
    pub length: u64,
    pub flow: Flow,
    pub compared: Option<Comparison>,
    /// But for what calls push.
    pub stores: Vec<Store>,
    /// Whether it is what compilers put between functions.
    pub padding: bool,
}

/// The calling convention, as far as it matters, in numbers of [`State`].
pub(crate) struct Convention {
    pub arguments: &'static [usize],
    pub result: usize,
    pub clobbered: &'static [usize],
    /// Bytes that a call pushes.
    pub pushed: i64,
    /// Argument and result of a thread-local descriptor's function.
    pub descriptor: usize,
}

/// rdi, rsi, rdx, rcx, r8, r9 (System V ABI, AMD64 supplement, 3.2.3); a descriptor's function takes rax.
const X86_64: Convention = Convention {
    arguments: &[7, 6, 2, 1, 8, 9],
    result: 0,
    clobbered: &[0, 1, 2, 6, 7, 8, 9, 10, 11],
    pushed: 8,
    descriptor: 0,
};

/// x0 to x7 (AAPCS64 6.8.2); x0 to x18 and x30 are lost.
const AARCH64: Convention = Convention {
    arguments: &[0, 1, 2, 3, 4, 5, 6, 7],
    result: 0,
    clobbered: &[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 30],
    pushed: 0,
    descriptor: 0,
};

/// The decoder and the semantics of a file's instructions.
pub(crate) enum Machine {
    X86_64(x86_64::Decode),
    Aarch64(aarch64::Decode),
}

impl Machine {
    pub(crate) fn of(file: &PythonFile<'_>) -> Machine {
        match file.architecture() {
            Architecture::X86_64 => Machine::X86_64(x86_64::Decode::new()),
            Architecture::Aarch64 => Machine::Aarch64(aarch64::Decode::new()),
        }
    }

    pub(crate) fn convention(&self) -> &'static Convention {
        match self {
            Machine::X86_64(_) => &X86_64,
            Machine::Aarch64(_) => &AARCH64,
        }
    }

    /// Carries out the instruction at `pc`; `None` if it is none.
    pub(crate) fn step(&mut self, file: &PythonFile<'_>, pc: u64, state: &mut State) -> Option<Step> {
        match self {
            Machine::X86_64(decode) => decode.step(file, pc, state),
            Machine::Aarch64(decode) => decode.step(file, pc, state),
        }
    }

    /// Length and text of the instruction at `pc`.
    pub(crate) fn text(&self, file: &PythonFile<'_>, pc: u64) -> (usize, String) {
        match self {
            Machine::X86_64(decode) => decode.text(file, pc),
            Machine::Aarch64(decode) => decode.text(file, pc),
        }
    }
}

/// What `width` bytes at an address hold, read by the instruction at `pc`.
pub(crate) fn load(file: &PythonFile<'_>, state: &State, address: Value, width: u8, pc: u64) -> Value {
    let at = address.offset;
    match address.base {
        Base::Stack => state.load(at, width, file.is_fixed()),
        Base::Number if file.is_fixed() => image(file, at, width, pc, address.via),
        Base::Address(Root::Image) => image(file, at, width, pc, address.via),
        // the first word of a thread's control block is its own address (System V ABI, AMD64 supplement, 3.4.6)
        Base::Address(Root::Thread(Access::ThreadPointer))
            if at == 0 && width == 8 && file.architecture() == Architecture::X86_64 =>
        {
            Value::thread_pointer(pc)
        }
        Base::Address(root) => loaded(root, at, width, pc, address.via),
        _ => Value::UNKNOWN,
    }
}

fn loaded(root: Root, at: i64, width: u8, formed: u64, via: Via) -> Value {
    Value { base: Base::Loaded { root, at, width }, offset: 0, formed, via }
}

fn image(file: &PythonFile<'_>, at: i64, width: u8, pc: u64, via: Via) -> Value {
    let address = at as u64;
    if width != 8 {
        return match file.constant(address, width) {
            Some(number) if width < 8 => Value::number(number, pc),
            _ => loaded(Root::Image, at, width, pc, via),
        };
    }
    let by = |symbol: Option<u32>| symbol.map_or(Via::Slot, Via::Symbol);
    match file.slot(address) {
        Slot::Address { address, symbol } => Value::address(address, pc, by(symbol)),
        Slot::Import { symbol, addend } => {
            Value { base: Base::Address(Root::Import(symbol)), offset: addend, formed: pc, via: Via::Symbol(symbol) }
        }
        Slot::ThreadDistance { .. } => {
            Value { base: Base::Distance(Access::Distance { slot: address }), offset: 0, formed: pc, via: Via::Slot }
        }
        Slot::Constant(number) => Value { via: Via::Slot, ..Value::number(number, pc) },
        Slot::ThreadModule { .. } | Slot::ThreadDescriptor { .. } | Slot::Variable => {
            loaded(Root::Image, at, width, pc, via)
        }
    }
}
