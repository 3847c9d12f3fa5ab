//! What libFuzzer prints.

use std::fmt::{Display, Formatter};
use std::path::PathBuf;

/// Figures of a run.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Statistics {
    /// Inputs that were run.
    pub runs: u64,
    /// How many in a second.
    pub per_second: u64,
    /// Edges of the control flow that were reached.
    pub coverage: u64,
    /// Inputs that reached something new.
    pub new: u64,
    /// Memory at most, in MB.
    pub peak: u64,
}

/// Why a run ended early.
#[derive(Debug, PartialEq, Eq)]
pub struct Crash {
    /// In a line.
    pub what: String,
    /// The input.
    pub input: Option<PathBuf>,
}

impl Display for Statistics {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> std::fmt::Result {
        let Statistics { runs, per_second, coverage, new, peak } = self;
        write!(formatter, "{runs:>12} {per_second:>9} {coverage:>9} {new:>7} {peak:>9}")
    }
}

/// The figures of a log; zero where it has none.
pub fn statistics(log: &str) -> Statistics {
    let figure = |name: &str| {
        let mut values =
            log.lines().filter_map(|line| line.strip_prefix("stat::")?.strip_prefix(name)?.strip_prefix(':'));
        values.next_back().and_then(|value| value.trim().parse().ok()).unwrap_or(0)
    };
    Statistics {
        runs: figure("number_of_executed_units"),
        per_second: figure("average_exec_per_sec"),
        coverage: coverage(log),
        new: figure("new_units_added"),
        peak: figure("peak_rss_mb"),
    }
}

/// The number in the last line such as `#123 REDUCE cov: 45 ft: 67 corp: 8/9b`.
fn coverage(log: &str) -> u64 {
    let of_line = |line: &str| line.strip_prefix('#')?.split_once(" cov: ")?.1.split(' ').next()?.parse().ok();
    log.lines().rev().find_map(of_line).unwrap_or(0)
}

/// What a log says of the crash that ended it.
pub fn crash(log: &str) -> Crash {
    let written =
        log.lines().find_map(|line| line.split_once("Test unit written to ")).map(|(_, path)| path.trim().into());
    Crash { what: what(log), input: written }
}

/// The panic, or what libFuzzer or the sanitizer made of the crash.
fn what(log: &str) -> String {
    let mut lines = log.lines();
    while let Some(line) = lines.next() {
        let Some((_, place)) = line.split_once(" panicked at ").filter(|_| line.starts_with("thread ")) else {
            continue;
        };
        return format!("panicked at {place} {}", lines.next().unwrap_or_default());
    }
    let summary = log.lines().find_map(|line| line.strip_prefix("SUMMARY: "));
    summary.or_else(|| log.lines().next_back()).unwrap_or("nothing was printed").to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lines of a run of libFuzzer as libfuzzer-sys 0.4.13 has it.
    const WELL: &str = "INFO: seed corpus: files: 3 min: 1b max: 9b total: 15b rss: 28Mb\n\
        #4\tINITED cov: 19 ft: 19 corp: 1/1b exec/s: 0 rss: 28Mb\n\
        #900\tREDUCE cov: 40 ft: 61 corp: 7/8b lim: 4 exec/s: 0 rss: 28Mb L: 1/2 MS: 1 EraseBytes-\n\
        #1000\tDONE   cov: 45 ft: 67 corp: 8/9b lim: 110 exec/s: 500 rss: 31Mb\n\
        Done 1000 runs in 2 second(s)\n\
        stat::number_of_executed_units: 1000\n\
        stat::average_exec_per_sec:     500\n\
        stat::new_units_added:          12\n\
        stat::slowest_unit_time_sec:    0\n\
        stat::peak_rss_mb:              32\n";

    #[test]
    fn figures_of_a_run() {
        let expected = Statistics { runs: 1000, per_second: 500, coverage: 45, new: 12, peak: 32 };
        assert_eq!(statistics(WELL), expected);
        assert_eq!(statistics(""), Statistics::default());
        assert_eq!(statistics("#1 cov: x\nstat::peak_rss_mb: many\n"), Statistics::default());
    }

    #[test]
    fn a_panic() {
        let log = "thread '<unnamed>' (77) panicked at crates/objects/src/plt.rs:27:30:\n\
            attempt to add with overflow\n\
            note: run with `RUST_BACKTRACE=1`\n\
            ==77== ERROR: libFuzzer: deadly signal\n\
            SUMMARY: libFuzzer: deadly signal\n\
            artifact_prefix='/t/'; Test unit written to /t/crash-aa\n";
        let what = "panicked at crates/objects/src/plt.rs:27:30: attempt to add with overflow".to_owned();
        assert_eq!(crash(log), Crash { what, input: Some("/t/crash-aa".into()) });
    }

    #[test]
    fn other_ends() {
        let slow = "ALARM: working on the last Unit for 21 seconds\n\
            artifact_prefix='/t/'; Test unit written to /t/timeout-bb\n\
            SUMMARY: libFuzzer: timeout\n";
        let expected = Crash { what: "libFuzzer: timeout".to_owned(), input: Some("/t/timeout-bb".into()) };
        assert_eq!(crash(slow), expected);
        assert_eq!(crash("killed"), Crash { what: "killed".to_owned(), input: None });
        assert_eq!(crash(""), Crash { what: "nothing was printed".to_owned(), input: None });
    }
}
