//! Puts it together: loads the BPF programs, keeps their maps in step with processes, drains them, and makes a profile
//! of what comes.
//!
//! [`Recording::start`] begins, [`Recording::step`] does the work that has come up (call it in a loop),
//! [`Recording::finish`] ends. All of it runs on the calling thread; only unwind tables are made by others.

mod arena;
mod bpf_object;
mod btf;
mod builders;
mod collector;
mod counts;
mod deferred;
mod evidence;
mod exits;
#[cfg(fuzzing)]
#[doc(hidden)]
pub mod fuzzing;
mod interpreters;
mod known_objects;
mod load;
mod mapped;
pub mod probe;
mod process_map;
mod python_map;
mod pythons;
mod recording;
mod ring;
mod ring_positions;
mod runs;
mod sampling;
mod stacks;
mod tables;
mod workers;

pub use arena::ArenaError;
pub use bpf_object::ObjectError;
pub use btf::BtfError;
pub use collector::{ProcessInfo, Troubles};
pub use evidence::{Evidence, Witness};
pub use load::LoadError;
pub use objects::default_directory as cache_directory;
pub use processes::OpenError;
pub use processes::namespaces::in_initial_pid_namespace;
pub use processes::target::{TargetProblem, check_target};
pub use recording::{Finished, NoTable, Options, Progress, Recording, StartError, Target};
pub use sampling::{Event, SamplingError};
