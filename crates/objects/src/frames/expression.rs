//! DWARF expressions (DWARF 5, section 2.5) of the forms that a walk can follow.
//!
//! An expression is run on values that stand for what is known only at run time. If the result is one of the forms of
//! [`Value`], the expression is understood, however it was written.

use crate::architecture::Architecture;
use crate::frames::cursor::Cursor;
use crate::limits::MAX_OPERATIONS;

/// What an expression computes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Value {
    /// A number.
    Constant(i64),
    /// The CFA plus an offset.
    Cfa(i64),
    /// A register plus an offset.
    Register(u64, i64),
    /// The word in memory at a register plus the first offset, plus the second.
    Loaded(u64, i64, i64),
    /// x86_64: stack pointer + 8, and 8 more when the low four bits of the pc are at or above the number.
    Plt(i64),
    /// The low four bits of the pc.
    PcLow,
    /// 1 when the low four bits of the pc are at or above the number, else 0.
    PcReached(i64),
    /// 8 when the low four bits of the pc are at or above the number, else 0.
    PcReachedBytes(i64),
}

/// The CFA by an expression; the stack is empty at first.
pub(crate) fn cfa(architecture: Architecture, code: &[u8]) -> Option<Value> {
    run(architecture, code, Stack::default())
}

/// The place of a register by an expression; the CFA is on the stack at first.
pub(crate) fn place(architecture: Architecture, code: &[u8]) -> Option<Value> {
    let mut stack = Stack::default();
    stack.push(Value::Cfa(0))?;
    run(architecture, code, stack)
}

/// Expressions of the known forms need three.
const DEPTH: usize = 8;

#[derive(Default)]
struct Stack {
    values: [Option<Value>; DEPTH],
    depth: usize,
}

impl Stack {
    fn push(&mut self, value: Value) -> Option<()> {
        *self.values.get_mut(self.depth)? = Some(value);
        self.depth += 1;
        Some(())
    }

    fn pop(&mut self) -> Option<Value> {
        self.depth = self.depth.checked_sub(1)?;
        self.values.get_mut(self.depth)?.take()
    }
}

fn run(architecture: Architecture, code: &[u8], mut stack: Stack) -> Option<Value> {
    let mut code = Cursor::new(code);
    for _ in 0..MAX_OPERATIONS {
        if code.is_empty() {
            return stack.pop();
        }
        let operation = code.u8()?;
        let value = match operation {
            0x06 => load(stack.pop()?)?,
            0x12 => {
                let top = stack.pop()?;
                stack.push(top)?;
                top
            }
            0x1a | 0x1c | 0x22 | 0x24 | 0x2a => {
                let (right, left) = (stack.pop()?, stack.pop()?);
                combine(architecture, operation, left, right)?
            }
            0x23 => add(architecture, stack.pop()?, Value::Constant(i64::try_from(code.uleb()?).ok()?))?,
            0x70..=0x8f => Value::Register(u64::from(operation - 0x70), code.sleb()?),
            0x92 => Value::Register(code.uleb()?, code.sleb()?),
            0x96 => continue,
            _ => Value::Constant(constant(operation, &mut code)?),
        };
        stack.push(value)?;
    }
    None
}

/// `DW_OP_const*` and `DW_OP_lit*`.
fn constant(operation: u8, code: &mut Cursor<'_>) -> Option<i64> {
    match operation {
        0x08 => code.u8().map(i64::from),
        0x09 => code.u8().map(|v| i64::from(v.cast_signed())),
        0x0a => code.u16().map(i64::from),
        0x0b => code.u16().map(|v| i64::from(v.cast_signed())),
        0x0c => code.u32().map(i64::from),
        0x0d => code.u32().map(|v| i64::from(v.cast_signed())),
        0x0e | 0x0f => code.u64().map(u64::cast_signed),
        0x10 => code.uleb().map(u64::cast_signed),
        0x11 => code.sleb(),
        0x30..=0x4f => Some(i64::from(operation - 0x30)),
        _ => None,
    }
}

fn load(address: Value) -> Option<Value> {
    match address {
        Value::Register(register, offset) => Some(Value::Loaded(register, offset, 0)),
        _ => None,
    }
}

/// `DW_OP_and`, `minus`, `plus`, `shl`, `ge` of the two topmost values.
fn combine(architecture: Architecture, operation: u8, left: Value, right: Value) -> Option<Value> {
    match (operation, left, right) {
        (0x22, _, _) => add(architecture, left, right),
        (0x1c, _, Value::Constant(c)) => add(architecture, left, Value::Constant(c.checked_neg()?)),
        (0x1a, pc, Value::Constant(15)) | (0x1a, Value::Constant(15), pc) if is_pc(architecture, pc) => {
            Some(Value::PcLow)
        }
        (0x2a, Value::PcLow, Value::Constant(threshold @ 0..=15)) => Some(Value::PcReached(threshold)),
        (0x24, Value::PcReached(threshold), Value::Constant(3)) => Some(Value::PcReachedBytes(threshold)),
        _ => None,
    }
}

fn is_pc(architecture: Architecture, value: Value) -> bool {
    architecture == Architecture::X86_64 && value == Value::Register(architecture.return_address(), 0)
}

fn add(architecture: Architecture, left: Value, right: Value) -> Option<Value> {
    match (left, right) {
        (Value::Constant(a), Value::Constant(b)) => Some(Value::Constant(a.checked_add(b)?)),
        (Value::Cfa(offset), Value::Constant(c)) | (Value::Constant(c), Value::Cfa(offset)) => {
            Some(Value::Cfa(offset.checked_add(c)?))
        }
        (Value::Register(r, offset), Value::Constant(c)) | (Value::Constant(c), Value::Register(r, offset)) => {
            Some(Value::Register(r, offset.checked_add(c)?))
        }
        (Value::Loaded(r, offset, extra), Value::Constant(c))
        | (Value::Constant(c), Value::Loaded(r, offset, extra)) => {
            Some(Value::Loaded(r, offset, extra.checked_add(c)?))
        }
        (Value::Register(r, 8), Value::PcReachedBytes(threshold))
        | (Value::PcReachedBytes(threshold), Value::Register(r, 8))
            if r == architecture.stack_pointer() =>
        {
            Some(Value::Plt(threshold))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const X86: Architecture = Architecture::X86_64;

    /// `DW_OP_breg7 8; breg16 0; lit15; and; litN; ge; lit3; shl; plus`, as ld writes it for lazy PLTs.
    fn plt(threshold: u8) -> Vec<u8> {
        vec![0x77, 8, 0x80, 0, 0x3f, 0x1a, 0x30 + threshold, 0x2a, 0x33, 0x24, 0x22]
    }

    #[test]
    fn plt_stubs_of_both_kinds() {
        assert_eq!(cfa(X86, &plt(11)), Some(Value::Plt(11)));
        assert_eq!(cfa(X86, &plt(10)), Some(Value::Plt(10)));
    }

    #[test]
    fn what_only_begins_like_a_plt_stub_is_not_one() {
        let good = plt(11);
        for at in 0..good.len() {
            for bit in 0..8 {
                let mut bytes = good.clone();
                bytes[at] ^= 1 << bit;
                if let Some(Value::Plt(threshold)) = cfa(X86, &bytes) {
                    assert!(at == 6 && i64::from(bytes[6]) - 0x30 == threshold, "{bytes:x?}");
                }
            }
            assert!(!matches!(cfa(X86, &good[..at]), Some(Value::Plt(_))));
        }
        assert_eq!(cfa(Architecture::Aarch64, &good), None);
    }

    #[test]
    fn loads_with_and_without_an_addition() {
        assert_eq!(cfa(X86, &[0x76, 0x78, 0x06]), Some(Value::Loaded(6, -8, 0)), "gcc's realigned stack");
        assert_eq!(cfa(X86, &[0x77, 0x10, 0x06, 0x23, 0x18]), Some(Value::Loaded(7, 16, 24)), "OCaml");
        assert_eq!(cfa(X86, &[0x77, 0x10, 0x06, 0x38, 0x22]), Some(Value::Loaded(7, 16, 8)));
        assert_eq!(cfa(X86, &[0x92, 7, 0x10, 0x06, 0x38, 0x1c]), Some(Value::Loaded(7, 16, -8)));
        assert_eq!(cfa(X86, &[0x77, 0x10, 0x06, 0x06]), None, "two loads");
    }

    #[test]
    fn registers_and_the_cfa() {
        assert_eq!(cfa(X86, &[0x77, 0x10, 0x23, 0x80, 1]), Some(Value::Register(7, 144)));
        assert_eq!(place(X86, &[0x23, 8]), Some(Value::Cfa(8)));
        assert_eq!(place(X86, &[0x76, 0]), Some(Value::Register(6, 0)));
        assert_eq!(cfa(X86, &[]), None);
        assert_eq!(cfa(X86, &[0x22]), None);
    }

    proptest::proptest! {
        #[test]
        fn random_bytes_never_panic(code: Vec<u8>) {
            let _ = (cfa(X86, &code), place(X86, &code), cfa(Architecture::Aarch64, &code));
        }
    }
}
