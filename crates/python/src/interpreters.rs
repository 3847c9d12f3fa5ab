//! The interpreters of a process: found by what its files are, examined, and proven on its threads.
//!
//! What depends on a file is read once and kept in a [`Cache`]; what depends on the process takes a few reads of its memory, and
//! stops a few of its threads for a moment each.

mod cache;
mod file;
mod mapped;
mod status;
mod threads;

use std::sync::Arc;

use processes::maps::{self, MapsEnd, Wanted};
use processes::memory::{MemoryProblem, ProcessMemory};
use processes::{BuildId, MAX_RANGES, MappedRange, Proc};

use crate::eval_loop::{EvalLoop, EvalLoopRefusal};
use crate::facts::{Implementation, PythonFacts};
use crate::prove::{Effort, prove};
use crate::slot::LibrarySearch;
use crate::way::Library;
use crate::{Noted, Ready, Refusal, Subject, Version, examine};
pub use cache::Cache;
pub use file::{FileFacts, FileKey};
use mapped::{Mapped, mapped_files};
pub use threads::Threads;

const CPYTHON: &str = "CPython";

/// An interpreter of a process, as far as it got.
#[derive(Clone, Debug)]
pub struct Found {
    /// `CPython` or `PyPy`.
    pub runtime: &'static str,
    /// Its file, as the process sees it.
    pub path: String,
    /// Which file that is.
    pub file: FileKey,
    /// The file's build-id.
    pub build_id: Option<BuildId>,
    /// The version, if it is known.
    pub version: Option<Version>,
    /// What was found out, in order.
    pub steps: Vec<Noted>,
    /// What came of it.
    pub result: Result<Interpreter, Refusal>,
}

/// An interpreter that was proven.
#[derive(Clone, Debug)]
pub struct Interpreter {
    /// What is known of it.
    pub ready: Ready,
    /// Address in the process less address in the file.
    pub bias: u64,
    /// The native code of its eval loop.
    pub eval_loop: Result<Arc<EvalLoop>, EvalLoopRefusal>,
}

impl Found {
    /// Whether it may be otherwise in a moment: not initialised yet, no thread has a state yet, or none could be looked at.
    pub fn may_pass(&self) -> bool {
        self.result.as_ref().is_err_and(|refusal| refusal.may_pass() || *refusal == Refusal::NoThread)
    }
}

/// Why it cannot be said which interpreters a process has.
#[derive(Debug, thiserror::Error)]
pub enum ProcessProblem {
    /// Its memory cannot be had.
    #[error(transparent)]
    Memory(#[from] MemoryProblem),
    /// Its mappings cannot be read.
    #[error("the mappings of process {pid} cannot be read: {end:?}")]
    Mappings {
        /// The process.
        pid: u32,
        /// How reading them ended.
        end: MapsEnd,
    },
    /// It has ended, or runs another program, since it was begun to be looked at.
    #[error("process {pid} has ended or replaced its program while it was looked at")]
    Replaced {
        /// The process.
        pid: u32,
    },
}

/// The interpreters of a process, examined and proven. None if it maps no Python.
///
/// # Errors
/// If it is gone or cannot be looked into.
pub fn of_process(cache: &Cache, pid: u32, effort: &Effort) -> Result<Vec<Found>, ProcessProblem> {
    let memory = ProcessMemory::open(pid)?;
    let (ranges, end) = maps::read(&Proc::system(), pid, Wanted::Executable, MAX_RANGES);
    if !matches!(end, MapsEnd::Complete | MapsEnd::TooMany) {
        return Err(ProcessProblem::Mappings { pid, end });
    }
    let process = Process::new(cache, &memory, &ranges);
    if !process.has_python() {
        return Ok(Vec::new());
    }
    let found = process.find(&mut Threads::of_process(pid, *effort));
    match process.is_replaced() {
        true => Err(ProcessProblem::Replaced { pid }),
        false => Ok(found),
    }
}

/// A process whose files are known.
pub struct Process<'a> {
    memory: &'a ProcessMemory,
    files: Vec<Mapped<'a>>,
}

impl<'a> Process<'a> {
    /// Looks up what its files are. `ranges` are sorted, as in /proc/PID/maps, those that can be executed at least.
    pub fn new(cache: &'a Cache, memory: &'a ProcessMemory, ranges: &'a [MappedRange]) -> Process<'a> {
        Process { memory, files: mapped_files(cache, memory.pid(), ranges) }
    }

    /// Whether it maps a Python.
    pub fn has_python(&self) -> bool {
        self.files.iter().any(|mapped| mapped.facts.implementation().is_some())
    }

    /// Whether the program that it ran is gone: nothing of its memory can be read any more.
    fn is_replaced(&self) -> bool {
        self.files.first().is_some_and(|mapped| self.memory.read(mapped.begin(), &mut [0]).is_err())
    }

    /// Examines its interpreters, and proves them on threads: on more if the first of them show nothing.
    pub fn find(&self, threads: &mut Threads) -> Vec<Found> {
        let mut found = Vec::new();
        for mapped in &self.files {
            match mapped.facts.implementation() {
                None => {}
                Some(Implementation::CPython(facts)) => found.extend(self.living(mapped, facts, threads)),
                Some(Implementation::Stripped) => {
                    found.push(refused(mapped, CPYTHON, Refusal::NoSymbol { symbol: "_PyRuntime" }));
                }
                Some(Implementation::PyPy) => {
                    found.push(refused(mapped, "PyPy", Refusal::OtherImplementation("PyPy")));
                }
            }
        }
        found
    }

    /// Of several copies of a file those that are alive: one may be mapped as data, or be loaded beside it by mistake.
    fn living(&self, mapped: &Mapped<'_>, facts: &PythonFacts, threads: &mut Threads) -> Vec<Found> {
        let libc = self.libc(facts);
        let copies = mapped.biases().into_iter().map(|bias| {
            let subject = Subject { facts, bias, memory: self.memory, libc: libc.clone() };
            examine_and_prove(mapped, &subject, threads)
        });
        let (proven, refused): (Vec<Found>, Vec<Found>) = copies.partition(|found| found.result.is_ok());
        match proven.is_empty() {
            true => refused.into_iter().take(1).collect(),
            false => proven,
        }
    }

    /// What keeps the values of threads: the C library, or a static program.
    fn libc(&self, facts: &PythonFacts) -> Result<Library, Refusal> {
        let mut search = LibrarySearch::default();
        for mapped in &self.files {
            if let Some(said) = mapped.slots() {
                search.note(mapped.path().as_ref(), said.clone());
            }
        }
        Library::found(search.result(), facts.architecture)
    }
}

fn refused(mapped: &Mapped<'_>, runtime: &'static str, refusal: Refusal) -> Found {
    Found {
        runtime,
        path: mapped.path(),
        file: mapped.key,
        build_id: mapped.facts.build_id(),
        version: None,
        steps: Vec::new(),
        result: Err(refusal),
    }
}

fn examine_and_prove(mapped: &Mapped<'_>, subject: &Subject<'_, ProcessMemory>, threads: &mut Threads) -> Found {
    let mut examined = examine(subject);
    let result = examined.result.and_then(|ready| {
        examined.steps.push(prove_on(&ready, subject.memory, threads)?);
        Ok(Interpreter { ready, bias: subject.bias, eval_loop: subject.facts.eval_loop.clone() })
    });
    Found {
        runtime: CPYTHON,
        path: mapped.path(),
        file: mapped.key,
        build_id: mapped.facts.build_id(),
        version: examined.version,
        steps: examined.steps,
        result,
    }
}

fn prove_on(ready: &Ready, memory: &ProcessMemory, threads: &mut Threads) -> Result<Noted, Refusal> {
    let effort = *threads.effort();
    loop {
        match prove(ready, memory, threads.known(), &effort) {
            Err(Refusal::NoState { .. }) if threads.ask_more() => {}
            result => return result,
        }
    }
}
