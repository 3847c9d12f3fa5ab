//! What instructions of x86_64 do.

use iced_x86::{
    Code as Opcode, ConditionCode, Decoder, DecoderOptions, FlowControl, Instruction, Mnemonic, OpKind, Register,
};

use super::machine::{Flow, Loads, State};
use super::value::{Base, Condition, Flags, Term, Value, add, low_half, numbers, subtract};
use super::{Misread, X86_64_SELF};

const RAX: usize = 0;
const RSP: usize = 4;
const RBP: usize = 5;
const RSI: usize = 6;
const RDI: usize = 7;

/// The state on entry: the key in edi, a value in rsi, the return address on the stack.
pub(super) fn entry(pc: u64, key: u32) -> Result<State, Misread> {
    let mut state = State::new(pc);
    state.registers[RDI] = Some(Term::number(u64::from(key)));
    state.registers[RSI] = Some(Term::at(Base::Argument, 0));
    state.registers[RSP] = Some(Term::at(Base::Stack, 0));
    state.store(Some(Term::at(Base::Stack, 0)), 8, Some(Term::at(Base::Return, 0)))?;
    Ok(state)
}

/// Runs the instruction at the state's pc.
pub(super) fn step(bytes: &[u8], state: &mut State, loads: &mut Loads) -> Result<Flow, Misread> {
    let mut decoder = Decoder::with_ip(64, bytes, state.pc, DecoderOptions::NONE);
    let instruction = decoder.decode();
    let unknown = || Misread::Instruction { address: instruction.ip(), bytes: bytes.to_vec() };
    if instruction.is_invalid() {
        return Err(unknown());
    }
    state.pc = instruction.next_ip();
    match instruction.flow_control() {
        FlowControl::Next => match effect(&instruction, state, loads)? {
            Some(flow) => Ok(flow),
            None => Err(unknown()),
        },
        FlowControl::UnconditionalBranch => {
            state.pc = instruction.near_branch_target();
            Ok(Flow::On)
        }
        FlowControl::ConditionalBranch if instruction.is_jcc_short_or_near() => {
            let mut other = Box::new(state.clone());
            other.pc = instruction.near_branch_target();
            split(&instruction, other).ok_or_else(unknown)
        }
        FlowControl::Call if instruction.code() == Opcode::Call_rel32_64 => {
            push(state, Some(Term::number(instruction.next_ip())))?;
            state.pc = instruction.near_branch_target();
            Ok(Flow::On)
        }
        FlowControl::Return if instruction.code() == Opcode::Retnq => {
            let target = pop(state, loads);
            match target {
                Some(Term { base: Base::Return, offset: 0 }) => Ok(Flow::Return(state.registers[RAX])),
                target => state.jump(target).map(|()| Flow::On),
            }
        }
        _ => Err(unknown()),
    }
}

/// `other` if the instruction's condition holds.
fn split(instruction: &Instruction, other: Box<State>) -> Option<Flow> {
    let (condition, wanted) = match instruction.condition_code() {
        ConditionCode::e => (Condition::Equal, true),
        ConditionCode::ne => (Condition::Equal, false),
        ConditionCode::b => (Condition::Below, true),
        ConditionCode::ae => (Condition::Below, false),
        ConditionCode::be => (Condition::BelowOrEqual, true),
        ConditionCode::a => (Condition::BelowOrEqual, false),
        ConditionCode::l => (Condition::Less, true),
        ConditionCode::ge => (Condition::Less, false),
        ConditionCode::le => (Condition::LessOrEqual, true),
        ConditionCode::g => (Condition::LessOrEqual, false),
        ConditionCode::s => (Condition::Negative, true),
        ConditionCode::ns => (Condition::Negative, false),
        ConditionCode::o => (Condition::Overflow, true),
        ConditionCode::no => (Condition::Overflow, false),
        _ => return None,
    };
    Some(Flow::Split { condition, wanted, other })
}

/// What an instruction does that goes on to the next; `None` if that is not known.
fn effect(instruction: &Instruction, state: &mut State, loads: &mut Loads) -> Result<Option<Flow>, Misread> {
    use Mnemonic as M;
    let size = operand_size(instruction, 0);
    let wide = size == 8;
    let sized = |value| if wide { value } else { low_half(value) };
    match instruction.mnemonic() {
        M::Nop | M::Endbr64 => {}
        M::Mov | M::Movzx => {
            let value = read(instruction, 1, state, loads);
            write(instruction, size, value, state)?;
        }
        M::Movsxd => {
            let value = numbers(read(instruction, 1, state, loads), ZERO, |a, _| a as u32 as i32 as u64);
            write(instruction, size, value, state)?;
        }
        M::Cdqe => state.registers[RAX] = numbers(state.registers[RAX], ZERO, |a, _| a as u32 as i32 as u64),
        M::Lea => {
            let value = address(instruction, state);
            write(instruction, size, value, state)?;
        }
        M::Add | M::Sub | M::And | M::Or | M::Xor | M::Shl | M::Shr | M::Sar | M::Imul => {
            return arithmetic(instruction, size, state, loads);
        }
        M::Cmp | M::Test => {
            let (a, b) = (read(instruction, 0, state, loads), read(instruction, 1, state, loads));
            state.flags = match instruction.mnemonic() {
                _ if size < 4 => Flags::Unknown,
                M::Cmp => Flags::of_difference(a, b, wide),
                // a value and itself
                _ if a == b => Flags::of_bits(a, wide),
                _ => Flags::of_bits(sized(numbers(a, b, |a, b| a & b)), wide),
            };
        }
        M::Push if size == 8 || instruction.op0_kind() != OpKind::Register => {
            let value = read(instruction, 0, state, loads);
            push(state, value)?;
        }
        M::Pop if size == 8 => {
            let value = pop(state, loads);
            write(instruction, size, value, state)?;
        }
        M::Leave => {
            state.registers[RSP] = state.registers[RBP];
            state.registers[RBP] = pop(state, loads);
        }
        M::Cmove | M::Cmovne | M::Cmovb | M::Cmovae | M::Cmovbe | M::Cmova if wide => {
            let mut other = Box::new(state.clone());
            let value = read(instruction, 1, state, loads);
            write(instruction, size, value, &mut other)?;
            return Ok(split(instruction, other));
        }
        _ => return Ok(None),
    }
    Ok(Some(Flow::On))
}

const ZERO: Value = Some(Term::number(0));

/// Operations of two operands that change the first and the flags.
fn arithmetic(
    instruction: &Instruction,
    size: u64,
    state: &mut State,
    loads: &mut Loads,
) -> Result<Option<Flow>, Misread> {
    use Mnemonic as M;
    if size < 4 {
        // flags of a byte: what they are does not matter
        state.flags = Flags::Unknown;
        write(instruction, size, None, state)?;
        return Ok(Some(Flow::On));
    }
    let wide = size == 8;
    let operands = instruction.op_count();
    let (a, b) = match operands {
        2 => (read(instruction, 0, state, loads), read(instruction, 1, state, loads)),
        3 => (read(instruction, 1, state, loads), read(instruction, 2, state, loads)),
        _ => return Ok(None),
    };
    let is_same = operands == 2
        && instruction.op0_kind() == OpKind::Register
        && instruction.op1_kind() == OpKind::Register
        && instruction.op0_register() == instruction.op1_register();
    let shift = if wide { 63 } else { 31 };
    let mnemonic = instruction.mnemonic();
    let result = match mnemonic {
        M::Xor | M::Sub if is_same => ZERO,
        M::Add => add(a, b),
        M::Sub => subtract(a, b),
        M::And => numbers(a, b, |a, b| a & b),
        M::Or => numbers(a, b, |a, b| a | b),
        M::Xor => numbers(a, b, |a, b| a ^ b),
        M::Shl => numbers(a, b, |a, b| a << (b & shift)),
        M::Shr => numbers(a, b, |a, b| a >> (b & shift)),
        M::Sar if wide => numbers(a, b, |a, b| (a as i64 >> (b & shift)) as u64),
        M::Sar => numbers(a, b, |a, b| (a as u32 as i32 >> (b & shift)) as u64),
        _ => numbers(a, b, u64::wrapping_mul),
    };
    let result = if wide { result } else { low_half(result) };
    state.flags = match mnemonic {
        M::Sub => Flags::of_difference(a, b, wide),
        M::And | M::Or | M::Xor => Flags::of_bits(result, wide),
        _ => Flags::Unknown,
    };
    write(instruction, size, result, state)?;
    Ok(Some(Flow::On))
}

/// Bytes of an operand.
fn operand_size(instruction: &Instruction, operand: u32) -> u64 {
    match instruction.op_kind(operand) {
        OpKind::Register => instruction.op_register(operand).size() as u64,
        OpKind::Memory => instruction.memory_size().size() as u64,
        _ => 8,
    }
}

/// The value of an operand; 32-bit numbers are extended by zeros, as all operations of that size do.
fn read(instruction: &Instruction, operand: u32, state: &State, loads: &mut Loads) -> Value {
    match instruction.op_kind(operand) {
        OpKind::Register => {
            let register = instruction.op_register(operand);
            let value = general(register).and_then(|number| state.registers[number]);
            match register.size() {
                8 => value,
                4 => low_half(value),
                _ => None,
            }
        }
        OpKind::Memory => load(instruction, state, loads),
        OpKind::NearBranch64 => None,
        _ => {
            let immediate = instruction.try_immediate(operand).ok().map(Term::number);
            if operand_size(instruction, 0) == 4 { low_half(immediate) } else { immediate }
        }
    }
}

/// The value of the memory operand.
fn load(instruction: &Instruction, state: &State, loads: &mut Loads) -> Value {
    let place = address(instruction, state).map(|place| match instruction.memory_segment() {
        Register::FS => Term::at(Base::ThreadPointer, place.offset),
        _ => place,
    });
    match place {
        Some(Term { base: Base::ThreadPointer, offset }) if offset == X86_64_SELF[0] => {
            Some(Term::at(Base::ThreadPointer, 0))
        }
        place => state.load(place, instruction.memory_size().size() as u64, loads),
    }
}

/// Writes the first operand.
fn write(instruction: &Instruction, size: u64, value: Value, state: &mut State) -> Result<(), Misread> {
    if instruction.op0_kind() != OpKind::Register {
        let place = match instruction.memory_segment() {
            Register::FS => None,
            _ => address(instruction, state),
        };
        return state.store(place, size, value);
    }
    if let Some(number) = general(instruction.op0_register()) {
        state.registers[number] = match size {
            8 => value,
            4 => low_half(value),
            _ => None,
        };
    }
    Ok(())
}

/// The address of the memory operand, without the base of its segment.
fn address(instruction: &Instruction, state: &State) -> Value {
    let displacement = Term::number(instruction.memory_displacement64());
    if instruction.is_ip_rel_memory_operand() {
        return Some(Term::number(instruction.ip_rel_memory_address()));
    }
    let register = |register: Register| match register {
        Register::None => ZERO,
        register if register.size() == 8 => general(register).and_then(|number| state.registers[number]),
        _ => None,
    };
    let scale = u64::from(instruction.memory_index_scale());
    let index = register(instruction.memory_index());
    let index = if scale == 1 { index } else { numbers(index, ZERO, |index, _| index.wrapping_mul(scale)) };
    let place = add(add(register(instruction.memory_base()), index), Some(displacement))?;
    // distances from FS must be plain numbers
    let is_plain = instruction.memory_segment() != Register::FS || place.base == Base::Number;
    is_plain.then_some(place)
}

/// The number of a general register.
fn general(register: Register) -> Option<usize> {
    register.is_gpr().then(|| register.full_register().number())
}

fn push(state: &mut State, value: Value) -> Result<(), Misread> {
    state.registers[RSP] = subtract(state.registers[RSP], Some(Term::number(8)));
    state.store(state.registers[RSP], 8, value)
}

fn pop(state: &mut State, loads: &mut Loads) -> Value {
    let value = state.load(state.registers[RSP], 8, loads);
    state.registers[RSP] = add(state.registers[RSP], Some(Term::number(8)));
    value
}
