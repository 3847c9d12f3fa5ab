//! What instructions of aarch64 do.

use yaxpeax_arch::{Decoder, U8Reader};
use yaxpeax_arm::armv8::a64::{InstDecoder, Instruction, Opcode, Operand, ShiftStyle, SizeCode};

use super::Misread;
use super::machine::{Flow, Loads, State};
use super::value::{Base, Condition, Flags, Term, Value, add, low_half, numbers, subtract};

const SP: usize = 31;
const LR: usize = 30;
/// `MRS Xt, TPIDR_EL0` without its register (Arm ARM, C6.2 and D19).
const MRS_TPIDR_EL0: u32 = 0xd53b_d040;

/// The state on entry: the key in w0, a value in x1, the return address in x30. Register 31 of a state is sp.
pub(super) fn entry(pc: u64, key: u32) -> State {
    let mut state = State::new(pc);
    state.registers[0] = Some(Term::number(u64::from(key)));
    state.registers[1] = Some(Term::at(Base::Argument, 0));
    state.registers[SP] = Some(Term::at(Base::Stack, 0));
    state.registers[LR] = Some(Term::at(Base::Return, 0));
    state
}

/// Runs the instruction at the state's pc.
pub(super) fn step(bytes: &[u8], state: &mut State, loads: &mut Loads) -> Result<Flow, Misread> {
    let address = state.pc;
    let unknown = || Misread::Instruction { address, bytes: bytes.iter().take(4).copied().collect() };
    let word = bytes.first_chunk().map(|bytes| u32::from_le_bytes(*bytes)).ok_or_else(unknown)?;
    let decoded = InstDecoder::default().decode(&mut U8Reader::new(bytes)).map_err(|_| unknown())?;
    state.pc = address.wrapping_add(4);
    if word & !0x1f == MRS_TPIDR_EL0 {
        set(state, (word & 0x1f) as u16, SizeCode::X, Some(Term::at(Base::ThreadPointer, 0)));
        return Ok(Flow::On);
    }
    match flow(&decoded, address, state)? {
        Some(flow) => Ok(flow),
        None if effect(&decoded, address, state, loads)? => Ok(Flow::On),
        None => Err(unknown()),
    }
}

/// Branches, and what else can go two ways; `None` for other instructions.
fn flow(instruction: &Instruction, address: u64, state: &mut State) -> Result<Option<Flow>, Misread> {
    let target = |offset: i64| address.wrapping_add(offset as u64);
    Ok(Some(match (instruction.opcode, instruction.operands) {
        (Opcode::B, [Operand::PCOffset(offset), ..]) => {
            state.pc = target(offset);
            Flow::On
        }
        (Opcode::BL, [Operand::PCOffset(offset), ..]) => {
            state.registers[LR] = Some(Term::number(state.pc));
            state.pc = target(offset);
            Flow::On
        }
        (Opcode::RET, [Operand::Register(_, register), ..]) => match get(state, register, SizeCode::X) {
            Some(Term { base: Base::Return, offset: 0 }) => Flow::Return(state.registers[0]),
            target => {
                state.jump(target)?;
                Flow::On
            }
        },
        (Opcode::RETAA | Opcode::RETAB, _) => match state.registers[LR] {
            Some(Term { base: Base::Return, offset: 0 }) => Flow::Return(state.registers[0]),
            target => {
                state.jump(target)?;
                Flow::On
            }
        },
        (Opcode::Bcc(code), [Operand::PCOffset(offset), ..]) => {
            let mut other = Box::new(state.clone());
            other.pc = target(offset);
            return Ok(split(code, other));
        }
        (Opcode::CBZ | Opcode::CBNZ, [Operand::Register(size, register), Operand::PCOffset(offset), ..]) => {
            state.flags = Flags::of_bits(get(state, register, size), size == SizeCode::X);
            let mut other = Box::new(state.clone());
            other.pc = target(offset);
            Flow::Split { condition: Condition::Equal, wanted: instruction.opcode == Opcode::CBZ, other }
        }
        (
            Opcode::CSEL,
            [
                Operand::Register(size, to),
                Operand::Register(_, first),
                Operand::Register(_, second),
                Operand::ConditionCode(code),
            ],
        ) => {
            let mut other = Box::new(state.clone());
            let (first, second) = (get(state, first, size), get(state, second, size));
            set(&mut other, to, size, first);
            set(state, to, size, second);
            return Ok(split(code, other));
        }
        _ => return Ok(None),
    }))
}

/// `other` if the condition with this code holds (Arm ARM, C1.2.4).
fn split(code: u8, other: Box<State>) -> Option<Flow> {
    let condition = match code >> 1 {
        0 => Condition::Equal,
        // carry set: no borrow
        1 => Condition::Below,
        2 => Condition::Negative,
        3 => Condition::Overflow,
        4 => Condition::BelowOrEqual,
        5 => Condition::Less,
        6 => Condition::LessOrEqual,
        _ => return None,
    };
    // hs, hi, ge and gt are the opposites of these conditions
    let is_opposite = matches!(code >> 1, 1 | 4 | 5 | 6);
    Some(Flow::Split { condition, wanted: (code & 1 == 0) != is_opposite, other })
}

/// What other instructions do; false if that is not known.
fn effect(instruction: &Instruction, address: u64, state: &mut State, loads: &mut Loads) -> Result<bool, Misread> {
    use Opcode as O;
    let operands = instruction.operands;
    match instruction.opcode {
        O::HINT | O::PACIASP | O::PACIBSP | O::AUTIASP | O::AUTIBSP | O::XPACLRI => {}
        O::ADD | O::SUB | O::ADDS | O::SUBS | O::AND | O::ANDS | O::ORR | O::EOR => {
            return Ok(arithmetic(instruction.opcode, operands, state));
        }
        O::UBFM | O::SBFM => return Ok(bit_field(instruction.opcode == O::SBFM, operands, state)),
        O::UDIV | O::LSLV | O::LSRV => {
            let [Operand::Register(size, to), Operand::Register(_, a), Operand::Register(_, b), _] = operands else {
                return Ok(false);
            };
            let shift = width(size) * 8 - 1;
            let value = numbers(get(state, a, size), get(state, b, size), |a, b| match instruction.opcode {
                O::UDIV => a.checked_div(b).unwrap_or(0),
                O::LSLV => a << (b & shift),
                _ => a >> (b & shift),
            });
            set(state, to, size, value);
        }
        O::MADD | O::MSUB => {
            let [
                Operand::Register(size, to),
                Operand::Register(_, a),
                Operand::Register(_, b),
                Operand::Register(_, c),
            ] = operands
            else {
                return Ok(false);
            };
            let product = numbers(get(state, a, size), get(state, b, size), u64::wrapping_mul);
            let sum = if instruction.opcode == O::MADD { add } else { subtract };
            set(state, to, size, sum(get(state, c, size), product));
        }
        O::MOVZ | O::MOVN | O::MOVK => return Ok(wide_move(instruction.opcode, operands, state)),
        O::ADRP | O::ADR => {
            let [Operand::Register(size, to), Operand::PCOffset(offset), ..] = operands else { return Ok(false) };
            let base = if instruction.opcode == O::ADRP { address & !0xfff } else { address };
            set(state, to, size, Some(Term::number(base.wrapping_add(offset as u64))));
        }
        O::LDR | O::LDUR | O::LDRSW | O::LDURSW => {
            let [Operand::Register(size, to), place, ..] = operands else { return Ok(false) };
            let signed = matches!(instruction.opcode, O::LDRSW | O::LDURSW);
            let bytes = if signed || size == SizeCode::W { 4 } else { 8 };
            let Some(place) = self::place(place, state) else { return Ok(false) };
            let value = state.load(place, bytes, loads);
            let value = if signed { numbers(value, ZERO, |a, _| a as u32 as i32 as u64) } else { value };
            set(state, to, size, value);
        }
        O::STR | O::STUR | O::STRB | O::STURB => {
            let [Operand::Register(size, from), place, ..] = operands else { return Ok(false) };
            let is_byte = matches!(instruction.opcode, O::STRB | O::STURB);
            let value = if is_byte { None } else { get(state, from, size) };
            let Some(place) = self::place(place, state) else { return Ok(false) };
            state.store(place, if is_byte { 1 } else { width(size) }, value)?;
        }
        O::LDRB | O::LDURB => {
            let [Operand::Register(size, to), place, ..] = operands else { return Ok(false) };
            if self::place(place, state).is_none() {
                return Ok(false);
            }
            set(state, to, size, None);
        }
        O::STP => {
            let [Operand::Register(size, first), Operand::Register(_, second), place, _] = operands else {
                return Ok(false);
            };
            let values = [get(state, first, size), get(state, second, size)];
            let Some(place) = self::place(place, state) else { return Ok(false) };
            state.store(place, width(size), values[0])?;
            state.store(add(place, Some(Term::number(width(size)))), width(size), values[1])?;
        }
        O::LDP => {
            let [Operand::Register(size, first), Operand::Register(_, second), place, _] = operands else {
                return Ok(false);
            };
            let Some(place) = self::place(place, state) else { return Ok(false) };
            let value = state.load(place, width(size), loads);
            set(state, first, size, value);
            let value = state.load(add(place, Some(Term::number(width(size)))), width(size), loads);
            set(state, second, size, value);
        }
        _ => return Ok(false),
    }
    Ok(true)
}

const ZERO: Value = Some(Term::number(0));

/// Operations of two operands, the second of which may be shifted.
fn arithmetic(opcode: Opcode, operands: [Operand; 4], state: &mut State) -> bool {
    use Opcode as O;
    let (Some((size, to)), Some(a), Some(b)) =
        (target(operands[0]), operand(operands[1], state), operand(operands[2], state))
    else {
        return false;
    };
    let wide = size == SizeCode::X;
    let (a, b) = if wide { (a, b) } else { (low_half(a), low_half(b)) };
    let result = match opcode {
        O::ADD | O::ADDS => add(a, b),
        O::SUB | O::SUBS => subtract(a, b),
        O::AND | O::ANDS if a == b => a,
        O::AND | O::ANDS => numbers(a, b, |a, b| a & b),
        // a move
        O::ORR if a == ZERO => b,
        O::ORR => numbers(a, b, |a, b| a | b),
        _ => numbers(a, b, |a, b| a ^ b),
    };
    let result = if wide { result } else { low_half(result) };
    match opcode {
        O::SUBS => state.flags = Flags::of_difference(a, b, wide),
        O::ADDS => state.flags = Flags::Unknown,
        // carry is cleared, which after a comparison means that it has borrowed
        O::ANDS => state.flags = Flags::of_bits(result, wide).borrowing(),
        _ => {}
    }
    // register 31 is sp for instructions with immediate operands that set no flags, else it is not written
    if to != 31 || matches!(operands[0], Operand::RegisterOrSP(..)) {
        state.registers[usize::from(to & 31)] = result;
    }
    true
}

/// UBFM and SBFM, which are also all shifts by constants and extensions.
fn bit_field(signed: bool, operands: [Operand; 4], state: &mut State) -> bool {
    let [Operand::Register(size, to), Operand::Register(_, from), Operand::Immediate(rotate), Operand::Immediate(last)] =
        operands
    else {
        return false;
    };
    let bits = width(size) as u32 * 8;
    if rotate >= bits || last >= bits {
        return false;
    }
    let value = numbers(get(state, from, size), ZERO, |value, _| {
        let (field, at, length) = match last >= rotate {
            true => (value >> rotate, 0, last - rotate + 1),
            false => (value, bits - rotate, last + 1),
        };
        let unused = 64 - length;
        let field = if signed { (((field << unused) as i64) >> unused) as u64 } else { field << unused >> unused };
        field << at
    });
    set(state, to, size, value);
    true
}

fn wide_move(opcode: Opcode, operands: [Operand; 4], state: &mut State) -> bool {
    let [Operand::Register(size, to), Operand::ImmShift(immediate, shift), ..] = operands else { return false };
    if shift >= 64 {
        return false;
    }
    let part = u64::from(immediate) << shift;
    let value = match opcode {
        Opcode::MOVZ => Some(Term::number(part)),
        Opcode::MOVN => Some(Term::number(!part)),
        _ => numbers(get(state, to, size), ZERO, |value, _| value & !(0xffff << shift) | part),
    };
    set(state, to, size, value);
    true
}

/// The address of a memory operand; `None` if it is not understood. Writes the base register where the operand says so.
fn place(operand: Operand, state: &mut State) -> Option<Value> {
    let base = |state: &State, register: u16| state.registers[usize::from(register & 31)];
    match operand {
        Operand::RegPreIndex(register, offset, writes) => {
            let place = add(base(state, register), Some(Term::number(offset as i64 as u64)));
            if writes {
                state.registers[usize::from(register & 31)] = place;
            }
            Some(place)
        }
        Operand::RegPostIndex(register, offset) => {
            let place = base(state, register);
            state.registers[usize::from(register & 31)] = add(place, Some(Term::number(offset as i64 as u64)));
            Some(place)
        }
        Operand::RegRegOffset(register, index, size, style, shift) => {
            let index = shifted(get(state, index, size), size, style, shift)?;
            Some(add(base(state, register), index))
        }
        _ => None,
    }
}

/// A register that is written.
fn target(operand: Operand) -> Option<(SizeCode, u16)> {
    match operand {
        Operand::Register(size, register) | Operand::RegisterOrSP(size, register) => Some((size, register)),
        _ => None,
    }
}

/// The value of an operand; `None` if the operand is not understood.
fn operand(operand: Operand, state: &State) -> Option<Value> {
    match operand {
        Operand::Register(size, register) => Some(get(state, register, size)),
        Operand::RegisterOrSP(SizeCode::X, register) => Some(state.registers[usize::from(register & 31)]),
        Operand::RegisterOrSP(SizeCode::W, register) => Some(low_half(state.registers[usize::from(register & 31)])),
        Operand::Immediate(value) => Some(Some(Term::number(u64::from(value)))),
        Operand::Imm64(value) => Some(Some(Term::number(value))),
        Operand::ImmShift(value, shift) if shift < 48 => Some(Some(Term::number(u64::from(value) << shift))),
        Operand::RegShift(style, shift, size, register) => shifted(get(state, register, size), size, style, shift),
        _ => None,
    }
}

/// A value extended and shifted; `None` if the style is not understood. A 32-bit register is extended by zeros, which is what
/// the decoder's LSL of one means in an instruction of 64 bits.
fn shifted(value: Value, size: SizeCode, style: ShiftStyle, shift: u8) -> Option<Value> {
    if shift >= 64 {
        return None;
    }
    Some(match style {
        ShiftStyle::LSL | ShiftStyle::UXTW | ShiftStyle::UXTX | ShiftStyle::SXTX if shift == 0 => value,
        ShiftStyle::LSL | ShiftStyle::UXTW | ShiftStyle::UXTX | ShiftStyle::SXTX => {
            numbers(value, ZERO, |value, _| value << shift)
        }
        ShiftStyle::SXTW => numbers(value, ZERO, |value, _| (value as u32 as i32 as u64) << shift),
        ShiftStyle::LSR if size == SizeCode::X || shift < 32 => numbers(value, ZERO, |value, _| value >> shift),
        _ => return None,
    })
}

fn width(size: SizeCode) -> u64 {
    match size {
        SizeCode::X => 8,
        SizeCode::W => 4,
    }
}

/// A register, of which 31 is zero.
fn get(state: &State, register: u16, size: SizeCode) -> Value {
    let value = match register {
        31 => ZERO,
        register => state.registers[usize::from(register & 31)],
    };
    if size == SizeCode::X { value } else { low_half(value) }
}

/// Writes a register, of which 31 is none.
fn set(state: &mut State, register: u16, size: SizeCode, value: Value) {
    if register != 31 {
        state.registers[usize::from(register & 31)] = if size == SizeCode::X { value } else { low_half(value) };
    }
}
