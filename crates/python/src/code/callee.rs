//! Which function a call leads to, as far as it matters.

use super::machine::{Flow, Machine, Target};
use super::state::State;
use super::value::{Base, Root, Value, Via};
use crate::file::{PythonFile, Symbol};

/// Instructions of a linkage stub or of a linker's long jump; they have four at most, after a landing pad.
const MAX_STUB: usize = 6;

/// Functions of CPython whose first argument is a `Py_tss_t *` (Python/thread.c of 3.7 to 3.14).
const TSS: [&str; 3] = ["PyThread_tss_get", "PyThread_tss_is_created", "PyThread_tss_set"];
/// Functions of CPython whose first argument is a key, before 3.7 (Python/thread_pthread.h).
const KEY: [&str; 3] = ["PyThread_get_key_value", "PyThread_set_key_value", "PyThread_delete_key_value"];
/// Functions of the C library whose first argument is a key, with the names that glibc and musl have for them.
const SPECIFIC: [&str; 4] =
    ["pthread_getspecific", "__pthread_getspecific", "pthread_setspecific", "__pthread_setspecific"];
/// So begin the names of functions of CPython that end the process.
const FATAL: &str = "_Py_FatalError";
/// Other functions that do not come back.
const NO_RETURN: [&str; 7] = [
    "Py_FatalError",
    "_Py_FatalRefcountErrorFunc",
    "PyThread_exit_thread",
    "__stack_chk_fail",
    "__assert_fail",
    "abort",
    "exit",
];

/// What a call means here.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Callee {
    /// It takes the address of a `Py_tss_t`.
    Tss(String),
    /// It takes the key that 3.6 keeps in an `int`.
    PlainKey(String),
    /// It takes a key.
    Key(String),
    /// `__tls_get_addr`.
    ThreadLocal,
    /// It does not come back.
    NoReturn,
    /// A function of this file that others cannot see.
    Local(u64),
    /// Another one.
    Other,
}

/// What a jump leads to.
pub(crate) enum Jump {
    /// Another function, which returns for this one.
    Tail(Callee),
    /// Code of the same function.
    Within(u64),
    /// Nobody knows.
    Unknown,
}

/// The function that a call leads to.
pub(crate) fn of_call(file: &PythonFile<'_>, machine: &mut Machine, target: Target) -> Callee {
    match target {
        Target::Value(value) => by_value(file, machine, value),
        Target::Address(address) => at(file, machine, address),
    }
}

/// What a jump out of the piece of code at hand leads to.
pub(crate) fn of_jump(file: &PythonFile<'_>, machine: &mut Machine, target: Target) -> Jump {
    let address = match target {
        Target::Address(address) => address,
        Target::Value(Value { base: Base::Address(Root::Image), offset, .. }) => offset as u64,
        Target::Value(value) if value.is_unknown() => return Jump::Unknown,
        Target::Value(value) => return Jump::Tail(by_value(file, machine, value)),
    };
    match at(file, machine, address) {
        Callee::Local(address) if !is_function(file, address) => Jump::Within(address),
        callee => Jump::Tail(callee),
    }
}

/// Whether a function begins there, and not a part that a compiler has split off.
fn is_function(file: &PythonFile<'_>, address: u64) -> bool {
    let split_off = |symbol: Symbol<'_>| symbol.name.windows(5).any(|part| part == b".cold");
    let mut symbols = file.functions_at(address).peekable();
    symbols.peek().is_some() && !symbols.any(split_off)
}

fn by_value(file: &PythonFile<'_>, machine: &mut Machine, value: Value) -> Callee {
    match value {
        Value { base: Base::Address(Root::Import(symbol)), offset: 0, .. } => {
            file.import_name(symbol).and_then(named).unwrap_or(Callee::Other)
        }
        Value { base: Base::Address(Root::Image), offset, .. } => at(file, machine, offset as u64),
        Value { base: Base::Number, offset, .. } if file.is_fixed() => at(file, machine, offset as u64),
        _ => Callee::Other,
    }
}

fn at(file: &PythonFile<'_>, machine: &mut Machine, address: u64) -> Callee {
    let mut global = false;
    for symbol in file.functions_at(address) {
        if let Some(callee) = named(symbol.name) {
            return callee;
        }
        global |= symbol.global;
    }
    if global || !file.is_code(address) {
        return Callee::Other;
    }
    through_stub(file, machine, address).unwrap_or(Callee::Local(address))
}

/// Follows a stub that does nothing but jump on, with the arguments that it was given.
fn through_stub(file: &PythonFile<'_>, machine: &mut Machine, address: u64) -> Option<Callee> {
    let arguments = machine.convention().arguments;
    let given = |register: usize| Value {
        base: Base::Loaded { root: Root::Image, at: 0, width: 8 },
        ..Value::number(register as u64, 0)
    };
    let (mut pc, mut state) = (address, State::start());
    arguments.iter().for_each(|&register| state.set(register, given(register)));
    for _ in 0..MAX_STUB {
        let step = machine.step(file, pc, &mut state)?;
        match step.flow {
            Flow::Next => pc = pc.wrapping_add(step.length),
            Flow::Jump(target) => {
                let forwards = arguments.iter().all(|&register| state.get(register) == given(register));
                return if forwards { stub_target(file, target) } else { None };
            }
            _ => return None,
        }
    }
    None
}

fn stub_target(file: &PythonFile<'_>, target: Target) -> Option<Callee> {
    let value = match target {
        Target::Address(address) => Value::address(address, 0, Via::Relative),
        Target::Value(value) => value,
    };
    match value {
        Value { base: Base::Address(Root::Import(symbol)), offset: 0, .. } => {
            Some(file.import_name(symbol).and_then(named).unwrap_or(Callee::Other))
        }
        Value { base: Base::Address(Root::Image), offset, .. } => {
            let mut symbols = file.functions_at(offset as u64).peekable();
            let global = symbols.peek().is_some_and(|symbol| symbol.global);
            symbols.find_map(|symbol| named(symbol.name)).or_else(|| global.then_some(Callee::Other))
        }
        _ => None,
    }
}

fn named(name: &[u8]) -> Option<Callee> {
    let name = std::str::from_utf8(name).ok()?;
    let text = || name.to_owned();
    match name {
        _ if TSS.contains(&name) => Some(Callee::Tss(text())),
        _ if KEY.contains(&name) => Some(Callee::PlainKey(text())),
        _ if SPECIFIC.contains(&name) => Some(Callee::Key(text())),
        _ if NO_RETURN.contains(&name) || name.starts_with(FATAL) => Some(Callee::NoReturn),
        "__tls_get_addr" => Some(Callee::ThreadLocal),
        _ => None,
    }
}
