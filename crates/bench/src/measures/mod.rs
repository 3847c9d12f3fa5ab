//! One file per measure.

mod bpf_cost;
mod finish;
mod first_sample;
mod memory;
pub mod own_cpu;
mod slowdown;
mod tables;

use anyhow::Result;

use crate::bench::Bench;
use crate::report::Section;

/// A measure: its name on the command line, and how it is taken with a `B`.
pub struct Measure<B> {
    /// For `--only`.
    pub name: &'static str,
    /// Takes it.
    pub take: fn(&B) -> Result<Section>,
}

/// Those of `record`, in the order of the report.
pub const RECORD: [Measure<Bench>; 7] = [
    Measure { name: "bpf", take: bpf_cost::take },
    Measure { name: "slowdown", take: slowdown::take },
    Measure { name: "own-cpu", take: own_cpu::take },
    Measure { name: "memory", take: memory::take },
    Measure { name: "tables", take: tables::take },
    Measure { name: "first-sample", take: first_sample::take },
    Measure { name: "finish", take: finish::take },
];
