//! Texts whose addresses a function passes on.

use super::machine::Machine;
use super::value::{Base, Root, Value};
use super::walk::walk;
use crate::file::PythonFile;

/// Bytes of the longest text that is read.
const MAX_TEXT: usize = 256;

/// The zero-terminated texts in read-only data whose addresses the function at an address passes to the functions that it
/// calls, with those addresses.
pub(crate) fn texts<'a>(file: &PythonFile<'a>, function: u64) -> Vec<(u64, &'a str)> {
    let found = walk(file, &mut Machine::of(file), function);
    let address = |value: &Value| match value.base {
        Base::Address(Root::Image) => Some(value.offset as u64),
        Base::Number if file.is_fixed() => Some(value.offset as u64),
        _ => None,
    };
    let mut texts: Vec<_> = found
        .arguments
        .iter()
        .filter_map(address)
        .filter_map(|address| Some((address, file.text(address, MAX_TEXT)?)))
        .collect();
    texts.sort_unstable();
    texts.dedup();
    texts
}
