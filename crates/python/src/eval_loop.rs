//! Where a CPython's eval loop is, the native code whose frames Python frames stand for.
//!
//! Only its entry has a name that every file keeps: `_PyEval_EvalFrameDefault`, exported since 3.6. What compilers and linkers
//! make of it is found from there, by what code does, so that a stripped file gives the same answer as one with all symbols.
//!
//! ```text
//!   one function                 main ◀──jumps──▶ .cold, .cold.0 …       most builds: hot and cold parts of one frame
//!   a wrapper and its loop       part ──calls──▶ main ◀──▶ .cold         gcc's partial inlining (`.part.0`)
//!   tail calls (3.14+)           main ──calls──▶ handlers (part)         clang and gcc 15 with --with-tail-call-interp
//! ```
//! - A *split-off part* has an FDE of its own, but the frame of its function: one of the two jumps into the middle of the other,
//!   or the FDE's first row has a frame that is set up already, or the table of opcodes leads there. A jump to
//!   where another function begins is a call in tail position, and makes no part.
//! - *Handlers* are functions whose addresses are in a table of 256 that the entry names; labels (`_TAIL_CALL_error`) are functions that
//!   handlers jump to and that go on to handlers. The entry of such a loop is small, and compilers put copies of it into what calls it
//!   (`_PyEval_Vector` and others in python-build-standalone's 3.14): functions that name the table, call out of it, and are no handlers. They are
//!   `Main`, and their frames may also be on the stack without an entry frame in them.
//! - `.symtab`, where it is there, must agree ([`EvalLoopRefusal::Contradiction`]), and adds what only a name tells: a `.part` that
//!   the loop calls.
//!
//! Which frame has what Python frames are linked by (Python/ceval.c of each version):
//!
//! | version | in the frame of [`PieceKind::Main`] | native frames of a run of Python frames |
//! |---|---|---|
//! | 3.6 to 3.10 | nothing; one frame is one Python frame | one of `Main`; `Part` is beside it and stands for none |
//! | 3.11 | `_PyCFrame cframe`, which `tstate->cframe` points to | one of `Main`, and any of `Part` above or below it |
//! | 3.12 | `_PyCFrame cframe` and `_PyInterpreterFrame entry_frame` | the same |
//! | 3.13 and later | `entry_frame` | the same; with tail calls, a handler is called by `Main` |

mod aarch64;
mod code;
mod evidence;
mod moments;
mod names;
mod search;
mod units;
mod x86_64;

use std::collections::BTreeMap;

pub use moments::{Links, Moment, Truth};
use names::{EVAL_LOOP, Family};
use search::{Pieces, Search};

use crate::file::{Architecture, PythonFile};

/// Pieces that a file may have, neighbours merged. Files have one, two or eight; python-build-standalone's static 3.14 for x86_64,
/// whose handlers BOLT has spread over the file, has 298.
pub const MAX_PIECES: usize = abi::python::PIECES;
/// Times that names and code are gone through for more handlers.
const MAX_ROUNDS: usize = 16;

/// A stretch of an eval loop's code, in file offsets.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Piece {
    /// Offset of the first byte.
    pub begin: u64,
    /// Offset behind the last byte.
    pub end: u64,
    /// What it is of.
    pub kind: PieceKind,
}

/// The eval loop of a file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct EvalLoop {
    /// Address of its function.
    pub address: u64,
    /// All pieces, sorted and disjoint.
    pub pieces: Vec<Piece>,
    /// By which words it links frames, as its version does.
    pub links: Option<Links>,
    /// Where it does so, sorted and disjoint; none if the code is not known to be like its version's. See the module `moments`.
    pub moments: Vec<Moment>,
}

impl EvalLoop {
    /// Of a file that links frames by these words.
    ///
    /// # Errors
    /// As [`find`].
    pub fn of(file: &PythonFile<'_>, links: Option<Links>) -> Result<EvalLoop, EvalLoopRefusal> {
        let pieces = find(file)?;
        let address = file.symbol(EVAL_LOOP).ok_or(EvalLoopRefusal::NoSymbol)?.address;
        let moments = links.map(|links| moments::find(file, address, &pieces, links)).unwrap_or_default();
        Ok(EvalLoop { address, pieces, links, moments })
    }

    /// What is at an offset of the file; `None` if nothing of the eval loop.
    pub fn at(&self, offset: u64) -> Option<PieceKind> {
        let index = self.pieces.partition_point(|piece| piece.begin <= offset).checked_sub(1)?;
        self.pieces.get(index).filter(|piece| offset < piece.end).map(|piece| piece.kind)
    }

    /// What is true of a thread that is interrupted at an offset of the file, if anything special is.
    pub fn truth_at(&self, offset: u64) -> Option<Truth> {
        let index = self.moments.partition_point(|moment| moment.begin <= offset).checked_sub(1)?;
        self.moments.get(index).filter(|moment| offset < moment.end).map(|moment| moment.what)
    }
}

/// What a piece is of.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum PieceKind {
    /// Of the function whose frame holds what links Python frames to it (the entry frame or `_PyCFrame` is its local variable),
    /// hot or cold.
    Main,
    /// Of a function of its own that the main one calls or is called by within one eval loop (`.part`, `.constprop`, the
    /// `_TAIL_CALL_*` handlers of builds with tail calls): its native frame and the main one's are one eval loop.
    Part,
}

/// Why it is not known where the eval loop is.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum EvalLoopRefusal {
    /// The file does not define the function: it uses another file's, or is stripped of exported symbols, too.
    #[error("the file does not define {EVAL_LOOP}")]
    NoSymbol,
    /// No FDE and no size of a symbol tells how long the function is.
    #[error("no unwind information and no symbol says where {EVAL_LOOP}, at {address:#x}, ends")]
    NoRange {
        /// Where it begins.
        address: u64,
    },
    /// The function is too small for an eval loop, and what it calls is none, or more than one.
    #[error("the code of {EVAL_LOOP}, at {address:#x}, is not like an eval loop and leads to none")]
    NoLoop {
        /// Where it begins.
        address: u64,
    },
    /// Code that seems to be split off from the function has the name of another one.
    #[error("code at {address:#x} is reached like a part of {EVAL_LOOP}, but is called {name}")]
    Contradiction {
        /// Where the code begins.
        address: u64,
        /// Its name.
        name: String,
    },
    /// The unwind information has more entries than are read.
    #[error("the unwind information is not read: {0}")]
    CallFrames(String),
    /// More code, or more jumps from function to function, than are looked at.
    #[error("more code than is looked at")]
    TooMuchCode,
    /// More pieces than [`MAX_PIECES`].
    #[error("the eval loop is in {0} pieces; at most {MAX_PIECES} are supported")]
    TooManyPieces(usize),
}

/// Finds the eval loop of a file. The pieces are sorted and disjoint, and neighbours of one kind are merged, with the padding
/// between them.
///
/// # Errors
/// One [`EvalLoopRefusal`] for each reason why it is not known.
pub fn find(file: &PythonFile<'_>) -> Result<Vec<Piece>, EvalLoopRefusal> {
    let address = file.symbol(EVAL_LOOP).ok_or(EvalLoopRefusal::NoSymbol)?.address;
    let mut search = Search::new(file)?;
    let entry = search.units.find(address).ok_or(EvalLoopRefusal::NoRange { address })?;
    let entry = search.connected([entry])?;
    let mut found = by_code(&mut search, entry)?.ok_or(EvalLoopRefusal::NoLoop { address })?;
    check_names(&search, &found.main, address)?;
    add_named(&mut search, &mut found)?;
    pieces(&search, &found)
}

#[derive(Debug)]
struct Found {
    main: Pieces,
    /// Of functions of other names that have a copy of the main one in them.
    inlined: Pieces,
    parts: Pieces,
}

/// What the code says, from the function's own pieces on.
fn by_code(search: &mut Search<'_, '_>, entry: Pieces) -> Result<Option<Found>, EvalLoopRefusal> {
    if search.is_loop(&entry)? {
        return Ok(Some(Found { main: entry, inlined: Pieces::new(), parts: Pieces::new() }));
    }
    let called = search.called(&entry)?;
    let near: Pieces = entry.union(&called).copied().collect();
    let tables = search.handler_tables(&near)?;
    if !tables.is_empty() {
        return with_tail_calls(search, entry, tables).map(Some);
    }
    let mut loops = Vec::new();
    for function in called {
        let whole = search.connected([function])?;
        if whole.is_disjoint(&entry) && !loops.contains(&whole) && search.is_loop(&whole)? {
            loops.push(whole);
        }
    }
    Ok(match (loops.pop(), loops.is_empty()) {
        (Some(main), true) => Some(Found { main, inlined: Pieces::new(), parts: entry }),
        _ => None,
    })
}

/// An entry that calls handlers. It is small, and so compilers put copies of it into functions that call it
/// (clang: `_PyEval_Vector`, `gen_send_ex2`): what else calls out of a table of handlers has the frame of an entry, too.
fn with_tail_calls(
    search: &mut Search<'_, '_>,
    entry: Pieces,
    mut tables: BTreeMap<u64, Pieces>,
) -> Result<Found, EvalLoopRefusal> {
    let parts = all_handlers(search, &entry, &mut tables)?;
    let mut callers = Pieces::new();
    for &table in tables.keys() {
        callers.extend(search.callers(table)?);
    }
    let callers = search.connected(callers.into_iter().filter(|unit| !parts.contains(unit)))?;
    let inlined = callers.into_iter().filter(|unit| !parts.contains(unit) && !entry.contains(unit)).collect();
    Ok(Found { main: entry, inlined, parts })
}

/// All functions that are the handlers of instructions and labels, with what was split off from them.
fn all_handlers(
    search: &mut Search<'_, '_>,
    entry: &Pieces,
    tables: &mut BTreeMap<u64, Pieces>,
) -> Result<Pieces, EvalLoopRefusal> {
    let mut handlers = Pieces::new();
    for _ in 0..MAX_ROUNDS {
        let before = handlers.len();
        handlers.extend(tables.values().flatten());
        handlers = search.connected(handlers)?;
        handlers.retain(|unit| !entry.contains(unit));
        tables.extend(search.handler_tables(&handlers)?);
        for function in search.jumped_to(&handlers)? {
            if !entry.contains(&function) && search.goes_on(function, &handlers, entry)? {
                handlers.insert(function);
            }
        }
        if handlers.len() == before {
            return Ok(handlers);
        }
    }
    Err(EvalLoopRefusal::TooMuchCode)
}

/// Where `.symtab` names what was taken for a part of the loop, it must be called so.
fn check_names(search: &Search<'_, '_>, main: &Pieces, entry: u64) -> Result<(), EvalLoopRefusal> {
    let mut contradicted = BTreeMap::new();
    for symbol in search.file.functions().filter(|symbol| symbol.size > 0 && symbol.address != entry) {
        let Some(unit) = search.units.beginning(symbol.address).filter(|unit| main.contains(unit)) else { continue };
        let is_ours = Family::of(symbol.name).is_some();
        // several functions' parts can have one address, if all but one are empty
        let other = contradicted.entry(unit).or_insert(Some(symbol));
        if is_ours {
            *other = None;
        }
    }
    match contradicted.into_values().flatten().next() {
        Some(symbol) => Err(EvalLoopRefusal::Contradiction {
            address: symbol.address,
            name: String::from_utf8_lossy(symbol.name).into_owned(),
        }),
        None => Ok(()),
    }
}

/// Adds what symbols name and code does not lead to.
fn add_named(search: &mut Search<'_, '_>, found: &mut Found) -> Result<(), EvalLoopRefusal> {
    let named = search.file.functions().filter(|symbol| symbol.size > 0).filter_map(|symbol| {
        let family = Family::of(symbol.name)?;
        Some((search.units.beginning(symbol.address)?, family))
    });
    let is_new = |unit: &usize| ![&found.main, &found.inlined, &found.parts].iter().any(|known| known.contains(unit));
    let named: Vec<_> = named.filter(|(unit, _)| is_new(unit)).collect();
    for (unit, family) in named {
        let whole = search.connected([unit])?;
        let kind = match family {
            Family::Loop => PieceKind::Main,
            // a whole loop has the variables of one
            Family::Clone if search.is_loop(&whole)? => PieceKind::Main,
            Family::Clone | Family::Handler => PieceKind::Part,
        };
        let (into, other) = match kind {
            PieceKind::Main => (&mut found.main, &found.parts),
            PieceKind::Part => (&mut found.parts, &found.main),
        };
        into.extend(whole.difference(other).filter(|unit| !found.inlined.contains(unit)));
    }
    Ok(())
}

/// The pieces by place in the file, neighbours merged.
fn pieces(search: &Search<'_, '_>, found: &Found) -> Result<Vec<Piece>, EvalLoopRefusal> {
    let kinds = [(&found.main, PieceKind::Main), (&found.inlined, PieceKind::Main), (&found.parts, PieceKind::Part)];
    let units = kinds.into_iter().flat_map(|(units, kind)| units.iter().map(move |&unit| (unit, kind)));
    let mut all: Vec<Piece> = units
        .filter_map(|(unit, kind)| {
            let unit = search.units.get(unit)?;
            let begin = search.file.code_offset(unit.begin)?;
            let last = search.file.code_offset(unit.end - 1)?;
            (begin <= last).then_some(Piece { begin, end: last + 1, kind })
        })
        .collect();
    all.sort_by_key(|piece| (piece.begin, piece.end));
    let mut merged: Vec<Piece> = Vec::new();
    for piece in all {
        match merged.last_mut() {
            // segments that share bytes of the file
            Some(last) if piece.begin < last.end => last.end = last.end.max(piece.end),
            Some(last) if last.kind == piece.kind && is_padding(search.file, last.end, piece.begin) => {
                last.end = piece.end;
            }
            _ => merged.push(piece),
        }
    }
    if merged.len() > MAX_PIECES {
        return Err(EvalLoopRefusal::TooManyPieces(merged.len()));
    }
    Ok(merged)
}

fn is_padding(file: &PythonFile<'_>, begin: u64, end: u64) -> bool {
    /// Alignments of functions are at most this.
    const MOST: u64 = 64;
    let architecture = match file.architecture() {
        Architecture::X86_64 => objects::Architecture::X86_64,
        Architecture::Aarch64 => objects::Architecture::Aarch64,
    };
    end - begin < MOST && file.file_bytes(begin..end).is_some_and(|bytes| objects::is_padding(architecture, bytes))
}
