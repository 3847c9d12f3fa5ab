//! Where a thread's state is kept, as the code of CPython itself says.
//!
//! The functions that ask for the state ([`Function`]) are carried out symbolically, on all their paths: registers and stack
//! hold a base and bytes added to it, and what reaches `PyThread_tss_get`, `pthread_getspecific` or a thread-local access is
//! looked at there. So it does not matter which registers a compiler chose, in which order it added, or what it inlined.
//!
//! One function is evidence, two that agree are needed ([`derive()`]), and a single changed byte in one of them cannot lead to
//! another place: the others contradict.

mod aarch64;
pub(crate) mod callee;
mod evaluate;
mod finding;
pub(crate) mod machine;
mod refusal;
pub(crate) mod state;
mod texts;
pub(crate) mod value;
mod walk;
mod x86_64;

pub use evaluate::evaluate;
pub use finding::{Finding, Form, Function, Instruction, KeyOf, Kind, Location, Place, Subject, ThreadLocal};
pub use refusal::{CodeRefusal, FunctionRefusal, Refused};
pub(crate) use texts::texts;
pub use value::Access;

use crate::file::PythonFile;

/// Where a thread's state is kept, and what says so.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Derived {
    /// The place. A key's [`KeyOf`] is decided.
    pub place: Place,
    /// The functions that agree; at least one.
    pub findings: Vec<Finding>,
    /// The functions that say nothing.
    pub refused: Vec<Refused>,
}

impl Derived {
    /// Whether more than one function says so. One is enough if the others are not there or ask for nothing.
    pub fn is_confirmed(&self) -> bool {
        self.findings.len() > 1
    }
}

/// Finds out where a thread's state is kept.
///
/// # Errors
/// One [`CodeRefusal`] for each reason why the code does not tell.
pub fn derive(file: &PythonFile<'_>) -> Result<Derived, CodeRefusal> {
    conclude(file, Function::ALL.map(|function| evaluate(file, function)))
}

/// Finds out where a thread's state is kept from what each function says.
///
/// # Errors
/// One [`CodeRefusal`] for each reason why they do not tell.
pub fn conclude(
    file: &PythonFile<'_>,
    said: impl IntoIterator<Item = Result<Finding, Refused>>,
) -> Result<Derived, CodeRefusal> {
    let (mut findings, mut refused) = (Vec::new(), Vec::new());
    for said in said {
        match said {
            Ok(finding) => findings.push(finding),
            Err(reason) => refused.push(reason),
        }
    }
    let Some(first) = findings.first() else { return Err(CodeRefusal::Silent { refused }) };
    let contradicts = |finding: &Finding| findings.iter().any(|other| !other.place.agrees(&finding.place));
    if findings.iter().any(contradicts) {
        return Err(CodeRefusal::Contradiction { findings });
    }
    if findings.len() == 1 && !refused.iter().all(Refused::is_silent) {
        return Err(CodeRefusal::Unconfirmed { finding: Box::new(first.clone()), refused });
    }
    let place = match first.place {
        Place::Key { at, .. } => match key_of(file, &findings) {
            Some(of) => Place::Key { at, of },
            None => return Err(CodeRefusal::KeyOfWhat { findings }),
        },
        place => place,
    };
    Ok(Derived { place, findings, refused })
}

/// What the key is part of: what a function says, or else what CPython's version says (3.7 introduced `Py_tss_t`).
fn key_of(file: &PythonFile<'_>, findings: &[Finding]) -> Option<KeyOf> {
    let said = findings.iter().find_map(|finding| match finding.place {
        Place::Key { of, .. } if of != KeyOf::Either => Some(of),
        _ => None,
    });
    said.or_else(|| {
        let version = file.identify()?.version.ok()?;
        Some(if (version.major, version.minor) < (3, 7) { KeyOf::Int } else { KeyOf::Tss })
    })
}
