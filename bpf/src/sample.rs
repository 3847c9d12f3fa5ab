//! One sample: who is it, its kernel stack, its user stack, and where the result goes.

use abi::counter::Counter;
use abi::process::flags;
use abi::python::Entry;
use abi::record::{KERNEL_WORDS, TURNS, WORDS};
use abi::stop::Stop;
use aya_ebpf::EbpfContext;
use aya_ebpf::helpers::bpf_get_current_pid_tgid;
use aya_ebpf::helpers::generated::{
    bpf_get_current_comm, bpf_get_smp_processor_id, bpf_get_stack, bpf_ktime_get_ns, bpf_loop,
};
use aya_ebpf::macros::perf_event;
use aya_ebpf::programs::PerfEventContext;
use core::ffi::c_void;

use crate::code;
use crate::count::{count, count_known, note};
use crate::defer::defer;
use crate::emit;
use crate::kernel::Task;
use crate::maps::{EVIDENCE, FOLLOW, FOLLOWED, PROCESSES, SCRATCH, SENT, SENT_SLOTS, Scratch};
use crate::registers::{self, Found, Mode};
use crate::target::Current;

/// Runs at every tick of a CPU's perf event; whatever happens ends in exactly one outcome.
#[perf_event]
pub fn sample(context: PerfEventContext) -> u32 {
    note(Counter::Samples);
    note(outcome(&context));
    0
}

#[inline(always)]
fn outcome(context: &PerfEventContext) -> Counter {
    let id = bpf_get_current_pid_tgid();
    if id == 0 {
        return Counter::Idle;
    }
    let pid = (id >> 32) as u32;
    if FOLLOW.load() != 0 && FOLLOWED.get_ptr(pid).is_none() {
        return Counter::Filtered;
    }
    // SAFETY: no arguments.
    let cpu = unsafe { bpf_get_smp_processor_id() };
    let Some(scratch) = SCRATCH.get_ptr_mut(cpu) else { return Counter::LostScratch };
    // SAFETY: this CPU's element; `busy` keeps a program that interrupts this one out.
    unsafe {
        if (*scratch).busy != 0 {
            return Counter::LostScratch;
        }
        (*scratch).busy = 1;
        let outcome = take(context, scratch, id, cpu);
        (*scratch).busy = 0;
        outcome
    }
}

#[inline(always)]
fn take(context: &PerfEventContext, scratch: *mut Scratch, id: u64, cpu: u32) -> Counter {
    // SAFETY: this CPU's element, which `outcome` holds.
    let walk = unsafe { &mut (*scratch).walk };
    let header = &mut walk.stack.header;
    header.key.pid = (id >> 32) as u32;
    header.key.tid = id as u32;
    // SAFETY: the size is that of the destination, which the kernel fills in any case.
    unsafe { bpf_get_current_comm(header.key.comm.as_mut_ptr() as *mut c_void, header.key.comm.len() as u32) };
    // SAFETY: no arguments.
    header.time = unsafe { bpf_ktime_get_ns() };
    // SAFETY: this CPU's element, another part of it than `walk`.
    let (mode, found) = registers::read(context, unsafe { &mut (*scratch).saved }, &mut walk.registers);
    let registers = &walk.registers;
    // SAFETY: as above.
    unsafe { (*scratch).python = 0 };
    // SAFETY: this CPU's element, another part of it than `walk`.
    unsafe { (*scratch).entry = [registers.pc, registers.sp, registers.fp, registers.lr] };
    let kernel = if mode == Mode::Kernel { kernel_stack(context, &mut walk.stack.words) } else { 0 };
    let hash = if kernel > 0 { hash_of_kernel(&walk.stack.words, kernel) } else { 0 };
    walk.begin_hashed(kernel, hash, 0);

    let task = Task::current();
    let stop = if task.is_kernel_thread() || found == Found::Nothing || walk.registers.pc == 0 {
        Some(Stop::NoUserStack)
    } else if !task.has_memory() {
        Some(Stop::Exiting)
    } else if found == Found::Compat32 {
        Some(Stop::Compat32)
    } else {
        None
    };
    let execing = found == Found::Execing;
    let python = match stop {
        Some(stop) => {
            walk.end(stop);
            None
        }
        None => match take_user(scratch, execing) {
            Some(python) => Some(python),
            None => return defer(scratch, execing, false, cpu),
        },
    };
    let outcome = keep(scratch, python, cpu);
    if EVIDENCE.load() != 0 && stop.is_none() {
        // without it a stack cannot be checked, but the sample is not lost
        defer(scratch, execing, true, cpu);
    }
    outcome
}

/// Walks the user stack and gives the process's interpreter. `None`: that is left to user space.
#[inline(always)]
fn take_user(scratch: *mut Scratch, execing: bool) -> Option<&'static Entry> {
    // SAFETY: this CPU's element.
    let walk = unsafe { &mut (*scratch).walk };
    let process = PROCESSES.get_ptr(walk.stack.header.key.pid)?;
    // SAFETY: user space replaces elements whole; a replaced one stays readable while this program runs.
    let process = unsafe { *process };
    // SAFETY: this CPU's element, another part of it than `walk`.
    unsafe { (*scratch).python = process.python };
    if process.flags & flags::DOUBTED != 0 {
        return None;
    }
    let current = Current::new(scratch, &process)?;
    walk_user(scratch, current);
    let stop = walk.stop_code();
    let unknown = stop == Stop::NoMapping as u8 && process.flags & flags::SETTLED == 0 && !execing;
    if stop == Stop::TableNotReady as u8 || unknown {
        return None;
    }
    if execing {
        walk.settle_exec();
    }
    Some(current.python)
}

#[inline(always)]
fn kernel_stack(context: &PerfEventContext, words: &mut [u64; WORDS]) -> u32 {
    // SAFETY: the buffer is longer than the size that is given.
    let bytes =
        unsafe { bpf_get_stack(context.as_ptr(), words.as_mut_ptr() as *mut c_void, (KERNEL_WORDS * 8) as u32, 0) };
    if bytes > 0 { bytes as u32 / 8 } else { 0 }
}

/// Words that are being hashed.
struct Hashing {
    words: *const [u64; WORDS],
    hash: u64,
}

#[inline(always)]
fn hash_of_kernel(words: &[u64; WORDS], kernel: u32) -> u64 {
    let mut hashing = Hashing { words, hash: 0 };
    // SAFETY: the callback takes the context that is given here, which outlives the loop.
    unsafe { bpf_loop(kernel, hash_word as *mut c_void, &raw mut hashing as *mut c_void, 0) };
    hashing.hash
}

extern "C" fn hash_word(index: u32, hashing: *mut c_void) -> i64 {
    // SAFETY: `hash_of_kernel` gave the pointers; nothing else holds them while the loop runs.
    unsafe {
        let hashing = &mut *(hashing as *mut Hashing);
        hashing.hash = walk::mix(hashing.hash, (*hashing.words)[index as usize & (WORDS - 1)]);
    }
    0
}

/// What the loop carries.
struct Carry {
    scratch: *mut Scratch,
    current: Current,
    more: bool,
}

/// Walks the user stack to its end.
#[inline(always)]
fn walk_user(scratch: *mut Scratch, current: Current) {
    let python = current.python;
    let mut carry = Carry { scratch, current, more: true };
    // SAFETY: the callback takes the context that is given here, which outlives the loop.
    unsafe { bpf_loop(TURNS, frame as *mut c_void, &raw mut carry as *mut c_void, 0) };
    if carry.more {
        // SAFETY: this CPU's element.
        walk::give_up(python, unsafe { &mut (*scratch).walk });
    }
}

extern "C" fn frame(_index: u32, carry: *mut c_void) -> i64 {
    // SAFETY: `walk_user` gave the pointer; nothing else holds it while the loop runs.
    let carry = unsafe { &mut *(carry as *mut Carry) };
    // SAFETY: this CPU's element.
    let walk = unsafe { &mut (*carry.scratch).walk };
    let python = carry.current.python;
    carry.more = walk::turn::<crate::Native, Current>(&mut carry.current, python, walk);
    !carry.more as i64
}

/// Counts a finished stack; sends it first if user space may not have it, or wants it each time.
#[inline(always)]
fn keep(scratch: *mut Scratch, python: Option<&'static Entry>, cpu: u32) -> Counter {
    // SAFETY: this CPU's element.
    let stack = unsafe { &mut (*scratch).walk.stack };
    let always = EVIDENCE.load() != 0;
    if !always && count_known(&stack.header.key) {
        return Counter::Counted;
    }
    let hash = stack.header.key.hash;
    let mark = walk::mix(hash, stack.header.key.pid as u64);
    let Some(slot) = SENT.get_ptr_mut(hash as u32 & (SENT_SLOTS as u32 - 1)) else { return Counter::LostScratch };
    // SAFETY: two CPUs may write one slot; either value is a stack that was sent.
    unsafe {
        if always || *slot != mark {
            let has_names = match python {
                Some(python) if walk::python::was_met(&(*scratch).walk) => code::send(scratch, python, cpu),
                _ => true,
            };
            if !emit::stack(stack) {
                return Counter::LostStack;
            }
            if has_names {
                *slot = mark;
            }
        }
    }
    count(&stack.header.key)
}
