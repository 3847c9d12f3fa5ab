//! Which instruction a frame is at: what it keeps means something else in nearly every version.

use super::CODE_UNIT;

/// What a frame keeps of the instruction it is at.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Lasti {
    /// `f_lasti` of 3.6 to 3.9, an `int`: the offset of the last instruction begun, in bytes; -1 before the first.
    ByteOffset,
    /// `f_lasti` of 3.10, an `int`: its index, in code units; -1 before the first.
    UnitIndex,
    /// `prev_instr` of 3.11 and 3.12: the address of the last code unit executed, which may be a cache entry of the instruction;
    /// one unit before the code at first.
    PreviousUnit,
    /// `instr_ptr` from 3.13 on: the address of the instruction being executed; that of the call for a frame that has called.
    InstructionPointer,
}

/// Where a frame is in its code.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Position {
    /// Before the first instruction. CPython shows the line of the `def` (`PyCode_Addr2Line` of a negative offset).
    NotStarted,
    /// At the instruction of this offset, in bytes of bytecode.
    At(u32),
}

impl Lasti {
    /// Where the frame is whose field holds `raw`: 4 bytes of it count for an `int`, 8 for an address. `code_begin` is the address
    /// of the bytecode, and counts for addresses only. `None` if no instruction can lie there.
    pub fn position(self, raw: u64, code_begin: u64) -> Option<Position> {
        let int = i64::from((raw as u32).cast_signed());
        let distance = raw.wrapping_sub(code_begin).cast_signed();
        let unit = i64::from(CODE_UNIT);
        let (offset, before) = match self {
            Lasti::ByteOffset => (int, Some(-1)),
            Lasti::UnitIndex => (int * unit, Some(-unit)),
            Lasti::PreviousUnit => (distance, Some(-unit)),
            Lasti::InstructionPointer => (distance, None),
        };
        if before == Some(offset) {
            return Some(Position::NotStarted);
        }
        u32::try_from(offset).ok().filter(|offset| offset.is_multiple_of(CODE_UNIT)).map(Position::At)
    }
}
