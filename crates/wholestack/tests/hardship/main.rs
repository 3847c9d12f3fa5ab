//! Storms and want: many short processes, many processes and threads, libraries that come and go; recorders that are
//! killed, stopped, and short of memory, disk and files. The real program on the running kernel.
//!
//! Whatever happens, what is recorded is right or named, what is lost is counted, nobody is harmed and nothing is left.
//! With `WHOLESTACK_HARDSHIP=long` there is more of it. Every test prints a line of what it measured; `--nocapture` shows
//! it.

#[path = "../common/mod.rs"]
mod common;
#[path = "../live/support/mod.rs"]
// made for the live tests, too
#[allow(dead_code)]
mod support;

mod storm;

mod compiling;
mod evicted;
mod flooded;
mod full_disk;
mod killed;
mod libraries;
mod limits;
mod many_processes;
mod many_threads;
mod scarce_memory;
mod short_processes;
