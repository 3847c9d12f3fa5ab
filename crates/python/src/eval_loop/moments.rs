//! Where in an eval loop's code a thread's state does not lead to its frames as it does elsewhere.
//!
//! Frames are linked and unlinked by a few stores, and a sample can fall between two of them. What memory holds then looks right in
//! every way; only the place in the code tells. So the places are found in the code, by what its instructions store
//! (Python/ceval.c of each version; on both architectures, whatever registers and order a compiler chose):
//!
//! | version | moment | what is true there |
//! |---|---|---|
//! | 3.6 to 3.10 | from the entry to `tstate->frame = f`, and from `tstate->frame = f->f_back` on | no frame is this eval loop's ([`unlinked`]) |
//! | 3.11, 3.12 | from the entry to where the `_PyCFrame` that `tstate->cframe` points to is filled | the same ([`entering`]) |
//! | 3.11 and later | between the store of the current frame and that of its `previous`, in either order | the caller is in a register ([`pending`]) |
//!
//! Where code is not like this, no moment is known, and the walk takes what memory holds.

mod blocks;
mod entering;
mod pending;
mod unlinked;

use std::ops::Range;

use abi::python::{NONE, Python, run};

use crate::code::machine::{Machine, Store};
use crate::code::value::{Base, Root, Value};
use crate::eval_loop::Piece;
use crate::file::{Architecture, PythonFile};

/// Moments that a file may have. Eval loops have 2 to 20.
pub(super) const MOST: usize = abi::python::MOMENTS;

/// A stretch of code, in file offsets, and what is true when a thread is interrupted in it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Moment {
    /// Offset of the first byte.
    pub begin: u64,
    /// Offset behind the last byte.
    pub end: u64,
    /// What is true.
    pub what: Truth,
}

/// What is true of an eval loop and the thread's chain of frames.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Truth {
    /// The eval loop has no frame in the chain.
    Unlinked,
    /// The chain's first frame does not lead to its caller.
    NoCaller,
    /// The same, but the register with this DWARF number holds the caller's address.
    Caller(u8),
    /// The same if what the frame leads to is 0.
    CallerIfNone(u8),
}

impl Truth {
    /// As the sampler is told: see [`abi::python::moment`].
    pub fn code(self) -> u32 {
        use abi::python::moment;
        match self {
            Truth::Unlinked => moment::UNLINKED,
            Truth::NoCaller => moment::NO_CALLER,
            Truth::Caller(register) => moment::CALLER | u32::from(register),
            Truth::CallerIfNone(register) => moment::CALLER_IF_NONE | u32::from(register),
        }
    }
}

/// By which words frames are linked; offsets in bytes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Links {
    /// An [`abi::python::run`] kind.
    pub run: u16,
    /// In the thread state: where the chain begins.
    pub current: u16,
    /// In a `_PyCFrame`: the current frame; [`NONE`] where there is none.
    pub cframe_current: u16,
    /// In a frame: its caller's.
    pub back: u16,
}

impl Links {
    /// Those of an interpreter.
    pub fn of(python: &Python) -> Links {
        Links { run: python.run, current: python.current, cframe_current: python.cframe_current, back: python.back }
    }
}

/// Code that is looked at, with addresses as the file has them.
struct Code<'c, 'f> {
    file: &'c PythonFile<'f>,
    /// Address of the eval loop's function.
    entry: u64,
    /// Addresses of all pieces of the eval loop.
    pieces: &'c [Range<u64>],
    links: Links,
}

impl Code<'_, '_> {
    fn holds(&self, address: u64) -> bool {
        self.pieces.iter().any(|piece| piece.contains(&address))
    }
}

/// A moment by addresses.
type Found = (Range<u64>, Truth);

/// All moments, sorted and disjoint.
pub(super) fn find(file: &PythonFile<'_>, entry: u64, pieces: &[Piece], links: Links) -> Vec<Moment> {
    let whole: Vec<Range<u64>> = pieces.iter().filter_map(|piece| addresses(file, piece)).collect();
    let code = Code { file, entry, pieces: &whole, links };
    let mut machine = Machine::of(file);
    let found = match (links.run, links.cframe_current) {
        (run::EVERY, _) => unlinked::find(&code, &mut machine).unwrap_or_default(),
        (_, NONE) => pending::find(&code, &mut machine, None),
        _ => match entering::find(&code, &mut machine) {
            Some(entering) => {
                let pending = pending::find(&code, &mut machine, Some(entering.current));
                [vec![(entering.code, Truth::Unlinked)], pending].concat()
            }
            None => Vec::new(),
        },
    };
    in_file(file, found)
}

fn addresses(file: &PythonFile<'_>, piece: &Piece) -> Option<Range<u64>> {
    let begin = file.code_address(piece.begin)?;
    Some(begin..begin + piece.end.checked_sub(piece.begin)?)
}

/// By offsets in the file. What overlaps another moment is left out: no two things are true at a place.
fn in_file(file: &PythonFile<'_>, found: Vec<Found>) -> Vec<Moment> {
    let offsets = |(code, what): Found| {
        let begin = file.code_offset(code.start)?;
        Some(Moment { begin, end: begin + code.end.checked_sub(code.start)?, what })
    };
    let mut moments: Vec<Moment> = found.into_iter().filter_map(offsets).filter(|m| m.begin < m.end).collect();
    moments.sort_by_key(|moment| (moment.begin, moment.end));
    moments.dedup();
    let mut disjoint: Vec<Moment> = Vec::new();
    for moment in moments {
        match disjoint.last_mut() {
            Some(last) if moment.begin < last.end && moment.what != last.what => {
                // both are possible, which no walk can tell apart
                *last = Moment { end: last.end.max(moment.end), what: Truth::NoCaller, ..*last };
            }
            Some(last) if moment.begin < last.end => last.end = last.end.max(moment.end),
            _ => disjoint.push(moment),
        }
    }
    if disjoint.len() > MOST { Vec::new() } else { disjoint }
}

/// Whether a store writes these eight bytes, perhaps with others beside them.
fn covers(store: &Store, at: Value) -> bool {
    let begin = at.offset.wrapping_sub(store.address.offset);
    !at.is_unknown() && store.address.base == at.base && begin >= 0 && begin + 8 <= store.width.into()
}

/// A register that a store of eight bytes may have as its base where a thread state is expected.
fn may_be_state(address: Value) -> bool {
    matches!(address.base, Base::Loaded { .. } | Base::Address(Root::Given(_)))
}

/// The DWARF number of a register, from that of its encoding (System V ABI, AMD64 supplement, figure 3.36; the same on aarch64).
fn dwarf(architecture: Architecture, register: usize) -> u8 {
    const X86_64: [u8; 8] = [0, 2, 1, 3, 7, 6, 4, 5];
    match architecture {
        Architecture::X86_64 if register < X86_64.len() => X86_64[register],
        _ => register as u8,
    }
}
