//! Why an interpreter is not walked.

use crate::code::{CodeRefusal, Place};
use crate::file::VersionRefusal;
use crate::layout::LayoutRefusal;
use crate::slot::{KeyOutOfRange, SlotRefusal};
use crate::{Unreadable, Version};

/// The steps of a proof, in their order.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Step {
    /// What the file is, and of which version.
    File,
    /// Whether it is initialised.
    Runtime,
    /// Where things lie in its structures.
    Layout,
    /// Where a thread's state is kept: a key of the C library, or a thread-local variable.
    Place,
    /// From there to the state of a thread.
    Way,
    /// The states of the process's threads.
    Threads,
    /// The native code that Python frames stand for. It is no part of the proof; recordings need it.
    EvalLoop,
}

impl Step {
    /// A word.
    pub const fn name(self) -> &'static str {
        match self {
            Step::File => "file",
            Step::Layout => "layout",
            Step::Runtime => "runtime",
            Step::Place => "place",
            Step::Way => "way",
            Step::Threads => "threads",
            Step::EvalLoop => "eval loop",
        }
    }
}

/// An interpreter is not walked.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Refusal {
    /// Another implementation of Python.
    #[error("it is {0}, whose structures are not CPython's")]
    OtherImplementation(&'static str),
    /// Its version is not known.
    #[error("the version is not known: {0}")]
    Version(#[from] VersionRefusal),
    /// A program without the symbols that are needed.
    #[error("the file does not say where {symbol} is: it is stripped")]
    NoSymbol {
        /// The symbol.
        symbol: &'static str,
    },
    /// Its structures are not known, or not as measured.
    #[error(transparent)]
    Layout(#[from] LayoutRefusal),
    /// The code does not say where a thread's state is kept.
    #[error("the code does not say where the thread state is kept: {0}")]
    Code(#[from] CodeRefusal),
    /// Only one function says where a thread's state is kept, and no table does.
    #[error("one function alone says {0}, and no table of this version confirms it")]
    OneSource(Place),
    /// The code says something else than the table of its version.
    #[error("the code says {place}, the structures of {version} say _PyRuntime+{expected}")]
    PlaceDisagrees {
        /// By the code.
        place: Place,
        /// The version.
        version: Version,
        /// By the table.
        expected: u32,
    },
    /// The key or the slot of a thread-local variable cannot be read.
    #[error("what leads to the thread state cannot be read: {0}")]
    Unreadable(#[from] Unreadable),
    /// No file of the process is a C library whose keys are understood.
    #[error("no C library was found among the files of the process")]
    NoLibrary,
    /// Two C libraries that keep values differently.
    #[error("{0} and {1} keep values of threads in different places")]
    TwoLibraries(String, String),
    /// The C library's keys are not understood.
    #[error("the C library's keys are not understood: {0}")]
    Slots(#[from] SlotRefusal),
    /// No such key.
    #[error(transparent)]
    Key(#[from] KeyOutOfRange),
    /// A thread-local variable that is reached in a way that cannot be followed from outside.
    #[error("the thread-local variable cannot be reached from outside: {0}")]
    ThreadLocal(&'static str),
    /// What `pthread_self` gives is not known.
    #[error("what pthread_self gives is not known of this C library (musl on aarch64)")]
    ThreadSelf,
    /// Distances that do not fit.
    #[error("{0} is {1:#x}, too far away")]
    TooFar(&'static str, u64),
    /// No thread could be looked at.
    #[error("no thread could be looked at")]
    NoThread,
    /// No thread has a state.
    #[error("none of {threads} threads has a thread state under it")]
    NoState {
        /// Threads that were looked at.
        threads: usize,
    },
    /// Another key of a thread leads to another state of the thread.
    #[error("key {key} and key {other} of a thread hold different states that both are its own")]
    OtherKey {
        /// The one that was found.
        key: u32,
        /// Another one.
        other: u32,
    },
}

impl Refusal {
    /// A name that does not change, for programs.
    pub const fn name(&self) -> &'static str {
        match self {
            Refusal::OtherImplementation(_) => "other-implementation",
            Refusal::Version(_) => "version-unknown",
            Refusal::NoSymbol { .. } => "no-symbol",
            Refusal::Layout(refusal) => layout_name(refusal),
            Refusal::Code(_) => "code-not-understood",
            Refusal::OneSource(_) => "one-source",
            Refusal::PlaceDisagrees { .. } => "place-disagrees",
            Refusal::Unreadable(_) => "unreadable",
            Refusal::NoLibrary => "no-c-library",
            Refusal::TwoLibraries(..) => "two-c-libraries",
            Refusal::Slots(_) => "c-library-not-understood",
            Refusal::Key(_) => "key-out-of-range",
            Refusal::ThreadLocal(_) => "thread-local-not-reached",
            Refusal::ThreadSelf => "thread-self-unknown",
            Refusal::TooFar(..) => "too-far",
            Refusal::NoThread => "no-thread",
            Refusal::NoState { .. } => "no-thread-state",
            Refusal::OtherKey { .. } => "key-not-unique",
        }
    }

    /// The step at which it comes to that.
    pub const fn step(&self) -> Step {
        match self {
            Refusal::OtherImplementation(_) | Refusal::Version(_) => Step::File,
            Refusal::Layout(LayoutRefusal::NotInitialised) => Step::Runtime,
            Refusal::NoSymbol { .. } | Refusal::Layout(_) => Step::Layout,
            Refusal::Code(_) | Refusal::OneSource(_) | Refusal::PlaceDisagrees { .. } => Step::Place,
            Refusal::Unreadable(_)
            | Refusal::NoLibrary
            | Refusal::TwoLibraries(..)
            | Refusal::Slots(_)
            | Refusal::Key(_)
            | Refusal::ThreadLocal(_)
            | Refusal::ThreadSelf
            | Refusal::TooFar(..) => Step::Way,
            Refusal::NoThread | Refusal::NoState { .. } | Refusal::OtherKey { .. } => Step::Threads,
        }
    }

    /// Whether it may be otherwise in a moment.
    pub const fn may_pass(&self) -> bool {
        matches!(
            self,
            Refusal::Layout(
                LayoutRefusal::NotInitialised
                    | LayoutRefusal::Live { .. }
                    | LayoutRefusal::Memory { .. }
                    | LayoutRefusal::Endless { .. }
            ) | Refusal::NoState { .. }
        )
    }

    /// What a user can do about it.
    pub const fn remedy(&self) -> &'static str {
        match self {
            Refusal::Layout(LayoutRefusal::NotInitialised) => "try again when the program has started its Python",
            Refusal::Layout(LayoutRefusal::PreRelease(_)) => {
                "use a final release: structures change between pre-releases"
            }
            Refusal::Layout(LayoutRefusal::UnknownVersion(_) | LayoutRefusal::UnknownRelease(_)) => {
                "3.6 to 3.15 are known; a newer wholestack may know more"
            }
            Refusal::Layout(LayoutRefusal::FreeThreaded(_) | LayoutRefusal::ObjectHeader(_)) => {
                "use a build with the GIL and without debugging"
            }
            Refusal::NoSymbol { .. } => {
                "install or keep the symbols of this file (not stripped, or its exported symbols)"
            }
            Refusal::OtherImplementation(_) => {
                "its native stacks are shown; its Python frames are not known to wholestack"
            }
            Refusal::NoThread => "see the threads below for the reasons",
            Refusal::NoState { .. } => {
                "no thread has run Python in it; if one does, report this with the output of --json"
            }
            _ => "please report this with the output of `wholestack explain --json PID`",
        }
    }
}

const fn layout_name(refusal: &LayoutRefusal) -> &'static str {
    match refusal {
        LayoutRefusal::PreRelease(_) => "pre-release",
        LayoutRefusal::UnknownVersion(_) | LayoutRefusal::UnknownRelease(_) => "version-not-measured",
        LayoutRefusal::FreeThreaded(_) => "free-threaded",
        LayoutRefusal::ObjectHeader(_) => "debug-build",
        LayoutRefusal::NotInitialised => "not-initialised",
        _ => "layout-disagrees",
    }
}
