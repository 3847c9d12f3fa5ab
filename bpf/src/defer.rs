//! Samples that cannot be walked here yet: registers and a copy of the stack go to user space, which knows the
//! process soon and walks them with the same code.

use abi::counter::Counter;
use abi::record::{COPY_BYTES, COPY_PIECE, Deferred, KERNEL_WORDS, SHORT_COPY_BYTES, kind};
use aya_ebpf::helpers::generated::bpf_probe_read_user;
use core::ffi::c_void;
use core::mem::offset_of;

use crate::emit;
use crate::maps::{COPY_LIMIT, DEFERRED, Scratch};

/// Sends the sample whose user registers are `registers` and whose kernel words are in the scratch's walk.
#[inline(always)]
pub fn defer(scratch: *mut Scratch, execing: bool, cpu: u32) -> Counter {
    let Some(deferred) = DEFERRED.get_ptr_mut(cpu) else { return Counter::LostScratch };
    // SAFETY: this CPU's element and scratch.
    let (to, walk) = unsafe { (&mut *deferred, &(*scratch).walk) };
    to.header = walk.stack.header;
    to.header.kind = kind::DEFERRED;
    to.header.key.hash = 0;
    to.registers = walk.registers;
    // SAFETY: this CPU's scratch.
    [to.registers.pc, to.registers.sp, to.registers.fp, to.registers.lr] = unsafe { (*scratch).entry };
    to.execing = execing as u32;
    let mut index = 0;
    while index < KERNEL_WORDS {
        if index >= to.header.kernel as usize {
            break;
        }
        to.words[index] = walk.stack.words[index];
        index += 1;
    }
    let most = if emit::is_busy() { SHORT_COPY_BYTES as u32 } else { COPY_LIMIT.load() };
    to.cut = 1;
    let length = copy_stack(to, most);
    to.header.length = length;
    if length > COPY_BYTES as u32 {
        return Counter::LostScratch;
    }
    let size = offset_of!(Deferred, stack) as u64 + length as u64;
    // the sooner user space knows the process, the fewer samples have to be deferred
    if emit::output(&raw const *to as *const c_void, size, true) { Counter::Deferred } else { Counter::LostDeferred }
}

/// Copies at most `most` bytes of the stack from the stack pointer up, piece by piece up to the end of its mapping.
#[inline(always)]
fn copy_stack(to: &mut Deferred, most: u32) -> u32 {
    // what is left of the first page comes first, so that no later piece crosses a page
    let sp = to.registers.sp & !7;
    let mut length = (COPY_PIECE as u64 - (sp & (COPY_PIECE as u64 - 1))) as u32;
    let stack = &raw mut to.stack as *mut c_void;
    // SAFETY: at most COPY_PIECE bytes into a longer buffer; a bad address gives an error.
    let error = unsafe { bpf_probe_read_user(stack, length & (2 * COPY_PIECE as u32 - 1), sp as *const c_void) };
    to.hole = if error != 0 { length } else { 0 };
    let mut piece = 1;
    while piece < COPY_BYTES / COPY_PIECE {
        let at = length as usize & (COPY_BYTES - 1);
        if at > COPY_BYTES - COPY_PIECE || at as u32 + COPY_PIECE as u32 > most {
            break;
        }
        // SAFETY: `at` leaves room for a piece.
        let error = unsafe {
            bpf_probe_read_user(stack.byte_add(at), COPY_PIECE as u32, sp.wrapping_add(at as u64) as *const c_void)
        };
        if error != 0 {
            to.cut = 0;
            break;
        }
        length = at as u32 + COPY_PIECE as u32;
        piece += 1;
    }
    length
}
