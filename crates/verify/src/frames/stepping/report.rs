//! What came out, for readers and for programs.

use std::collections::BTreeMap;
use std::fmt;

use abi::python::Fault;
use serde::Serialize;

use crate::frames::continuity::Break;

/// Examples of one interpreter that are kept.
pub const EXAMPLES: usize = 8;

/// One of so many stacks may end at a frame that is being pushed. The most is in Debian's static 3.13.5, of whose eval loop two
/// instructions lie between where a frame is linked and where its shim is one: 34 of 40,000.
const ONE_OF: u64 = 500;

/// What came of one interpreter.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Report {
    /// What it is.
    pub name: String,
    /// Instructions that were executed.
    pub steps: u64,
    /// Stacks that were judged.
    pub judged: u64,
    /// Of those, taken in the eval loop.
    pub in_eval_loop: u64,
    /// Frames that came.
    pub pushed: u64,
    /// Frames that went.
    pub popped: u64,
    /// Most Python frames at a time.
    pub deepest: usize,
    /// Stacks that were not judged, since the native walk has not as many frames as calls were made: the file's unwind information is wrong
    /// there (tail calls that BOLT has merged).
    pub misled: u64,
    /// Stacks that cannot follow the one before.
    pub breaks: u64,
    /// Stacks that end at a frame that is being pushed or popped, and say so.
    pub half_pushed: u64,
    /// Stacks in which anything else of Python is said to be missing, by why.
    pub faults: BTreeMap<String, u64>,
    /// Stacks whose native part does not lead to the root, by why.
    pub cuts: BTreeMap<String, u64>,
    /// The first of each kind.
    pub examples: Vec<Example>,
    /// Whether the workload came to its end.
    pub is_done: bool,
}

/// A stack that cannot be, and the one before.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Example {
    /// What cannot be, if it is a break.
    pub found: Option<Break>,
    /// Where the thread was.
    pub place: String,
    /// The instruction there, and the one that was executed before.
    pub instructions: [String; 2],
    /// The stack before, innermost frame first.
    pub before: Vec<String>,
    /// The stack.
    pub now: Vec<String>,
}

impl Report {
    /// Whether all stacks were right, and whole but for one of `ONE_OF` that says which frame is missing.
    pub fn holds(&self) -> bool {
        self.half_pushed * ONE_OF <= self.judged && self.breaks == 0 && self.faults.is_empty() && self.cuts.is_empty()
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Report { name, steps, judged, in_eval_loop, pushed, popped, deepest, breaks, .. } = self;
        writeln!(f, "{name}")?;
        writeln!(f, "  {steps} instructions, {judged} stacks judged, {in_eval_loop} of them in the eval loop")?;
        writeln!(f, "  {pushed} frames pushed, {popped} popped, at most {deepest}; {breaks} stacks do not follow")?;
        if self.misled > 0 {
            writeln!(f, "  {} stacks not judged: native frames are wrong", self.misled)?;
        }
        if self.half_pushed > 0 {
            writeln!(f, "  {} stacks: [python: {}]", self.half_pushed, Fault::HalfPushed.text())?;
        }
        for (why, count) in self.faults.iter().chain(&self.cuts) {
            writeln!(f, "  {count} stacks: [{why}]")?;
        }
        for Example { found, place, instructions: [here, before], before: was, now } in &self.examples {
            let what = found.map_or("missing".to_owned(), |found| format!("{found:?}"));
            writeln!(
                f,
                "  {what} at {place}: {here}, behind {before}\n    {}\n    {}",
                was.join(" < "),
                now.join(" < ")
            )?;
        }
        Ok(())
    }
}
