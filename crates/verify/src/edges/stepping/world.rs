//! A stopped process as the walkers see it.

use std::sync::Arc;

use abi::process::Mapping;
use abi::python::Entry;
use abi::record::{REGISTERS, Registers, TURNS};
use abi::table::Rule;
use abi::word::{self, flag};
use libc::user_regs_struct;
use objects::exits::{Code, Exit, exit, exit_after_call};
use processes::maps::{self, Wanted};
use processes::memory::read_memory;
use processes::{MAX_RANGES, Proc};
use python::eval_loop::{EvalLoop, PieceKind};
use rustc_hash::FxHashMap;
use walk::{Target, Walk, X86_64, X86_64_PT_REGS, give_up, turn, unroll};

use super::files::Files;
use super::memory::Pages;
use super::shadow::Frame;

/// Memory, mappings and tables of one process.
pub struct World<'a> {
    pid: u32,
    /// Files of this and other processes.
    pub files: &'a mut Files,
    /// Memory that was read at this stop.
    pub pages: Pages,
    mappings: Vec<Mapping>,
    interpreter: Option<Interpreter>,
    /// What code without unwind information says of its callers, by address and whether it was interrupted there.
    exits: FxHashMap<(u64, bool), Rule>,
    walk: Box<Walk>,
}

/// An interpreter whose frames are walked.
pub struct Interpreter {
    /// What the walk is told of it, with the number of its file.
    pub entry: Entry,
    /// Its native code.
    pub eval_loop: Arc<EvalLoop>,
}

impl<'a> World<'a> {
    /// The process `pid`, of which no mapping is known yet.
    pub fn new(pid: u32, files: &'a mut Files) -> World<'a> {
        // SAFETY: Walk is plain integers, for which zero is a value.
        let walk = unsafe { Box::<Walk>::new_zeroed().assume_init() };
        let (pages, mappings, exits) = (Pages::default(), Vec::new(), FxHashMap::default());
        World { pid, files, pages, mappings, interpreter: None, exits, walk }
    }

    /// Walks the frames of this interpreter from now on.
    pub fn set_interpreter(&mut self, interpreter: Interpreter) {
        self.interpreter = Some(interpreter);
    }

    /// Reads its mappings.
    pub fn read_mappings(&mut self) {
        let (ranges, _) = maps::read(&Proc::system(), self.pid, Wanted::Executable, MAX_RANGES);
        let mapping = |range: &processes::MappedRange| {
            let (object, code) = self.files.of_range(self.pid, range);
            let (begin, end, file_offset) = (range.start, range.end, range.file_offset);
            Mapping { begin, end, file_offset, object, code, ..Mapping::default() }
        };
        self.exits.clear();
        self.mappings = ranges.iter().map(mapping).collect();
    }

    /// Walks its stack with these registers; the words, innermost first, with their end.
    pub fn walk(&mut self, registers: &user_regs_struct, words: &mut Vec<u64>) {
        let World { pid, files, pages, mappings, interpreter, exits, walk } = self;
        let (entry, eval_loop) = match interpreter {
            Some(Interpreter { entry, eval_loop }) => (*entry, Some(&**eval_loop)),
            None => (Entry::NONE, None),
        };
        walk.registers = by_number(registers);
        walk.begin(0, 0);
        let python = eval_loop.map(|eval_loop| (&entry, eval_loop));
        let mut target = At { pid: *pid, files, pages, mappings, exits, python, thread_pointer: registers.fs_base };
        let mut turns = TURNS;
        while turn::<X86_64, At<'_>>(&mut target, &entry, walk) {
            turns -= 1;
            if turns == 0 {
                give_up(&entry, walk);
                break;
            }
        }
        words.clear();
        unroll(&walk.stack.words, walk.stack.header.total, |word| words.push(word));
    }

    /// The same, without frames of an interpreter.
    pub fn walk_native(&mut self, registers: &user_regs_struct, words: &mut Vec<u64>) {
        let interpreter = self.interpreter.take();
        self.walk(registers, words);
        self.interpreter = interpreter;
    }

    /// The word that a frame should have in a stack.
    pub fn word(&self, frame: Frame) -> u64 {
        let flags = if frame.exact { flag::EXACT } else { 0 };
        match mapping(&self.mappings, frame.address.wrapping_sub(u64::from(!frame.exact))) {
            Some(mapping) if mapping.object != 0 => {
                word::object(flags, mapping.object, frame.address - mapping.begin + mapping.file_offset)
            }
            _ => word::raw(flags, frame.address),
        }
    }

    /// File and place of an address; `(0, address)` outside all files.
    pub fn place(&self, address: u64) -> (u32, u64) {
        match mapping(&self.mappings, address) {
            Some(mapping) if mapping.object != 0 => (mapping.object, address - mapping.begin + mapping.file_offset),
            _ => (0, address),
        }
    }
}

fn mapping(mappings: &[Mapping], pc: u64) -> Option<Mapping> {
    let index = mappings.partition_point(|mapping| mapping.begin <= pc);
    mappings[..index].last().filter(|mapping| pc < mapping.end).copied()
}

/// Registers in DWARF order. `user_regs_struct` has the layout of the kernel's `pt_regs` (a test of `walk` says so).
fn by_number(registers: &user_regs_struct) -> Registers {
    let saved = [
        registers.r15,
        registers.r14,
        registers.r13,
        registers.r12,
        registers.rbp,
        registers.rbx,
        registers.r11,
        registers.r10,
        registers.r9,
        registers.r8,
        registers.rax,
        registers.rcx,
        registers.rdx,
        registers.rsi,
        registers.rdi,
        registers.orig_rax,
        registers.rip,
        registers.cs,
        registers.eflags,
        registers.rsp,
    ];
    let mut all = [0; REGISTERS];
    for (register, word) in all.iter_mut().zip(X86_64_PT_REGS) {
        *register = saved[word];
    }
    Registers { pc: registers.rip, sp: registers.rsp, fp: registers.rbp, lr: 0, all }
}

struct At<'a> {
    pid: u32,
    files: &'a Files,
    pages: &'a mut Pages,
    mappings: &'a [Mapping],
    exits: &'a mut FxHashMap<(u64, bool), Rule>,
    python: Option<(&'a Entry, &'a EvalLoop)>,
    thread_pointer: u64,
}

impl Target for At<'_> {
    fn read_u64(&mut self, address: u64) -> Option<u64> {
        self.pages.u64(self.pid, address)
    }

    fn mapping(&mut self, pc: u64) -> Option<Mapping> {
        mapping(self.mappings, pc)
    }

    fn rule(&mut self, mapping: &Mapping, offset: u64) -> Rule {
        self.files.rule(mapping.object, offset)
    }

    fn exit(&mut self, _: &Mapping, pc: u64, interrupted: bool) -> Option<Rule> {
        let mut text = Text { pid: self.pid, mappings: self.mappings };
        let mut found = || if interrupted { exit(&mut text, pc) } else { exit_after_call(&mut text, pc) };
        let read = || match found() {
            Exit::Rule(rule) => rule,
            Exit::Unclear(_) => Rule::NONE,
        };
        Some(*self.exits.entry((pc, interrupted)).or_insert_with(read))
    }

    fn read_code(&mut self, address: u64) -> Option<u64> {
        self.pages.u64(self.pid, address)
    }

    fn eval_loop(&mut self, mapping: &Mapping, offset: u64) -> walk::EvalLoop {
        let python = self.python.filter(|(entry, _)| entry.object == mapping.object);
        match python.and_then(|(_, eval_loop)| eval_loop.at(offset)) {
            None => walk::EvalLoop::No,
            Some(PieceKind::Main) => walk::EvalLoop::Main,
            Some(PieceKind::Part) => walk::EvalLoop::Part,
        }
    }

    fn moment(&mut self, offset: u64) -> u32 {
        self.python.map_or(0, |(entry, eval_loop)| eval_loop.moment_at(&entry.python, offset))
    }

    fn thread_pointer(&mut self) -> u64 {
        self.thread_pointer
    }
}

/// Code of the process, as far as it is mapped executable.
struct Text<'a> {
    pid: u32,
    mappings: &'a [Mapping],
}

impl Code for Text<'_> {
    fn read(&mut self, address: u64, into: &mut [u8]) -> usize {
        let Some(mapping) = mapping(self.mappings, address) else { return 0 };
        let length = into.len().min(usize::try_from(mapping.end - address).unwrap_or(usize::MAX));
        read_memory(self.pid, address, &mut into[..length]).unwrap_or(0)
    }
}
