//! Recordings of threads that say when they use their CPU, and how much, in `spinning.spend`.

use crate::judge::label::Label;
use crate::judge::truth::Told;
use crate::judge::{Verdict, Wanted};
use crate::support::folded::{Stack, total};
use crate::support::record::Recorded;

/// Standard errors within which a number of samples must lie.
const ERRORS: f64 = 5.0;

/// A recording, and what was told.
pub(crate) struct Lived<'a> {
    pub(crate) what: &'a str,
    pub(crate) recorded: &'a Recorded,
    pub(crate) told: &'a Told,
    pub(crate) frequency: u32,
}

/// Whether a thread does what it tells of: before and after, interpreters start and end, and threads have other names.
fn burns(stack: &Stack) -> bool {
    stack.parts.iter().any(|part| matches!(Label::parse(part), Label::Python(shown) if shown.name == "burn"))
}

impl Lived<'_> {
    /// No stack is wrong, and there are as many of each thread as its CPU time makes.
    #[track_caller]
    pub(crate) fn judged(&self) {
        let wanted = Wanted::with_lines(true);
        let stacks = self.recorded.stacks.iter().filter(|stack| burns(stack));
        let verdict = Verdict::over(stacks, self.told, wanted);
        let mut problems = verdict.problems(wanted);
        let mut counts = Vec::new();
        for (name, seconds) in &self.told.cpu {
            let got = verdict.threads.get(name).copied().unwrap_or_default();
            let (least, most) = self.expected(*seconds);
            counts.push(format!("{name} {got} of {least:.0} to {most:.0}"));
            if !(least..=most).contains(&(got as f64)) {
                problems.push(format!("{got} samples of {name}, not {least:.0} to {most:.0}"));
            }
        }
        problems.extend(self.recorded.losses().into_iter().map(str::to_owned));
        println!(
            "LIVE {} | {} Hz | {} right | cut {:?} | stopped {:?} | {} |",
            self.what,
            self.frequency,
            verdict.right,
            verdict.cut,
            verdict.stopped,
            counts.join(", ")
        );
        let others = self.others();
        let problems = problems.join("\n");
        assert!(problems.is_empty(), "{}:\n{problems}\n{}\nothers:\n{others}", self.what, self.recorded.summary);
    }

    /// How many samples so much CPU time makes, at least and at most.
    pub(crate) fn expected(&self, seconds: f64) -> (f64, f64) {
        let rate = f64::from(self.frequency);
        let due = seconds * rate;
        let bound = ERRORS * due.sqrt() + self.recorded.stolen * rate;
        (due - bound, due + bound)
    }

    /// The most frequent stacks of threads that tell, which are not where they should be.
    fn others(&self) -> String {
        let is_told = |part: Option<&String>| part.is_some_and(|name| self.told.threads.contains_key(name));
        let of_told = |stack: &&Stack| is_told(stack.parts.first()) || is_told(stack.parts.get(1));
        let stacks: Vec<&Stack> = self.recorded.stacks.iter().filter(of_told).filter(|stack| !burns(stack)).collect();
        format!("{} samples:\n{}", total(stacks.iter().copied()), crate::support::judge::list(&stacks))
    }
}
