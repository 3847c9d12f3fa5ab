//! What is known at a place of a function: registers and saved values in terms of the entry, constants, and whether a new thread is
//! beginning.

use iced_x86::{Code, Instruction, Mnemonic, OpKind, Register};

use crate::exits::effect::{Effects, Flow};
use crate::exits::state::{KEPT, RBP, RSP, State, Sum};

/// Numbers of the system calls that make a thread (arch/x86/entry/syscalls/syscall_64.tbl).
const CLONE: [u64; 2] = [56, 435];
/// `rax`, as instructions number it.
const RAX: u8 = 0;

/// Whose stack it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Thread {
    /// The one on which the function was entered.
    Same,
    /// That, or a new one: `clone` was just called.
    Either,
    /// A new one: nothing called this code.
    New,
    /// Paths do not agree.
    Unknown,
}

/// What holds before an instruction.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Facts {
    pub state: State,
    pub thread: Thread,
    /// Registers that hold a constant, by number; few do.
    constants: Vec<(u8, u64)>,
}

impl Facts {
    /// Where a function begins.
    pub(super) fn entry() -> Facts {
        Facts { state: State::start(), thread: Thread::Same, constants: Vec::new() }
    }

    /// Bytes from the entry's stack pointer to the stack pointer.
    pub(super) fn depth(&self) -> Option<i32> {
        from_entry(self.state.get(RSP))
    }

    /// Bytes from the entry's stack pointer to the frame pointer.
    pub(super) fn frame(&self) -> Option<i32> {
        from_entry(self.state.get(RBP))
    }

    /// Whether the stack is as it was on entry, and so are the registers that functions keep.
    pub(super) fn is_given_back(&self) -> bool {
        let keeps = |register: &u8| self.state.get(*register) == Some(Sum::own(*register));
        matches!(self.thread, Thread::Same | Thread::Either) && KEPT.iter().all(keeps)
    }

    /// The constant in a register.
    pub(super) fn constant(&self, register: Register) -> Option<u64> {
        register.is_gpr64().then(|| self.constant_in(register.number() as u8))?
    }

    fn constant_in(&self, register: u8) -> Option<u64> {
        self.constants.iter().find(|(number, _)| *number == register).map(|(_, value)| *value)
    }

    /// Applies an instruction.
    pub(super) fn apply(&mut self, instruction: &Instruction, effects: &mut Effects) -> Flow {
        let constant = self.assigned(instruction);
        let makes_thread =
            instruction.code() == Code::Syscall && self.constant_in(RAX).is_some_and(|number| CLONE.contains(&number));
        // a compiler saves the register before
        let clears_frame = self.thread == Thread::Either
            && constant == Some((RBP, 0))
            && instruction.mnemonic() == Mnemonic::Xor
            && self.state.saved(RBP).is_none();
        let flow = effects.apply(instruction, &mut self.state);
        if instruction.mnemonic() == Mnemonic::Call {
            self.state.forget_below_stack();
            self.constants.clear();
        } else if !self.constants.is_empty() {
            for register in effects.written(instruction).filter(|register| register.is_gpr64()) {
                self.constants.retain(|(number, _)| usize::from(*number) != register.number());
            }
        }
        if instruction.code() == Code::Syscall {
            self.constants.retain(|(number, _)| *number != RAX);
        }
        self.constants.extend(constant);
        if makes_thread && self.thread == Thread::Same {
            self.thread = Thread::Either;
        }
        if clears_frame {
            self.thread = Thread::New;
        }
        flow
    }

    /// The register to which an instruction gives a constant, by number, and the constant.
    fn assigned(&self, instruction: &Instruction) -> Option<(u8, u64)> {
        let register = instruction.op0_register();
        let number = register.full_register().is_gpr64().then(|| register.full_register().number() as u8)?;
        let value = match instruction.code() {
            Code::Mov_r32_imm32 | Code::Mov_r64_imm64 | Code::Mov_rm64_imm32 | Code::Mov_rm32_imm32 => {
                instruction.immediate(1)
            }
            Code::Lea_r64_m if instruction.is_ip_rel_memory_operand() => instruction.ip_rel_memory_address(),
            Code::Xor_r32_rm32 | Code::Xor_rm32_r32 | Code::Xor_r64_rm64 | Code::Xor_rm64_r64
                if instruction.op1_kind() == OpKind::Register && instruction.op1_register() == register =>
            {
                0
            }
            Code::Mov_r8_imm8 if register == Register::AL => {
                self.constant_in(RAX)? & !0xff | u64::from(instruction.immediate8())
            }
            _ => return None,
        };
        Some((number, value))
    }

    /// Keeps what holds on both of two paths; true if that is less than what held on this one.
    pub(super) fn join(&mut self, other: &Facts) -> bool {
        let mut less = self.state.join(&other.state);
        let constants = self.constants.len();
        self.constants.retain(|constant| other.constants.contains(constant));
        less |= self.constants.len() < constants;
        if self.thread != other.thread && self.thread != Thread::Unknown {
            self.thread = Thread::Unknown;
            less = true;
        }
        less
    }
}

fn from_entry(value: Option<Sum>) -> Option<i32> {
    let place = value?.place()?;
    (place.register == RSP).then_some(place.offset)
}
