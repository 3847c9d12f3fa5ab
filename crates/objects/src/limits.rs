//! How much of a file is read, and how large a table may grow.
//!
//! The largest real files (browsers, compilers) stay below a tenth of each. Beyond a limit there is a named error or a
//! named rule, never exhausted memory.

/// Rows of one table. 64 MiB.
pub const MAX_ROWS: usize = 16 << 20;
/// Distinct rules of one table; what needs more gets `unsupported::TOO_MANY_RULES`.
pub const MAX_RULES: usize = 1 << 14;
/// Pages from the first to the last executable one: just below 4 GiB of file.
pub const MAX_PAGES: usize = (1 << 20) - 1;
/// Bytes of `.eh_frame` or `.debug_frame`.
pub const MAX_FRAME_BYTES: usize = 1 << 30;
/// Functions (frame description entries) in the code of one file.
pub const MAX_FDES: usize = 8 << 20;
/// Common information entries of one file.
pub const MAX_CIES: usize = 1 << 18;
/// Nesting of `DW_CFA_remember_state`; compilers stay below ten.
pub const MAX_REMEMBERED: usize = 1024;
/// Operations of a DWARF expression that are looked at.
pub const MAX_OPERATIONS: usize = 32;
/// Program headers: the kernel loads at most 64 KiB of them (`load_elf_phdrs`), of 56 bytes each.
pub const MAX_PROGRAM_HEADERS: usize = 65536 / 56;
/// Bytes of a build-id; linkers write 8 to 32.
pub const MAX_BUILD_ID: usize = 64;
/// Bytes of notes that are searched for a build-id, per segment or section.
pub const MAX_NOTES: usize = 64 << 10;
/// Sections of notes that are searched for it; files have fewer than ten.
pub const MAX_NOTE_SECTIONS: usize = 256;
/// Bytes of a file that are read before the memory that they take is given back: a table is made beside many others.
pub(crate) const MAX_RESIDENT: u64 = 4 << 20;
/// Between functions less than this many bytes apart, padding is looked for: no row is spent on it.
pub const MIN_GAP: u64 = 16;
/// Rows of one function; one with more is taken for damaged.
pub const MAX_ROWS_PER_FDE: usize = 1 << 20;
/// Functions and rows of a Go program together; Go's own compiler has 0.4 million.
pub const MAX_GO_ROWS: usize = 4 << 20;
/// Bytes of code at the entry point that have no caller, where no FDE describes them. The dynamic linker of glibc needs
/// 61 on x86_64 (`_start` and `_dl_start_user`, sysdeps/x86_64/dl-machine.h).
pub const ENTRY_CODE: u64 = 64;
/// Symbols, and relocations, of one file that are looked at for functions without unwind information.
pub const MAX_SYMBOLS: usize = 4 << 20;
/// Instructions of one file that are looked at to derive rows, those that are looked at again included. musl's C library
/// (1.2.3 and 1.2.6, Debian) takes 0.26 and 0.29 million.
pub const MAX_DERIVED: usize = 2 << 20;
/// Of these, behind addresses that are taken, of which it is not known whether they are functions': so many, and as many as are
/// looked at in functions. In programs of other kinds of compilers (GHC) hardly any is one.
pub const MIN_DERIVED_TAKEN: usize = 1 << 16;
/// Functions of one file for which that is done.
pub const MAX_DERIVED_FUNCTIONS: usize = 1 << 17;
/// The same of one function.
pub const MAX_DERIVED_IN_FUNCTION: usize = 1 << 16;
/// How often a function is followed again because one of its calls is found not to come back.
pub const MAX_DERIVED_AGAIN: usize = 64;
/// How often functions are followed again because others were found.
pub const MAX_DERIVED_ROUNDS: usize = 16;
