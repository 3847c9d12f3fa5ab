//! What registers and memory hold while a function is read: a number, or a distance from something unknown.

/// Something whose value is not known, and to which distances are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Base {
    /// Nothing: the offset is the value.
    Number,
    /// The thread pointer.
    ThreadPointer,
    /// The stack pointer on entry.
    Stack,
    /// The return address.
    Return,
    /// The function's second argument.
    Argument,
    /// What was loaded from memory; which load it was.
    Loaded(u8),
}

/// A base and a distance from it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Term {
    pub(super) base: Base,
    pub(super) offset: u64,
}

/// `None` is a value of which nothing is known.
pub(super) type Value = Option<Term>;

impl Term {
    pub(super) const fn number(offset: u64) -> Term {
        Term { base: Base::Number, offset }
    }

    pub(super) const fn at(base: Base, offset: u64) -> Term {
        Term { base, offset }
    }

    /// The number, if it is one.
    pub(super) fn as_number(self) -> Option<u64> {
        (self.base == Base::Number).then_some(self.offset)
    }
}

pub(super) fn add(a: Value, b: Value) -> Value {
    let (a, b) = (a?, b?);
    let base = match (a.base, b.base) {
        (base, Base::Number) | (Base::Number, base) => base,
        _ => return None,
    };
    Some(Term::at(base, a.offset.wrapping_add(b.offset)))
}

pub(super) fn subtract(a: Value, b: Value) -> Value {
    let (a, b) = (a?, b?);
    let offset = a.offset.wrapping_sub(b.offset);
    match b.base {
        Base::Number => Some(Term::at(a.base, offset)),
        base if base == a.base => Some(Term::number(offset)),
        _ => None,
    }
}

/// An operation that is known for numbers only.
pub(super) fn numbers(a: Value, b: Value, operation: impl FnOnce(u64, u64) -> u64) -> Value {
    Some(Term::number(operation(a?.as_number()?, b?.as_number()?)))
}

/// The lower half of a number, as operations on 32 bits leave it.
pub(super) fn low_half(value: Value) -> Value {
    Some(Term::number(value?.as_number()? & 0xffff_ffff))
}

/// What a comparison has left.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Flags {
    Unknown,
    /// Of numbers.
    Known {
        zero: bool,
        negative: bool,
        /// x86_64's carry, which is aarch64's inverted.
        borrow: bool,
        overflow: bool,
    },
    /// Something loaded was compared with zero.
    OfLoaded(u8),
}

impl Flags {
    /// Those of `a - b`, of 64 or 32 bits.
    pub(super) fn of_difference(a: Value, b: Value, wide: bool) -> Flags {
        match (a, b) {
            (Some(a), Some(b)) if a.base == Base::Number && b.base == Base::Number => {
                of_numbers(a.offset, b.offset, wide)
            }
            (Some(Term { base: Base::Loaded(load), offset: 0 }), Some(zero)) if zero.as_number() == Some(0) && wide => {
                Flags::OfLoaded(load)
            }
            _ => Flags::Unknown,
        }
    }

    /// Those of a result of bit operations.
    pub(super) fn of_bits(result: Value, wide: bool) -> Flags {
        Flags::of_difference(result, Some(Term::number(0)), wide)
    }

    /// The same, but as after a comparison that has borrowed.
    pub(super) fn borrowing(self) -> Flags {
        match self {
            Flags::Known { zero, negative, overflow, .. } => Flags::Known { zero, negative, borrow: true, overflow },
            other => other,
        }
    }
}

fn of_numbers(a: u64, b: u64, wide: bool) -> Flags {
    let top = if wide { 63 } else { 31 };
    let mask = u64::MAX >> (63 - top);
    let (a, b) = (a & mask, b & mask);
    let result = a.wrapping_sub(b) & mask;
    let sign = |value: u64| value >> top & 1 == 1;
    Flags::Known {
        zero: result == 0,
        negative: sign(result),
        borrow: a < b,
        overflow: sign(a) != sign(b) && sign(result) != sign(a),
    }
}

/// What a branch asks of the flags.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Condition {
    Equal,
    Below,
    BelowOrEqual,
    Less,
    LessOrEqual,
    Negative,
    Overflow,
}

impl Condition {
    /// Whether it holds, if that is known.
    pub(super) fn holds(self, flags: Flags) -> Option<bool> {
        let Flags::Known { zero, negative, borrow, overflow } = flags else { return None };
        Some(match self {
            Condition::Equal => zero,
            Condition::Below => borrow,
            Condition::BelowOrEqual => borrow || zero,
            Condition::Less => negative != overflow,
            Condition::LessOrEqual => zero || negative != overflow,
            Condition::Negative => negative,
            Condition::Overflow => overflow,
        })
    }
}
