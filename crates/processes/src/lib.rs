//! Which process maps which executable where, now and at any time of a recording.
//!
//! Two sources are put together:
//!
//! * **perf records** ([`Sideband`]): the kernel reports every executable mapping, name, fork, exec and exit in the
//!   order in which they happen, with times of `CLOCK_MONOTONIC`.
//! * **/proc** ([`Proc`]): what was there before the records began, and what records cannot tell (munmap, mremap).
//!
//! [`ProcessTable`] holds the result. Its state is that of the last event applied, so the state at time T is had by
//! applying the events up to T and no further.
//!
//! ```no_run
//! use processes::{Change, Options, ProcessTable, Scope, Sideband};
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let mut sideband = Sideband::open(&Options::default())?; // first, so that nothing falls between the two
//! let mut table = ProcessTable::new(Scope::All);
//! table.seed()?;
//! let mut events = Vec::new();
//! loop {
//!     sideband.wait(Some(std::time::Duration::from_millis(100)))?;
//!     sideband.drain(&mut events);
//!     for event in events.drain(..) {
//!         match table.apply(&event) {
//!             Change::Mapped { pid, range } => println!("{pid}: {:?} at {:x}", range.path, range.start),
//!             Change::Lost { .. } => println!("put right: {:?}", table.resync()?),
//!             _ => {}
//!         }
//!     }
//!     table.reap();
//!     table.take_gone();
//! }
//! # }
//! ```
//!
//! Process and thread ids are those of the pid namespace in which the events were opened and /proc was mounted;
//! [`namespaces`] tells whether that is the initial one.
//!
//! # What the kernel does not report
//! * `munmap`, and mappings without execute permission: a stale range stays until another executable mapping takes
//!   its place or [`ProcessTable::rescan`] drops it. No code runs there, so no sample falls into it.
//! * `mremap` of an executable range: the new place is unknown until a rescan or
//!   [`ProcessTable::find_unreported`].
//! * Mappings by another task that shares the memory (between `vfork` and exec): reported for the task that made them.

pub mod access;
pub mod build_id;
mod clock;
mod comm;
mod cpus;
mod identity;
pub mod maps;
pub mod memory;
pub mod namespaces;
pub mod object_file;
mod proc;
mod process;
mod range;
mod ranges;
pub mod records;
pub mod ring;
mod scan;
mod seed;
mod sideband;
pub mod stat;
mod table;
pub mod target;
pub mod thread_pointer;

pub use clock::monotonic_ns;
pub use comm::Comm;
pub use cpus::{CpuListError, online_cpus};
pub use identity::{BuildId, FileIdentity};
pub use proc::Proc;
pub use process::{Origin, ProcessState};
pub use range::{MappedRange, RangeKind};
pub use ranges::{MAX_RANGES, RangeSet, RangesFull};
pub use records::{Event, TimedEvent};
pub use seed::{Rescan, Resync, Seeded};
pub use sideband::{Drained, OpenError, Options, Sideband};
pub use table::{Change, ProcessTable, Scope};
