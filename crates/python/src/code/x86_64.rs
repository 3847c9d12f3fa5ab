//! What x86_64 instructions do.

use iced_x86::{
    Decoder, DecoderOptions, FastFormatter, FlowControl, Instruction, InstructionInfoFactory, Mnemonic, OpAccess,
    OpKind, Register, UsedMemory,
};

use super::machine::{Flow, Step, Store, Target, load};
use super::state::{SP, State};
use super::value::{Base, Value, Via};
use crate::file::PythonFile;

const RBP: usize = 5;

/// A decoder of x86_64.
pub(crate) struct Decode {
    info: InstructionInfoFactory,
}

impl Decode {
    pub(crate) fn new() -> Decode {
        Decode { info: InstructionInfoFactory::new() }
    }

    pub(crate) fn step(&mut self, file: &PythonFile<'_>, pc: u64, state: &mut State) -> Option<Step> {
        let instruction = decode(file, pc)?;
        let next = instruction.next_ip();
        let mut context = Context { file, state, instruction: &instruction, pc, stores: Vec::new() };
        let target = |context: &Context<'_, '_>| match instruction.op0_kind() {
            OpKind::NearBranch64 => Target::Address(instruction.near_branch_target()),
            _ => Target::Value(context.read(0)),
        };
        let mut compared = None;
        let flow = match instruction.flow_control() {
            FlowControl::UnconditionalBranch | FlowControl::IndirectBranch => Flow::Jump(target(&context)),
            FlowControl::ConditionalBranch => Flow::Branch(instruction.near_branch_target()),
            FlowControl::Call | FlowControl::IndirectCall => Flow::Call(target(&context)),
            FlowControl::Return => Flow::Return,
            FlowControl::Interrupt | FlowControl::Exception => Flow::End,
            FlowControl::Next | FlowControl::XbeginXabortXend => {
                compared = context.compared();
                if instruction.mnemonic() == Mnemonic::Hlt {
                    Flow::End
                } else {
                    context.effect(&mut self.info);
                    Flow::Next
                }
            }
        };
        let padding = instruction.mnemonic() == Mnemonic::Nop;
        Some(Step { length: next.wrapping_sub(pc), flow, compared, stores: context.stores, padding })
    }

    pub(crate) fn text(&self, file: &PythonFile<'_>, pc: u64) -> (usize, String) {
        let mut text = String::new();
        let Some(instruction) = decode(file, pc) else { return (0, text) };
        FastFormatter::new().format(&instruction, &mut text);
        (instruction.len(), text)
    }
}

fn decode(file: &PythonFile<'_>, pc: u64) -> Option<Instruction> {
    let (bytes, length) = file.fetch(pc);
    let instruction = Decoder::with_ip(64, &bytes[..length], pc, DecoderOptions::NONE).decode();
    (!instruction.is_invalid()).then_some(instruction)
}

/// The number of a general register in a [`State`]: that of its encoding, but for rsp.
fn number(register: Register) -> Option<usize> {
    let full = register.full_register();
    match full {
        Register::RSP => Some(SP),
        _ => full.is_gpr64().then(|| full.number()),
    }
}

struct Context<'c, 'f> {
    file: &'c PythonFile<'f>,
    state: &'c mut State,
    instruction: &'c Instruction,
    pc: u64,
    stores: Vec<Store>,
}

impl Context<'_, '_> {
    fn register(&self, register: Register) -> Value {
        match number(register) {
            Some(number) if register.is_gpr64() => self.state.get(number),
            Some(number) if register.is_gpr32() => self.state.get(number).low(self.file.is_fixed()),
            _ => Value::UNKNOWN,
        }
    }

    fn set(&mut self, register: Register, value: Value) {
        let Some(number) = number(register) else { return };
        let value = match register {
            _ if register.is_gpr64() => value,
            _ if register.is_gpr32() => value.low(self.file.is_fixed()),
            _ => Value::UNKNOWN,
        };
        self.state.set(number, value);
    }

    /// The address of the memory operand.
    fn address(&self) -> Value {
        let instruction = self.instruction;
        let mut address = if instruction.is_ip_rel_memory_operand() {
            Value::address(instruction.ip_rel_memory_address(), self.pc, Via::Relative)
        } else {
            let displacement = Value::number(instruction.memory_displacement64(), self.pc);
            match instruction.memory_base() {
                Register::None => displacement,
                base => displacement.sum(self.register(base), self.pc),
            }
        };
        if instruction.memory_index() != Register::None {
            let index = self.register(instruction.memory_index());
            let index = match (instruction.memory_index_scale(), index.as_number()) {
                (1, _) => index,
                (scale, Some(number)) => Value::number(number.wrapping_mul(scale.into()), self.pc),
                _ => Value::UNKNOWN,
            };
            address = address.sum(index, self.pc);
        }
        match instruction.segment_prefix() {
            Register::FS => Value::thread_pointer(self.pc).sum(address, self.pc),
            Register::GS => Value::UNKNOWN,
            _ => address,
        }
    }

    fn width(&self, operand: u32) -> u8 {
        match self.instruction.op_kind(operand) {
            OpKind::Register => self.instruction.op_register(operand).size() as u8,
            OpKind::Memory => u8::try_from(self.instruction.memory_size().size()).unwrap_or(u8::MAX),
            _ => 0,
        }
    }

    fn read(&self, operand: u32) -> Value {
        match self.instruction.op_kind(operand) {
            OpKind::Register => self.register(self.instruction.op_register(operand)),
            OpKind::Memory => load(self.file, self.state, self.address(), self.width(operand), self.pc),
            _ => self.instruction.try_immediate(operand).map_or(Value::UNKNOWN, |n| Value::number(n, self.pc)),
        }
    }

    fn write(&mut self, value: Value) {
        match self.instruction.op0_kind() {
            OpKind::Register => self.set(self.instruction.op0_register(), value),
            OpKind::Memory => {
                let (address, width) = (self.address(), self.width(0));
                let value = if width == 4 { value.low(self.file.is_fixed()) } else { value };
                self.stores.push(Store { address, width, value });
                if address.base == Base::Stack {
                    self.state.store(address.offset, width, if width >= 4 { value } else { Value::UNKNOWN });
                }
            }
            _ => {}
        }
    }

    fn compared(&self) -> Option<(Value, Value)> {
        let (left, right) = match self.instruction.mnemonic() {
            Mnemonic::Cmp | Mnemonic::Sub => (self.read(0), self.read(1)),
            Mnemonic::Test if self.is_same_register() => (self.read(0), Value::number(0, self.pc)),
            _ => return None,
        };
        Some((left, right))
    }

    fn is_same_register(&self) -> bool {
        let instruction = self.instruction;
        let registers = instruction.op0_kind() == OpKind::Register && instruction.op1_kind() == OpKind::Register;
        registers && instruction.op0_register() == instruction.op1_register()
    }

    fn push(&mut self, value: Value) {
        let sp = self.state.get(SP).plus(-8, self.pc);
        self.state.set(SP, sp);
        self.stores.push(Store { address: sp, width: 8, value });
        if sp.base == Base::Stack {
            self.state.store(sp.offset, 8, value);
        }
    }

    fn pop(&mut self) -> Value {
        let sp = self.state.get(SP);
        self.state.set(SP, sp.plus(8, self.pc));
        load(self.file, self.state, sp, 8, self.pc)
    }

    fn effect(&mut self, info: &mut InstructionInfoFactory) {
        match self.instruction.mnemonic() {
            Mnemonic::Mov => self.write(self.read(1)),
            Mnemonic::Lea => self.write(self.address().plus(0, self.pc)),
            Mnemonic::Add => self.write(self.read(0).sum(self.read(1), self.pc)),
            Mnemonic::Xor | Mnemonic::Sub if self.is_same_register() => self.write(Value::number(0, self.pc)),
            Mnemonic::Sub => self.write(self.read(0).difference(self.read(1), self.pc)),
            Mnemonic::Push if self.width(0) == 8 || self.instruction.op0_kind() != OpKind::Register => {
                self.push(self.read(0));
            }
            Mnemonic::Pop if self.instruction.op0_kind() == OpKind::Register && self.width(0) == 8 => {
                let value = self.pop();
                self.set(self.instruction.op0_register(), value);
            }
            Mnemonic::Leave => {
                self.state.set(SP, self.state.get(RBP));
                let value = self.pop();
                self.state.set(RBP, value);
            }
            Mnemonic::Cmp | Mnemonic::Test | Mnemonic::Nop | Mnemonic::Endbr64 => {}
            _ => self.forget(info),
        }
    }

    /// Forgets what an instruction writes of which nothing else is known.
    fn forget(&mut self, info: &mut InstructionInfoFactory) {
        if self.instruction.op0_kind() == OpKind::Memory {
            let (address, width) = (self.address(), self.width(0));
            self.stores.push(Store { address, width, value: Value::UNKNOWN });
        }
        let writes =
            |access| !matches!(access, OpAccess::None | OpAccess::Read | OpAccess::CondRead | OpAccess::NoMemAccess);
        let used = info.info(self.instruction);
        for register in used.used_registers().iter().filter(|register| writes(register.access())) {
            if let Some(number) = number(register.register()) {
                self.state.set(number, Value::UNKNOWN);
            }
        }
        for memory in used.used_memory().iter().filter(|memory| writes(memory.access())) {
            self.forget_memory(memory);
        }
    }

    fn forget_memory(&mut self, memory: &UsedMemory) {
        let is_stack = |register| self.register(register).base == Base::Stack;
        let on_stack = is_stack(memory.base()) || is_stack(memory.index());
        if on_stack || self.instruction.op0_kind() == OpKind::Memory && self.address().base == Base::Stack {
            self.state.forget_stack();
        }
    }
}
