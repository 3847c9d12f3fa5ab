//! What is known of the registers and the stack at a place, in terms of what they were at the start.

use std::collections::HashSet;

/// Numbers of registers as instructions encode them (not DWARF's).
pub(crate) const RBX: u8 = 3;
pub(crate) const RSP: u8 = 4;
pub(crate) const RBP: u8 = 5;
/// Registers that a called function keeps: rbx, rsp, rbp, r12 to r15.
pub(crate) const KEPT: [u8; 7] = [RBX, RSP, RBP, 12, 13, 14, 15];
/// Most saved values that one state remembers; functions save at most six registers.
const MAX_SAVES: usize = 8;
/// Offsets beyond this are no stack frame's.
const MAX_OFFSET: i32 = 1 << 30;

/// A place in memory: what a register was at the start, and bytes added to it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub(crate) struct Place {
    pub register: u8,
    pub offset: i32,
}

/// What a value is made of.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub(crate) enum Base {
    /// What a register was at the start.
    Register(u8),
    /// The word that lay there at the start.
    Word(Place),
}

/// What a register holds: a base and bytes added to it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub(crate) struct Sum {
    pub base: Base,
    pub offset: i32,
}

/// A [`Sum`], or unknown.
pub(crate) type Value = Option<Sum>;

impl Sum {
    pub(crate) const fn own(register: u8) -> Sum {
        Sum { base: Base::Register(register), offset: 0 }
    }

    /// The sum with more bytes added; `None` if that is too much for a stack frame.
    pub(crate) fn plus(self, bytes: i64) -> Value {
        let offset = i64::from(self.offset).checked_add(bytes)?;
        let offset = i32::try_from(offset).ok().filter(|offset| offset.unsigned_abs() < MAX_OFFSET.unsigned_abs())?;
        Some(Sum { offset, ..self })
    }

    /// The place to which it points.
    pub(crate) fn place(self) -> Option<Place> {
        match self.base {
            Base::Register(register) => Some(Place { register, offset: self.offset }),
            Base::Word(_) => None,
        }
    }
}

/// How the stack pointer was aligned at the calls on a path.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Calls {
    None,
    /// The base of the stack pointer, and the lower four bits of its offset.
    At(Base, u8),
    /// Not all were aligned to 16 bytes.
    Unaligned,
}

impl Calls {
    /// The calls on both of two paths that meet.
    fn join(self, other: Calls) -> Calls {
        match (self, other) {
            (Calls::None, calls) | (calls, Calls::None) => calls,
            (ours, theirs) if ours == theirs => ours,
            _ => Calls::Unaligned,
        }
    }

    /// Whether a function with this CFA may have made these calls: the ABI has rsp aligned to 16 bytes at each call, so
    /// the CFA is, too.
    pub(crate) fn fit(self, cfa: Sum) -> bool {
        match self {
            Calls::None => true,
            Calls::At(base, low) => base != cfa.base || low == (cfa.offset & 15) as u8,
            Calls::Unaligned => false,
        }
    }
}

/// Registers, and the values that were stored since the start.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct State {
    registers: [Value; 16],
    /// Sums of registers' own values that were stored, and where. At most [`MAX_SAVES`], sorted.
    saves: Vec<(Place, Sum)>,
    pub calls: Calls,
    /// Whether the path took the branch of a `switch` for all other values. Where there are none, compilers let that
    /// branch point anywhere.
    pub by_default: bool,
}

impl State {
    /// Every register has its own value.
    pub(crate) fn start() -> State {
        let registers = std::array::from_fn(|number| Some(Sum::own(number as u8)));
        State { registers, saves: Vec::new(), calls: Calls::None, by_default: false }
    }

    /// The same just behind a call.
    pub(crate) fn after_call() -> State {
        let mut state = State::start();
        state.called();
        state
    }

    /// The same behind a call of a function that returns, whatever the alignment.
    pub(crate) fn after_return() -> State {
        State { calls: Calls::None, ..State::after_call() }
    }

    pub(crate) fn get(&self, register: u8) -> Value {
        self.registers.get(usize::from(register)).copied().flatten()
    }

    pub(crate) fn set(&mut self, register: u8, value: Value) {
        if let Some(place) = self.registers.get_mut(usize::from(register)) {
            *place = value;
        }
    }

    /// What lies where a sum points to. Below the stack pointer of the start, only what was stored since counts.
    pub(crate) fn load(&self, address: Value) -> Value {
        let place = address?.place()?;
        if let Some((_, sum)) = self.saves.iter().find(|(saved, _)| *saved == place) {
            return Some(*sum);
        }
        let existed = place.register == RBP || place.register == RSP && place.offset >= 0;
        existed.then_some(Sum { base: Base::Word(place), offset: 0 })
    }

    /// Where a register's own value was stored, and still lies; of several places the one that was there first, if the stack
    /// has only grown since.
    pub(crate) fn saved(&self, register: u8) -> Option<Place> {
        self.saves.iter().rfind(|(_, sum)| *sum == Sum::own(register)).map(|(place, _)| *place)
    }

    /// Forgets what lies below the stack pointer, which called functions write over.
    pub(crate) fn forget_below_stack(&mut self) {
        if let Some(Place { register, offset }) = self.get(RSP).and_then(Sum::place) {
            self.saves.retain(|(saved, _)| saved.register != register || saved.offset >= offset);
        }
    }

    /// A store of `size` bytes.
    pub(crate) fn store(&mut self, address: Value, size: u32, value: Value, stores: &mut Stores) {
        let Some(place) = address.and_then(Sum::place).filter(|place| [RSP, RBP].contains(&place.register)) else {
            return;
        };
        self.saves.retain(|(saved, _)| !overlap(*saved, 8, place, size));
        stores.written.insert((place, size));
        let Some(sum @ Sum { base: Base::Register(register), .. }) = value.filter(|_| size == 8) else { return };
        stores.saved.insert((register, place.register));
        if self.saves.len() < MAX_SAVES {
            let at = self.saves.partition_point(|(saved, _)| *saved < place);
            self.saves.insert(at, (place, sum));
        }
    }

    /// What a call leaves: the registers that a called function keeps.
    pub(crate) fn called(&mut self) {
        if let Some(sum) = self.get(RSP) {
            let low = (sum.offset & 15) as u8;
            self.calls = match self.calls {
                // of another base the offset says nothing: the newer counts
                Calls::At(base, _) if base != sum.base => Calls::At(sum.base, low),
                calls => calls.join(Calls::At(sum.base, low)),
            };
        }
        for number in (0..16).filter(|number| !KEPT.contains(number)) {
            self.set(number, None);
        }
    }

    /// Keeps what holds in both states; true if that is less than what held in this one.
    pub(crate) fn join(&mut self, other: &State) -> bool {
        let mut less = false;
        for (ours, theirs) in self.registers.iter_mut().zip(&other.registers) {
            if ours.is_some() && ours != theirs {
                *ours = None;
                less = true;
            }
        }
        let saves = self.saves.len();
        self.saves.retain(|save| other.saves.contains(save));
        let calls = self.calls.join(other.calls);
        let by_default = self.by_default && other.by_default;
        less |= saves != self.saves.len() || calls != self.calls || by_default != self.by_default;
        (self.calls, self.by_default) = (calls, by_default);
        less
    }
}

/// All stores of all paths.
#[derive(Default)]
pub(crate) struct Stores {
    /// Where, and how many bytes.
    written: HashSet<(Place, u32)>,
    /// Registers whose own values were stored, and the registers that the places were based on.
    saved: HashSet<(u8, u8)>,
}

impl Stores {
    /// Whether the word at a place may not be what it was at the start.
    pub(crate) fn wrote(&self, place: Place) -> bool {
        self.written.iter().any(|(written, size)| overlap(place, 8, *written, *size))
    }

    /// Whether a register's own value was stored by another way than that on which `place` is reached. Then `place` may
    /// be where it was stored, only later than the start: `push %rbx` and `mov -8(%rbp),%rbx` name one place by two
    /// registers.
    pub(crate) fn saved_elsewhere(&self, register: u8, place: Place) -> bool {
        self.saved.iter().any(|(saved, base)| *saved == register && *base != place.register)
    }

    /// The same, for a word that may be any register's value.
    pub(crate) fn any_saved_elsewhere(&self, place: Place) -> bool {
        self.saved.iter().any(|(_, base)| *base != place.register)
    }
}

fn overlap(a: Place, a_size: u32, b: Place, b_size: u32) -> bool {
    let [a_begin, b_begin] = [a, b].map(|place| i64::from(place.offset));
    a.register == b.register && a_begin < b_begin + i64::from(b_size) && b_begin < a_begin + i64::from(a_size)
}
