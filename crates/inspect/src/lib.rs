//! A live process from outside, without BPF: the files that it maps, and native stacks walked by the code that the kernel
//! runs, over registers and stack bytes that were taken while the thread was held.

mod capture;
mod files;
mod native;

pub use capture::{Captured, MAX_STACK, capture};
pub use files::{Files, MappedFile};
pub use native::{ThreadStack, native_stack};
