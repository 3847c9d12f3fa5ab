//! What can go wrong when a profile is written.

use std::io;
use std::path::PathBuf;

/// What can go wrong when a profile is written.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The writer that was handed in failed.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The name of a file does not say which format it is to have.
    #[error("{}: cannot tell the format by the name; it should end in one of: {known}", path.display())]
    UnknownExtension {
        /// The file.
        path: PathBuf,
        /// The known extensions.
        known: String,
    },
    /// Something stands at the path that a profile must not replace.
    #[error("{}: {what}", path.display())]
    Unsuitable {
        /// The file.
        path: PathBuf,
        /// What it is.
        what: &'static str,
    },
    /// A step of writing a file failed; no part of it was left behind.
    #[error("{}: cannot {step}: {source}", path.display())]
    File {
        /// The file that was to be written.
        path: PathBuf,
        /// The step.
        step: &'static str,
        /// Why.
        source: io::Error,
    },
}
