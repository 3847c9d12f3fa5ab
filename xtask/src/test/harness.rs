//! Runs Rust's test harness, shows what it prints and counts.
//!
//! A test that cannot do its work prints a line `SKIPPED: reason` and passes; an ignored test is skipped too.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Command, Stdio};

use anyhow::{Context, Result};

use super::failure::{Failure, headed};
use crate::command::shown;

/// What a run of tests came to.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Counts {
    /// Tests that passed, but for those that skipped their work.
    pub passed: u64,
    /// Tests that failed; 1 if the harness itself did.
    pub failed: u64,
    /// Tests that were skipped.
    pub skipped: Vec<Skip>,
    /// What failed ones printed.
    pub failures: Vec<Failure>,
}

/// A test that was skipped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Skip {
    /// Its name; empty where it is unknown.
    pub test: String,
    /// Why.
    pub reason: String,
}

impl Skip {
    /// A test, by name, and why.
    pub fn new(test: &str, reason: &str) -> Skip {
        Skip { test: test.to_owned(), reason: reason.to_owned() }
    }
}

/// Runs a test program; fails only where it does not start.
pub fn run(command: &mut Command) -> Result<Counts> {
    run_and_show(command, std::io::stdout(), std::io::stderr())
}

fn run_and_show(command: &mut Command, out: impl Write, err: impl Write + Send + 'static) -> Result<Counts> {
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .with_context(|| format!("{} does not start", shown(command)))?;
    let errors = child.stderr.take().context("no pipe")?;
    let errors = std::thread::spawn(move || read(errors, err));
    let mut lines = read(child.stdout.take().context("no pipe")?, out);
    lines.extend(errors.join().unwrap_or_default());
    let status = child.wait().with_context(|| shown(command))?;
    let mut counts = count(&lines);
    if !status.success() && counts.failed == 0 {
        let died = format!("{status}: {}", shown(command));
        eprintln!("{died}");
        counts.failed = 1;
        counts.failures.push(Failure::new(&died, &lines));
    }
    Ok(counts)
}

/// Copies line by line, and returns the lines.
fn read(from: impl Read, mut to: impl Write) -> Vec<String> {
    let mut lines = Vec::new();
    for line in BufReader::new(from).split(b'\n').map_while(Result::ok) {
        let line = String::from_utf8_lossy(&line).into_owned();
        // what cannot be shown still counts
        let _ = writeln!(to, "{line}");
        lines.push(line);
    }
    lines
}

fn count(lines: &[String]) -> Counts {
    let mut counts = Counts { failures: Failure::all(lines), ..Counts::default() };
    let mut excused = 0;
    let mut test = "";
    for line in lines {
        if let Some(name) = headed(line) {
            test = name;
        } else if let Some(reason) = line.strip_prefix("SKIPPED: ") {
            counts.skipped.push(Skip::new(test, reason));
            excused += 1;
        } else if let Some((name, reason)) = ignored(line) {
            counts.skipped.push(Skip::new(name, reason));
        } else if let Some(result) = line.strip_prefix("test result: ") {
            counts.passed += number_before(result, " passed");
            counts.failed += number_before(result, " failed");
            test = "";
        }
    }
    counts.passed = counts.passed.saturating_sub(excused);
    counts
}

/// Name and reason in `test name ... ignored, reason`.
fn ignored(line: &str) -> Option<(&str, &str)> {
    let (name, rest) = line.strip_prefix("test ")?.split_once(" ... ignored")?;
    Some((name, rest.strip_prefix(", ").unwrap_or("ignored")))
}

/// The number before a word in `ok. 3 passed; 0 failed; 1 ignored`; 0 where there is none.
fn number_before(result: &str, word: &str) -> u64 {
    let before = result.split_once(word).map_or("", |(before, _)| before);
    before.rsplit(' ').next().and_then(|number| number.parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counted(output: &str) -> Counts {
        count(&output.lines().map(str::to_owned).collect::<Vec<_>>())
    }

    #[test]
    fn skipped_tests_are_not_passed_tests() {
        let counts = counted(
            "running 4 tests\n\
             test plain ... ok\n\
             test slow ... ignored, takes hours\n\
             test odd ... ignored\n\
             test live::needs_root ... ok\n\
             \n\
             successes:\n\
             \n\
             ---- live::needs_root stdout ----\n\
             SKIPPED: needs root\n\
             \n\
             test result: ok. 2 passed; 0 failed; 2 ignored; 0 measured; 0 filtered out; finished in 0.00s\n\
             SKIPPED: no Chromium in PATH\n\
             test result: ok. 5 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s\n",
        );
        let skipped = vec![
            Skip::new("slow", "takes hours"),
            Skip::new("odd", "ignored"),
            Skip::new("live::needs_root", "needs root"),
            Skip::new("", "no Chromium in PATH"),
        ];
        assert_eq!(counts, Counts { passed: 5, skipped, ..Counts::default() });
    }

    #[test]
    fn failures_are_counted() {
        let counts = counted("test result: FAILED. 12 passed; 3 failed; 0 ignored; 0 measured; 0 filtered out");
        assert_eq!((counts.passed, counts.failed), (12, 3));
        assert_eq!(counted("no harness at all\ntest result: ?"), Counts::default());
    }

    #[test]
    fn a_harness_that_dies_is_a_failure_and_both_its_streams_count() {
        let script = "echo 'test result: ok. 2 passed; 0 failed'; echo 'SKIPPED: why' >&2; kill -SEGV $$";
        // shown, the output would count once more where this test itself is counted
        let quiet = |command: &mut Command| run_and_show(command, std::io::sink(), std::io::sink());
        let counts = quiet(Command::new("sh").args(["-c", script])).unwrap();
        assert_eq!((counts.passed, counts.failed, counts.skipped), (1, 1, vec![Skip::new("", "why")]));
        let [failure] = &counts.failures[..] else { panic!("{:?}", counts.failures) };
        assert!(failure.test.contains("SIGSEGV"), "{}", failure.test);
        assert_eq!(failure.excerpt(9), ["test result: ok. 2 passed; 0 failed", "SKIPPED: why"]);
        assert!(quiet(&mut Command::new("no-such-program-anywhere")).is_err());
    }
}
