//! One side: one step of our walk, by the rules of a table.

use abi::process::{Mapping, code};
use abi::python::Entry;
use abi::record::Registers;
use abi::stop::Stop;
use abi::table::Rule;
use abi::word::Word;
use object::{Object, ObjectSegment, SegmentFlags};
use objects::UnwindTable;
use walk::{Target, Walk, X86_64, state, turn};

use super::answer::{Answer, Caller};
use super::thread::{Mode, Thread};

/// Executable mappings begin at a multiple of it.
const PAGE: u64 = 4096;
/// Eight bytes of code that end in `call rel32`.
const CALL: u64 = u64::from_le_bytes([0x90, 0x90, 0x90, 0xe8, 0, 0, 0, 0]);
/// `PF_X`.
const EXECUTABLE: u32 = 1;

/// The executable mappings of a file, as the kernel makes them of its program headers, with a load bias of 0.
pub(crate) fn mappings(file: &object::File<'_>) -> Vec<Mapping> {
    let executable = file.segments().filter(|segment| match segment.flags() {
        SegmentFlags::Elf { p_flags } => p_flags & EXECUTABLE != 0,
        _ => false,
    });
    let mapping = |segment: object::Segment<'_, '_>| {
        let (file_offset, file_size) = segment.file_range();
        let into_page = segment.address() % PAGE;
        Mapping {
            begin: segment.address() - into_page,
            end: segment.address().saturating_add(file_size),
            file_offset: file_offset.saturating_sub(into_page),
            object: 1,
            code: code::TABLE,
            ..Mapping::default()
        }
    };
    let mut mappings: Vec<Mapping> = executable.map(mapping).collect();
    mappings.sort_by_key(|mapping| mapping.begin);
    mappings
}

/// The code that is walked through.
#[derive(Clone, Copy)]
pub(crate) struct Code<'t> {
    pub(crate) table: &'t UnwindTable,
    pub(crate) mappings: &'t [Mapping],
}

impl Code<'_> {
    /// The rule for the byte at an address, as the walk finds it.
    pub(crate) fn rule(&self, address: u64) -> Rule {
        let mapping = self.mapping(address);
        mapping.map_or(Rule::NONE, |m| self.table.lookup(address - m.begin + m.file_offset))
    }

    pub(crate) fn mapping(&self, address: u64) -> Option<&Mapping> {
        let after = self.mappings.partition_point(|mapping| mapping.begin <= address);
        self.mappings.get(after.checked_sub(1)?).filter(|mapping| address < mapping.end)
    }
}

/// Memory for one step after the other.
pub(crate) struct Walker {
    walk: Box<Walk>,
}

impl Walker {
    pub(crate) fn new() -> Walker {
        Walker { walk: Box::new(Walk::ZERO) }
    }

    /// The caller of a made-up thread.
    pub(crate) fn step(&mut self, code: Code<'_>, thread: &Thread) -> Answer {
        self.step_from(code, thread.registers(), thread.mode, |address| thread.memory(address))
    }

    /// The caller of a thread with these registers and this memory.
    pub(crate) fn step_from(
        &mut self,
        code: Code<'_>,
        registers: Registers,
        mode: Mode,
        memory: impl Fn(u64) -> u64,
    ) -> Answer {
        self.walk.registers = registers;
        self.walk.begin(0, 0);
        if mode == Mode::Called {
            self.walk.state &= !state::EXACT;
        }
        let mut world = World { code, memory };
        if !turn::<X86_64, _>(&mut world, &Entry::NONE, &mut self.walk) {
            return self.stopped();
        }
        let walk = &self.walk;
        let fp = match walk.fp_at {
            _ if walk.state & state::FRAME_POINTER_LOST != 0 => None,
            0 => Some(walk.registers.fp),
            place => Some((world.memory)(place)),
        };
        Answer::Caller(Caller { pc: walk.registers.pc, sp: walk.registers.sp, fp })
    }

    fn stopped(&self) -> Answer {
        let last = self.walk.stack.header.total.saturating_sub(1) as usize;
        let Some(Word::End { stop, more, .. }) = self.walk.stack.words.get(last).map(|word| Word::decode(*word)) else {
            return Answer::Unknown;
        };
        match Stop::from_code(stop) {
            Some(Stop::Root) => Answer::Root,
            Some(stop) => Answer::Stopped(stop, more),
            None => Answer::Unknown,
        }
    }
}

struct World<'t, M> {
    code: Code<'t>,
    memory: M,
}

impl<M: Fn(u64) -> u64> Target for World<'_, M> {
    fn read_u64(&mut self, address: u64) -> Option<u64> {
        Some((self.memory)(address))
    }

    /// Everything outside the file is code, too: callers lie there.
    fn mapping(&mut self, pc: u64) -> Option<Mapping> {
        let elsewhere = || Mapping { end: u64::MAX, code: code::ANONYMOUS, ..Mapping::default() };
        Some(self.code.mapping(pc).copied().unwrap_or_else(elsewhere))
    }

    fn rule(&mut self, _: &Mapping, offset: u64) -> Rule {
        self.code.table.lookup(offset)
    }

    /// What code says of itself is not compared, only tables are.
    fn exit(&mut self, _: &Mapping, _: u64, _: bool) -> Option<Rule> {
        Some(Rule::NONE)
    }

    /// All code ends in a call.
    fn read_code(&mut self, _: u64) -> Option<u64> {
        Some(CALL)
    }
}
