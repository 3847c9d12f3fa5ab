//! What all steps came to.

use std::collections::BTreeMap;
use std::fmt::{Display, Formatter};
use std::time::Duration;

use super::failure::Failure;
use super::harness::Counts;
use super::needs::Need;

/// So many lines of what failed tests printed are shown at the end; each shows at least a few as long as there is room.
const LINES: usize = 200;
const LEAST: usize = 8;

/// The outcome of a run.
#[derive(Debug, Default)]
pub struct Summary {
    steps: Vec<Step>,
    lacking: Vec<String>,
}

#[derive(Debug)]
struct Step {
    name: String,
    time: Duration,
    outcome: Outcome,
}

#[derive(Debug)]
enum Outcome {
    /// With what went wrong.
    Done(Option<String>),
    Tests(Counts),
}

impl Step {
    fn failed(&self) -> u64 {
        match &self.outcome {
            Outcome::Done(error) => u64::from(error.is_some()),
            Outcome::Tests(counts) => counts.failed,
        }
    }

    fn counts(&self) -> Option<&Counts> {
        match &self.outcome {
            Outcome::Done(_) => None,
            Outcome::Tests(counts) => Some(counts),
        }
    }
}

impl Summary {
    /// Notes a step that succeeded, or failed with an error.
    pub fn step(&mut self, name: &str, time: Duration, error: Option<&str>) {
        self.steps.push(Step { name: name.to_owned(), time, outcome: Outcome::Done(error.map(str::to_owned)) });
    }

    /// Notes a run of tests.
    pub fn tests(&mut self, name: &str, time: Duration, counts: Counts) {
        self.steps.push(Step { name: name.to_owned(), time, outcome: Outcome::Tests(counts) });
    }

    /// Notes a program that is missing.
    pub fn lacks(&mut self, need: &Need) {
        self.lacking.push(format!("{} (package {}): {}", need.programs[0], need.packages[0], need.purpose));
    }

    /// Why the whole run failed, if it did.
    pub fn verdict(&self, deny_skips: bool) -> Option<&'static str> {
        if self.failed() > 0 {
            Some("something failed")
        } else if self.passed() == 0 {
            Some("no test ran")
        } else if deny_skips && self.skipped() > 0 {
            Some("tests were skipped, which --deny-skips forbids")
        } else {
            None
        }
    }

    fn passed(&self) -> u64 {
        self.steps.iter().filter_map(Step::counts).map(|counts| counts.passed).sum()
    }

    /// Failed tests, and failed steps that are no tests.
    fn failed(&self) -> u64 {
        self.steps.iter().map(Step::failed).sum()
    }

    fn skipped(&self) -> usize {
        self.steps.iter().filter_map(Step::counts).map(|counts| counts.skipped.len()).sum()
    }
}

impl Display for Summary {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> std::fmt::Result {
        writeln!(formatter, "\n== summary")?;
        for step in &self.steps {
            write!(formatter, "{:<52} {:>8.1} s  ", step.name, step.time.as_secs_f64())?;
            match &step.outcome {
                Outcome::Done(None) => writeln!(formatter, "ok")?,
                Outcome::Done(Some(_)) => writeln!(formatter, "FAILED")?,
                Outcome::Tests(counts) => writeln!(formatter, "{}", brief(counts))?,
            }
        }
        for lacking in &self.lacking {
            writeln!(formatter, "missing: {lacking}")?;
        }
        for step in &self.steps {
            for (reason, tests) in reasons(step) {
                let which = if let [test] = tests[..] { test.to_owned() } else { format!("{} tests", tests.len()) };
                let which = if which.is_empty() { which } else { format!("{which}: ") };
                writeln!(formatter, "skipped: {}: {which}{reason}", step.name)?;
            }
        }
        self.failures(formatter)?;
        write!(formatter, "{} passed, {} failed, {} skipped", self.passed(), self.failed(), self.skipped())
    }
}

impl Summary {
    /// What failed, and why: who sees the end of a long log only still sees that.
    fn failures(&self, formatter: &mut Formatter<'_>) -> std::fmt::Result {
        let of_step = |step: &Step| match &step.outcome {
            Outcome::Done(error) => error.iter().map(|error| (step.name.clone(), Failure::new(error, &[]))).collect(),
            Outcome::Tests(counts) => {
                counts.failures.iter().map(|failure| (step.name.clone(), failure.clone())).collect::<Vec<_>>()
            }
        };
        let failures: Vec<_> = self.steps.iter().flat_map(of_step).collect();
        let each = (LINES / failures.len().max(1)).max(LEAST) - 1;
        let mut left = LINES;
        for (step, failure) in &failures {
            writeln!(formatter, "FAILED: {step}: {}", failure.test)?;
            let excerpt = failure.excerpt(each.min(left));
            left = left.saturating_sub(excerpt.len() + 1);
            for line in excerpt {
                writeln!(formatter, "    {line}")?;
            }
        }
        Ok(())
    }
}

/// Why tests of a step were skipped, and which.
fn reasons(step: &Step) -> BTreeMap<&str, Vec<&str>> {
    let mut reasons = BTreeMap::<_, Vec<_>>::new();
    for skip in step.counts().into_iter().flat_map(|counts| &counts.skipped) {
        reasons.entry(&*skip.reason).or_default().push(&*skip.test);
    }
    reasons
}

fn brief(counts: &Counts) -> String {
    let mut brief = format!("{} passed", counts.passed);
    if counts.failed > 0 {
        brief += &format!(", {} FAILED", counts.failed);
    }
    if !counts.skipped.is_empty() {
        brief += &format!(", {} skipped", counts.skipped.len());
    }
    brief
}

#[cfg(test)]
mod tests {
    use super::super::harness::Skip;
    use super::*;

    fn of(counts: &[(u64, u64, usize)], steps: &[bool]) -> Summary {
        let mut summary = Summary::default();
        for (passed, failed, skipped) in counts {
            let skipped = vec![Skip::new("one", "why"); *skipped];
            let counts = Counts { passed: *passed, failed: *failed, skipped, ..Counts::default() };
            summary.tests("tests", Duration::ZERO, counts);
        }
        for well in steps {
            summary.step("step", Duration::ZERO, (!well).then_some("exit status: 1"));
        }
        summary
    }

    #[test]
    fn the_last_line_adds_up() {
        let summary = of(&[(3, 0, 1), (4, 2, 0)], &[true, false]);
        let text = summary.to_string();
        assert_eq!(text.lines().next_back(), Some("7 passed, 3 failed, 1 skipped"));
        assert!(text.contains("skipped: tests: one: why\n"), "{text}");
    }

    #[test]
    fn what_failed_stands_at_the_end_with_what_it_printed() {
        let mut summary = of(&[(3, 0, 1)], &[false]);
        let output = ["LIVE figures".to_owned(), "thread 'a' panicked at a.rs:1:2:".to_owned(), "why".to_owned()];
        let failures = vec![Failure::new("some::test", &output)];
        summary.tests("live", Duration::ZERO, Counts { failed: 1, failures, ..Counts::default() });
        let expected = "FAILED: step: exit status: 1\n\
                        FAILED: live: some::test\n    LIVE figures\n    thread 'a' panicked at a.rs:1:2:\n    why\n\
                        3 passed, 2 failed, 1 skipped";
        assert!(summary.to_string().ends_with(expected), "{summary}");
    }

    #[test]
    fn all_failures_are_named_though_only_so_much_of_them_is_shown() {
        let output: Vec<String> = (0..1000).map(|number| format!("line {number}")).collect();
        for count in [1, 7, 30, 500] {
            let failures: Vec<_> = (0..count).map(|number| Failure::new(&format!("test {number}"), &output)).collect();
            let mut summary = of(&[], &[]);
            summary.tests("live", Duration::ZERO, Counts { failed: count, failures, ..Counts::default() });
            let text = summary.to_string();
            let of_tests = text.lines().filter(|line| line.starts_with("    line ")).count();
            assert_eq!(text.lines().filter(|line| line.starts_with("FAILED: ")).count() as u64, count);
            assert!((39..=LINES).contains(&of_tests), "{of_tests} lines of {count}");
        }
    }

    #[test]
    fn one_reason_is_told_once() {
        assert!(of(&[(3, 0, 7)], &[]).to_string().contains("skipped: tests: 7 tests: why\n"));
        let mut summary = of(&[], &[]);
        let skipped = vec![Skip::new("", "why")];
        summary.tests("objects", Duration::ZERO, Counts { skipped, ..Counts::default() });
        assert!(summary.to_string().contains("skipped: objects: why\n"));
    }

    #[test]
    fn the_verdict() {
        assert_eq!(of(&[(3, 0, 0)], &[true]).verdict(true), None);
        assert_eq!(of(&[(3, 0, 1)], &[]).verdict(false), None);
        assert!(of(&[(3, 0, 1)], &[]).verdict(true).is_some());
        assert!(of(&[(3, 1, 0)], &[]).verdict(false).is_some());
        assert!(of(&[(3, 0, 0)], &[false]).verdict(false).is_some());
        assert_eq!(of(&[(0, 0, 0)], &[true]).verdict(false), Some("no test ran"));
    }
}
