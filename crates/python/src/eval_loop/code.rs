//! Where a piece of code leads: its jumps, its calls, and the data that it names.

use super::{aarch64, x86_64};
use crate::file::{Architecture, PythonFile};

/// What one piece of code does that leads elsewhere. All instructions are read in the order of their addresses, as a
/// compiler's code has nothing else between them.
#[derive(Default, Debug)]
pub(super) struct Code {
    /// Targets of direct jumps, conditional ones too, outside the piece.
    pub jumps: Vec<u64>,
    /// Targets of direct calls, outside the piece.
    pub calls: Vec<u64>,
    /// Addresses that it forms or reads at.
    pub data: Vec<u64>,
    /// Jumps whose target is in a register or in memory.
    pub indirect_jumps: usize,
    /// Calls of what was taken out of a table, or may have been: through an index, or a register.
    pub selected_calls: usize,
}

impl Code {
    /// Reads the code of a piece.
    pub(super) fn read(file: &PythonFile<'_>, begin: u64, end: u64) -> Code {
        let mut code = Code::default();
        let bytes = bytes(file, begin, end);
        match file.architecture() {
            Architecture::X86_64 => x86_64::read(bytes, begin, file.is_fixed(), &mut code),
            Architecture::Aarch64 => aarch64::read(bytes, begin, &mut code),
        }
        let is_outside = |target: &u64| !(begin..end).contains(target);
        code.jumps.retain(is_outside);
        code.calls.retain(is_outside);
        for list in [&mut code.jumps, &mut code.calls, &mut code.data] {
            list.sort_unstable();
            list.dedup();
        }
        code
    }
}

/// Calls `found` with the targets of what looks like a direct jump: on x86_64 at any byte, so that many are none.
pub(super) fn scan(file: &PythonFile<'_>, begin: u64, end: u64, found: impl FnMut(u64)) {
    let bytes = bytes(file, begin, end);
    match file.architecture() {
        Architecture::X86_64 => x86_64::scan(bytes, begin, found),
        Architecture::Aarch64 => aarch64::scan(bytes, begin, found),
    }
}

/// Whether code may form an address or read there; if it does not seem so, it does not.
pub(super) fn may_name(file: &PythonFile<'_>, begin: u64, end: u64, address: u64) -> bool {
    let bytes = bytes(file, begin, end);
    match file.architecture() {
        Architecture::X86_64 => x86_64::may_name(bytes, begin, address),
        Architecture::Aarch64 => aarch64::may_name(bytes, begin, address),
    }
}

/// Whether there is a linkage stub at an address: it only jumps on to where a slot points. One FDE describes all stubs of a
/// file, so that a jump to one goes into its middle.
pub(super) fn is_stub(file: &PythonFile<'_>, address: u64) -> bool {
    let (bytes, length) = file.fetch(address);
    match file.architecture() {
        Architecture::X86_64 => x86_64::is_stub(&bytes[..length], address),
        Architecture::Aarch64 => aarch64::is_stub(&bytes[..length]),
    }
}

fn bytes<'a>(file: &PythonFile<'a>, begin: u64, end: u64) -> &'a [u8] {
    let bytes = file.code(begin);
    let length = usize::try_from(end.saturating_sub(begin)).unwrap_or(usize::MAX);
    &bytes[..bytes.len().min(length)]
}
