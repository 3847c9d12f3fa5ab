//! `--keep`: the committed corpus, made anew of itself and of what was found.
//!
//! Files with names of their own are real inputs, or once made a target crash: they stay. Files with hashes for names
//! were found; of these, few are kept that reach most of what all together reach.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use super::cover;
use super::places::{self, Places};
use super::session;
use crate::command;

/// Bytes of found inputs that are kept for a target: a corpus is committed, and the rest is found again.
const MAX_BYTES: u64 = 16 << 10;

/// Makes the corpus of a target anew.
pub fn keep(target: &str, places: &Places) -> Result<()> {
    let corpus = places::corpus(target);
    std::fs::create_dir_all(&corpus).with_context(|| format!("{} cannot be made", corpus.display()))?;
    let scratch = places::scratch()?;
    let named = scratch.path().join("named");
    std::fs::create_dir(&named).with_context(|| format!("{} cannot be made", named.display()))?;
    let (found, own): (Vec<_>, Vec<_>) = files(&corpus)?.into_iter().partition(|path| is_found(path));
    own.iter().try_for_each(|path| copy(path, &named))?;
    let control = scratch.path().join("control");
    let mut merge = session::command(places, target)?;
    // without counters, only what is reached counts and not how often
    merge.args(["-set_cover_merge=1", "-use_counters=0", "-verbosity=0"]);
    merge.arg(format!("-merge_control_file={}", control.display()));
    merge.arg(&named).arg(&corpus).arg(places.finds(target)?).env("TMPDIR", scratch.path());
    command::run(&mut merge)?;
    let text = std::fs::read_to_string(&control).with_context(|| format!("{} cannot be read", control.display()))?;
    let (named, all) = cover::read(&text).context("libFuzzer wrote a control file of another form")?;
    let kept = cover::choose(&named, all, MAX_BYTES);
    let put_by = scratch.path().join("kept");
    std::fs::create_dir(&put_by).with_context(|| format!("{} cannot be made", put_by.display()))?;
    kept.iter().try_for_each(|input| copy(&input.path, &put_by))?;
    for path in &found {
        std::fs::remove_file(path).with_context(|| format!("{} cannot be removed", path.display()))?;
    }
    files(&put_by)?.iter().try_for_each(|path| copy(path, &corpus))?;
    let bytes: u64 = kept.iter().map(|input| input.size).sum();
    println!("{target}: {} found inputs of {bytes} bytes are in {}", kept.len(), corpus.display());
    Ok(())
}

/// The files of a directory.
fn files(directory: &Path) -> Result<Vec<PathBuf>> {
    let failed = || format!("{} cannot be read", directory.display());
    let entries = std::fs::read_dir(directory).with_context(failed)?;
    entries.map(|entry| Ok(entry.with_context(failed)?.path())).collect()
}

/// libFuzzer names inputs by their SHA-1.
fn is_found(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().as_encoded_bytes();
    name.len() == 40 && name.iter().all(|byte| byte.is_ascii_hexdigit())
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
}
