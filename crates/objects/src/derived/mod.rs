//! Rows for code that no unwind information describes, derived from the code itself: function by function, forward from
//! the first instruction, where the return address is at the stack pointer.
//!
//! The C library of musl is such code, and so is what was written in assembler without CFI, and programs that were
//! compiled without tables. x86_64 only.
//!
//! Where a sample hits it, [`crate::exits`] reads such code backwards, as it were: from the sampled place on to the return. That
//! cannot tell how a function is left that never returns, and those are the outermost of every thread of musl: what calls
//! `main`, and what calls the function of a thread. Forward from the beginning, the depth of the stack is known as long as
//! nothing unknown is added to it. So both are needed.
//!
//! # What is a function
//! * what a symbol of a function is the name of, or a direct call leads to;
//! * what a function jumps to when it has given back its stack, by an address that it has just loaded;
//! * what code or a relocation takes the address of. That may also be a label in a function, or data. But if a return is reached
//!   that finds the stack as it was, the return address lay at the stack pointer: the label is where it was called. If none is reached,
//!   it must begin as functions do (`push` of a register that functions keep, or `sub` from the stack pointer), and a walk
//!   believes the return address only if a call ends there ([`ra::CHECKED`]).
//!
//! The latter holds for all functions that are not seen to return. And if one does neither that, nor is called directly, nor
//! begins as functions do, nothing is said of it: other compilers' code jumps from function to function, and has nothing of the
//! kind on its stack.
//!
//! # What is believed of it
//! * Every return finds the stack as it was on entry; so does every jump to another function. Nothing stores to the place of
//!   the return address. If anything does not fit, the whole function gets no row.
//! * Where paths meet that differ in what they know, only what is equal counts.
//! * A call may not come back. What lies behind it is the function's own if the symbol's size says so, if the callee was seen to return,
//!   if there is another path to it, or if a proper return can be reached from there. In a function that never returns, so is
//!   what lies behind a call by a pointer: a compiler cannot know that such a call does not come back. If paths from a call and
//!   from elsewhere meet with different stacks, the call is one that does not come back.
//! * Where the frame pointer is known to be the entry's stack pointer and a constant, the CFA is told by it: so compilers do it, and
//!   it does not depend on what calls leave on the stack.
//!
//! What is only reached by jumps through tables gets no rows; it is left to [`crate::exits`].
//!
//! # Where threads begin
//! Code behind the system call `clone` that clears the frame pointer, as the ABI asks of the outermost frame (System V ABI,
//! AMD64 supplement, 3.4.1), and never returns, has no caller. musl: src/thread/x86_64/clone.s.
//!
//! [`ra::CHECKED`]: abi::table::ra::CHECKED

mod beginnings;
mod callers;
mod facts;
mod function;
mod judge;
mod program;
mod rows;
mod space;

use std::ops::Range;

use abi::table::Rule;

use crate::architecture::Architecture;
use crate::image::Image;

pub(crate) use space::Piece;

/// Places in the file and their rules, in rising order and without overlaps.
///
/// `undescribed` are the pieces of code to look at, `described` the places of the functions of the file that have unwind
/// information.
pub(crate) fn rows(image: &Image, undescribed: Vec<Piece>, described: &[Range<u64>]) -> Vec<(Range<u64>, Rule)> {
    if image.architecture() != Architecture::X86_64 || undescribed.is_empty() {
        return Vec::new();
    }
    program::derive(image, space::Space::new(image, undescribed), described)
}
