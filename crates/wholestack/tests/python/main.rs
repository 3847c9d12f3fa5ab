//! Python frames in recordings through the real BPF programs, on every interpreter, compared with what the programs know
//! of themselves.
//!
//! Needs root. What is missing is said: what should be here (`SKIPPED: ...`) and other interpreters (`NOT HERE: ...`, see
//! `cargo xtask interpreters`). Every test prints a line of what it measured; with `WHOLESTACK_HARDSHIP=long` all take
//! longer.

#[path = "../explain/support/mod.rs"]
mod explain;
mod judge;
#[path = "../live/support/mod.rs"]
// made for the live tests, too
#[allow(dead_code)]
mod support;
mod workload;

mod containers;
mod inside;
mod lived;
mod lives;
mod spin;
mod start;
mod working;
