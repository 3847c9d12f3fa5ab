//! Independent judges of native stacks.
//!
//! * [`native`]: rows and live programs in one run.
//! * [`rows`]: every instruction of a file, our rule against framehop's.
//! * [`live`]: whole stacks of running programs, our walk against framehop's.
//! * [`edges`]: every instruction of a run of a program, our walk against the calls that were made.

pub mod edges;
pub mod live;
pub mod native;
pub mod rows;
