//! Executable files: who they are, where their code lies, and how to unwind through it.
//!
//! [`Image`] reads the headers of an executable: architecture, build-id, segments, load bias. [`UnwindTable`] turns its
//! `.eh_frame` into the rows, pages and rules of [`abi::table`], keyed by file offset. [`Cache`] keeps finished tables on
//! disk by build-id, or by place and change time.
//!
//! ```no_run
//! let file = std::fs::File::open("/usr/bin/true")?;
//! let image = objects::Image::open(&file)?;
//! let table = objects::UnwindTable::build(&image)?;
//! println!("{} rows; at 0x1234: {}", table.rows.len(), table.explain(0x1234));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Every byte of a file is taken as hostile: each read is bounded by the file, each count by a constant of
//! [`limits`], and what cannot be decoded costs one function, or gives a named error.
//!
//! The call frame information is decoded here and not by gimli, for three reasons: gimli refuses augmentations that it
//! does not know (among them `B`, pointer authentication on aarch64: all functions of such a file would be lost), it
//! keeps every register where two are needed, and its `remember_state` stack is either shallow or unbounded. gimli is an
//! oracle of the tests.

mod architecture;
mod bolt;
mod build;
mod cache;
mod derived;
mod entry;
mod error;
pub mod exits;
mod explain;
mod frames;
mod functions;
#[cfg(fuzzing)]
#[doc(hidden)]
pub mod fuzzing;
mod gopclntab;
mod identity;
mod image;
pub mod limits;
mod padding;
mod pages;
mod plt;
mod realign;
mod rules;
mod segments;
mod sigreturn;
mod stats;
mod table;

pub use architecture::Architecture;
pub use cache::{Cache, CacheKey, Pruned, default_directory};
pub use error::{BuildError, CacheError, ImageError};
pub use explain::describe;
pub use functions::{EhFrame, Function, Functions};
pub use image::Image;
pub use padding::is_padding;
pub use segments::{Segment, load_bias};
pub use stats::TableStats;
pub use table::UnwindTable;
