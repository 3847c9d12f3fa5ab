//! What a file says of CPython, without the file: what is the same in every process that maps it.
//!
//! Reading a file for the first time takes milliseconds (symbols, and code that is carried out symbolically); a process
//! that maps a file whose facts are known needs a few reads of its memory.

use std::sync::Arc;

use crate::Refusal;
use crate::code::{CodeRefusal, Derived, derive};
use crate::eval_loop::{EvalLoop, EvalLoopRefusal, Links};
use crate::file::{Architecture, Identity, PythonFile};
use crate::layout::confirm::Types;
use crate::layout::{Layout, Platform};

/// The variable of CPython 3.6 that holds the address of the newest interpreter (Python/pystate.c).
const INTERPRETERS_OF_3_6: &str = "interp_head";

/// What a file that is a CPython says. Addresses are those in the file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PythonFacts {
    /// The instruction set.
    pub architecture: Architecture,
    /// What it is.
    pub identity: Identity,
    /// Address of `_PyRuntime`: by the symbol, or else by the section.
    pub runtime: Option<u64>,
    /// Addresses of the types, in the order of [`Types::SYMBOLS`].
    pub types: [Option<u64>; Types::SYMBOLS.len()],
    /// Address of the variable that holds the newest interpreter's in 3.6.
    pub interpreters: Option<u64>,
    /// Where a thread's state is kept, as the code says.
    pub derived: Result<Derived, CodeRefusal>,
    /// The native code of the eval loop.
    pub eval_loop: Result<Arc<EvalLoop>, EvalLoopRefusal>,
}

/// Which Python a file is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Implementation {
    /// CPython.
    CPython(Box<PythonFacts>),
    /// CPython without the symbols that are needed. Stripping leaves the names of sections, and CPython has its own since 3.10.
    Stripped,
    /// PyPy.
    PyPy,
}

impl PythonFacts {
    /// Of a file that was identified.
    pub fn of(file: &PythonFile<'_>, identity: Identity) -> PythonFacts {
        let address = |symbol: &str| file.symbol(symbol).map(|symbol| symbol.address);
        PythonFacts {
            architecture: file.architecture(),
            runtime: identity.runtime.or_else(|| file.runtime_section().map(|section| section.start)),
            types: Types::SYMBOLS.map(address),
            interpreters: address(INTERPRETERS_OF_3_6),
            derived: derive(file),
            eval_loop: EvalLoop::of(file, links(file, &identity)).map(Arc::new),
            identity,
        }
    }

    /// Address of `_PyRuntime`.
    pub(crate) fn runtime(&self) -> Result<u64, Refusal> {
        self.runtime.ok_or(Refusal::NoSymbol { symbol: "_PyRuntime" })
    }

    /// Address of what holds the newest interpreter's in 3.6.
    pub(crate) fn interpreters(&self) -> Result<u64, Refusal> {
        self.interpreters.ok_or(Refusal::NoSymbol { symbol: INTERPRETERS_OF_3_6 })
    }

    /// The types in a process that has the file's addresses `bias` further up.
    pub(crate) fn types(&self, bias: u64) -> Result<Types, Refusal> {
        let mut addresses = [0; Types::SYMBOLS.len()];
        for ((to, from), symbol) in addresses.iter_mut().zip(self.types).zip(Types::SYMBOLS) {
            *to = from.ok_or(Refusal::NoSymbol { symbol })?.wrapping_add(bias);
        }
        let [code, frame, unicode, bytes] = addresses;
        Ok(Types { code, frame, unicode, bytes })
    }
}

impl Implementation {
    /// Of the bytes of a file; `None` if it is no Python, as most files are not.
    pub fn of(bytes: &[u8]) -> Option<Implementation> {
        let file = PythonFile::parse(bytes).ok()?;
        // of files that are none, which may be large, as few names as can be are looked for
        let has_version = file.symbol("Py_GetVersion").is_some();
        if has_version && let Some(identity) = file.identify() {
            return Some(Implementation::CPython(Box::new(PythonFacts::of(&file, identity))));
        }
        if file.symbol("PyPy_GetVersion").is_some() {
            return Some(Implementation::PyPy);
        }
        file.runtime_section().map(|_| Implementation::Stripped)
    }
}

/// By which words frames of the file's version are linked: the same with all C libraries.
fn links(file: &PythonFile<'_>, identity: &Identity) -> Option<Links> {
    let architecture = match file.architecture() {
        Architecture::X86_64 => objects::Architecture::X86_64,
        Architecture::Aarch64 => objects::Architecture::Aarch64,
    };
    let platform = Platform { architecture, musl: false, free_threaded: false };
    let layout = Layout::measured(identity.version.ok()?, platform).ok()?;
    Some(Links::of(&layout.facts(0, abi::python::Slot::default())))
}
