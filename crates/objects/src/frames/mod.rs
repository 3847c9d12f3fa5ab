//! Call frame information: from the bytes of `.eh_frame` to what each instruction of a function does to the stack.
//!
//! ```text
//!   section ──▶ entries (CIE, FDE) ──▶ instructions ──▶ State per row ──▶ convert ──▶ abi Rule
//! ```
//! The format is that of DWARF 5, section 6.4, with the changes of the Linux Standard Base, part "Exception Frames".

pub(crate) mod convert;
pub(crate) mod cursor;
pub(crate) mod entries;
pub(crate) mod expression;
pub(crate) mod instructions;
pub(crate) mod section;
