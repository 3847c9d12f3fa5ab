//! A made-up process: a native stack, written as a word of letters, and a chain of Python frames in the shape of each version.
//!
//! Capital letters are native frames, innermost first: `N` any function, `E` an eval loop, `P` a part of one, `R` the root, `X`
//! one whose caller cannot be found. The small letters from `a` on are Python frames, those of number 1 and so on.

extern crate std;

use abi::process::{Mapping, code};
use abi::python::{CodeFacts, Entry, Fault, NONE, Python, flags, moment, run as ends};
use abi::record::{REGISTERS, TURNS};
use abi::stop::Stop;
use abi::table::{Rule, cfa};
use abi::word::{self, Word, flag};
use std::collections::BTreeMap;
use std::string::{String, ToString as _};
use std::vec::Vec;

use crate::cpython::tests::{BASE, STATE, TYPE, new, old, v3_11, v3_12, v3_15};
use crate::tests::blank;
use crate::{EvalLoop, Target, Walk, X86_64, give_up, mix, turn, unroll};

pub(crate) const VERSIONS: [fn() -> Python; 5] = [old, v3_11, v3_12, new, v3_15];

/// The thread pointer.
pub(crate) const POINTER: u64 = 0x7fff_0000;
/// The word of a code object that is checked, by its lower half.
pub(crate) const CHECKED: u64 = 48;
const STACK: u64 = 0x7000_0000;
const TEXT: u64 = 0x40_0000;
/// A native function of each kind has so many bytes, and its frames return to different places in it.
const FUNCTION: u64 = 0x10_0000;
const OBJECT: u32 = 7;
const SHIM_CODE: u64 = 0x66_0000;
const ROOT_CFRAME: u64 = STATE + 0x200;

/// Where the frame with this number lies.
pub(crate) fn frame_at(id: u64) -> u64 {
    0x1_0000_0000 + id * 0x100
}

/// Where its code object lies.
pub(crate) fn code_at(id: u64) -> u64 {
    0x2_0000_0000 + id * 0x1000
}

/// Whether eval loops may have several frames.
pub(crate) fn has_runs(python: &Python) -> bool {
    python.run != ends::EVERY
}

fn has_cframes(python: &Python) -> bool {
    python.cframe_current != NONE
}

/// A process, of which one thread is walked.
#[derive(Clone)]
pub(crate) struct Made {
    pub(crate) memory: BTreeMap<u64, u64>,
    pub(crate) entry: Entry,
    pub(crate) pointer: u64,
    pub(crate) kernel: Vec<u64>,
    /// What is true where the innermost eval loop is.
    pub(crate) moment: u32,
    /// The registers of the sample, by their numbers.
    pub(crate) registers: [u64; REGISTERS],
    natives: Vec<char>,
    /// First address of each native frame, and the first one behind it.
    pub(crate) extents: Vec<(u64, u64)>,
    /// Numbers of the native frames of eval loops.
    loops: Vec<usize>,
}

impl Target for Made {
    fn read_u64(&mut self, address: u64) -> Option<u64> {
        self.memory.get(&address).copied()
    }
    fn mapping(&mut self, pc: u64) -> Option<Mapping> {
        let mapping =
            Mapping { begin: TEXT, end: TEXT + 5 * FUNCTION, object: OBJECT, code: code::TABLE, ..Mapping::default() };
        (mapping.begin..mapping.end).contains(&pc).then_some(mapping)
    }
    fn rule(&mut self, _: &Mapping, offset: u64) -> Rule {
        match kind_at(offset) {
            'R' => Rule::END,
            'X' => Rule::unsupported(1),
            kind => Rule { cfa: cfa::SP, cfa_offset: size_of(kind) as i32, ..Rule::NONE },
        }
    }
    fn exit(&mut self, _: &Mapping, _: u64, _: bool) -> Option<Rule> {
        Some(Rule::NONE)
    }
    fn read_code(&mut self, _: u64) -> Option<u64> {
        None
    }
    fn eval_loop(&mut self, _: &Mapping, offset: u64) -> EvalLoop {
        match kind_at(offset) {
            'E' => EvalLoop::Main,
            'P' => EvalLoop::Part,
            _ => EvalLoop::No,
        }
    }
    fn moment(&mut self, _: u64) -> u32 {
        self.moment
    }
    fn thread_pointer(&mut self) -> u64 {
        self.pointer
    }
}

const KINDS: [char; 5] = ['N', 'E', 'P', 'R', 'X'];

fn kind_at(offset: u64) -> char {
    KINDS[(offset / FUNCTION) as usize]
}

/// Bytes of a native frame.
fn size_of(kind: char) -> u64 {
    if kind == 'E' { 0x100 } else { 0x20 }
}

/// Where the frame with this number is in its function.
fn offset_of(natives: &[char], index: usize) -> u64 {
    let kind = KINDS.iter().position(|kind| *kind == natives[index]).expect("a kind");
    kind as u64 * FUNCTION + 0x10 + index as u64 * 8
}

impl Made {
    /// A process whose eval loops run these frames, innermost first.
    pub(crate) fn new(python: &Python, natives: &str, runs: &[&[u64]]) -> Made {
        let mut made = Made::without_chain(python, natives);
        let loops = made.loops.clone();
        made.link(runs, &loops);
        made
    }

    /// The same where the innermost eval loop has no frame in the chain.
    pub(crate) fn unlinked(python: &Python, natives: &str, runs: &[&[u64]]) -> Made {
        let mut made = Made::without_chain(python, natives);
        let loops = made.loops[1..].to_vec();
        made.link(runs, &loops);
        // up to 3.10 only the place in its code tells
        made.moment = if has_runs(python) { 0 } else { moment::UNLINKED };
        made
    }

    fn without_chain(python: &Python, natives: &str) -> Made {
        let mut masks = [0; abi::python::CHECKS];
        let mut checked = [NONE; abi::python::CHECKS];
        (masks[0], checked[0]) = (u64::from(u32::MAX), CHECKED as u16);
        let code = CodeFacts { masks, checked, ..CodeFacts::NONE };
        let entry = Entry { python: *python, code, id: 1, object: OBJECT, ..Entry::NONE };
        let memory = BTreeMap::from([
            (POINTER + 0x310, STATE),
            (STATE + u64::from(python.thread_id), POINTER),
            (STATE + u64::from(python.current), 0),
            (STATE + 80, if python.base_frame == NONE { 0 } else { BASE }),
        ]);
        let mut made = Made {
            memory,
            entry,
            pointer: POINTER,
            kernel: Vec::new(),
            moment: 0,
            registers: [0; REGISTERS],
            natives: Vec::new(),
            extents: Vec::new(),
            loops: Vec::new(),
        };
        made.put_natives(natives);
        made
    }

    fn put_natives(&mut self, natives: &str) {
        self.natives = natives.chars().collect();
        self.extents.clear();
        let mut sp = STACK;
        for (index, kind) in self.natives.iter().enumerate() {
            let end = sp + size_of(*kind);
            if index + 1 < self.natives.len() {
                self.memory.insert(end - 8, TEXT + offset_of(&self.natives, index + 1));
            }
            self.extents.push((sp, end));
            sp = end;
        }
        let natives = self.natives.iter().enumerate();
        self.loops = natives.filter(|(_, kind)| **kind == 'E').map(|(index, _)| index).collect();
    }

    /// The same memory under another native stack.
    pub(crate) fn with_natives(mut self, natives: &str) -> Made {
        self.put_natives(natives);
        self
    }

    pub(crate) fn keeping_native(mut self) -> Made {
        self.entry.keeps_native = 1;
        self
    }

    pub(crate) fn with_kernel(mut self, count: usize) -> Made {
        self.kernel = (0..count as u64).map(|index| 0xffff_ffff_8000_0000 + index).collect();
        self
    }

    /// The return address of a native frame cannot be read.
    pub(crate) fn without_return_of(mut self, index: usize) -> Made {
        self.memory.remove(&(self.extents[index].1 - 8));
        self
    }

    /// Where the `_PyCFrame` of an eval loop lies.
    pub(crate) fn cframe_of(&self, eval_loop: usize) -> u64 {
        self.extents[self.loops[eval_loop]].1 - 0x50
    }

    fn shim_of(&self, native: usize) -> u64 {
        self.extents[native].0 + 0x40
    }

    /// Makes the chain: a run for each of these native frames.
    fn link(&mut self, runs: &[&[u64]], loops: &[usize]) {
        let python = self.entry.python;
        let mut links: Vec<(u64, u64, u8)> = Vec::new();
        for (run, native) in runs.iter().zip(loops) {
            for (index, id) in run.iter().enumerate() {
                let is_outermost = index + 1 == run.len();
                let owner = if python.run == ends::ENTRY && is_outermost {
                    1
                } else {
                    (python.run == ends::SHIM && id % 3 == 0).into()
                };
                links.push((frame_at(*id), code_at(*id), owner));
            }
            if python.run == ends::SHIM {
                links.push((self.shim_of(*native), SHIM_CODE, 3));
            }
        }
        if python.base_frame != NONE {
            links.push((BASE, SHIM_CODE, 3));
        }
        // a shim of 3.12 has a code object
        self.memory.insert(SHIM_CODE + 8, if has_cframes(&python) { TYPE } else { TYPE + 0x1000 });
        for (index, (address, code, owner)) in links.iter().enumerate() {
            self.put_frame(*address, *code, *owner, links.get(index + 1).map_or(0, |link| link.0));
        }
        let first = links.first().map_or(0, |link| link.0);
        let current = STATE + u64::from(python.current);
        if has_cframes(&python) {
            self.put_cframes(runs, loops);
        } else {
            self.memory.insert(current, first);
        }
    }

    /// A `_PyCFrame` in each eval loop's frame, each with the first frame of its run; the thread's own root one is the last.
    fn put_cframes(&mut self, runs: &[&[u64]], loops: &[usize]) {
        let python = self.entry.python;
        let cframes: Vec<u64> =
            loops.iter().map(|native| self.extents[*native].1 - 0x50).chain([ROOT_CFRAME]).collect();
        self.memory.insert(STATE + u64::from(python.current), cframes[0]);
        for (index, cframe) in cframes.iter().enumerate() {
            let first = runs.get(index).and_then(|run| run.first()).map_or(0, |id| frame_at(*id));
            let current = cframe + u64::from(python.cframe_current);
            self.memory.insert(current, first);
            self.memory.insert(current + 8, cframes.get(index + 1).copied().unwrap_or(0));
        }
    }

    fn put_frame(&mut self, address: u64, code: u64, owner: u8, back: u64) {
        let python = self.entry.python;
        let is_index = python.flags & flags::LASTI_IS_INDEX != 0;
        let lasti = if is_index { 0xdead_0000_0010 } else { code + 0x210 };
        let mut put = |offset: u16, value| self.memory.insert(address + u64::from(offset), value);
        put(python.code, code | u64::from(python.tags & 1));
        put(python.back, back);
        put(python.lasti, lasti);
        if python.owner != NONE {
            let shift = u64::from(python.owner & 7) * 8;
            put(python.owner & !7, !(0xff << shift) | u64::from(owner) << shift);
        }
        if code != SHIM_CODE {
            self.memory.insert(code + u64::from(python.object_type), TYPE);
            self.memory.insert(code + CHECKED, 0x5_0000_0000 + code);
        }
    }

    /// Changes a field of a frame, or makes it unreadable.
    pub(crate) fn damage(&mut self, id: u64, offset: u16, value: Option<u64>) {
        self.set(frame_at(id) + u64::from(offset), value);
    }

    pub(crate) fn set(&mut self, address: u64, value: Option<u64>) {
        match value {
            Some(value) => self.memory.insert(address, value),
            None => self.memory.remove(&address),
        };
    }

    /// Puts the shim of the first eval loop, behind the frame number 1, somewhere else.
    pub(crate) fn move_shim(&mut self, back: u64, to: u64) {
        let back = if self.entry.python.base_frame != NONE && back == 0 { BASE } else { back };
        self.put_frame(to, SHIM_CODE, 3, back);
        self.damage(1, self.entry.python.back, Some(to));
    }

    /// Leaves the shim in a native frame as what was there before: a frame of a thread.
    pub(crate) fn unmake_shim(&mut self, native: usize) {
        let owner = self.shim_of(native) + u64::from(self.entry.python.owner & !7);
        self.set(owner, Some(0));
    }

    /// The word of a native frame.
    pub(crate) fn native(&self, index: usize) -> u64 {
        let flags = if index == 0 { flag::EXACT } else { 0 };
        word::object(flags, OBJECT, offset_of(&self.natives, index))
    }

    /// The words of a Python frame.
    pub(crate) fn frame(&self, id: u64) -> [u64; 2] {
        let code = code_at(id);
        let check = mix(0, code & u64::from(u32::MAX)) >> 32;
        let instruction = if self.entry.python.flags & flags::LASTI_IS_INDEX != 0 { 0x11 } else { 0x108 };
        [word::python(code), word::python_at(check as u32, instruction)]
    }

    pub(crate) fn root_end(&self) -> u64 {
        word::end(Stop::Root as u8, OBJECT, 0)
    }

    pub(crate) fn walked(&self, entry: &Entry, turns: u32) -> std::boxed::Box<Walk> {
        let mut target = self.clone();
        let mut walk = blank();
        // what a walk before has left does not matter
        walk.python.held = 0x1234;
        walk.stack.words[..self.kernel.len()].copy_from_slice(&self.kernel);
        walk.registers.pc = TEXT + offset_of(&self.natives, 0);
        walk.registers.sp = STACK;
        walk.registers.all = self.registers;
        walk.begin(self.kernel.len() as u32, 0);
        for left in (0..turns).rev() {
            if !turn::<X86_64, Made>(&mut target, entry, &mut walk) {
                break;
            }
            if left == 0 {
                give_up(entry, &mut walk);
            }
        }
        walk
    }

    pub(crate) fn words_of(&self, entry: &Entry) -> Vec<u64> {
        unrolled(&self.walked(entry, TURNS))
    }

    /// The words of the thread's stack.
    pub(crate) fn words(&self) -> Vec<u64> {
        self.words_of(&self.entry)
    }

    /// The same after so many turns.
    pub(crate) fn words_after(&self, turns: u32) -> Vec<u64> {
        unrolled(&self.walked(&self.entry, turns))
    }

    pub(crate) fn hash(&self) -> u64 {
        self.walked(&self.entry, TURNS).stack.header.key.hash
    }

    /// The stack as letters.
    pub(crate) fn shown(&self) -> String {
        let words = self.words();
        let hash = words.iter().fold(0, |hash, word| mix(hash, *word));
        assert_eq!(hash, self.hash());
        for pair in words.windows(2) {
            if let Word::Python(code) = Word::decode(pair[0]) {
                let id = (code - code_at(0)) / 0x1000;
                assert_eq!(*pair, self.frame(id), "{pair:x?}");
            }
        }
        render(&words)
    }
}

fn unrolled(walk: &Walk) -> Vec<u64> {
    let mut words = Vec::new();
    unroll(&walk.stack.words, walk.stack.header.total, |word| words.push(word));
    words
}

/// Words as letters: faults by their names, `.` the end at the root, `~` any other.
pub(crate) fn render(words: &[u64]) -> String {
    let letter = |word: &u64| match Word::decode(*word) {
        Word::Kernel(_) => "k".to_string(),
        Word::Object { offset, .. } => kind_at(offset).to_string(),
        Word::Python(code) => char::from(b'a' + ((code - code_at(1)) / 0x1000) as u8).to_string(),
        Word::PythonAt { .. } => String::new(),
        Word::PythonFault(code) => std::format!("<{:?}>", Fault::from_code(code).expect("a fault")),
        Word::End { stop, .. } => if stop == Stop::Root as u8 { "." } else { "~" }.to_string(),
        word => panic!("{word:?}"),
    };
    words.iter().map(letter).collect()
}
