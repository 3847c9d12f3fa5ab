//! Whether the Python frames of recorded stacks are those that the program itself tells, in their true order.

pub(crate) mod label;
pub(crate) mod truth;

mod calls;
mod chain;
pub(crate) mod sampled;
#[cfg(test)]
mod tests;
mod verdict;

pub(crate) use verdict::{Verdict, Wanted};
