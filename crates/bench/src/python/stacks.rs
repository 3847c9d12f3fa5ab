//! Stacks of each profiler, and the Python functions in them.

use std::path::Path;

use anyhow::{Context, Result};

use crate::folded::{self, Folded};
use crate::profiler::Tool;

/// Where a script waits; see `gate.py`.
const WAITING: &str = "gate_wait";

/// A stack and how often it was seen, without what was waiting.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Stack {
    /// Python functions, root first.
    pub python: Vec<String>,
    /// Other frames, the kernel's and the process's name included.
    pub others: usize,
    /// Samples.
    pub count: u64,
}

/// Reads what a profiler has written.
///
/// # Errors
/// If it is not there, or in no form that this profiler has.
pub fn read(path: &Path, tool: &Tool) -> Result<Vec<Stack>> {
    let text = std::fs::read_to_string(path).with_context(|| path.display().to_string())?;
    parse(&text, tool)
}

fn parse(text: &str, tool: &Tool) -> Result<Vec<Stack>> {
    // austin has notes and empty lines
    let lines = text.lines().filter(|line| !line.is_empty() && !line.starts_with("# "));
    let mut stacks = Vec::new();
    for line in lines {
        let mut folded = folded::parse(line).with_context(|| format!("not a folded stack: {line:?}"))?;
        if matches!(tool, Tool::Austin(_)) {
            // a sample a line, with its time
            folded.count = 1;
        }
        let stack = Stack::of(&folded);
        if !stack.python.iter().any(|name| name == WAITING) {
            stacks.push(stack);
        }
    }
    Ok(stacks)
}

impl Stack {
    fn of(folded: &Folded) -> Stack {
        let python: Vec<String> = folded.frames.iter().filter_map(|frame| function(frame)).map(str::to_owned).collect();
        Stack { others: folded.frames.len() - python.len(), python, count: folded.count }
    }
}

/// The function of a Python frame, which py-spy and wholestack write as `function (file.py)`, py-spy with a line behind the
/// file, austin as `file.py:function:line`; `None` of a frame that is not Python's.
fn function(frame: &str) -> Option<&str> {
    if let Some((name, place)) = frame.strip_suffix(')').and_then(|frame| frame.rsplit_once(" (")) {
        let file = place.rsplit_once(':').map_or(place, |(file, _)| file);
        return file.ends_with(".py").then_some(name);
    }
    let (place, line) = frame.rsplit_once(':')?;
    let (file, name) = place.rsplit_once(':')?;
    (file.ends_with(".py") && line.parse::<u32>().is_ok()).then_some(name)
}

/// Samples of all.
pub fn samples(stacks: &[Stack]) -> u64 {
    stacks.iter().map(|stack| stack.count).sum()
}

/// How many frames a sample has on average, as `of` counts them; `None` without samples.
pub fn mean(stacks: &[Stack], of: impl Fn(&Stack) -> usize) -> Option<f64> {
    let frames: u64 = stacks.iter().map(|stack| stack.count * of(stack) as u64).sum();
    let samples = samples(stacks);
    (samples > 0).then(|| frames as f64 / samples as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profiler::PySpy;

    /// Lines as the profilers wrote them.
    #[test]
    fn every_profiler_is_read() {
        let ours = "python3;_start;main;<module> (truth.py);a (truth.py);[python: code object gone];a_leaf (truth.py);tick_[k] 4\n\
                    python3;_start;main;read_[k] 1\n";
        let ours = parse(ours, &Tool::Wholestack("ws".into())).expect("folded");
        assert_eq!(ours[0].python, ["<module>", "a", "a_leaf"]);
        assert_eq!((ours[0].others, ours[0].count), (5, 4));
        assert!(ours[1].python.is_empty());
        let spy = "0x7f9c7f64524a (libc.so.6);<module> (truth.py:113);a (truth.py:47);sorted (libpython3.12.so.1.0) 2\n\
                   <module> (truth.py);gate_run (gate.py);gate_wait (gate.py) 7\n";
        let spy = parse(spy, &Tool::PySpy("spy".into(), PySpy::Native)).expect("folded");
        assert_eq!(spy, [Stack { python: vec!["<module>".into(), "a".into()], others: 2, count: 2 }]);
        let austin = "# austin: 3.7.0\n# mode: wall\n\nP31;T0:31;/tmp/p y/truth.py:<module>:113;/tmp/p y/truth.py:a:47 22049\n\
                      # duration: 1226140\n";
        let austin = parse(austin, &Tool::Austin("austin".into())).expect("folded");
        assert_eq!(austin, [Stack { python: vec!["<module>".into(), "a".into()], others: 2, count: 1 }]);
        assert!(parse("no number\n", &Tool::PerfFp).is_err());
    }

    #[test]
    fn frames_of_other_code_are_no_functions() {
        for frame in
            ["main", "operator new(unsigned long)", "f (libpython3.12.so.1.0)", "std::x::y", "T0:31", "f (a.c:12)"]
        {
            assert_eq!(function(frame), None, "{frame}");
        }
        assert_eq!(function("a.<locals>.f (x) (b.py)"), Some("a.<locals>.f (x)"));
    }

    #[test]
    fn means_are_weighted() {
        let stack = |frames: usize, count| Stack { python: vec!["f".into(); frames], others: 1, count };
        let stacks = [stack(10, 3), stack(2, 1)];
        assert_eq!((samples(&stacks), mean(&stacks, |stack| stack.python.len())), (4, Some(8.0)));
        assert_eq!(mean(&[], |stack| stack.others), None);
    }
}
