//! Unwind tables: how to get from a frame to its caller, by the place of the program counter in its file.
//!
//! A table is keyed by **file offset**, not by address: `pc - mapping.begin + mapping.file_offset` needs no load
//! bias, and two executable segments with different address-to-offset deltas (lld, BOLT) cannot be confused.
//!
//! ```text
//!  file offset ──>> 12──▶ Page { first_row, rows } ──search──▶ Row { low 12 bits, rule } ──▶ Rule
//! ```
//! Rules repeat massively (a whole machine needs a few thousand distinct ones), so a row is four bytes: where it
//! begins within its page, and the number of its rule.

/// A page of code is `1 << PAGE_BITS` bytes of a file.
pub const PAGE_BITS: u32 = 12;
/// Mask of the offset within a page.
pub const PAGE_MASK: u64 = (1 << PAGE_BITS) - 1;

/// One row: from this place in its page to the next row's, `rule` holds. 4 bytes.
///
/// The first row of every page has `low` 0, so a search within a page always finds one.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Row {
    /// Offset within the page, below `1 << PAGE_BITS`.
    pub low: u16,
    /// Index of the rule.
    pub rule: u16,
}

/// The rows of one page. 8 bytes.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Page {
    /// Index of the first row.
    pub first_row: u32,
    /// How many rows there are; 0 where the page has no code that is described.
    pub rows: u32,
}

/// How to find the canonical frame address (CFA) and the caller's registers. 24 bytes.
///
/// On x86_64 the return address is at CFA-8, but for one function, and the caller's stack pointer is the CFA. On aarch64 `ra` and
/// `extra` say where the return address is.
#[repr(C, align(8))]
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Rule {
    /// A [`cfa`] kind.
    pub cfa: u8,
    /// DWARF number of the register for [`cfa::REGISTER`]; an [`unsupported`] reason for [`cfa::UNSUPPORTED`].
    pub register: u8,
    /// A [`fp`] kind.
    pub fp: u8,
    /// A [`ra`] kind.
    pub ra: u8,
    /// Bytes added to the base register; for [`cfa::PLT`] the threshold.
    pub cfa_offset: i32,
    /// Bytes from the base that the [`fp`] kind names to where the caller's frame pointer was saved.
    pub fp_offset: i32,
    /// Added after the load for [`cfa::DEREF_FP`] and [`cfa::DEREF_SP`]; else, for [`ra::SAVED`], bytes from the CFA to
    /// the return address, and for [`ra::REGISTER`] the register's number.
    pub extra: i32,
    /// x86_64: bytes from the CFA to where the caller's rbx was saved; [`bx::SAME`] and [`bx::LOST`] are no offsets.
    ///
    /// One function in every process needs it: `_dl_runtime_resolve` of glibc, which realigns its stack and keeps
    /// the old stack pointer in rbx (sysdeps/x86_64/dl-trampoline.h), below each call that is bound lazily.
    pub bx_offset: i32,
}

/// Kinds of CFA.
pub mod cfa {
    /// No unwind information here: a gap between functions, or code that has none.
    pub const NONE: u8 = 0;
    /// The outermost frame: the return address is undefined.
    pub const END: u8 = 1;
    /// CFA = stack pointer + `cfa_offset`.
    pub const SP: u8 = 2;
    /// CFA = frame pointer + `cfa_offset`.
    pub const FP: u8 = 3;
    /// CFA = `register` + `cfa_offset`; known in an interrupted frame only, except rbx.
    pub const REGISTER: u8 = 4;
    /// CFA = *(frame pointer + `cfa_offset`) + `extra` (gcc's stack realignment).
    pub const DEREF_FP: u8 = 5;
    /// CFA = *(stack pointer + `cfa_offset`) + `extra` (OCaml's stack switches).
    pub const DEREF_SP: u8 = 6;
    /// x86_64 PLT stub: CFA = sp + 8, and 8 more when `(pc & 15) >= cfa_offset`.
    pub const PLT: u8 = 7;
    /// The frame of a signal handler's return: all registers are in the signal frame at the stack pointer.
    pub const SIGNAL: u8 = 8;
    /// There is information, but in a form that is not supported; `register` says which.
    pub const UNSUPPORTED: u8 = 9;
    /// CFA = frame pointer + `cfa_offset` on another stack, which may lie anywhere; a frame pointer of 0 is the root
    /// (Go's runtime, when it works on its own stack).
    pub const OTHER_STACK: u8 = 10;
}

/// Where the caller's frame pointer is.
pub mod fp {
    /// Unchanged.
    pub const SAME: u8 = 0;
    /// At CFA + `fp_offset`.
    pub const AT_CFA: u8 = 1;
    /// At frame pointer + `fp_offset` (gcc's stack realignment).
    pub const AT_FP: u8 = 2;
    /// At stack pointer + `fp_offset`.
    pub const AT_SP: u8 = 3;
    /// Saved in a form that is not supported; the walk goes on and stops where the frame pointer is needed.
    pub const LOST: u8 = 4;
}

/// Values of `bx_offset` that are no offsets.
pub mod bx {
    /// Unchanged. (Nothing is saved at the CFA itself, which belongs to the caller.)
    pub const SAME: i32 = 0;
    /// Saved in a form that is not supported.
    pub const LOST: i32 = i32::MIN;
}

/// Where the return address is.
pub mod ra {
    /// At CFA-8 (x86_64, always).
    pub const AT_CFA_MINUS_8: u8 = 0;
    /// In the link register (aarch64; interrupted frame only).
    pub const LINK_REGISTER: u8 = 1;
    /// At CFA + `extra` (aarch64).
    pub const SAVED: u8 = 2;
    /// x86_64: in the register with DWARF number `extra`; known in an interrupted frame only (glibc's `vfork`, which
    /// takes it off the stack that parent and child share).
    pub const REGISTER: u8 = 3;
    /// At CFA-8 on x86_64, and believed only if a call ends there: the rule was not made from unwind information.
    pub const CHECKED: u8 = 4;
}

/// Why a rule is [`cfa::UNSUPPORTED`].
pub mod unsupported {
    /// The CFA is an expression of no known form.
    pub const CFA_EXPRESSION: u8 = 1;
    /// The return address is not where the architecture's ABI has it.
    pub const RETURN_ADDRESS: u8 = 2;
    /// The table of distinct rules is full.
    pub const TOO_MANY_RULES: u8 = 3;
    /// The function's description could not be decoded.
    pub const BAD_FDE: u8 = 4;
    /// An offset does not fit.
    pub const OFFSET: u8 = 5;
}

impl Rule {
    /// No unwind information.
    pub const NONE: Rule = Rule {
        cfa: cfa::NONE,
        register: 0,
        fp: fp::SAME,
        ra: ra::AT_CFA_MINUS_8,
        cfa_offset: 0,
        fp_offset: 0,
        extra: 0,
        bx_offset: bx::SAME,
    };
    /// The outermost frame.
    pub const END: Rule = Rule { cfa: cfa::END, ..Rule::NONE };
    /// A signal frame.
    pub const SIGNAL: Rule = Rule { cfa: cfa::SIGNAL, ..Rule::NONE };

    /// Information in a form that is not supported, with its [`unsupported`] reason.
    pub const fn unsupported(reason: u8) -> Rule {
        Rule { cfa: cfa::UNSUPPORTED, register: reason, ..Rule::NONE }
    }
}

const _: () = {
    assert!(size_of::<Row>() == 4);
    assert!(size_of::<Page>() == 8);
    assert!(size_of::<Rule>() == 24);
};
