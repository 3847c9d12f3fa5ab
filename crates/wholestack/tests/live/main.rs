//! Recordings of real programs through the real BPF programs, compared with what the programs know of themselves.
//!
//! Needs root, `cc`, and for some tests other tools. What is missing is said (`SKIPPED: ...`); with
//! `WHOLESTACK_REQUIRE_LIVE=1` it is a failure. Every test prints a line of what it measured; `--nocapture` shows it.

mod support;

mod c;
mod cpp;
mod dynamic;
mod frames;
mod go;
mod kernel;
mod modes;
mod musl;
mod namespaces;
mod processes;
mod real;

mod rust;
mod signals;
mod threads;
mod undescribed;
