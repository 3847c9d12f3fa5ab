//! The layout of slots out of the code of `pthread_getspecific`, or of `pthread_setspecific`.
//!
//! The function is run for one key after the other on values that are numbers or distances from the thread pointer
//! ([`value`]), along all paths that it can take. Each run tells where the value lies that it returns, or to where the value
//! that it is given is written: at a distance from the thread pointer, or from a pointer that lies at one. A layout is
//! believed if it gives these places for all keys. So no
//! instruction sequence is expected, and a C library that nobody has seen is read, or refused.

mod aarch64;
mod machine;
#[cfg(test)]
mod tests;
mod value;
mod x86_64;

use objects::Architecture;

use super::SlotLayout;
use machine::{Flow, Loads, State};
use value::{Base, Condition, Flags, Term, Value};

/// Instructions of all paths for one key; real ones have up to 30.
const MOST_STEPS: usize = 600;
/// Paths at once.
const MOST_PATHS: usize = 16;
/// Keys that are tried: glibc has 1,024 (`PTHREAD_KEYS_MAX`), and the function must say for which it is not asked.
const TRIED: u32 = 1100;
/// Keys of musl (`PTHREAD_KEYS_MAX` in include/limits.h), whose function does not look at the number.
const KEYS_UNCHECKED: u16 = 128;
/// Where the thread pointer itself lies on x86_64: at 0 by the psABI (3.4.2), at 16 in glibc (`tcbhead_t.self`).
const X86_64_SELF: [u64; 2] = [0, 16];

/// Code by its addresses in the file.
pub(super) trait Code {
    /// What can be read from `address` on, up to 16 bytes.
    fn at(&self, address: u64) -> &[u8];
}

/// Why code could not be read.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Misread {
    /// An instruction that has no business there, or none.
    #[error("instruction {bytes:02x?} at {address:#x}")]
    Instruction {
        /// Where, as the file has it.
        address: u64,
        /// Its first bytes.
        bytes: Vec<u8>,
    },
    /// It jumps to where only a running program knows.
    #[error("a jump out of the file")]
    LeavesTheFile,
    /// More steps, paths or stores than such a function has.
    #[error("too long for what it is")]
    TooLong,
    /// It returns something else than a value out of memory, or none.
    #[error("for key {key} it does not return what lies in a slot")]
    NotASlot {
        /// The key.
        key: u32,
    },
    /// The places of the keys do not make up a layout.
    #[error("the slot of key {key} is not where the layout has it")]
    Irregular {
        /// The first key of which that is so.
        key: u32,
    },
}

/// Which of the two functions is read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Function {
    /// `pthread_getspecific`.
    Get,
    /// `pthread_setspecific`.
    Set,
}

impl Function {
    pub(super) fn name(self) -> &'static str {
        match self {
            Function::Get => "pthread_getspecific",
            Function::Set => "pthread_setspecific",
        }
    }
}

/// Where the value of a key lies.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Place {
    /// At this distance from the thread pointer.
    Inline(u64),
    /// At a distance from the pointer that lies at a distance from the thread pointer.
    Behind { pointer: u64, offset: u64 },
}

/// Reads the function at `entry`.
pub(super) fn layout(
    code: &dyn Code,
    architecture: Architecture,
    function: Function,
    entry: u64,
) -> Result<SlotLayout, Misread> {
    let mut places = Vec::new();
    for key in 0..TRIED {
        places.push(place(code, architecture, function, entry, key)?);
    }
    let layout = fit(&places)?;
    let is_right = |key: u32| layout_place(&layout, key) == places[key as usize];
    // a function that checks nothing gives places beyond its array, too
    let last = if places.last() == Some(&None) { TRIED } else { u32::from(layout.keys) };
    match (0..last).find(|key| !is_right(*key)) {
        Some(key) => Err(Misread::Irregular { key }),
        None => Ok(layout),
    }
}

/// The layout that the first places of each kind make up.
fn fit(places: &[Option<Place>]) -> Result<SlotLayout, Misread> {
    let misfit = |key: usize| Misread::Irregular { key: key as u32 };
    let keys = places.iter().position(Option::is_none);
    let narrow = |value: u64, key| u16::try_from(value).map_err(|_| misfit(key));
    let signed = |value: u64, key| i32::try_from(value as i64).map_err(|_| misfit(key));
    match places {
        [Some(Place::Inline(first)), Some(Place::Inline(second)), ..] => {
            let inline = places.iter().position(|place| !matches!(place, Some(Place::Inline(_)))).ok_or(misfit(0))?;
            let Some(Place::Behind { pointer, offset }) = places[inline] else { return Err(misfit(inline)) };
            Ok(SlotLayout {
                inline: signed(*first, 0)?,
                // the first block is the inline one: this is the second's pointer
                blocks: signed(pointer.wrapping_sub(8), inline)?,
                stride: narrow(second.wrapping_sub(*first), 1)?,
                data: narrow(offset, inline)?,
                inline_keys: narrow(inline as u64, inline)?,
                keys_per_block: narrow(inline as u64, inline)?,
                keys: narrow(keys.ok_or(misfit(places.len()))? as u64, 0)?,
            })
        }
        [Some(Place::Behind { pointer, offset: 0 }), Some(Place::Behind { offset: second, .. }), ..] => {
            let keys = keys.map_or(Ok(KEYS_UNCHECKED), |keys| narrow(keys as u64, keys))?;
            Ok(SlotLayout {
                inline: 0,
                blocks: signed(*pointer, 0)?,
                stride: narrow(*second, 1)?,
                data: 0,
                inline_keys: 0,
                keys_per_block: keys,
                keys,
            })
        }
        _ => Err(misfit(0)),
    }
}

/// Where a layout has the value of a key.
fn layout_place(layout: &SlotLayout, key: u32) -> Option<Place> {
    let key = u16::try_from(key).ok().filter(|key| *key < layout.keys)?;
    let (block, index) = (key.checked_div(layout.keys_per_block)?, key.checked_rem(layout.keys_per_block)?);
    let within = u64::from(layout.stride) * u64::from(index);
    if key < layout.inline_keys {
        return Some(Place::Inline((i64::from(layout.inline) as u64).wrapping_add(within)));
    }
    let pointer = (i64::from(layout.blocks) as u64).wrapping_add(u64::from(block) * 8);
    Some(Place::Behind { pointer, offset: within + u64::from(layout.data) })
}

/// Runs the function for one key; `None` if it finds no slot whatever memory holds.
fn place(
    code: &dyn Code,
    architecture: Architecture,
    function: Function,
    entry: u64,
    key: u32,
) -> Result<Option<Place>, Misread> {
    let step = match architecture {
        Architecture::X86_64 => x86_64::step,
        Architecture::Aarch64 => aarch64::step,
    };
    let mut loads = Loads::default();
    let mut paths = vec![match architecture {
        Architecture::X86_64 => x86_64::entry(entry, key)?,
        Architecture::Aarch64 => aarch64::entry(entry, key),
    }];
    let mut found = None;
    let mut steps = 0;
    while let Some(mut state) = paths.pop() {
        loop {
            steps += 1;
            if steps > MOST_STEPS || paths.len() > MOST_PATHS {
                return Err(Misread::TooLong);
            }
            match step(code.at(state.pc), &mut state, &mut loads)? {
                Flow::On => {}
                Flow::Split { condition, wanted, other } => split(&mut state, condition, wanted, other, &mut paths),
                Flow::Return(value) => {
                    let slot = match function {
                        Function::Get => returned(value, &state, &loads),
                        Function::Set => written(value, &state),
                    };
                    let place = match slot.ok_or(Misread::NotASlot { key })? {
                        Some(slot) => Some(reached(slot, &loads, architecture).ok_or(Misread::NotASlot { key })?),
                        None => None,
                    };
                    match (found, place) {
                        (_, None) => {}
                        (None, Some(_)) => found = place,
                        (Some(found), Some(place)) if found == place => {}
                        _ => return Err(Misread::NotASlot { key }),
                    }
                    break;
                }
            }
        }
    }
    Ok(found)
}

/// Takes the way that the flags tell, or both.
fn split(state: &mut State, condition: Condition, wanted: bool, other: Box<State>, paths: &mut Vec<State>) {
    let flags = state.flags;
    match condition.holds(flags) {
        Some(holds) if holds == wanted => *state = *other,
        Some(_) => {}
        None => {
            let mut other = *other;
            if let (Flags::OfLoaded(load), Condition::Equal) = (flags, condition) {
                if wanted { &mut other } else { state }.know_zero(load);
            }
            paths.push(other);
        }
    }
}

/// Where the returned value lies: `Some(None)` if it is 0, `None` if it comes from nowhere.
fn returned(value: Value, state: &State, loads: &Loads) -> Option<Option<Term>> {
    let value = value?;
    match value {
        value if state.is_zero(value) => Some(None),
        Term { base: Base::Loaded(load), offset: 0 } if !state.has_written => loads.place(load).map(Some),
        _ => None,
    }
}

/// Where the argument was written to: `Some(None)` if nowhere. The function returns an error number, of which 0 is none.
fn written(value: Value, state: &State) -> Option<Option<Term>> {
    let place = state.argument.ok()?;
    value.filter(|value| value.base == Base::Number).map(|_| place)
}

/// How a slot is reached from the thread pointer.
fn reached(slot: Term, loads: &Loads, architecture: Architecture) -> Option<Place> {
    match slot.base {
        Base::ThreadPointer => Some(Place::Inline(slot.offset)),
        Base::Loaded(pointer) => {
            let pointer = loads.place(pointer).filter(|pointer| pointer.base == Base::ThreadPointer)?.offset;
            let is_self = architecture == Architecture::X86_64 && X86_64_SELF.contains(&pointer);
            Some(match is_self {
                true => Place::Inline(slot.offset),
                false => Place::Behind { pointer, offset: slot.offset },
            })
        }
        _ => None,
    }
}
