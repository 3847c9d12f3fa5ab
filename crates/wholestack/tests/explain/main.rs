//! `wholestack explain` on every interpreter and on programs that have one, compared with what they say of themselves.
//!
//! `cargo xtask interpreters` gets what the distribution does not have. What is missing is said (`NOT HERE: ...`).

#[path = "../common/mod.rs"]
mod common;
mod support;

mod explained;
mod harmless;
mod moving;
mod programs;
mod refused;
mod stacks;
