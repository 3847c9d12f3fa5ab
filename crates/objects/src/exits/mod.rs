//! How code leaves its function, read forward from the code itself: for places that no unwind information describes and
//! whose frame pointer is not one, such as hand-written assembler, musl, and what JIT compilers write.
//!
//! From the place all branches are followed to the returns, and only what the stack pointer may be made of is kept:
//! registers as sums of what some register or word of the stack was at the start and a constant. At a return the stack
//! pointer is such a sum, and that is the CFA. Calls are taken to be balanced, and to keep the registers that the ABI has
//! them keep. What is jumped to directly is followed too, since a tail call returns for the function that makes it.
//!
//! An answer is a claim about the code, not about the thread: its rule is [`ra::CHECKED`], so a walk
//! believes the return address only if a call ends there.
//!
//! [`ra::CHECKED`]: abi::table::ra::CHECKED
//!
//! # What counts, and what does not
//! Measured against `.eh_frame` of libc, libsqlite3 and libstdc++, and against the calls that were seen by single-stepping
//! programs without unwind information (tests/exits.rs, tests/exits_stepped.rs):
//!
//! * Returns that take the return address from different slots leave no answer.
//! * Paths that end in an indirect jump, in undecodable bytes, outside the code, or with an unknown stack pointer do not
//!   veto the returns that were found: with an indirect jump answers were wrong as rarely as without (libstdc++: 4 of 971
//!   and 44 of 9,557; the others: none). They are tables of `switch`, tail calls through pointers, and other functions
//!   behind calls that do not come back.
//! * A jump through a word at a constant address (a linkage stub; `jmp *name@GOTPCREL(%rip)`) is a return: it leaves for
//!   a function of another file, on the stack with which this one was entered. Not where the search begins with it: the
//!   first linkage stub jumps with arguments on the stack.
//! * A call that does not come back (`abort`) leads into whatever lies behind it. The ABI aligns the stack to 16 bytes at
//!   each call, so a return whose CFA is not so aligned, seen from the calls before it, is not this function's, and does
//!   not count. That holds for each function that begins behind such a call. (It costs some answers: gcc need not align
//!   the stack for functions of the same file, and assembler does not for its own.)
//! * The branch of a `switch` for all other values may point anywhere if there are none (`__builtin_unreachable`); returns
//!   that only it leads to do not count. Found in libdav1d, where it pointed at the next function.
//! * The shortest paths come first, and 200 instructions after the first return that counts the search ends: following
//!   all paths gave as many answers, and as many wrong ones, for more than twice as many instructions.
//!
//! What remains wrong is code before a call that does not come back, if what lies behind is the middle of a function and as
//! aligned: the unlikely parts of C++ functions, one behind the other (half a percent of libstdc++'s places). They have
//! unwind information, because exceptions need it. Nor does code show that it pushed an address to return to before the
//! place (Guile's JIT compiler does).

mod bytes;
pub(crate) mod effect;
mod rule;
mod search;
pub(crate) mod state;
#[cfg(test)]
mod tests;

use abi::table::Rule;

use state::State;

/// Code of a process or of a file, by address.
pub trait Code {
    /// Copies bytes from `address` on into `into`; how many there are (0: none). Asked for up to 256 bytes at a time.
    fn read(&mut self, address: u64, into: &mut [u8]) -> usize;
}

/// How the code at a place leaves its function.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Exit {
    /// All returns that can be reached from the place take the return address from one slot.
    Rule(Rule),
    /// They do not, or none is reached.
    Unclear(Unclear),
}

/// Why there is no rule.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Unclear {
    /// Only endless loops and instructions that stop the thread were reached.
    NoReturn,
    /// Returns take the return address from different slots, or from one that does not fit with the calls before them.
    SeveralDepths,
    /// Only jumps whose targets are known when they run were reached; also returns to addresses that the code pushed.
    IndirectJump,
    /// Returns were reached with a stack pointer of unknown origin.
    UnknownStackPointer,
    /// No return was reached within 1,500 instructions.
    TooLong,
    /// Bytes were reached that are no instruction.
    Undecodable,
    /// The paths leave the readable code.
    OutsideCode,
    /// The code is not x86_64. For callers, who know that; the functions here do not.
    OtherArchitecture,
}

/// How x86_64 code leaves its function if it goes on at `pc`, where it was interrupted.
///
/// Looks at no more than 1,500 instructions. The rule may be of any kind that is based on the registers at `pc`, among
/// them [`abi::table::cfa::REGISTER`].
pub fn exit(code: &mut impl Code, pc: u64) -> Exit {
    rule::decide(&search::search(code, pc, State::start()))
}

/// The same where a call returns to `return_address`: of the registers only those are known that called functions keep.
/// Unless the called function is seen to return, the call shows how the stack is aligned, which tells what lies behind a
/// call that does not come back.
pub fn exit_after_call(code: &mut impl Code, return_address: u64) -> Exit {
    let comes_back = directly_called(code, return_address).is_some_and(|function| search::comes_back(code, function));
    let state = if comes_back { State::after_return() } else { State::after_call() };
    rule::decide(&search::search(code, return_address, state))
}

/// The function that the call before an address calls, if that is `call rel32`.
fn directly_called(code: &mut impl Code, return_address: u64) -> Option<u64> {
    let mut call = [0; 5];
    let read = code.read(return_address.checked_sub(5)?, &mut call);
    let [0xe8, distance @ ..] = call else { return None };
    (read == call.len()).then(|| return_address.wrapping_add_signed(i32::from_le_bytes(distance).into()))
}
