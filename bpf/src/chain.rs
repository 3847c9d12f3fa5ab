//! Python frames of a sample that is walked by user space: the words of the process's memory that lead from frame to frame.
//!
//! User space has a copy of the stack, but Python frames lie elsewhere and are gone when it gets to walk. So the whole chain is
//! read here, without the native frames between, and user space walks over what was read.

use abi::python::Entry;
use abi::record::{COPY_BYTES, DEFERRED_FRAMES, Deferred, READS, ReadWord};
use abi::word;
use aya_ebpf::helpers::generated::{bpf_loop, bpf_probe_read_user};
use core::ffi::c_void;
use walk::cpython::{Block, Cursor, Memory, Span, Turn, WORDS, check_with, state_of, turn};

use crate::code;
use crate::kernel::Task;
use crate::maps::{CodeKey, TASK_THREAD_POINTER};
use crate::target;

/// Memory of the process; what is read is kept in the record.
struct Kept(*mut Deferred);

impl Memory for Kept {
    #[inline(always)]
    fn read_u64(&mut self, address: u64) -> Option<u64> {
        let mut value = 0u64;
        // SAFETY: 8 bytes into 8 bytes; a bad address gives an error.
        let error = unsafe { bpf_probe_read_user(&raw mut value as *mut c_void, 8, address as *const c_void) };
        if error != 0 {
            return None;
        }
        keep(self.0, address, value);
        Some(value)
    }

    #[inline(always)]
    fn read_span(&mut self, object: u64, span: Span, into: &mut [u64; WORDS]) -> bool {
        if !target::read_span(object, span, into) {
            return false;
        }
        let mut index = 0;
        while index < WORDS {
            if span.wants(index) {
                keep(self.0, span.address(object, index), into[index]);
            }
            index += 1;
        }
        true
    }
}

#[inline(never)]
fn keep(to: *mut Deferred, address: u64, value: u64) -> u32 {
    // SAFETY: this CPU's element.
    let to = unsafe { &mut *to };
    let (length, number) = (to.header.length & !7, to.header.total);
    if length > COPY_BYTES as u32 || number >= READS as u32 {
        return 0;
    }
    let at = length as usize + number as usize * size_of::<ReadWord>();
    if at > COPY_BYTES + (READS - 1) * size_of::<ReadWord>() {
        return 0;
    }
    // SAFETY: `stack` and `reads` lie side by side, and there is room for one more.
    unsafe {
        let word = (&raw mut to.stack as *mut u8).add(at) as *mut ReadWord;
        (*word).address = address;
        (*word).value = value;
    }
    to.header.total = number + 1;
    0
}

/// What the loop over the frames carries.
struct Chain {
    to: *mut Deferred,
    python: *const Entry,
    /// In a map: the verifier would follow each value that it can have on the program's stack.
    cursor: *mut Cursor,
    /// Code objects that may still be sent.
    left: u32,
    /// The same.
    block: *mut Block,
    /// Where the fields of code objects lie.
    code: Span,
    cpu: u32,
}

/// Adds the words that lead through the thread's Python frames to a record whose stack is in place.
#[inline(always)]
pub fn copy(to: &mut Deferred, python: &'static Entry, cursor: *mut Cursor, block: *mut Block, cpu: u32) {
    let thread_pointer = Task::current().field(TASK_THREAD_POINTER.load());
    to.thread_pointer = thread_pointer;
    let mut memory = Kept(to);
    let Ok(state) = state_of(&mut memory, &python.python, thread_pointer) else { return };
    let mut chain = Chain { to, python, cursor, left: code::MOST, block, code: Span::of_code(&python.code), cpu };
    // SAFETY: this CPU's element.
    let cursor = unsafe { &mut *cursor };
    cursor.begin(&mut memory, &python.python, state);
    cursor.enter(0, u64::MAX);
    // SAFETY: the callback takes the context that is given here, which outlives the loop.
    unsafe { bpf_loop(DEFERRED_FRAMES, frame as *mut c_void, &raw mut chain as *mut c_void, 0) };
}

extern "C" fn frame(_index: u32, chain: *mut c_void) -> i64 {
    // SAFETY: `copy` gave the pointers; nothing else holds them while the loop runs.
    let chain = unsafe { &mut *(chain as *mut Chain) };
    // SAFETY: an element of the map of interpreters.
    let python = unsafe { &*chain.python };
    // SAFETY: this CPU's element.
    let (cursor, block) = unsafe { (&mut *chain.cursor, &mut *chain.block) };
    let mut memory = Kept(chain.to);
    let code = match turn(&mut memory, &python.python, cursor, block) {
        Turn::Frame(frame) => frame.code,
        Turn::Last(frame) => {
            cursor.enter(0, u64::MAX);
            frame.code
        }
        Turn::Over if cursor.is_finished() => return 1,
        Turn::Over => {
            cursor.enter(0, u64::MAX);
            return 0;
        }
        Turn::GiveBack => return 1,
    };
    if let Some(check) = check_with(&mut memory, &python.code, chain.code, block, code) {
        let key = CodeKey { code: code & word::PAYLOAD, id: python.id, check };
        // SAFETY: this CPU's element.
        code::send_one(unsafe { &raw const (*chain.to).header }, python, &key, &mut chain.left, chain.cpu);
    }
    0
}
