//! The interpreters of a process: found by what its files are, examined, and proven on its threads.

use std::collections::BTreeMap;
use std::time::Duration;

use abi::process::Mapping;
use inspect::{Files, MappedFile};
use objects::Image;
use processes::memory::ProcessMemory;
use python::file::{Architecture, PythonFile};
use python::prove::{Thread, prove};
use python::slot::LibrarySearch;
use python::way::Library;
use python::{Noted, Ready, Refusal, Subject, Version, examine};

use super::report;

/// An interpreter that is not ready is looked at again, so often, and after this time.
const TRIES: u32 = 10;
const PAUSE: Duration = Duration::from_millis(100);

const CPYTHON: &str = "CPython";

/// Copies of a file that are looked at, at most.
const MAX_COPIES: usize = 8;

/// A file of the process, in memory.
struct Loaded<'a> {
    mapped: &'a MappedFile,
    image: Image,
    /// Address in the process less address in the file; several if it is mapped several times. The one by which most is
    /// mapped comes first.
    biases: Vec<u64>,
}

/// An interpreter, as far as it got.
pub(super) struct Found {
    runtime: &'static str,
    file: String,
    build_id: Option<String>,
    version: Option<Version>,
    steps: Vec<Noted>,
    result: Result<Ready, Refusal>,
}

/// Finds and examines the interpreters of a process, and proves them on these threads. If none is ready but one may be soon, it
/// is waited for a little.
pub(super) fn find(files: &Files, memory: &ProcessMemory, threads: &[Thread]) -> Vec<Found> {
    let loaded = load(files);
    let parsed: Vec<(&Loaded<'_>, PythonFile<'_>)> =
        loaded.iter().filter_map(|loaded| Some((loaded, PythonFile::parse(loaded.image.bytes()).ok()?))).collect();
    let mut found = find_once(&parsed, memory, threads);
    for _ in 1..TRIES {
        let may_be_soon = |found: &Found| found.result.as_ref().is_err_and(Refusal::may_pass);
        if found.iter().any(|found| found.result.is_ok()) || !found.iter().any(may_be_soon) {
            break;
        }
        std::thread::sleep(PAUSE);
        found = find_once(&parsed, memory, threads);
    }
    found
}

fn find_once(parsed: &[(&Loaded<'_>, PythonFile<'_>)], memory: &ProcessMemory, threads: &[Thread]) -> Vec<Found> {
    let mut libc = None;
    let mut found = Vec::new();
    for (loaded, file) in parsed {
        let Some(identity) = file.identify() else {
            found.extend(unidentified(loaded, file));
            continue;
        };
        let libc = libc.get_or_insert_with(|| libc_of(parsed, file.architecture())).clone();
        let copies = loaded.biases.iter().map(|bias| {
            let subject = Subject { file, identity: &identity, bias: *bias, memory, libc: libc.clone() };
            examine_and_prove(loaded, &subject, threads)
        });
        found.extend(living(copies.collect()));
    }
    found
}

/// A file that is Python, but not a CPython whose symbols can be found.
fn unidentified(loaded: &Loaded<'_>, file: &PythonFile<'_>) -> Option<Found> {
    let (runtime, refusal) = if file.symbol("PyPy_GetVersion").is_some() {
        ("PyPy", Refusal::OtherImplementation("PyPy"))
    } else {
        // CPython's own since 3.10; stripping leaves the names of sections
        file.runtime_section()?;
        (CPYTHON, Refusal::NoSymbol { symbol: "_PyRuntime" })
    };
    Some(Found {
        runtime,
        file: loaded.mapped.path.clone(),
        build_id: loaded.mapped.build_id.clone(),
        version: None,
        steps: Vec::new(),
        result: Err(refusal),
    })
}

/// Of several copies of a file those that are alive: one may be mapped as data, or be loaded beside it by mistake.
fn living(copies: Vec<Found>) -> Vec<Found> {
    let (proven, refused): (Vec<Found>, Vec<Found>) = copies.into_iter().partition(|found| found.result.is_ok());
    match proven.is_empty() {
        true => refused.into_iter().take(1).collect(),
        false => proven,
    }
}

fn load(files: &Files) -> Vec<Loaded<'_>> {
    let loaded = files.iter().filter_map(|(mapped, mappings)| {
        let image = Image::open(mapped.file.as_ref().ok()?.file()).ok()?;
        let biases = biases(&image, &mappings);
        Some(Loaded { mapped, image, biases })
    });
    loaded.collect()
}

fn biases(image: &Image, mappings: &[&Mapping]) -> Vec<u64> {
    let mut bytes: BTreeMap<u64, u64> = BTreeMap::new();
    for mapping in mappings {
        if let Some(bias) = image.load_bias(mapping.begin, mapping.file_offset) {
            *bytes.entry(bias).or_default() += mapping.end - mapping.begin;
        }
    }
    let mut biases: Vec<(u64, u64)> = bytes.into_iter().collect();
    biases.sort_by_key(|(_, bytes)| std::cmp::Reverse(*bytes));
    biases.into_iter().map(|(bias, _)| bias).take(MAX_COPIES).collect()
}

/// What keeps the values of threads: the C library, or a static program.
fn libc_of(parsed: &[(&Loaded<'_>, PythonFile<'_>)], architecture: Architecture) -> Result<Library, Refusal> {
    let mut search = LibrarySearch::default();
    parsed.iter().for_each(|(loaded, _)| search.look_at(loaded.mapped.path.as_ref(), loaded.image.bytes()));
    Library::found(search.result(), architecture)
}

fn examine_and_prove(loaded: &Loaded<'_>, subject: &Subject<'_, '_, ProcessMemory>, threads: &[Thread]) -> Found {
    let mut examined = examine(subject);
    let result = examined.result.and_then(|ready| {
        examined.steps.push(prove(&ready, subject.memory, threads)?);
        Ok(ready)
    });
    Found {
        runtime: CPYTHON,
        file: loaded.mapped.path.clone(),
        build_id: loaded.mapped.build_id.clone(),
        version: examined.version,
        steps: examined.steps,
        result,
    }
}

impl Found {
    /// What stacks can be taken with.
    pub(super) fn ready(&self) -> Option<&Ready> {
        self.result.as_ref().ok()
    }

    pub(super) fn report(&self) -> report::Interpreter {
        let steps = self.steps.iter().map(|noted| report::Step {
            name: noted.step.name(),
            result: noted.result.clone(),
            evidence: noted.evidence.clone(),
        });
        let refusal = self.result.as_ref().err().map(|refusal| report::Refusal {
            name: refusal.name(),
            step: refusal.step().name(),
            cause: refusal.to_string(),
            remedy: refusal.remedy().to_owned(),
        });
        report::Interpreter {
            runtime: self.runtime,
            version: self.version.map(|version| version.to_string()),
            file: self.file.clone(),
            build_id: self.build_id.clone(),
            steps: steps.collect(),
            refusal,
        }
    }
}
