//! Output formats, a file each. They know the model of a profile and nothing else.
//!
//! | format | file | for |
//! |---|---|---|
//! | [`html`] | `.html` | a browser, offline; the most complete view |
//! | [`svg`] | `.svg` | a browser or a document: the picture people know as flame graph |
//! | [`speedscope`] | `.json` | <https://www.speedscope.app> |
//! | [`pprof`] | `.pb.gz`, `.pb`, `.pprof` (gzipped all the same) | `go tool pprof` and what else reads its format |
//! | [`folded`] | `.folded`, `.collapsed` | scripts, `grep`, other flame graph tools |
//!
//! [`Output`] writes a file in the format that its name says:
//!
//! ```
//! use formats::Output;
//! # let directory = tempfile::tempdir()?;
//! # let path = directory.path().join("profile.folded");
//! let output = Output::create(&path)?; // fails now if it would fail then
//! let profile = profile::Builder::default().finish();
//! output.finish(&profile)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! [`svg`] uses the library inferno, unmodified, which is under the CDDL-1.0; see there.

mod comments;
mod error;
mod escape;
pub mod folded;
mod format;
pub mod html;
mod output;
pub mod pprof;
pub mod speedscope;
pub mod svg;
mod tree;
mod unfinished;

pub use error::Error;
pub use format::Format;
pub use output::Output;
