//! What crosses the boundary between the BPF programs and user space.
//!
//! Both sides compile this crate, so that a size or a number is written once. It knows nothing
//! else of the project and needs nothing but `core`.
//!
//! * [`table`]: unwind rules, rows, pages: what `objects` makes of `.eh_frame`.
//! * [`process`]: what the sampler knows of a process, and where its code is mapped.
//! * [`python`]: what the walker must know of a CPython interpreter.
//! * [`word`]: a stack as words: kernel, object, raw frames, and the end that gives the reason.
//! * [`stop`]: why a stack ends where it ends.
//! * [`record`]: what a sample leaves for user space: counts, new stacks, deferred samples.
//! * [`counter`]: what the sampler counts about itself; each sample is in exactly one of them.
//!
//! [`HASH`] is made from the sources of this crate. It is written into every BPF object and compared at load time,
//! so that an object built from other sources is refused and never misread.
#![no_std]

pub mod counter;
pub mod process;
pub mod python;
pub mod record;
pub mod stop;
pub mod table;
pub mod word;

/// Identifies this crate's contents: FNV-1a over its source files.
pub const HASH: u64 = {
    let mut hash = 0xcbf2_9ce4_8422_2325;
    hash = fnv1a(hash, include_bytes!("lib.rs"));
    hash = fnv1a(hash, include_bytes!("counter.rs"));
    hash = fnv1a(hash, include_bytes!("process.rs"));
    hash = fnv1a(hash, include_bytes!("python.rs"));
    hash = fnv1a(hash, include_bytes!("record.rs"));
    hash = fnv1a(hash, include_bytes!("stop.rs"));
    hash = fnv1a(hash, include_bytes!("table.rs"));
    fnv1a(hash, include_bytes!("word.rs"))
};

const fn fnv1a(mut hash: u64, bytes: &[u8]) -> u64 {
    let mut i = 0;
    while i < bytes.len() {
        hash = (hash ^ bytes[i] as u64).wrapping_mul(0x0000_0100_0000_01b3);
        i += 1;
    }
    hash
}
