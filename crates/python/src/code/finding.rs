//! What the code of a function says about the place of a thread's state, and by which instructions.

use std::fmt;

use super::value::Access;

/// Functions of CPython's API that ask for the state of the thread that calls them (Python/pystate.c).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Function {
    /// Returns it.
    GetThisThreadState,
    /// Compares it with the state that holds the GIL.
    Check,
    /// Makes one if there is none.
    Ensure,
    /// The end of what `Ensure` began.
    Release,
}

impl Function {
    /// All of them.
    pub const ALL: [Function; 4] = [Function::GetThisThreadState, Function::Check, Function::Ensure, Function::Release];

    /// The symbol's name.
    pub const fn name(self) -> &'static str {
        match self {
            Function::GetThisThreadState => "PyGILState_GetThisThreadState",
            Function::Check => "PyGILState_Check",
            Function::Ensure => "PyGILState_Ensure",
            Function::Release => "PyGILState_Release",
        }
    }
}

/// An instruction as evidence.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Instruction {
    /// Its address in the file.
    pub address: u64,
    /// Its bytes.
    pub bytes: Vec<u8>,
    /// Its text, as the decoder prints it.
    pub text: String,
}

/// How code forms the address.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Form {
    /// Bytes added to the address of `_PyRuntime`, which is read from a slot.
    RuntimeOffset,
    /// A number in an instruction.
    Absolute,
    /// A distance from the instruction, or from its page.
    Relative,
    /// Read from a slot that does not name `_PyRuntime`, and maybe bytes added.
    Slot,
    /// A distance from the thread pointer, in an instruction.
    LocalExec,
    /// A distance from the thread pointer, in a slot.
    InitialExec,
    /// An offset in a module's block, through `__tls_get_addr`.
    ModuleBlock,
    /// A thread-local descriptor.
    Descriptor,
}

/// What the address is of.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Subject {
    /// A `Py_tss_t`.
    Struct,
    /// The key itself.
    Key,
    /// A thread-local variable that holds the state.
    Variable,
}

/// How a function reaches the state.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Kind {
    /// How the address is formed.
    pub form: Form,
    /// What it is of.
    pub subject: Subject,
}

/// A place in memory.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Location {
    /// In this file's data.
    File {
        /// Address before relocation.
        address: u64,
        /// Offset in `_PyRuntime`, if it lies there and the file has that symbol.
        in_runtime: Option<u64>,
    },
    /// In the `_PyRuntime` of another file.
    Runtime {
        /// Offset in `_PyRuntime`.
        offset: u64,
    },
}

/// What a key is part of.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum KeyOf {
    /// A `Py_tss_t`: the flag whether the key was made lies in the four bytes before it.
    Tss,
    /// Nothing: it is an `int`, -1 until the key was made (3.6 and before).
    Int,
    /// The code does not tell.
    Either,
}

/// A thread-local variable of eight bytes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct ThreadLocal {
    /// How the code reaches it. All slots are in this file.
    pub access: Access,
    /// Bytes to be added to what `access` leads to: to the thread pointer, to the thread pointer and the slot's distance, to
    /// the module's block, or to the descriptor's answer.
    pub offset: i64,
    /// Its offset in the block of this file's thread-local variables.
    pub in_block: u64,
}

/// Where the state is found.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Place {
    /// Under a key of the C library's.
    Key {
        /// Where the key is, four bytes.
        at: Location,
        /// What it is part of.
        of: KeyOf,
    },
    /// In a thread-local variable.
    ThreadLocal(ThreadLocal),
}

/// What a function says.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Finding {
    /// Whose code it is.
    pub function: Function,
    /// How the code reaches the state.
    pub kind: Kind,
    /// Where the state is found.
    pub place: Place,
    /// The instruction that made the address, or that read the key.
    pub formed: Instruction,
    /// The instruction that uses it.
    pub used: Instruction,
    /// The function that is called with it.
    pub callee: Option<String>,
}

impl Place {
    /// Whether two findings mean the same: the key at the same place, or the same variable.
    pub fn agrees(&self, other: &Place) -> bool {
        match (self, other) {
            (Place::Key { at, of }, Place::Key { at: other_at, of: other_of }) => {
                at == other_at && (of == other_of || *of == KeyOf::Either || *other_of == KeyOf::Either)
            }
            (Place::ThreadLocal(variable), Place::ThreadLocal(other)) => variable.in_block == other.in_block,
            _ => false,
        }
    }
}

impl fmt::Display for Function {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

impl fmt::Display for Instruction {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{:#x}:", self.address)?;
        self.bytes.iter().try_for_each(|byte| write!(formatter, " {byte:02x}"))?;
        write!(formatter, "  {}", self.text)
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let subject = match self.subject {
            Subject::Struct => "the key's struct",
            Subject::Key => "the key",
            Subject::Variable => "the thread-local variable",
        };
        let form = match self.form {
            Form::RuntimeOffset => "by its offset in _PyRuntime",
            Form::Absolute => "by its absolute address",
            Form::Relative => "by its distance from the code",
            Form::Slot => "by an address in a slot",
            Form::LocalExec => "by its distance from the thread pointer",
            Form::InitialExec => "by a distance from the thread pointer in a slot",
            Form::ModuleBlock => "by its offset in the module's block",
            Form::Descriptor => "by a descriptor",
        };
        write!(formatter, "{subject}, {form}")
    }
}

impl fmt::Display for Location {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Location::File { address, in_runtime: None } => write!(formatter, "{address:#x}"),
            Location::File { address, in_runtime: Some(offset) } => {
                write!(formatter, "{address:#x} (_PyRuntime+{offset})")
            }
            Location::Runtime { offset } => write!(formatter, "_PyRuntime+{offset} of another file"),
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::Key { at, of: KeyOf::Int } => write!(formatter, "the key (an int) at {at}"),
            Place::Key { at, .. } => write!(formatter, "the key at {at}"),
            Place::ThreadLocal(variable) => {
                write!(formatter, "the thread-local variable at {:#x} of the file's block", variable.in_block)
            }
        }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}: {}: {} ({}; {})", self.function, self.place, self.kind, self.formed, self.used)
    }
}
