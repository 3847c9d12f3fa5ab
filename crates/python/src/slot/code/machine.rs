//! The state of a thread that runs the function, and the paths that it can take.

use super::value::{Base, Flags, Term, Value};
use super::{Condition, Misread};

/// Loads that are told apart.
const MOST_LOADS: usize = 64;
/// Words written to memory that are remembered.
const MOST_STORES: usize = 64;

/// Where memory was loaded from: each place once, since it is taken not to change meanwhile.
#[derive(Default)]
pub(super) struct Loads {
    places: Vec<Term>,
}

impl Loads {
    /// The value at a place.
    pub(super) fn load(&mut self, place: Term) -> Value {
        let known = self.places.iter().position(|known| *known == place);
        let index = known.or_else(|| {
            let index = self.places.len();
            (index < MOST_LOADS).then(|| self.places.push(place)).map(|()| index)
        })?;
        Some(Term::at(Base::Loaded(index as u8), 0))
    }

    /// Where the value of a load lies.
    pub(super) fn place(&self, load: u8) -> Option<Term> {
        self.places.get(usize::from(load)).copied()
    }
}

/// Registers by the numbers of the instruction set, what was written to memory, and what is known from branches.
#[derive(Clone, Debug)]
pub(super) struct State {
    pub(super) pc: u64,
    pub(super) registers: [Value; 32],
    pub(super) flags: Flags,
    stores: Vec<Store>,
    /// Loads whose value is 0 on this path, a bit each.
    zero: u64,
    /// Memory other than the stack was written.
    pub(super) has_written: bool,
    /// Where the function's second argument was written to; `Err` if to several places or nobody knows where.
    pub(super) argument: Result<Option<Term>, ()>,
}

#[derive(Clone, Copy, Debug)]
struct Store {
    place: Term,
    size: u64,
    value: Value,
}

/// How a path goes on.
pub(super) enum Flow {
    /// At the state's pc.
    On,
    /// As `other` if the condition holds (or, if `wanted` is false, does not), else at the state's pc.
    Split { condition: Condition, wanted: bool, other: Box<State> },
    /// The function has returned this.
    Return(Value),
}

impl State {
    pub(super) fn new(pc: u64) -> State {
        State {
            pc,
            registers: [None; 32],
            flags: Flags::Unknown,
            stores: Vec::new(),
            zero: 0,
            has_written: false,
            argument: Ok(None),
        }
    }

    /// Loads `size` bytes.
    pub(super) fn load(&self, place: Value, size: u64, loads: &mut Loads) -> Value {
        let place = place?;
        match self.stores.iter().find(|store| store.place == place && store.size == size) {
            Some(store) => store.value,
            None if size == 8 && place.base != Base::Stack => loads.load(place),
            None => None,
        }
    }

    /// Stores `size` bytes.
    pub(super) fn store(&mut self, place: Value, size: u64, value: Value) -> Result<(), Misread> {
        if place.is_none_or(|place| place.base != Base::Stack) {
            self.has_written = true;
            self.note_argument(place, size, value);
        }
        let Some(place) = place else { return Ok(()) };
        self.stores.retain(|old| {
            let (ahead, behind) =
                (old.place.offset.wrapping_sub(place.offset), place.offset.wrapping_sub(old.place.offset));
            old.place.base != place.base || (ahead >= size && behind >= old.size)
        });
        if self.stores.len() >= MOST_STORES {
            return Err(Misread::TooLong);
        }
        self.stores.push(Store { place, size, value });
        Ok(())
    }

    /// Remembers where the function's second argument is written to.
    fn note_argument(&mut self, place: Value, size: u64, value: Value) {
        if value == Some(Term::at(Base::Argument, 0)) {
            self.argument = match (self.argument, place) {
                (Ok(None), Some(place)) if size == 8 => Ok(Some(place)),
                (before, place) if before == Ok(place) => before,
                _ => Err(()),
            };
        }
    }

    /// This path goes on only if that load gave 0.
    pub(super) fn know_zero(&mut self, load: u8) {
        self.zero |= 1 << (load % 64);
    }

    /// Whether the value is 0 on this path.
    pub(super) fn is_zero(&self, value: Term) -> bool {
        match value.base {
            Base::Number => value.offset == 0,
            Base::Loaded(load) => value.offset == 0 && self.zero >> (load % 64) & 1 == 1,
            _ => false,
        }
    }

    /// Jumps to where a value leads.
    pub(super) fn jump(&mut self, target: Value) -> Result<(), Misread> {
        self.pc = target.and_then(Term::as_number).ok_or(Misread::LeavesTheFile)?;
        Ok(())
    }
}
