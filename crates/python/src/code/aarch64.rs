//! What aarch64 instructions do.

use yaxpeax_arch::{Decoder, U8Reader};
use yaxpeax_arm::armv8::a64::{InstDecoder, Instruction, Opcode, Operand, SIMDSizeCode, ShiftStyle, SizeCode};

use super::machine::{Comparison, Flow, Step, Store, Target, load};
use super::state::{SP, State};
use super::value::{Base, Value, Via};
use crate::file::PythonFile;

/// `mrs xzr, tpidr_el0`; the register's number is in the low five bits.
const READ_THREAD_POINTER: u32 = 0xd53b_d040;
const NOP: u32 = 0xd503_201f;

/// A decoder of aarch64.
pub(crate) struct Decode {
    decoder: InstDecoder,
}

impl Decode {
    pub(crate) fn new() -> Decode {
        Decode { decoder: InstDecoder::default() }
    }

    fn decode(&self, file: &PythonFile<'_>, pc: u64) -> Option<(u32, Instruction)> {
        let (bytes, length) = file.fetch(pc);
        let word = bytes[..length].first_chunk::<4>().filter(|_| pc.is_multiple_of(4))?;
        let instruction = self.decoder.decode(&mut U8Reader::new(word)).ok()?;
        (instruction.opcode != Opcode::Invalid).then_some((u32::from_le_bytes(*word), instruction))
    }

    pub(crate) fn step(&mut self, file: &PythonFile<'_>, pc: u64, state: &mut State) -> Option<Step> {
        let (word, instruction) = self.decode(file, pc)?;
        let mut context = Context { file, state, operands: &instruction.operands, pc, stores: Vec::new() };
        let compared = context.compared(instruction.opcode);
        let flow = context.flow(instruction.opcode);
        if flow == Flow::Next {
            if word & !0x1f == READ_THREAD_POINTER {
                context.write(0, Value::thread_pointer(pc));
            } else {
                context.effect(instruction.opcode)?;
            }
        }
        Some(Step { length: 4, flow, compared, stores: context.stores, padding: word == NOP })
    }

    pub(crate) fn text(&self, file: &PythonFile<'_>, pc: u64) -> (usize, String) {
        self.decode(file, pc).map_or((0, String::new()), |(_, instruction)| (4, instruction.to_string()))
    }
}

struct Context<'c, 'f> {
    file: &'c PythonFile<'f>,
    state: &'c mut State,
    operands: &'c [Operand; 4],
    pc: u64,
    stores: Vec<Store>,
}

impl Context<'_, '_> {
    fn sized(&self, size: SizeCode, value: Value) -> Value {
        match size {
            SizeCode::X => value,
            SizeCode::W => value.low(self.file.is_fixed()),
        }
    }

    fn read(&self, operand: usize) -> Value {
        match self.operands[operand] {
            Operand::Register(_, 31) => Value::number(0, self.pc),
            Operand::Register(size, number) => self.sized(size, self.state.get(number.into())),
            Operand::RegisterOrSP(size, number) => self.sized(size, self.state.get(usize::from(number))),
            Operand::RegShift(ShiftStyle::LSL | ShiftStyle::UXTX, by, size, number) => {
                let value = match number {
                    31 => Value::number(0, self.pc),
                    number => self.sized(size, self.state.get(number.into())),
                };
                match (by, value.as_number()) {
                    (0, _) => value,
                    (_, Some(bits)) => {
                        let shifted = bits.checked_shl(by.into()).unwrap_or(0);
                        self.sized(size, Value::number(shifted, self.pc))
                    }
                    _ => Value::UNKNOWN,
                }
            }
            Operand::Immediate(number) => Value::number(number.into(), self.pc),
            Operand::Imm64(number) => Value::number(number, self.pc),
            Operand::Imm16(number) => Value::number(number.into(), self.pc),
            Operand::ImmShift(number, by) => {
                Value::number(u64::from(number).checked_shl(by.into()).unwrap_or(0), self.pc)
            }
            _ => Value::UNKNOWN,
        }
    }

    fn write(&mut self, operand: usize, value: Value) {
        match self.operands[operand] {
            Operand::Register(_, 31) => {}
            Operand::Register(size, number) | Operand::RegisterOrSP(size, number) => {
                self.state.set(number.into(), self.sized(size, value));
            }
            _ => {}
        }
    }

    /// Bytes of a register that is loaded or stored.
    fn width(&self, operand: usize) -> u8 {
        match self.operands[operand] {
            Operand::Register(SizeCode::X, _) => 8,
            Operand::Register(SizeCode::W, _) => 4,
            Operand::SIMDRegister(size, _) => match size {
                SIMDSizeCode::B => 1,
                SIMDSizeCode::H => 2,
                SIMDSizeCode::S => 4,
                SIMDSizeCode::D => 8,
                SIMDSizeCode::Q => 16,
            },
            _ => 0,
        }
    }

    /// The address of a memory operand; what is written back is.
    fn address(&mut self, operand: usize) -> Value {
        let (pc, from) = (self.pc, |state: &State, register: u16| state.get(register.into()));
        match self.operands[operand] {
            Operand::PCOffset(distance) => Value::address(pc.wrapping_add_signed(distance), pc, Via::Relative),
            Operand::RegPreIndex(base, offset, write_back) => {
                let before = from(self.state, base);
                let address = if offset == 0 { before } else { before.plus(offset.into(), pc) };
                if write_back {
                    self.state.set(base.into(), address);
                }
                address
            }
            Operand::RegPostIndex(base, offset) => {
                let address = from(self.state, base);
                self.state.set(base.into(), address.plus(offset.into(), pc));
                address
            }
            Operand::RegPostIndexReg(base, _) => {
                let address = from(self.state, base);
                self.state.set(base.into(), Value::UNKNOWN);
                address
            }
            Operand::RegRegOffset(base, index, SizeCode::X, ShiftStyle::LSL | ShiftStyle::UXTX, by) => {
                let index = match index {
                    31 => Value::number(0, pc),
                    index => from(self.state, index),
                };
                let index = match (by, index.as_number()) {
                    (0, _) => index,
                    (by, Some(number)) => Value::number(number.checked_shl(by.into()).unwrap_or(0), pc),
                    _ => Value::UNKNOWN,
                };
                from(self.state, base).sum(index, pc)
            }
            _ => Value::UNKNOWN,
        }
    }

    fn target(&self) -> Target {
        match self.operands[0] {
            Operand::PCOffset(distance) => Target::Address(self.pc.wrapping_add_signed(distance)),
            _ => Target::Value(self.read(0)),
        }
    }

    fn flow(&self, opcode: Opcode) -> Flow {
        let branch = || {
            let distance = self.operands.iter().find_map(|operand| match operand {
                Operand::PCOffset(distance) => Some(*distance),
                _ => None,
            });
            distance.map_or(Flow::End, |distance| Flow::Branch(self.pc.wrapping_add_signed(distance)))
        };
        match opcode {
            Opcode::B | Opcode::BR | Opcode::BRAA | Opcode::BRAAZ | Opcode::BRAB | Opcode::BRABZ => {
                Flow::Jump(self.target())
            }
            Opcode::BL | Opcode::BLR | Opcode::BLRAA | Opcode::BLRAAZ | Opcode::BLRAB | Opcode::BLRABZ => {
                Flow::Call(self.target())
            }
            Opcode::Bcc(_) | Opcode::BCcc(_) | Opcode::CBZ | Opcode::CBNZ | Opcode::TBZ | Opcode::TBNZ => branch(),
            Opcode::RET | Opcode::RETAA | Opcode::RETAB => Flow::Return,
            Opcode::UDF | Opcode::BRK | Opcode::HLT | Opcode::HVC | Opcode::SMC => Flow::End,
            Opcode::ERET | Opcode::ERETAA | Opcode::ERETAB | Opcode::DRPS => Flow::End,
            Opcode::DCPS1 | Opcode::DCPS2 | Opcode::DCPS3 => Flow::End,
            _ => Flow::Next,
        }
    }

    fn compared(&self, opcode: Opcode) -> Option<Comparison> {
        let zero = Value::number(0, self.pc);
        match opcode {
            Opcode::CBZ | Opcode::CBNZ => Some((self.read(0), zero)),
            Opcode::SUBS => Some((self.read(1), self.read(2))),
            Opcode::CCMP => Some((self.read(0), self.read(1))),
            Opcode::ANDS if matches!(self.operands[0], Operand::Register(_, 31)) && self.read(1) == self.read(2) => {
                Some((self.read(1), zero))
            }
            _ => None,
        }
    }

    /// `None` if the instruction is none.
    fn effect(&mut self, opcode: Opcode) -> Option<()> {
        let pc = self.pc;
        match (opcode, self.operands[1]) {
            (Opcode::ADR, Operand::PCOffset(distance)) => {
                self.write(0, Value::address(pc.wrapping_add_signed(distance), pc, Via::Relative));
            }
            (Opcode::ADRP, Operand::PCOffset(distance)) => {
                self.write(0, Value::address((pc & !0xfff).wrapping_add_signed(distance), pc, Via::Relative));
            }
            (Opcode::ADD | Opcode::ADDS, _) => self.write(0, self.read(1).sum(self.read(2), pc)),
            (Opcode::SUB | Opcode::SUBS, _) => self.write(0, self.read(1).difference(self.read(2), pc)),
            (Opcode::MOVZ | Opcode::MOVN | Opcode::MOVK, Operand::ImmShift(bits, by)) => {
                self.move_wide(opcode, bits, by)?;
            }
            (Opcode::ORR, Operand::Register(_, 31)) => self.write(0, self.read(2)),
            (Opcode::LDR | Opcode::LDUR | Opcode::LDAR | Opcode::LDAPR | Opcode::LDAPUR, _) => self.load(),
            (Opcode::LDP | Opcode::LDNP, _) => self.load_pair(),
            (Opcode::STR | Opcode::STUR | Opcode::STLR | Opcode::STLUR, _) => self.store(),
            (Opcode::STP | Opcode::STNP, _) => self.store_pair(),
            (Opcode::STRB | Opcode::STURB | Opcode::STLRB | Opcode::STRH | Opcode::STURH | Opcode::STLRH, _) => {
                let address = self.address(1);
                self.store_at(address, 2, Value::UNKNOWN);
            }
            _ if is_narrow_load(opcode) => {
                self.address(1);
                self.write(0, Value::UNKNOWN);
            }
            _ => self.forget(),
        }
        Some(())
    }

    fn move_wide(&mut self, opcode: Opcode, bits: u16, by: u8) -> Option<()> {
        let wide = matches!(self.operands[0], Operand::Register(SizeCode::X, _));
        if by >= if wide { 64 } else { 32 } {
            return None;
        }
        let field = u64::from(bits) << by;
        let value = match opcode {
            Opcode::MOVZ => Value::number(field, self.pc),
            Opcode::MOVN => Value::number(!field, self.pc),
            _ => match self.read(0).as_number() {
                Some(before) => Value::number(before & !(0xffff << by) | field, self.pc),
                None => Value::UNKNOWN,
            },
        };
        self.write(0, value);
        Some(())
    }

    fn load(&mut self) {
        let (width, address) = (self.width(0), self.address(1));
        let value = load(self.file, self.state, address, width, self.pc);
        self.write(0, value);
    }

    fn load_pair(&mut self) {
        let (width, address) = (self.width(0), self.address(2));
        let second = address.plus(width.into(), self.pc);
        let values = [address, second].map(|address| load(self.file, self.state, address, width, self.pc));
        self.write(0, values[0]);
        self.write(1, values[1]);
    }

    fn store(&mut self) {
        let (width, value, address) = (self.width(0), self.read(0), self.address(1));
        self.store_at(address, width, value);
    }

    fn store_pair(&mut self) {
        let (width, values) = (self.width(0), [self.read(0), self.read(1)]);
        let address = self.address(2);
        self.store_at(address, width, values[0]);
        self.store_at(address.plus(width.into(), self.pc), width, values[1]);
    }

    fn store_at(&mut self, address: Value, width: u8, value: Value) {
        self.stores.push(Store { address, width, value });
        if address.base == Base::Stack {
            self.state.store(address.offset, width, value);
        }
    }

    /// Forgets all that an instruction names of which nothing else is known.
    fn forget(&mut self) {
        for operand in 0..self.operands.len() {
            match self.operands[operand] {
                Operand::Register(..) | Operand::RegisterOrSP(..) => self.write(operand, Value::UNKNOWN),
                Operand::RegisterPair(_, number) => {
                    self.state.forget(&[usize::from(number), usize::from(number).saturating_add(1)]);
                }
                Operand::RegPreIndex(base, ..) | Operand::RegRegOffset(base, ..) => {
                    self.forget_around(base);
                    self.address(operand);
                }
                Operand::RegPostIndex(base, _) | Operand::RegPostIndexReg(base, _) => {
                    self.forget_around(base);
                    self.address(operand);
                }
                _ => {}
            }
        }
    }

    fn forget_around(&mut self, base: u16) {
        if self.state.get(base.into()).base == Base::Stack {
            self.state.forget_stack();
        }
    }
}

/// Whether it loads a part of a register, or extends it.
fn is_narrow_load(opcode: Opcode) -> bool {
    let bytes = matches!(opcode, Opcode::LDRB | Opcode::LDURB | Opcode::LDRSB | Opcode::LDURSB | Opcode::LDARB);
    let halves = matches!(opcode, Opcode::LDRH | Opcode::LDURH | Opcode::LDRSH | Opcode::LDURSH | Opcode::LDARH);
    bytes || halves || matches!(opcode, Opcode::LDRSW | Opcode::LDURSW)
}

/// The stack pointer is register 31 in all operands that can name it.
const _: () = assert!(SP == 31);
