//! The parts of the judge: programs, their runs, the truth, the comparison.

pub(crate) mod code;
mod compile;
pub(crate) mod files;
mod judge;
mod memory;
pub(crate) mod places;
mod programs;
mod report;
mod runs;
mod shadow;
mod steps;
pub(crate) mod tracee;
pub(crate) mod world;

pub use compile::{CompileError, Compiled, compile};
pub use files::Alter;
pub use judge::{Fault, Verdict, judge};
pub use programs::{Program, Variant, programs};
pub use report::{Report, Run};
pub use runs::{Judge, run};
pub use shadow::{Frame, Returned, Shadow};
pub use steps::{Ended, Events, StepError};
