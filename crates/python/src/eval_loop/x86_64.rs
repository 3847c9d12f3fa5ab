//! Jumps, calls and addresses in x86_64 code.

use iced_x86::{Decoder, DecoderOptions, FlowControl, Instruction, OpKind, Register};

use super::code::Code;

/// Reads instructions. Of a file that is loaded where it says, plain numbers are addresses, too.
pub(super) fn read(bytes: &[u8], begin: u64, is_fixed: bool, into: &mut Code) {
    let mut decoder = Decoder::with_ip(64, bytes, begin, DecoderOptions::NONE);
    let mut instruction = Instruction::default();
    while decoder.can_decode() {
        decoder.decode_out(&mut instruction);
        if instruction.is_invalid() {
            continue;
        }
        match instruction.flow_control() {
            FlowControl::UnconditionalBranch | FlowControl::ConditionalBranch => {
                into.jumps.push(instruction.near_branch_target());
            }
            FlowControl::Call => into.calls.push(instruction.near_branch_target()),
            FlowControl::IndirectBranch => into.indirect_jumps += 1,
            FlowControl::IndirectCall => into.selected_calls += usize::from(is_selected(&instruction)),
            _ => {}
        }
        into.data.extend(memory(&instruction, is_fixed));
        into.data.extend(immediate(&instruction).filter(|_| is_fixed));
    }
}

fn is_selected(call: &Instruction) -> bool {
    call.op0_kind() == OpKind::Register || call.memory_index() != Register::None
}

/// The constant part of a memory operand that has one as an address: relative to the instruction, or without a base.
fn memory(instruction: &Instruction, is_fixed: bool) -> Option<u64> {
    if instruction.is_ip_rel_memory_operand() {
        return Some(instruction.ip_rel_memory_address());
    }
    let has_memory = (0..instruction.op_count()).any(|operand| instruction.op_kind(operand) == OpKind::Memory);
    let is_plain = is_fixed && has_memory && instruction.memory_base() == Register::None;
    is_plain.then(|| instruction.memory_displacement64())
}

fn immediate(instruction: &Instruction) -> Option<u64> {
    let is_wide = |operand: &u32| {
        matches!(instruction.op_kind(*operand), OpKind::Immediate32 | OpKind::Immediate32to64 | OpKind::Immediate64)
    };
    let operand = (0..instruction.op_count()).find(is_wide)?;
    instruction.try_immediate(operand).ok()
}

/// Finds `jmp rel32` and `jcc rel32` at any byte (Intel's manual, volume 2: E9, and 0F 80 to 0F 8F).
pub(super) fn scan(bytes: &[u8], begin: u64, mut found: impl FnMut(u64)) {
    let mut before = 0;
    for (index, window) in bytes.windows(5).enumerate() {
        let &[opcode, a, b, c, d] = window else { continue };
        if opcode == 0xe9 || before == 0x0f && opcode & 0xf0 == 0x80 {
            let distance = i32::from_le_bytes([a, b, c, d]);
            found(begin.wrapping_add(index as u64 + 5).wrapping_add_signed(distance.into()));
        }
        before = opcode;
    }
}

/// Whether any four bytes are the distance to an address, from behind them or from behind an immediate operand of up to four
/// bytes that follows, or the address itself.
pub(super) fn may_name(bytes: &[u8], begin: u64, address: u64) -> bool {
    let is_one = |(index, window): (usize, &[u8])| {
        let &[a, b, c, d] = window else { return false };
        let number = i32::from_le_bytes([a, b, c, d]);
        let behind = begin.wrapping_add(index as u64 + 4).wrapping_add_signed(number.into());
        address.wrapping_sub(behind) <= 4 || i64::from(number).cast_unsigned() == address
    };
    bytes.windows(4).enumerate().any(is_one)
}

/// `endbr64` or nothing, then a jump through a slot.
pub(super) fn is_stub(bytes: &[u8], address: u64) -> bool {
    const ENDBR64: [u8; 4] = [0xf3, 0x0f, 0x1e, 0xfa];
    let (bytes, address) = match bytes.strip_prefix(&ENDBR64) {
        Some(rest) => (rest, address.wrapping_add(4)),
        None => (bytes, address),
    };
    let instruction = Decoder::with_ip(64, bytes, address, DecoderOptions::NONE).decode();
    instruction.flow_control() == FlowControl::IndirectBranch && instruction.is_ip_rel_memory_operand()
}
