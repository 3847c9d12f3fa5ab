//! CPython from outside: interpreters found by what a file is, the way from a thread to its Python stack derived from the
//! file's own code, proven on the live process, and code objects named. Without any help from the target.
//!
//! What cannot be proven is refused by name.

pub mod code;
pub mod code_object;
pub mod file;
pub mod layout;
pub mod lines;
pub mod memory;
pub mod slot;
pub mod strings;
pub mod version;

pub use memory::{Memory, Unreadable};
pub use slot::SlotLayout;
pub use version::Version;
