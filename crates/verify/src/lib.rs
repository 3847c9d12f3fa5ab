//! Independent judges of native stacks.
//!
//! * [`native`]: rows and live programs in one run.
//! * [`rows`]: every instruction of a file, our rule against framehop's.
//! * [`live`]: whole stacks of running programs, our walk against framehop's.
//! * [`edges`]: every instruction of a run of a program, our walk against the calls that were made.
//! * [`frames`]: every instruction of a CPython's eval loop, our walk against itself one instruction before.

pub mod edges;
pub mod frames;
pub mod live;
pub mod native;
pub mod rows;
