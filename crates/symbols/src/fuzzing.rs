//! Doors for the fuzz targets, of which nothing else knows.

use std::fs::File;

use crate::{PerfMap, PerfMapError};

/// A perf map of which only the file matters.
///
/// # Errors
/// [`PerfMapError::NotRead`].
pub fn perf_map(file: File) -> Result<PerfMap, PerfMapError> {
    PerfMap::read_from(file, "/tmp/perf.map".into())
}

/// How many ranges of a perf map have names.
pub fn ranges(map: &PerfMap) -> usize {
    map.ranges()
}
