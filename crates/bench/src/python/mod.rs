//! What recordings of Python cost and how far they are right, beside profilers that only do Python.

mod cost;
mod errors;
mod interpreters;
mod own_cpu;
mod peers;
mod scripts;
mod slowdown;
mod stacks;
mod truth;

use std::path::PathBuf;

use anyhow::Result;

use crate::bench::Bench;
use crate::measures::Measure;
use crate::profiler::{PySpy, Tool};
use interpreters::Interpreter;
use peers::Peers;
use scripts::Scripts;

/// Those of `python`, in the order of the report.
pub const MEASURES: [Measure<PythonBench>; 4] = [
    Measure { name: "frames", take: cost::take },
    Measure { name: "slowdown", take: slowdown::take },
    Measure { name: "errors", take: errors::take },
    Measure { name: "own-cpu", take: own_cpu::take },
];

/// A series of measurements of Python programs.
pub struct PythonBench {
    bench: Bench,
    interpreters: Vec<Interpreter>,
    scripts: Scripts,
    peers: Peers,
}

impl PythonBench {
    /// With these interpreters, or some of the machine's; other profilers are kept in `peers`.
    ///
    /// # Errors
    /// If an interpreter does not run, or there is none.
    pub fn new(bench: Bench, interpreters: &[PathBuf], peers: &std::path::Path) -> Result<PythonBench> {
        let interpreters = interpreters::choose(interpreters)?;
        let scripts = Scripts::write(&bench.directory)?;
        Ok(PythonBench { bench, interpreters, scripts, peers: Peers::get(peers) })
    }

    /// What a reader must know of them.
    pub fn conditions(&self) -> Vec<(&'static str, String)> {
        let interpreters: Vec<String> = self.interpreters.iter().map(ToString::to_string).collect();
        vec![("interpreters", interpreters.join(", ")), ("beside, for Python", self.peers.describe())]
    }

    /// All profilers that are compared.
    fn tools(&self) -> Vec<Tool> {
        let spy = |how| self.peers.py_spy.as_ref().ok().map(|path| Tool::PySpy(path.clone(), how));
        let mut tools = vec![self.bench.ours()];
        tools.extend([PySpy::Plain, PySpy::Native, PySpy::Nonblocking].into_iter().filter_map(spy));
        tools.extend(self.peers.austin.as_ref().ok().cloned().map(Tool::Austin));
        tools
    }

    /// The one that profilers are compared on.
    fn compared(&self) -> &Interpreter {
        let middle = |interpreter: &&Interpreter| interpreter.minor == COMPARED;
        // there is one: see `choose`
        self.interpreters.iter().find(middle).unwrap_or(&self.interpreters[self.interpreters.len() - 1])
    }
}

/// The minor version that all compared profilers know.
const COMPARED: u32 = 12;
