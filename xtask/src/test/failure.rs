//! What a test that failed has printed, cut to what says why.

/// So many lines of a failed test are shown at most.
const LINES: usize = 40;
/// So many lines before a panic are shown with it: figures that lead to it.
const BEFORE: usize = 3;
/// So many characters of a line are shown.
const CHARACTERS: usize = 600;

/// A test that failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// Its name; of a harness that ended without a verdict, how it ended.
    pub test: String,
    /// What it printed.
    output: Vec<String>,
}

impl Failure {
    /// A test, by name, and what it printed.
    pub fn new(test: &str, output: &[String]) -> Failure {
        Failure { test: test.to_owned(), output: output.to_vec() }
    }

    /// The failures in the output of Rust's test harness: what stands below `failures:`, each below its
    /// `---- name stdout ----`.
    pub fn all(lines: &[String]) -> Vec<Failure> {
        let mut failures = Vec::<Failure>::new();
        // whether these are the outputs, and of which test
        let (mut are_outputs, mut is_open) = (false, false);
        for line in lines {
            if line == "failures:" {
                // the second one is over their names
                (are_outputs, is_open) = (!are_outputs, false);
            } else if line.starts_with("test result: ") {
                (are_outputs, is_open) = (false, false);
            } else if let Some(name) = headed(line).filter(|_| are_outputs) {
                failures.push(Failure::new(name, &[]));
                is_open = true;
            } else if let Some(failure) = failures.last_mut().filter(|_| is_open) {
                failure.output.push(line.clone());
            }
        }
        failures
    }

    /// The lines that say most, at most this many: the beginning of each panic's message with what was printed last before it, or
    /// without panics the end. No backtraces: they are long, and the place stands in the message.
    pub fn excerpt(&self, most: usize) -> Vec<String> {
        let most = most.min(LINES);
        let lines: Vec<&str> = without_backtraces(&self.output);
        let panics: Vec<usize> = (0..lines.len()).filter(|index| is_panic(lines[*index])).collect();
        if panics.len() < 2 && lines.len() <= most {
            return lines.into_iter().map(cut).collect();
        }
        if panics.is_empty() {
            return lines[lines.len().saturating_sub(most)..].iter().copied().map(cut).collect();
        }
        // where there is no room for all, the last ones
        let each = (most / panics.len()).max(2);
        let left_out = panics.len().saturating_sub(most / each);
        let (mut excerpt, mut told) = (Vec::new(), 0);
        for (number, begin) in panics.iter().copied().enumerate() {
            let next = panics.get(number + 1).copied().unwrap_or(lines.len());
            let length = lines[begin + 1..next].iter().take_while(|line| !is_figure(line)).count() + 1;
            let before = BEFORE.min(each.saturating_sub(length)).min(begin - told);
            told = begin + length;
            if number >= left_out {
                excerpt.extend(lines[begin - before..begin + length.min(each)].iter().copied().map(cut));
            }
        }
        excerpt
    }
}

/// The name in `---- name stdout ----`.
pub fn headed(line: &str) -> Option<&str> {
    line.strip_prefix("---- ")?.strip_suffix(" stdout ----")
}

/// As in `thread 'name' (7) panicked at file.rs:1:2:`.
fn is_panic(line: &str) -> bool {
    line.starts_with("thread '") && line.contains(" panicked at ")
}

/// What tests print on the way, which ends a panic's message.
fn is_figure(line: &str) -> bool {
    ["LIVE ", "NOT HERE: ", "SKIPPED: "].iter().any(|word| line.starts_with(word))
}

fn without_backtraces(output: &[String]) -> Vec<&str> {
    let mut is_backtrace = false;
    let mut kept = Vec::new();
    for line in output {
        if line == "stack backtrace:" {
            is_backtrace = true;
        } else if line.starts_with("note: ") && line.contains("RUST_BACKTRACE") {
            is_backtrace = false;
        } else {
            is_backtrace &= is_backtrace_frame(line);
            if !is_backtrace && !line.trim().is_empty() {
                kept.push(&**line);
            }
        }
    }
    kept
}

/// As in `  12: function` and `             at file.rs:1:2`.
fn is_backtrace_frame(line: &str) -> bool {
    let text = line.trim_start();
    let is_numbered = text.split_once(": ").is_some_and(|(number, _)| number.parse::<u32>().is_ok());
    text.len() < line.len() && (is_numbered || text.starts_with("at "))
}

fn cut(line: &str) -> String {
    match line.char_indices().nth(CHARACTERS) {
        Some((end, _)) => format!("{}...", &line[..end]),
        None => line.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OUTPUT: &str = "\
test one ... FAILED
test two ... ok

successes:

---- two stdout ----
LIVE of no interest

successes:
    two

failures:

---- one stdout ----
LIVE 1 of a

thread 'one' (12) panicked at tests/one.rs:1:2:
a: wrong
  stack
stack backtrace:
   0: __rustc::rust_begin_unwind
             at /rustc/0/library/std/src/panicking.rs:698:5
   1: core::panicking::panic_fmt
note: Some details are omitted, run with `RUST_BACKTRACE=full` for a verbose backtrace.
LIVE 2 of b

thread 'one' (12) panicked at tests/one.rs:3:4:
1 of 2 failed: a
note: run with `RUST_BACKTRACE=1` environment variable to display a backtrace

---- src/lib.rs - three (line 4) stdout ----
error: it does not compile

failures:
    one
    src/lib.rs - three (line 4)

test result: FAILED. 1 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out
---- later stdout ----
nothing
";

    fn lines(text: &str) -> Vec<String> {
        text.lines().map(str::to_owned).collect()
    }

    #[test]
    fn what_failed_tests_printed_is_kept_without_backtraces() {
        let failures = Failure::all(&lines(OUTPUT));
        let names: Vec<&str> = failures.iter().map(|failure| &*failure.test).collect();
        assert_eq!(names, ["one", "src/lib.rs - three (line 4)"]);
        let expected = "LIVE 1 of a\nthread 'one' (12) panicked at tests/one.rs:1:2:\na: wrong\n  stack\nLIVE 2 of b\n\
                        thread 'one' (12) panicked at tests/one.rs:3:4:\n1 of 2 failed: a";
        assert_eq!(failures[0].excerpt(100).join("\n"), expected);
        assert_eq!(failures[1].excerpt(100), ["error: it does not compile"]);
    }

    #[test]
    fn the_first_of_many_panics_is_shown_whatever_was_printed_after_it() {
        let mut output = String::from("thread 'a' panicked at 1:\nthe reason\n");
        output += &"LIVE a figure\n".repeat(300);
        output += "thread 'a' panicked at 2:\n1 of 9 failed: b\n";
        let excerpt = Failure::new("a", &lines(&output)).excerpt(100);
        assert_eq!(excerpt[..2], ["thread 'a' panicked at 1:", "the reason"]);
        assert_eq!(excerpt[excerpt.len() - 2..], ["thread 'a' panicked at 2:", "1 of 9 failed: b"]);
        assert_eq!(excerpt.len(), 4 + BEFORE);
    }

    #[test]
    fn an_excerpt_is_bounded() {
        let long = "\u{e4}".repeat(10_000);
        let panics = format!("thread 'a' panicked at 1:\n{long}\n").repeat(500);
        for output in [format!("{long}\n").repeat(500), panics] {
            let failure = Failure::new("a", &lines(&output));
            for most in [2, 7, 40, 100] {
                let excerpt = failure.excerpt(most);
                assert!(!excerpt.is_empty() && excerpt.len() <= most.min(LINES), "{} of {most}", excerpt.len());
                assert!(excerpt.iter().all(|line| line.chars().count() <= CHARACTERS + 3));
            }
        }
        let numbered: Vec<String> = (0..500).map(|number| number.to_string()).collect();
        assert_eq!(Failure::new("a", &numbered).excerpt(2), ["498", "499"]);
    }
}
