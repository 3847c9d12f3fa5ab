//! What can be true of `truth.py`: who calls whom in it.

use super::stacks::Stack;

/// Caller and callee: all that there are while it works.
const CALLS: [(&str, &str); 20] = [
    ("<module>", "gate_run"),
    ("gate_run", "work"),
    ("work", "alternate"),
    ("alternate", "a"),
    ("a", "a_leaf"),
    ("alternate", "b"),
    ("b", "b_leaf"),
    ("alternate", "c"),
    ("c", "c_inner"),
    ("c_inner", "c_leaf"),
    ("alternate", "d"),
    ("d", "d"),
    ("d", "d_leaf"),
    ("alternate", "e"),
    ("e", "e_generator"),
    ("e_generator", "e_leaf"),
    ("alternate", "f"),
    ("f", "f_leaf"),
    ("alternate", "g"),
    ("g", "g_key"),
];
/// `d` is called with 3, calls itself with one less, and at 0 its leaf.
const MOST_D: usize = 4;
/// Where every stack begins.
const ROOT: &str = "<module>";

/// Samples, and how many of them cannot be.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Verdict {
    /// All.
    pub samples: u64,
    /// With a caller and a callee that does not belong to it, or a recursion of another depth than it has.
    pub impossible: u64,
    /// That do not begin where the program does, but have Python functions.
    pub rootless: u64,
    /// Without any Python function.
    pub without_python: u64,
}

impl Verdict {
    /// On all stacks of a profile.
    pub fn on(stacks: &[Stack]) -> Verdict {
        let mut verdict = Verdict::default();
        for stack in stacks {
            verdict.samples += stack.count;
            let of = |is: bool| if is { stack.count } else { 0 };
            verdict.impossible += of(is_impossible(&stack.python));
            verdict.rootless += of(stack.python.first().is_some_and(|first| first != ROOT));
            verdict.without_python += of(stack.python.is_empty());
        }
        verdict
    }
}

fn is_impossible(python: &[String]) -> bool {
    let is_call = |pair: &[String]| CALLS.iter().any(|(caller, callee)| pair[0] == *caller && pair[1] == *callee);
    let depth = python.iter().filter(|name| *name == "d").count();
    // at its leaf it is as deep as it gets, unless what is further out is missing
    let is_cut = python.first().is_some_and(|first| first != ROOT);
    let at_leaf = python.last().is_some_and(|last| last == "d_leaf");
    let wrong_depth = depth > MOST_D || at_leaf && depth < MOST_D && !is_cut;
    wrong_depth || !python.windows(2).all(is_call)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stack(frames: &str, count: u64) -> Stack {
        Stack { python: frames.split_whitespace().map(str::to_owned).collect(), others: 0, count }
    }

    #[test]
    fn each_error_is_counted_by_samples() {
        let begin = "<module> gate_run work alternate";
        let stacks = [
            stack(&format!("{begin} a a_leaf"), 100),
            stack(&format!("{begin} a b_leaf"), 1),
            stack(&format!("{begin} d d d d d_leaf"), 50),
            stack(&format!("{begin} d d d d_leaf"), 2),
            stack(&format!("{begin} d d d d d"), 4),
            stack(&format!("{begin} e e_leaf"), 8),
            stack("alternate c c_inner", 16),
            stack("d d_leaf", 32),
            stack("b_leaf alternate", 64),
            stack("", 128),
        ];
        let verdict = Verdict::on(&stacks);
        assert_eq!(verdict.samples, 150 + 1 + 2 + 4 + 8 + 16 + 32 + 64 + 128);
        assert_eq!(verdict.impossible, 1 + 2 + 4 + 8 + 64);
        assert_eq!(verdict.rootless, 16 + 32 + 64);
        assert_eq!(verdict.without_python, 128);
    }

    /// The script itself is the oracle: its functions are those that it defines, and every call in it is in its source.
    #[test]
    fn the_calls_are_those_of_the_script() {
        let source =
            concat!(include_str!("../../workloads/python/truth.py"), include_str!("../../workloads/python/gate.py"));
        let mut function = "<module>";
        let mut found = Vec::new();
        let names: Vec<&str> = source.lines().filter_map(|line| line.strip_prefix("def ")?.split('(').next()).collect();
        for line in source.lines() {
            if let Some(begun) = line.strip_prefix("def ") {
                function = begun.split('(').next().expect("a name");
            } else {
                if !line.is_empty() && !line.starts_with(' ') {
                    function = "<module>";
                }
                let mut words = line.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').collect::<Vec<_>>();
                words.dedup();
                let called = |name: &&&str| line.contains(&format!("{name}(")) || line.contains(&format!("key={name}"));
                found.extend(
                    words.iter().filter(|word| names.contains(word)).filter(called).map(|name| (function, *name)),
                );
            }
        }
        found.retain(|(_, callee)| *callee != "gate_wait");
        found.sort_unstable();
        found.dedup();
        let mut calls = CALLS.to_vec();
        calls.sort_unstable();
        assert_eq!(found, calls);
    }
}
