//! What one instruction does to registers and stack, and where it goes on.

use iced_x86::{
    Code as Opcode, FlowControl, Instruction, InstructionInfoFactory, Mnemonic, OpAccess, OpKind, Register, UsedMemory,
};

use super::state::{RBP, RSP, State, Stores, Value};

/// Where an instruction goes on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Flow {
    Next,
    /// To a target, and to the next instruction too if it `falls` through.
    Jump {
        target: u64,
        falls: bool,
    },
    /// A near return.
    Return,
    /// A jump through a word at a constant address, which is how code jumps to a function of another file (a linkage
    /// stub, or past it). That function returns for this one.
    Leave,
    /// To a place that is known only when it runs.
    IndirectJump,
    /// Nowhere: it stops the thread.
    Halt,
    /// Somewhere in a way that is not modelled: returns from interrupts, far transfers.
    Foreign,
}

/// Applies instructions to states, and notes what they store.
pub(crate) struct Effects {
    info: InstructionInfoFactory,
    pub stores: Stores,
}

impl Effects {
    pub(crate) fn new() -> Effects {
        Effects { info: InstructionInfoFactory::new(), stores: Stores::default() }
    }

    /// The registers that an instruction writes, whole.
    pub(crate) fn written(&mut self, instruction: &Instruction) -> impl Iterator<Item = Register> {
        let used = self.info.info(instruction).used_registers();
        used.iter().filter(|used| writes(used.access())).map(|used| used.register().full_register())
    }

    /// Applies an instruction to a state.
    pub(crate) fn apply(&mut self, instruction: &Instruction, state: &mut State) -> Flow {
        let flow = flow(instruction);
        match flow {
            Flow::Next if self.known(instruction, state) => {}
            Flow::Jump { .. } if instruction.is_jcc_short_or_near() || instruction.is_jmp_short_or_near() => {}
            Flow::Next | Flow::Jump { .. } => self.other(instruction, state),
            _ => {}
        }
        flow
    }

    /// Instructions that move the stack pointer or what it may be made of; false for all others.
    fn known(&mut self, instruction: &Instruction, state: &mut State) -> bool {
        let stores = &mut self.stores;
        match instruction.code() {
            Opcode::Call_rel32_64 | Opcode::Call_rm64 => call(instruction, state, stores),
            Opcode::Push_r64 => {
                let value = general(instruction.op0_register()).and_then(|number| state.get(number));
                push(state, value, stores);
            }
            Opcode::Pop_r64 => {
                let value = pop(state);
                state.set(instruction.op0_register().number() as u8, value);
            }
            Opcode::Leaveq => {
                state.set(RSP, state.get(RBP));
                let value = pop(state);
                state.set(RBP, value);
            }
            Opcode::Enterq_imm16_imm8 => enter(instruction, state, stores),
            Opcode::Mov_rm64_r64 | Opcode::Mov_r64_rm64 => copy(instruction, state, stores),
            Opcode::Lea_r64_m => {
                let value = address(instruction, state);
                state.set(instruction.op0_register().number() as u8, value);
            }
            Opcode::Add_rm64_imm8 | Opcode::Add_rm64_imm32 | Opcode::Sub_rm64_imm8 | Opcode::Sub_rm64_imm32 => {
                return add(instruction, state);
            }
            _ => return false,
        }
        true
    }

    /// All others: what they store is something else, and what they write is unknown.
    fn other(&mut self, instruction: &Instruction, state: &mut State) {
        let info = self.info.info(instruction);
        for memory in info.used_memory().iter().filter(|memory| writes(memory.access())) {
            let size = memory.memory_size().size().max(1) as u32;
            state.store(address_of(memory, state), size, None, &mut self.stores);
        }
        let moved = match instruction.is_stack_instruction() && instruction.mnemonic() != Mnemonic::Leave {
            true => plus(state.get(RSP), i64::from(instruction.stack_pointer_increment())),
            false => None,
        };
        for used in info.used_registers().iter().filter(|used| writes(used.access())) {
            if let Some(number) = general(used.register().full_register()) {
                state.set(number, None);
            }
        }
        if moved.is_some() {
            state.set(RSP, moved);
        }
    }
}

/// Where an instruction goes on.
pub(crate) fn flow(instruction: &Instruction) -> Flow {
    let target = instruction.near_branch_target();
    match instruction.flow_control() {
        FlowControl::Next if instruction.mnemonic() == Mnemonic::Hlt => Flow::Halt,
        FlowControl::Next => Flow::Next,
        FlowControl::Call | FlowControl::IndirectCall => match instruction.code() {
            Opcode::Call_rel32_64 | Opcode::Call_rm64 | Opcode::Syscall => Flow::Next,
            _ => Flow::Foreign,
        },
        FlowControl::ConditionalBranch => Flow::Jump { target, falls: true },
        FlowControl::UnconditionalBranch if instruction.op0_kind() == OpKind::NearBranch64 => {
            Flow::Jump { target, falls: false }
        }
        FlowControl::UnconditionalBranch => Flow::Foreign,
        FlowControl::IndirectBranch
            if instruction.code() == Opcode::Jmp_rm64 && instruction.is_ip_rel_memory_operand() =>
        {
            Flow::Leave
        }
        FlowControl::IndirectBranch => Flow::IndirectJump,
        FlowControl::Return => match instruction.code() {
            Opcode::Retnq | Opcode::Retnq_imm16 => Flow::Return,
            _ => Flow::Foreign,
        },
        // a system call of 32-bit code, which 64-bit code may make, too
        FlowControl::Interrupt if instruction.mnemonic() == Mnemonic::Int && instruction.immediate8() == 0x80 => {
            Flow::Next
        }
        FlowControl::Interrupt | FlowControl::Exception => Flow::Halt,
        // an abort goes on with the registers that were there at the beginning
        FlowControl::XbeginXabortXend if instruction.mnemonic() == Mnemonic::Xbegin => {
            Flow::Jump { target, falls: true }
        }
        FlowControl::XbeginXabortXend => Flow::Next,
    }
}

/// A call comes back with the stack as it was; but one of the next instruction is a push of its address.
fn call(instruction: &Instruction, state: &mut State, stores: &mut Stores) {
    if instruction.op0_kind() == OpKind::NearBranch64 && instruction.near_branch_target() == instruction.next_ip() {
        push(state, None, stores);
    } else {
        state.called();
    }
}

fn push(state: &mut State, value: Value, stores: &mut Stores) {
    let top = plus(state.get(RSP), -8);
    state.set(RSP, top);
    state.store(top, 8, value, stores);
}

fn pop(state: &mut State) -> Value {
    let top = state.get(RSP);
    state.set(RSP, plus(top, 8));
    state.load(top)
}

fn plus(value: Value, bytes: i64) -> Value {
    value.and_then(|sum| sum.plus(bytes))
}

/// Number of a 64-bit general register.
fn general(register: Register) -> Option<u8> {
    register.is_gpr64().then(|| register.number() as u8)
}

fn enter(instruction: &Instruction, state: &mut State, stores: &mut Stores) {
    push(state, state.get(RBP), stores);
    state.set(RBP, state.get(RSP));
    let nested = instruction.immediate8_2nd() & 31 != 0;
    let top = plus(state.get(RSP), -i64::from(instruction.immediate16()));
    state.set(RSP, top.filter(|_| !nested));
}

/// `mov` of 64 bits between registers, or a register and memory.
fn copy(instruction: &Instruction, state: &mut State, stores: &mut Stores) {
    let value = match instruction.op1_kind() {
        OpKind::Register => general(instruction.op1_register()).and_then(|number| state.get(number)),
        _ => state.load(address(instruction, state)),
    };
    match instruction.op0_kind() {
        OpKind::Register => state.set(instruction.op0_register().number() as u8, value),
        _ => state.store(address(instruction, state), 8, value, stores),
    }
}

/// Adds a constant to a register; false if it is to memory.
fn add(instruction: &Instruction, state: &mut State) -> bool {
    let Some(number) = general(instruction.op0_register()) else { return false };
    let constant = instruction.immediate(1).cast_signed();
    let bytes = if instruction.mnemonic() == Mnemonic::Sub { -constant } else { constant };
    state.set(number, plus(state.get(number), bytes));
    true
}

/// The address of the memory operand, if it is a register and a constant.
fn address(instruction: &Instruction, state: &State) -> Value {
    let plain = instruction.memory_index() == Register::None && !is_thread_local(instruction.memory_segment());
    let number = general(instruction.memory_base()).filter(|_| plain)?;
    plus(state.get(number), instruction.memory_displacement64().cast_signed())
}

fn address_of(memory: &UsedMemory, state: &State) -> Value {
    let plain = memory.index() == Register::None && !is_thread_local(memory.segment());
    let number = general(memory.base()).filter(|_| plain)?;
    plus(state.get(number), memory.displacement().cast_signed())
}

fn is_thread_local(segment: Register) -> bool {
    matches!(segment, Register::FS | Register::GS)
}

fn writes(access: OpAccess) -> bool {
    matches!(access, OpAccess::Write | OpAccess::CondWrite | OpAccess::ReadWrite | OpAccess::ReadCondWrite)
}
