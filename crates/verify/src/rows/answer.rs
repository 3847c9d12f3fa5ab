//! What a side says of a place: the caller that it finds for a made-up thread.

use abi::stop::Stop;

use super::thread::{RBP, RSP, Thread};

/// The caller's registers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Caller {
    pub(crate) pc: u64,
    pub(crate) sp: u64,
    /// `None`: the side says that it does not know.
    pub(crate) fp: Option<u64>,
}

/// What one step of unwinding came to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Answer {
    Caller(Caller),
    /// Nothing called this place.
    Root,
    /// Refused, with the reason's name and its code.
    Stopped(Stop, u8),
    /// framehop's error.
    Failed(framehop::Error),
    /// The description cannot be evaluated.
    Unknown,
}

/// Bytes around a register or the CFA where a number is still said to be an offset from it.
const NEAR: u64 = 1 << 32;
/// Bytes below the CFA, and around rbp, that are searched for the place from which the caller's rbp came.
const SEARCHED: u64 = 4096;

impl Answer {
    /// The answer in words, with offsets instead of the made-up numbers.
    pub(crate) fn describe(&self, thread: &Thread) -> String {
        match self {
            Answer::Caller(caller) => describe_caller(caller, thread),
            Answer::Root => "root".to_owned(),
            Answer::Stopped(stop, 0) => format!("stop: {}", stop.text()),
            Answer::Stopped(stop, more) => format!("stop: {} ({more})", stop.text()),
            Answer::Failed(error) => format!("error: {error}"),
            Answer::Unknown => "cannot be evaluated".to_owned(),
        }
    }
}

fn describe_caller(caller: &Caller, thread: &Thread) -> String {
    let cfa = relative(caller.sp, thread).unwrap_or_else(|| from_memory(caller.sp, thread, thread.register(RSP)));
    let fp = match caller.fp {
        None => "rbp lost".to_owned(),
        Some(fp) if fp == thread.register(RBP) => "rbp kept".to_owned(),
        Some(fp) => format!("rbp={}", relative(fp, thread).unwrap_or_else(|| from_memory(fp, thread, caller.sp))),
    };
    let pc = match caller.pc {
        pc if pc == thread.memory(caller.sp.wrapping_sub(8)) => String::new(),
        pc => format!(", rip={}", relative(pc, thread).unwrap_or_else(|| from_memory(pc, thread, caller.sp))),
    };
    format!("CFA={cfa}, {fp}{pc}")
}

/// A number as a register and an offset.
fn relative(value: u64, thread: &Thread) -> Option<String> {
    const NAMES: [&str; 16] =
        ["rax", "rdx", "rcx", "rbx", "rsi", "rdi", "rbp", "rsp", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15"];
    let near = |number: u16| {
        let offset = value.wrapping_sub(thread.register(number)).cast_signed();
        (offset.unsigned_abs() < NEAR).then_some(offset)
    };
    // the nearest: random registers may lie within reach of each other
    let nearest = (0..16).filter_map(|number| Some((near(number)?, number))).min_by_key(|(offset, _)| offset.abs());
    nearest.map(|(offset, number)| format!("{}{offset:+}", NAMES[usize::from(number)]))
}

/// A number as the contents of a word near the CFA, rsp or rbp.
fn from_memory(value: u64, thread: &Thread, cfa: u64) -> String {
    let search = |name: &str, base: u64| {
        let offsets = (0..SEARCHED).step_by(8).map(u64::cast_signed).flat_map(|offset| [offset, -offset]);
        let mut found = offsets.filter(|offset| thread.memory(base.wrapping_add_signed(*offset)) == value);
        found.next().map(|offset| format!("*({name}{offset:+})"))
    };
    search("CFA", cfa)
        .or_else(|| search("rsp", thread.register(RSP)))
        .or_else(|| search("rbp", thread.register(RBP)))
        .unwrap_or_else(|| "another number".to_owned())
}
