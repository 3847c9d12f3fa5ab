//! Which pieces of code belong together.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::rc::Rc;

use super::EvalLoopRefusal;
use super::code::{self, Code};
use super::units::{Unit, Units};
use crate::file::PythonFile;

/// Bytes of code that are read instruction by instruction. The largest eval loop has 0.3 MB, all handlers of a build with tail
/// calls 0.6 MB.
const MAX_READ: u64 = 16 << 20;
/// Entries of a table that an opcode selects from, in every CPython (`opcode_targets` in Python/opcode_targets.h).
const OPCODES: usize = 256;
/// Entries that must be in a function for the table to be its table of opcodes: the others may be in split-off parts.
const OWN_OPCODES: usize = OPCODES / 2;
/// Different functions that a table of handlers has at least; CPython 3.14 has more than 220 instructions.
const HANDLERS: usize = 64;
/// Functions that follow one another up to a handler: CPython 3.14's longest row of labels is `pop_2_error`, `pop_1_error`, `error`,
/// `exception_unwind`.
const LABELS: usize = 6;
/// Bytes of an eval loop at least. Those measured have from 29,000 bytes (2.7) to 260,000; what only calls one, or calls
/// handlers, has less than 1,500.
const SMALLEST_LOOP: u64 = 8192;

/// Pieces that belong together, by index.
pub(super) type Pieces = BTreeSet<usize>;

/// A file's code, as far as it has been read.
pub(super) struct Search<'s, 'f> {
    pub file: &'s PythonFile<'f>,
    pub units: Units<'f>,
    crossings: Vec<(usize, usize)>,
    read: HashMap<usize, Rc<Code>>,
    left: u64,
}

impl<'s, 'f> Search<'s, 'f> {
    pub(super) fn new(file: &'s PythonFile<'f>) -> Result<Search<'s, 'f>, EvalLoopRefusal> {
        let units = Units::of(file)?;
        let crossings = units.crossings(file)?;
        Ok(Search { file, units, crossings, read: HashMap::new(), left: MAX_READ })
    }

    fn code(&mut self, index: usize) -> Result<Rc<Code>, EvalLoopRefusal> {
        if let Some(code) = self.read.get(&index) {
            return Ok(Rc::clone(code));
        }
        let Unit { begin, end, .. } = self.units.get(index).ok_or(EvalLoopRefusal::TooMuchCode)?;
        self.left = self.left.checked_sub(end - begin).ok_or(EvalLoopRefusal::TooMuchCode)?;
        let code = Rc::new(Code::read(self.file, begin, end));
        self.read.insert(index, Rc::clone(&code));
        Ok(code)
    }

    /// The code of all pieces.
    pub(super) fn codes(&mut self, pieces: &Pieces) -> Result<Vec<Rc<Code>>, EvalLoopRefusal> {
        pieces.iter().map(|&index| self.code(index)).collect()
    }

    /// Some pieces, and all that are parts of the same functions: one jumps into the middle of the other, or to where it begins
    /// with a frame that is set up already, or a table of opcodes leads there.
    pub(super) fn connected(&mut self, seeds: impl IntoIterator<Item = usize>) -> Result<Pieces, EvalLoopRefusal> {
        let mut pieces = Pieces::new();
        let mut waiting: Vec<usize> = seeds.into_iter().collect();
        while !waiting.is_empty() {
            while let Some(index) = waiting.pop() {
                if pieces.insert(index) {
                    self.add_split_off(index, &mut waiting)?;
                    self.add_jumping_into(index, &pieces, &mut waiting)?;
                }
            }
            self.add_from_tables(&pieces, &mut waiting)?;
        }
        Ok(pieces)
    }

    fn add_split_off(&mut self, index: usize, into: &mut Vec<usize>) -> Result<(), EvalLoopRefusal> {
        let code = self.code(index)?;
        let within = code.jumps.iter().filter(|&&target| !self.units.is_entry(self.file, target));
        into.extend(within.filter_map(|&target| self.units.find(target)));
        Ok(())
    }

    fn add_jumping_into(&mut self, index: usize, known: &Pieces, into: &mut Vec<usize>) -> Result<(), EvalLoopRefusal> {
        let Some(unit) = self.units.get(index) else { return Ok(()) };
        let first = self.crossings.partition_point(|(to, _)| *to < index);
        let here = self.crossings[first..].iter().take_while(|(to, _)| *to == index);
        let sources: Vec<usize> = here.map(|(_, from)| *from).filter(|from| !known.contains(from)).collect();
        for from in sources {
            let code = self.code(from)?;
            let within = |target: &&u64| **target > unit.begin && **target < unit.end;
            if code.jumps.iter().filter(within).any(|&target| !self.units.is_entry(self.file, target)) {
                into.push(from);
            }
        }
        Ok(())
    }

    /// Adds what tables of opcodes lead into.
    fn add_from_tables(&mut self, pieces: &Pieces, into: &mut Vec<usize>) -> Result<(), EvalLoopRefusal> {
        for code in self.codes(pieces)? {
            for &address in &code.data {
                let Some(table) = self.table(address) else { continue };
                let own = table.iter().filter(|(unit, begins)| !begins && pieces.contains(unit)).count();
                if own >= OWN_OPCODES {
                    into.extend(self.led_to(&table, address, pieces)?);
                }
            }
        }
        Ok(())
    }

    /// What a table of opcodes leads to besides the pieces that are known; nothing, if one of them does not belong to them.
    fn led_to(&mut self, table: &[(usize, bool)], address: u64, pieces: &Pieces) -> Result<Pieces, EvalLoopRefusal> {
        let mut others = Pieces::new();
        for &(unit, _) in table.iter().filter(|(unit, _)| !pieces.contains(unit)) {
            if !self.is_led_to(unit, address)? {
                return Ok(Pieces::new());
            }
            others.insert(unit);
        }
        Ok(others)
    }

    /// Whether a piece that a table leads to belongs to the table's function: it uses the table, too, or begins with a frame
    /// that is set up. What does not shows that the table is not all of one function, but lies beside the table of another.
    fn is_led_to(&mut self, index: usize, table: u64) -> Result<bool, EvalLoopRefusal> {
        let Some(unit) = self.units.get(index) else { return Ok(false) };
        let is_set_up = !self.units.is_entry(self.file, unit.begin);
        Ok(is_set_up || self.code(index)?.data.binary_search(&table).is_ok())
    }

    /// Whether pieces are an eval loop, and not only what calls one: large, with jumps that data selects.
    pub(super) fn is_loop(&mut self, pieces: &Pieces) -> Result<bool, EvalLoopRefusal> {
        let units = pieces.iter().filter_map(|&index| self.units.get(index));
        let size: u64 = units.map(|unit| unit.end - unit.begin).sum();
        Ok(size >= SMALLEST_LOOP && self.codes(pieces)?.iter().any(|code| code.indirect_jumps > 0))
    }

    /// The functions that begin where pieces jump or call to.
    pub(super) fn called(&mut self, pieces: &Pieces) -> Result<Pieces, EvalLoopRefusal> {
        let codes = self.codes(pieces)?;
        let targets = codes.iter().flat_map(|code| code.jumps.iter().chain(&code.calls));
        Ok(targets.filter_map(|&target| self.units.beginning(target)).filter(|unit| !pieces.contains(unit)).collect())
    }

    /// The functions that begin where pieces jump to.
    pub(super) fn jumped_to(&mut self, pieces: &Pieces) -> Result<Pieces, EvalLoopRefusal> {
        let codes = self.codes(pieces)?;
        let targets = codes.iter().flat_map(|code| &code.jumps);
        Ok(targets.filter_map(|&target| self.units.beginning(target)).filter(|unit| !pieces.contains(unit)).collect())
    }

    /// Tables of handlers that pieces name, by address, and the functions in them.
    pub(super) fn handler_tables(&mut self, pieces: &Pieces) -> Result<BTreeMap<u64, Pieces>, EvalLoopRefusal> {
        let codes = self.codes(pieces)?;
        let addresses = codes.iter().flat_map(|code| &code.data);
        Ok(addresses.filter_map(|&address| Some((address, self.handler_table(address)?))).collect())
    }

    /// The pieces of the whole file that name a table and call what is selected from one. BOLT leaves copies of handlers behind, which
    /// nothing leads to, and which only jump.
    pub(super) fn callers(&mut self, address: u64) -> Result<Pieces, EvalLoopRefusal> {
        let mut candidates = Pieces::new();
        for (index, unit) in self.units.all().iter().enumerate() {
            if code::may_name(self.file, unit.begin, unit.end, address) {
                candidates.insert(index);
            }
        }
        let mut callers = Pieces::new();
        for index in candidates {
            let code = self.code(index)?;
            if code.selected_calls > 0 && code.data.binary_search(&address).is_ok() {
                callers.insert(index);
            }
        }
        Ok(callers)
    }

    /// Whether a function goes on with the eval loop at its end: it names a table of handlers, or jumps to a handler, or to a
    /// function that goes on.
    pub(super) fn goes_on(&mut self, index: usize, handlers: &Pieces, main: &Pieces) -> Result<bool, EvalLoopRefusal> {
        let (mut seen, mut level) = (Pieces::new(), Pieces::from([index]));
        for _ in 0..LABELS {
            let mut next = Pieces::new();
            for &function in &level {
                let code = self.code(function)?;
                if code.data.iter().any(|&address| self.handler_table(address).is_some()) {
                    return Ok(true);
                }
                next.extend(code.jumps.iter().filter_map(|&target| self.units.beginning(target)));
            }
            if !next.is_disjoint(handlers) {
                return Ok(true);
            }
            seen.append(&mut level);
            level = next.into_iter().filter(|unit| !seen.contains(unit) && !main.contains(unit)).collect();
        }
        Ok(false)
    }

    fn handler_table(&self, address: u64) -> Option<Pieces> {
        let table = self.table(address)?;
        let handlers: Pieces = table.iter().filter(|(_, begins)| *begins).map(|(unit, _)| *unit).collect();
        (handlers.len() >= HANDLERS && table.iter().all(|(_, begins)| *begins)).then_some(handlers)
    }

    /// What a table at an address, of as many pointers into code as there are opcodes, points into; and whether to where that
    /// begins.
    fn table(&self, address: u64) -> Option<Vec<(usize, bool)>> {
        if !address.is_multiple_of(8) {
            return None;
        }
        let entry = |index: u64| {
            let target = self.file.initial_pointer(address.checked_add(8 * index)?)?;
            let unit = self.units.find(target)?;
            Some((unit, self.units.get(unit)?.begin == target))
        };
        (0..OPCODES as u64).map(entry).collect()
    }
}
