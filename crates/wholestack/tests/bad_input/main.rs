//! What goes wrong in practice: wrong arguments, targets that are not there or end, outputs that cannot be written,
//! signals, hostile files and names. The real program on the running kernel.
//!
//! Each case: a message that says what is wrong and what to do, the exit code of the manual, nothing half-written, the
//! target as it was, nothing left in the kernel.

#[path = "../common/mod.rs"]
mod common;

mod arguments;
mod commands;
mod files;
mod names;
mod outputs;
mod signals;
mod targets;
