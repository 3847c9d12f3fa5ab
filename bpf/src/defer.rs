//! Samples that cannot be walked here yet: registers and a copy of the stack go to user space, which knows the
//! process soon and walks them with the same code.

use abi::counter::Counter;
use abi::python::{ENTRIES, Entry};
use abi::record::{COPY_BYTES, COPY_GAP, COPY_PIECE, Deferred, READS, ReadWord, SHORT_COPY_BYTES, kind};
use aya_ebpf::helpers::generated::{bpf_loop, bpf_probe_read_kernel, bpf_probe_read_user};
use core::ffi::c_void;
use core::mem::offset_of;

use crate::chain;
use crate::emit;
use crate::maps::{COPY_LIMIT, DEFERRED, PYTHONS, Scratch};

/// Sends the registers and the stack of the sample in the scratch, with its kernel words: `walked` says whether only as
/// evidence.
#[inline(never)]
pub fn defer(scratch: *mut Scratch, execing: bool, walked: bool, cpu: u32) -> Counter {
    let Some(deferred) = DEFERRED.get_ptr_mut(cpu) else { return Counter::LostScratch };
    // SAFETY: this CPU's element and scratch.
    let (to, walk) = unsafe { (&mut *deferred, &(*scratch).walk) };
    copy(&raw mut to.header, &raw const walk.stack.header);
    to.header.kind = kind::DEFERRED;
    to.header.key.hash = 0;
    copy(&raw mut to.registers, &raw const walk.registers);
    // SAFETY: this CPU's scratch.
    [to.registers.pc, to.registers.sp, to.registers.fp, to.registers.lr] = unsafe { (*scratch).entry };
    to.execing = execing as u32;
    to.walked = walked as u32;
    copy(&raw mut to.words, walk.stack.words.as_ptr() as *const _);
    let most = if emit::is_busy() { SHORT_COPY_BYTES as u32 } else { COPY_LIMIT.load() };
    let length = copy_stack(to, most);
    to.header.length = length;
    to.header.total = 0;
    to.thread_pointer = 0;
    if !walked && let Some(python) = python_of(scratch) {
        // SAFETY: this CPU's scratch, another part of it than `walk`.
        let (cursor, block) = unsafe { (&raw mut (*scratch).cursor, &raw mut (*scratch).block) };
        chain::copy(to, python, cursor, block, cpu);
    }
    let reads = to.header.total;
    if length > COPY_BYTES as u32 || reads > READS as u32 {
        return Counter::LostScratch;
    }
    let size = offset_of!(Deferred, stack) as u64 + length as u64 + (reads as usize * size_of::<ReadWord>()) as u64;
    // the sooner user space knows the process, the fewer samples have to be deferred
    if emit::output(&raw const *to as *const c_void, size, true) { Counter::Deferred } else { Counter::LostDeferred }
}

/// The interpreter of the process, if one is known.
#[inline(always)]
fn python_of(scratch: *const Scratch) -> Option<&'static Entry> {
    // SAFETY: this CPU's scratch.
    let index = unsafe { (*scratch).python };
    if index == 0 { None } else { PYTHONS.get(index & (ENTRIES as u32 - 1)) }
}

/// Copies what is too long to be copied word by word, for the verifier as well.
#[inline(always)]
fn copy<T>(to: *mut T, from: *const T) {
    // SAFETY: of both there is as much as the type says; the helper reads any memory.
    unsafe { bpf_probe_read_kernel(to as *mut c_void, size_of::<T>() as u32, from as *const c_void) };
}

/// How far the copy of a stack is.
struct Copying {
    to: *mut Deferred,
    /// Bytes at most.
    most: u32,
    /// Where the next piece goes.
    next: u32,
    /// Bytes up to the end of the last piece that could be read.
    length: u32,
    /// Pieces in a row that could not be read.
    gap: u32,
}

/// Copies at most `most` bytes of the stack from the stack pointer up, piece by piece, until its end.
#[inline(always)]
fn copy_stack(to: &mut Deferred, most: u32) -> u32 {
    // what is left of the first page comes first, so that no later piece crosses a page
    let sp = to.registers.sp & !7;
    let first = (COPY_PIECE as u64 - (sp & (COPY_PIECE as u64 - 1))) as u32;
    let stack = &raw mut to.stack as *mut c_void;
    // SAFETY: at most COPY_PIECE bytes into a longer buffer; a bad address gives an error.
    let error = unsafe { bpf_probe_read_user(stack, first & (2 * COPY_PIECE as u32 - 1), sp as *const c_void) };
    let failed = (error != 0) as u32;
    to.missing = failed;
    to.cut = 1;
    let length = if failed == 0 { first } else { 0 };
    let mut copying = Copying { to, most, next: first, length, gap: failed };
    let pieces = (COPY_BYTES / COPY_PIECE - 1) as u32;
    // SAFETY: the callback takes the context that is given here, which outlives the loop.
    unsafe { bpf_loop(pieces, copy_piece as *mut c_void, &raw mut copying as *mut c_void, 0) };
    copying.length
}

/// Copies the piece behind the first one and `index` others; 1 ends the loop.
extern "C" fn copy_piece(index: u32, copying: *mut c_void) -> i64 {
    // SAFETY: `copy_stack` gave the pointers; nothing else holds them while the loop runs.
    let copying = unsafe { &mut *(copying as *mut Copying) };
    let to = unsafe { &mut *copying.to };
    let at = copying.next as usize & (COPY_BYTES - 1);
    if at > COPY_BYTES - COPY_PIECE || at as u32 + COPY_PIECE as u32 > copying.most {
        return 1;
    }
    let from = (to.registers.sp & !7).wrapping_add(at as u64) as *const c_void;
    // SAFETY: `at` leaves room for a piece.
    let error =
        unsafe { bpf_probe_read_user((&raw mut to.stack as *mut c_void).byte_add(at), COPY_PIECE as u32, from) };
    copying.next = at as u32 + COPY_PIECE as u32;
    if error == 0 {
        copying.gap = 0;
        copying.length = copying.next;
        return 0;
    }
    to.missing |= 2 << (index & 31);
    copying.gap += 1;
    if copying.gap < COPY_GAP {
        return 0;
    }
    to.cut = 0;
    1
}
