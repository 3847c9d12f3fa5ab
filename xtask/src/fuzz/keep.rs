//! `--keep`: the committed corpus, made anew of itself and of what was found.
//!
//! Files with names of their own are real inputs, or once made a target crash: they stay. Files with hashes for names
//! were found; of these, the smallest are kept that reach what no other file reaches.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use super::places::{self, Places};
use super::session;
use crate::command;

/// Bytes of found inputs that are kept for a target: a corpus is committed, and the rest is found again.
const MAX_BYTES: u64 = 16 << 10;
/// So many files at most.
const MAX_FILES: usize = 120;

/// Makes the corpus of a target anew.
pub fn keep(target: &str, places: &Places) -> Result<()> {
    let corpus = places::corpus(target);
    std::fs::create_dir_all(&corpus).with_context(|| format!("{} cannot be made", corpus.display()))?;
    let merged = places::scratch()?;
    let named = files(&corpus)?.into_iter().filter(|(path, _)| !is_found(path));
    for (path, _) in named {
        copy(&path, merged.path())?;
    }
    let scratch = places::scratch()?;
    let mut merge = session::command(places, target)?;
    merge.args(["-merge=1", "-verbosity=0"]).arg(merged.path()).arg(&corpus).arg(places.finds(target)?);
    command::run(merge.env("TMPDIR", scratch.path()))?;
    let found: Vec<_> = files(merged.path())?.into_iter().filter(|(path, _)| is_found(path)).collect();
    let kept = smallest(found);
    for (path, _) in files(&corpus)?.into_iter().filter(|(path, _)| is_found(path)) {
        std::fs::remove_file(&path).with_context(|| format!("{} cannot be removed", path.display()))?;
    }
    for (path, _) in &kept {
        copy(path, &corpus)?;
    }
    let bytes: u64 = kept.iter().map(|(_, size)| size).sum();
    println!("{target}: {} found inputs of {bytes} bytes are in {}", kept.len(), corpus.display());
    Ok(())
}

/// The files of a directory and their sizes.
fn files(directory: &Path) -> Result<Vec<(PathBuf, u64)>> {
    let mut files = Vec::new();
    let failed = || format!("{} cannot be read", directory.display());
    for entry in std::fs::read_dir(directory).with_context(failed)? {
        let entry = entry.with_context(failed)?;
        files.push((entry.path(), entry.metadata().with_context(failed)?.len()));
    }
    Ok(files)
}

/// libFuzzer names inputs by their SHA-1.
fn is_found(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().as_encoded_bytes();
    name.len() == 40 && name.iter().all(|byte| byte.is_ascii_hexdigit())
}

/// The smallest files that fit.
fn smallest(mut files: Vec<(PathBuf, u64)>) -> Vec<(PathBuf, u64)> {
    files.sort_by(|(a, a_size), (b, b_size)| (a_size, a).cmp(&(b_size, b)));
    let mut left = MAX_BYTES;
    let fits = |(_, size): &(PathBuf, u64)| {
        left = left.saturating_sub(*size);
        left > 0
    };
    files.into_iter().take(MAX_FILES).take_while(fits).collect()
}

fn copy(file: &Path, directory: &Path) -> Result<()> {
    let to = directory.join(file.file_name().unwrap_or_default());
    std::fs::copy(file, &to).with_context(|| format!("{} cannot be written", to.display()))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_are_found_inputs() {
        assert!(is_found(Path::new("/c/da39a3ee5e6b4b0d3255bfef95601890afd80709")));
        assert!(!is_found(Path::new("/c/stripped-program")));
        assert!(!is_found(Path::new("/c/xa39a3ee5e6b4b0d3255bfef95601890afd80709")));
    }

    #[test]
    fn the_smallest_are_kept_within_the_limits() {
        let files =
            |sizes: &[u64]| sizes.iter().map(|size| (PathBuf::from(size.to_string()), *size)).collect::<Vec<_>>();
        let sizes = |files: Vec<(PathBuf, u64)>| files.into_iter().map(|(_, size)| size).collect::<Vec<_>>();
        assert_eq!(sizes(smallest(files(&[9000, 5, 8000, 70]))), [5, 70, 8000]);
        assert_eq!(smallest(files(&[1; 500])).len(), MAX_FILES);
    }
}
