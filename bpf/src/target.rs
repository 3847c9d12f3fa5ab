//! The current task as the walkers see it.

use abi::process::{
    MAPPING_SEGMENTS, MAPPINGS_PER_SEGMENT, Mapping, PAGES_PER_SEGMENT, Place, Process, ROWS_PER_SEGMENT,
};
use abi::python::{ENTRIES, EVAL_LOOPS as EVAL_LOOP_COUNT, Entry, EvalLoop, MOMENTS, PIECES};
use abi::table::{PAGE_BITS, PAGE_MASK, Page, Row, Rule};
use aya_ebpf::helpers::bpf_get_current_pid_tgid;
use aya_ebpf::helpers::generated::bpf_probe_read_user;
use core::ffi::c_void;
use walk::Target;
use walk::cpython::{Span, WORDS};

use crate::kernel::Task;
use crate::maps::{
    EVAL_LOOPS, MAPPINGS, MappingSegment, PAGES, PLACE_EXITS, PYTHONS, PageSegment, ROWS, RowSegment, Scratch,
    TABLE_RULES, TASK_THREAD_POINTER,
};

/// The mappings of a process.
#[derive(Clone, Copy)]
pub struct Mappings {
    segment: *const MappingSegment,
    first: u32,
    count: u32,
}

impl Mappings {
    #[inline(always)]
    pub fn of(process: &Process) -> Option<Mappings> {
        let segment = process.first_mapping / MAPPINGS_PER_SEGMENT as u32;
        let segment = MAPPINGS.get(segment & (MAPPING_SEGMENTS as u32 - 1))?.get_ptr(0)?;
        let first = process.first_mapping & (MAPPINGS_PER_SEGMENT as u32 - 1);
        Some(Mappings { segment, first, count: process.mappings })
    }

    #[inline(always)]
    fn at(&self, index: u32) -> *const Mapping {
        let base = self.segment as *const Mapping;
        // SAFETY: the index is masked to the segment's length.
        unsafe { base.add(index as usize & (MAPPINGS_PER_SEGMENT - 1)) }
    }

    /// Index of the last mapping that begins at or before `address`, or of the first one. `zero` is 0.
    #[inline(always)]
    fn search(&self, address: u64, zero: u32) -> u32 {
        let mut low = zero;
        let mut length = self.count;
        let mut step = 0;
        while step < MAPPINGS_PER_SEGMENT.ilog2() + 1 {
            if length <= 1 {
                break;
            }
            let half = length / 2;
            // SAFETY: a masked index into the segment.
            let begin = unsafe { (*self.at(self.first.wrapping_add(low).wrapping_add(half))).begin };
            low = low.wrapping_add(half & at_most(begin, address));
            length -= half;
            step += 1;
        }
        self.first.wrapping_add(low)
    }

    /// Whether any of them has a byte in `begin .. end`.
    #[inline(always)]
    pub fn overlap(&self, begin: u64, end: u64, zero: u32) -> bool {
        if self.count == 0 {
            return false;
        }
        // SAFETY: a masked index into the segment.
        let last = unsafe { &*self.at(self.search(end.wrapping_sub(1), zero)) };
        last.begin < end && last.end > begin
    }
}

/// A process whose mappings are known; lies on the program's stack, so that nothing is looked up twice.
#[derive(Clone, Copy)]
pub struct Current {
    scratch: *mut Scratch,
    mappings: Mappings,
    /// Its interpreter.
    pub python: &'static Entry,
}

impl Current {
    #[inline(always)]
    pub fn new(scratch: *mut Scratch, process: &Process) -> Option<Current> {
        let mappings = Mappings::of(process)?;
        let python = PYTHONS.get(process.python & (ENTRIES as u32 - 1))?;
        // SAFETY: the scratch is this CPU's.
        unsafe { (*scratch).last_mapping = mappings.first };
        Some(Current { scratch, mappings, python })
    }

    #[inline(always)]
    fn zero(&self) -> u32 {
        zero(self.scratch)
    }
}

/// All bits if `a` is at most `b`, none if not; both below 2^63. A branch would be followed both ways by the verifier at
/// each step of a search, and mispredicted every other time by the CPU.
#[inline(always)]
fn at_most(a: u64, b: u64) -> u32 {
    let mut difference = b.wrapping_sub(a);
    // SAFETY: a shift. The compiler would make a comparison and a branch of its own shift.
    unsafe { core::arch::asm!("{0} s>>= 63", inout(reg) difference, options(pure, nomem, nostack)) };
    !(difference as u32)
}

/// All bytes of a span at once.
#[inline(always)]
pub fn read_span(object: u64, span: Span, into: &mut [u64; WORDS]) -> bool {
    let mut bytes = span.bytes() as u64;
    // SAFETY: a bitwise and: spans that fit have fewer than 128 bytes. The compiler would leave out a mask that it can do without.
    unsafe { core::arch::asm!("{0} &= 127", inout(reg) bytes, options(pure, nomem, nostack)) };
    // SAFETY: `into` has 128; a bad address gives an error.
    unsafe {
        let from = span.address(object, 0) as *const c_void;
        bpf_probe_read_user(into.as_mut_ptr() as *mut c_void, bytes as u32, from) == 0
    }
}

/// 0, read out of a map, so that the verifier does not know it.
#[inline(always)]
pub fn zero(scratch: *const Scratch) -> u32 {
    // SAFETY: an element of the scratch map; nobody writes this field.
    unsafe { core::ptr::read_volatile(&raw const (*scratch).zero) }
}

impl Target for Current {
    #[inline(always)]
    fn read_u64(&mut self, address: u64) -> Option<u64> {
        let mut value = 0u64;
        // SAFETY: 8 bytes into 8 bytes; a bad address gives an error.
        let error = unsafe { bpf_probe_read_user(&raw mut value as *mut c_void, 8, address as *const c_void) };
        if error == 0 { Some(value) } else { None }
    }

    #[inline(always)]
    fn read_span(&mut self, object: u64, span: Span, into: &mut [u64; WORDS]) -> bool {
        read_span(object, span, into)
    }

    #[inline(always)]
    fn mapping(&mut self, pc: u64) -> Option<Mapping> {
        if self.mappings.count == 0 {
            return None;
        }
        // SAFETY: masked indices; the scratch is this CPU's.
        unsafe {
            let last = &*self.mappings.at((*self.scratch).last_mapping);
            if pc >= last.begin && pc < last.end {
                return Some(*last);
            }
            let index = self.mappings.search(pc, self.zero());
            let found = &*self.mappings.at(index);
            if pc < found.begin || pc >= found.end {
                return None;
            }
            (*self.scratch).last_mapping = index;
            Some(*found)
        }
    }

    #[inline(always)]
    fn rule(&mut self, mapping: &Mapping, offset: u64) -> Rule {
        find_rule(mapping, offset, self.zero()).unwrap_or(Rule::NONE)
    }

    #[inline(always)]
    fn exit(&mut self, mapping: &Mapping, pc: u64, interrupted: bool) -> Option<Rule> {
        let pid = (bpf_get_current_pid_tgid() >> 32) as u32;
        let place = Place::new(pid, mapping, pc, interrupted);
        // SAFETY: an entry may be replaced while it is read; the bytes of its code are compared below, and what is
        // replaced is what other code said.
        let exit = unsafe { *PLACE_EXITS.get_ptr(&place)? };
        if self.read_u64(pc)? != exit.code {
            return None;
        }
        Some(exit.rule)
    }

    #[inline(always)]
    fn read_code(&mut self, address: u64) -> Option<u64> {
        self.read_u64(address)
    }

    #[inline(always)]
    fn eval_loop(&mut self, mapping: &Mapping, offset: u64) -> walk::EvalLoop {
        if mapping.object != self.python.object || mapping.object == 0 {
            return walk::EvalLoop::No;
        }
        match EVAL_LOOPS.get(self.python.eval_loop & (EVAL_LOOP_COUNT as u32 - 1)) {
            Some(eval_loop) => find_piece(eval_loop, offset, self.zero()),
            None => walk::EvalLoop::No,
        }
    }

    #[inline(always)]
    fn moment(&mut self, offset: u64) -> u32 {
        match EVAL_LOOPS.get(self.python.eval_loop & (EVAL_LOOP_COUNT as u32 - 1)) {
            Some(eval_loop) => find_moment(eval_loop, offset, self.zero()),
            None => 0,
        }
    }

    #[inline(always)]
    fn thread_pointer(&mut self) -> u64 {
        Task::current().field(TASK_THREAD_POINTER.load())
    }
}

#[inline(always)]
fn find_piece(eval_loop: &'static EvalLoop, offset: u64, zero: u32) -> walk::EvalLoop {
    let mut low = zero;
    let mut length = eval_loop.pieces;
    let mut step = 0;
    while step < PIECES.ilog2() + 1 {
        if length <= 1 {
            break;
        }
        let half = length / 2;
        let begin = eval_loop.piece[low.wrapping_add(half) as usize & (PIECES - 1)].begin;
        low = low.wrapping_add(half & at_most(begin as u64, offset));
        length -= half;
        step += 1;
    }
    let index = low as usize & (PIECES - 1);
    let piece = eval_loop.piece[index];
    if offset < piece.begin as u64 || offset >= piece.end as u64 {
        return walk::EvalLoop::No;
    }
    if eval_loop.parts[index / 64] >> (index & 63) & 1 != 0 { walk::EvalLoop::Part } else { walk::EvalLoop::Main }
}

#[inline(always)]
fn find_moment(eval_loop: &'static EvalLoop, offset: u64, zero: u32) -> u32 {
    let mut low = zero;
    let mut length = eval_loop.moments;
    let mut step = 0;
    while step < MOMENTS.ilog2() + 1 {
        if length <= 1 {
            break;
        }
        let half = length / 2;
        let begin = eval_loop.moment[low.wrapping_add(half) as usize & (MOMENTS - 1)].begin;
        low = low.wrapping_add(half & at_most(begin as u64, offset));
        length -= half;
        step += 1;
    }
    let moment = eval_loop.moment[low as usize & (MOMENTS - 1)];
    if offset < moment.begin as u64 || offset >= moment.end as u64 { 0 } else { moment.what }
}

#[inline(always)]
fn find_rule(mapping: &Mapping, offset: u64, zero: u32) -> Option<Rule> {
    let page = ((offset >> PAGE_BITS) as u32).wrapping_sub(mapping.pages.first);
    if page >= mapping.pages.count {
        return None;
    }
    let index = mapping.page_base.wrapping_add(page);
    let segment = PAGES.get(index / PAGES_PER_SEGMENT as u32)?.get_ptr(0)? as *const PageSegment as *const Page;
    // SAFETY: the index is masked to the segment's length.
    let page = unsafe { *segment.add(index as usize & (PAGES_PER_SEGMENT - 1)) };
    let segment = ROWS.get(page.first_row / ROWS_PER_SEGMENT as u32)?.get_ptr(0)? as *const RowSegment as *const Row;
    if page.rows == 0 {
        return None;
    }
    let row = search_row(segment, page, (offset & PAGE_MASK) as u16, zero);
    TABLE_RULES.get(row.rule as u32).copied()
}

/// The last row of a page at or before `low`; there is one, since a page's first row begins at 0.
#[inline(always)]
fn search_row(segment: *const Row, page: Page, low: u16, zero: u32) -> Row {
    let mut at = page.first_row.wrapping_add(zero);
    let mut length = page.rows;
    let mut step = 0;
    while step < PAGE_BITS + 1 {
        if length <= 1 {
            break;
        }
        let half = length / 2;
        let middle = at.wrapping_add(half);
        // SAFETY: the index is masked to the segment's length.
        let begin = unsafe { (*segment.add(middle as usize & (ROWS_PER_SEGMENT - 1))).low };
        at = at.wrapping_add(half & at_most(begin as u64, low as u64));
        length -= half;
        step += 1;
    }
    // SAFETY: as above.
    unsafe { *segment.add(at as usize & (ROWS_PER_SEGMENT - 1)) }
}
