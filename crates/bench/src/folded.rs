//! Reading folded stacks: `process;root;...;leaf count`.

use std::path::Path;

use anyhow::{Context, Result};

/// A stack and how often it was seen.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Folded {
    /// Process or thread first, then frames from the root to the leaf.
    pub frames: Vec<String>,
    /// Samples.
    pub count: u64,
}

/// Reads a file.
///
/// # Errors
/// If it is not there or not folded.
pub fn read(path: &Path) -> Result<Vec<Folded>> {
    let text = std::fs::read_to_string(path).with_context(|| path.display().to_string())?;
    text.lines().map(|line| parse(line).with_context(|| format!("not a folded stack: {line:?}"))).collect()
}

/// Reads a line; `None` if it is not folded.
pub fn parse(line: &str) -> Option<Folded> {
    let (stack, count) = line.rsplit_once(' ')?;
    Some(Folded { frames: stack.split(';').map(str::to_owned).collect(), count: count.parse().ok()? })
}

/// Behind the name of a kernel function.
const KERNEL: &str = "_[k]";

/// Frames that a sample has on average, without its process and the kernel's; `None` without samples.
pub fn mean_user_frames(stacks: &[Folded]) -> Option<f64> {
    let samples: u64 = stacks.iter().map(|stack| stack.count).sum();
    let of = |stack: &Folded| stack.frames.iter().skip(1).filter(|frame| !frame.ends_with(KERNEL)).count() as u64;
    let frames: u64 = stacks.iter().map(|stack| stack.count * of(stack)).sum();
    (samples > 0).then(|| frames as f64 / samples as f64)
}

/// The lowest number behind `prefix` among all frames.
pub fn lowest(stacks: &[Folded], prefix: &str) -> Option<u32> {
    let frames = stacks.iter().flat_map(|stack| &stack.frames);
    frames.filter_map(|frame| frame.strip_prefix(prefix)?.get(..3)?.parse().ok()).min()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stacks(text: &str) -> Vec<Folded> {
        text.lines().map(|line| parse(line).expect("folded")).collect()
    }

    #[test]
    fn names_may_have_spaces() {
        let parsed = parse("my tool;main;operator new(unsigned long) 12").expect("folded");
        assert_eq!(parsed.frames, ["my tool", "main", "operator new(unsigned long)"]);
        assert_eq!(parsed.count, 12);
        assert_eq!(parse("main;f"), None);
    }

    #[test]
    fn depth_and_phases() {
        let stacks = stacks("p;main;phase_017 3\np;main;phase_009;clock [vdso];tick_[k];run_[k] 1\n");
        assert_eq!(mean_user_frames(&stacks), Some(2.25));
        assert_eq!(lowest(&stacks, "phase_"), Some(9));
        assert_eq!(lowest(&stacks, "leaf_"), None);
        assert_eq!(mean_user_frames(&[]), None);
    }
}
