//! Why code does not tell where a thread's state is.

use std::fmt;

use super::finding::{Finding, Function};

/// Bytes of a body that a refusal carries.
pub(super) const MAX_BODY: usize = 512;

/// Why a function says nothing, or nothing that can be believed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum FunctionRefusal {
    /// The file does not define it.
    #[error("not in the file")]
    Absent,
    /// It does not ask for the state itself.
    #[error("asks for no key and no thread-local variable")]
    NoLookup,
    /// It asks for a key whose place is not known.
    #[error("the key that is asked for at {site:#x} comes from where it cannot be followed to")]
    UnknownKey {
        /// Address of the call.
        site: u64,
    },
    /// It asks for a key at a place where none can be.
    #[error("what is asked for at {site:#x} is no variable: {place:#x}")]
    NoVariable {
        /// Address of the call, or of the access.
        site: u64,
        /// The address that was found.
        place: u64,
    },
    /// It asks for two keys or variables.
    #[error("what is asked for at {first:#x} and at {second:#x} are not the same")]
    Ambiguous {
        /// Address of a call or access.
        first: u64,
        /// Address of another.
        second: u64,
    },
    /// It has bytes that are no instruction.
    #[error("the bytes at {at:#x} are no instruction")]
    Undecodable {
        /// Their address.
        at: u64,
    },
    /// Its code runs on beyond its end.
    #[error("the code runs on beyond its end at {at:#x}")]
    RunsOff {
        /// The end.
        at: u64,
    },
    /// More than is looked at.
    #[error("more code than is looked at")]
    TooLong,
}

/// A function that said nothing.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Refused {
    /// Which one.
    pub function: Function,
    /// Why.
    pub refusal: FunctionRefusal,
    /// Its address, if it is there.
    pub address: Option<u64>,
    /// The first bytes of its body, up to 512.
    pub body: Vec<u8>,
}

impl Refused {
    /// Whether the function has nothing to say, as opposed to something that was not understood.
    pub fn is_silent(&self) -> bool {
        matches!(self.refusal, FunctionRefusal::Absent | FunctionRefusal::NoLookup)
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}: {}", self.function, self.refusal)?;
        if let Some(address) = self.address {
            write!(formatter, " ({address:#x}:")?;
            self.body.iter().try_for_each(|byte| write!(formatter, " {byte:02x}"))?;
            formatter.write_str(")")?;
        }
        Ok(())
    }
}

/// Why a file's code does not tell where a thread's state is.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum CodeRefusal {
    /// No function says anything.
    #[error("no function tells where a thread's state is: {}", list(.refused))]
    Silent {
        /// Each function's reason.
        refused: Vec<Refused>,
    },
    /// Functions say different things.
    #[error("functions contradict each other: {}", list(.findings))]
    Contradiction {
        /// What they say.
        findings: Vec<Finding>,
    },
    /// Only one function says something, and another one was not understood.
    #[error("only one function tells where a thread's state is, {finding}, and another is not understood: {}", list(.refused))]
    Unconfirmed {
        /// What it says.
        finding: Box<Finding>,
        /// The others.
        refused: Vec<Refused>,
    },
    /// The code reads a key, and nothing tells whether it is part of a `Py_tss_t`.
    #[error("no source tells whether the key is part of a Py_tss_t: {}", list(.findings))]
    KeyOfWhat {
        /// What the functions say.
        findings: Vec<Finding>,
    },
}

fn list<T: fmt::Display>(items: &[T]) -> String {
    items.iter().map(T::to_string).collect::<Vec<_>>().join("; ")
}
