//! Where things are.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde_json::Value;

use crate::command::{cargo, output};

/// The root of this checkout.
pub fn root() -> PathBuf {
    // cargo says at run time where this package is; the path at build time is one that a moved checkout no longer has
    let package =
        std::env::var_os("CARGO_MANIFEST_DIR").map_or_else(|| env!("CARGO_MANIFEST_DIR").into(), PathBuf::from);
    package.parent().map_or_else(|| package.clone(), Path::to_owned)
}

/// The directory into which cargo builds.
pub fn target() -> Result<PathBuf> {
    let metadata = output(cargo("metadata").args(["--no-deps", "--format-version=1"]))?;
    let metadata: Value = serde_json::from_str(&metadata).context("cargo metadata printed no JSON")?;
    metadata["target_directory"].as_str().map(PathBuf::from).context("cargo metadata named no target directory")
}
