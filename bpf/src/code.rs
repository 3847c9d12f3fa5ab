//! Code objects of Python: when a stack is new, those that user space does not have yet are read here and now, since the
//! process may be gone, or have other code at their addresses, before user space could read them.

use abi::python::{Entry, NONE};
use abi::record::{CodeRecord, FRAGMENT_BYTES, FRAGMENTS, Fragment, Header, Stack, WORDS, kind};
use abi::word::{self, INSTRUCTION_BITS, TAG_SHIFT};
use aya_ebpf::helpers::generated::{bpf_loop, bpf_probe_read_user};
use core::ffi::c_void;
use core::mem::offset_of;

use crate::emit;
use crate::maps::{CODE_RECORDS, CODES, CodeKey, Scratch};

/// Largest piece of memory that is read at a time: none crosses a page.
const PIECE: u32 = 4096;
/// Bytes of a code object's fields that are read.
const FIELDS: u32 = 512;
/// Bytes of a string that are read, its head included; a longer one is read by user space, if the process is still there.
const STRING: u32 = 512;
/// Bytes of a line table that are read, the same.
const LINES: u64 = 8192;
/// Bytes of the object that has the bytecode (up to 3.10), of which the size is wanted.
const BYTECODE: u32 = 64;

/// What the loop over a stack's words carries.
struct Sending {
    stack: *const Stack,
    entry: *const Entry,
    record: *mut CodeRecord,
    /// How many may still be sent.
    left: u32,
    complete: bool,
}

/// Code objects that a sample sends at most: one that makes up new ones all the time shall not flood the ring.
pub const MOST: u32 = 128;

/// Sends the code objects of a stack that were not sent yet. False if one found no room.
#[inline(always)]
pub fn send(scratch: *const Scratch, entry: &'static Entry, cpu: u32) -> bool {
    let Some(record) = CODE_RECORDS.get_ptr_mut(cpu) else { return false };
    // SAFETY: this CPU's element.
    let stack = unsafe { &raw const (*scratch).walk.stack };
    // SAFETY: as above.
    let total = unsafe { (*stack).header.total };
    let words = if total > WORDS as u32 { WORDS as u32 } else { total };
    let mut sending = Sending { stack, entry, record, left: MOST, complete: true };
    // SAFETY: the callback takes the context that is given here, which outlives the loop.
    unsafe { bpf_loop(words, word_of_stack as *mut c_void, &raw mut sending as *mut c_void, 0) };
    sending.complete
}

extern "C" fn word_of_stack(index: u32, sending: *mut c_void) -> i64 {
    // SAFETY: `send` gave the pointers; nothing else holds them while the loop runs.
    let (words, sending) = unsafe {
        let sending = &mut *(sending as *mut Sending);
        (&(*sending.stack).words, sending)
    };
    let first = words[index as usize & (WORDS - 1)];
    let second = words[(index as usize).wrapping_add(1) & (WORDS - 1)];
    if first >> TAG_SHIFT != word::kind::PYTHON as u64 || second >> TAG_SHIFT != word::kind::PYTHON_AT as u64 {
        return 0;
    }
    // SAFETY: an element of the map of interpreters.
    let entry = unsafe { &*sending.entry };
    let key = CodeKey { code: first & word::PAYLOAD, id: entry.id, check: (second >> INSTRUCTION_BITS) as u32 };
    // SAFETY: this CPU's element.
    let header = unsafe { &raw const (*sending.stack).header };
    sending.complete &= send_new(sending.record, header, entry, &key, &mut sending.left);
    0
}

/// Sends a code object that a sample with this header met, if it was not sent yet.
#[inline(always)]
pub fn send_one(header: *const Header, entry: &Entry, key: &CodeKey, left: &mut u32, cpu: u32) {
    if let Some(record) = CODE_RECORDS.get_ptr_mut(cpu) {
        send_new(record, header, entry, key, left);
    }
}

#[inline(always)]
fn send_new(record: *mut CodeRecord, header: *const Header, entry: &Entry, key: &CodeKey, left: &mut u32) -> bool {
    if CODES.get_ptr(key).is_some() {
        return true;
    }
    if *left == 0 {
        return false;
    }
    *left -= 1;
    let sent = read_and_send(record, header, entry, key);
    if sent {
        let _ = CODES.insert(*key, 0, 0);
    }
    sent
}

#[inline(never)]
fn read_and_send(record: *mut CodeRecord, header: *const Header, entry: *const Entry, key: &CodeKey) -> bool {
    // SAFETY: this CPU's elements, and one of the map of interpreters.
    let (to, facts) = unsafe { (&mut *record, &(*entry).code) };
    // SAFETY: as above.
    let header = unsafe { &*header };
    to.header.kind = kind::CODE;
    to.header.key.pid = header.key.pid;
    to.header.key.tid = header.key.tid;
    to.header.time = header.time;
    to.header.length = 0;
    to.header.kernel = 0;
    (to.code, to.id, to.check) = (key.code, key.id, key.check);
    let size = if facts.size as u32 > FIELDS { FIELDS } else { facts.size as u32 };
    fragment(to, key.code, size);
    fragment(to, pointer(key.code, facts.name), STRING);
    fragment(to, pointer(key.code, facts.path), STRING);
    let lines = pointer(key.code, facts.lines);
    let count = word_at(lines.wrapping_add(facts.bytes_size as u64));
    let length = if count > LINES { LINES } else { count };
    // and the 0 behind them; the check looks at 8 bytes in any case
    let length = if length < 8 { 8 } else { length as u32 + 1 };
    fragment(to, lines, facts.bytes_data as u32 + length);
    if facts.bytecode != NONE {
        // its head, and the 0 at its end
        let bytecode = pointer(key.code, facts.bytecode);
        let count = word_at(bytecode.wrapping_add(facts.bytes_size as u64));
        fragment(to, bytecode, BYTECODE);
        fragment(to, bytecode.wrapping_add(facts.bytes_data as u64).wrapping_add(count), 1);
    }
    let length = to.header.length;
    if length > FRAGMENT_BYTES as u32 {
        return false;
    }
    let size = offset_of!(CodeRecord, bytes) as u64 + length as u64;
    emit::output(&raw const *to as *const c_void, size, false)
}

#[inline(always)]
fn pointer(object: u64, offset: u16) -> u64 {
    word_at(object.wrapping_add(offset as u64))
}

/// The 8 bytes at `address`; 0 if they cannot be read.
#[inline(always)]
fn word_at(address: u64) -> u64 {
    let mut value = 0u64;
    // SAFETY: 8 bytes into 8 bytes; a bad address gives an error.
    unsafe { bpf_probe_read_user(&raw mut value as *mut c_void, 8, address as *const c_void) };
    value
}

/// A number that is not above the mask, for the verifier: the compiler leaves out what it has found out by itself.
#[inline(always)]
fn masked<const MASK: i32>(number: u32) -> u32 {
    let mut number = number as u64;
    // SAFETY: a bitwise and.
    unsafe { core::arch::asm!("{0} &= {1}", inout(reg) number, const MASK, options(pure, nomem, nostack)) };
    number as u32
}

/// Adds memory of the process to a record, as far as it can be read: page by page, as the end of an object is not known.
#[inline(never)]
fn fragment(to: *mut CodeRecord, address: u64, length: u32) -> u32 {
    // SAFETY: this CPU's element.
    let to = unsafe { &mut *to };
    let (mut address, mut left) = (address, length);
    let mut step = 0;
    while step < 4 && left > 0 && address != 0 {
        step += 1;
        let to_page_end = PIECE - (address & (PIECE as u64 - 1)) as u32;
        let piece = if left < to_page_end { left } else { to_page_end };
        let (at, number) = (to.header.length, to.header.kernel);
        if piece > PIECE || at > FRAGMENT_BYTES as u32 - PIECE || number >= FRAGMENTS as u32 {
            return 0;
        }
        let piece = masked::<{ 2 * PIECE as i32 - 1 }>(piece);
        // SAFETY: there is room for a piece; a bad address gives an error.
        let error = unsafe {
            let into = (&raw mut to.bytes as *mut u8).add(masked::<{ FRAGMENT_BYTES as i32 - 1 }>(at) as usize);
            bpf_probe_read_user(into as *mut c_void, piece, address as *const c_void)
        };
        if error != 0 {
            return 0;
        }
        let fragments = &raw mut to.fragments as *mut Fragment;
        // SAFETY: masked to the length of the array.
        let fragment = unsafe { &mut *fragments.add(masked::<{ FRAGMENTS as i32 - 1 }>(number) as usize) };
        fragment.address = address;
        fragment.length = piece;
        to.header.length = at + (piece + 7 & !7);
        to.header.kernel = number + 1;
        address = address.wrapping_add(piece as u64);
        left = left.wrapping_sub(piece);
    }
    0
}
