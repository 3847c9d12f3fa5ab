//! The parts of the judge: the program that is run, its steps, the report.

mod report;
mod runs;
mod target;

pub use report::{Example, Report};
pub use runs::{judge, run};
pub use target::{StartError, Target};
