//! Whether a recording agrees with the truth, and by how much.

use std::collections::BTreeMap;

use super::folded::{End, Stack, total};
use super::record::Recorded;
use super::workload::Truth;

/// Standard errors within which a figure must lie.
const ERRORS: f64 = 5.0;
/// Seconds of a process's start and end that the program itself does not count.
const EDGE: f64 = 0.05;
/// Least share of stacks that reach their root.
const ROOT: f64 = 0.995;
/// Least share of stacks with every expected caller.
const CHAIN: f64 = 0.99;

/// What is expected of the samples of one workload.
pub(crate) struct Judge<'a> {
    name: String,
    frequency: u32,
    stacks: Vec<&'a Stack>,
    recorded: &'a Recorded,
    chain_share: f64,
    root_share: f64,
    loss_share: f64,
    problems: Vec<String>,
    row: Row,
}

#[derive(Default)]
struct Row {
    root: f64,
    chain: Option<f64>,
    split: String,
    expected: String,
}

impl<'a> Judge<'a> {
    /// Judges the samples of the processes with this name.
    pub(crate) fn of(recorded: &'a Recorded, process: &str, what: &str, frequency: u32) -> Judge<'a> {
        Judge::among(recorded, recorded.of(process), what, frequency)
    }

    /// Judges these samples.
    pub(crate) fn among(recorded: &'a Recorded, stacks: Vec<&'a Stack>, what: &str, frequency: u32) -> Judge<'a> {
        Judge {
            name: what.to_owned(),
            frequency,
            stacks,
            recorded,
            chain_share: CHAIN,
            root_share: ROOT,
            loss_share: 0.0,
            problems: Vec::new(),
            row: Row::default(),
        }
    }

    /// Another least share of whole stacks than the usual one.
    pub(crate) fn root_at_least(mut self, share: f64) -> Self {
        self.root_share = share;
        self
    }

    /// Another least share of complete chains than the usual one.
    pub(crate) fn chain_at_least(mut self, share: f64) -> Self {
        self.chain_share = share;
        self
    }

    /// So large a share of the samples may be lost, and events of processes, if the summary says so.
    // for those who include this in `hardship`
    #[allow(dead_code)]
    pub(crate) fn losing_at_most(mut self, share: f64) -> Self {
        self.loss_share = share;
        self
    }

    /// As many samples as the CPU time that the workload reports makes ticks.
    pub(crate) fn samples_for(mut self, cpu_seconds: f64) -> Self {
        if !self.recorded.summary.contains("cpu-clock") {
            // a hardware counter's rate is adapted by the kernel and has no exact number of ticks
            return self;
        }
        let got = total(self.stacks.iter().copied()) as f64;
        let rate = f64::from(self.frequency);
        let expected = cpu_seconds * rate;
        let bound = ERRORS * expected.max(1.0).sqrt() + (EDGE + self.recorded.stolen) * rate;
        let lost = self.recorded.lost() as f64;
        self.row.expected = format!("{expected:.0}+-{bound:.0}");
        self.require(
            got <= expected + bound && got + lost >= expected - bound,
            format!(
                "{got} samples, {lost} lost, for {cpu_seconds:.3} s of CPU time; expected {expected:.0} +- {bound:.0}"
            ),
        );
        self
    }

    /// The stacks for which `chain` gives the name of what was done are right; those names are in the proportions of
    /// the truth. Names that the truth does not know are right, but not compared.
    pub(crate) fn chains(mut self, truth: &Truth, chain: impl Fn(&Stack) -> Option<String>) -> Self {
        let mut counts: BTreeMap<String, u64> = BTreeMap::new();
        let (mut right, mut all) = (0, 0);
        let mut wrong: Vec<&Stack> = Vec::new();
        for stack in self.stacks.clone() {
            if stack.end() == End::Leaving {
                continue;
            }
            all += stack.count;
            match chain(stack) {
                Some(name) => {
                    right += stack.count;
                    *counts.entry(name).or_default() += stack.count;
                }
                None => wrong.push(stack),
            }
        }
        let share = right as f64 / all.max(1) as f64;
        let least = self.chain_share;
        self.row.chain = Some(share);
        let listed = list(&wrong);
        self.require(share >= least, format!("{:.3} % of the chains are right\n{listed}", 100.0 * share));
        if !wrong.is_empty() {
            println!("LIVE {} {} Hz: chains that are not as expected:\n{listed}", self.name, self.frequency);
        }
        self.compare(truth, &counts);
        self
    }

    fn compare(&mut self, truth: &Truth, counts: &BTreeMap<String, u64>) {
        let whole: f64 = truth.shares.values().sum();
        let n: u64 = truth.shares.keys().filter_map(|name| counts.get(name)).sum();
        let n = n as f64;
        let mut worst = (0.0, String::new());
        for (name, amount) in &truth.shares {
            let p = amount / whole;
            let got = *counts.get(name).unwrap_or(&0) as f64 / n.max(1.0);
            let bound = ERRORS * (p * (1.0 - p) / n.max(1.0)).sqrt();
            let error = (got - p).abs();
            if bound > 0.0 && error / bound >= worst.0 {
                let text = format!("{:.1} of {:.1} points ({name})", 100.0 * error, 100.0 * bound);
                worst = (error / bound, text);
            }
            let text = format!(
                "{name}: {:.2} % of the samples, {:.2} % of the work, bound {:.2}",
                100.0 * got,
                100.0 * p,
                100.0 * bound
            );
            self.require(error <= bound, text);
        }
        self.row.split = worst.1;
    }

    /// A condition of the test's own.
    pub(crate) fn require(&mut self, holds: bool, problem: String) {
        if !holds {
            self.problems.push(problem);
        }
    }

    /// The verdict.
    #[track_caller]
    pub(crate) fn end(mut self) {
        let leaving = total(self.stacks.iter().copied().filter(|stack| stack.end() == End::Leaving));
        let stopped: Vec<&Stack> = self.stacks.iter().copied().filter(|stack| stack.end() == End::Stopped).collect();
        let all = total(self.stacks.iter().copied());
        let staying = all - leaving;
        self.row.root = 1.0 - total(stopped.iter().copied()) as f64 / staying.max(1) as f64;
        let (share, least) = (self.row.root, self.root_share);
        let listed = list(&stopped);
        self.require(staying > 0, "no samples".to_owned());
        self.require(share >= least, format!("{:.3} % of the stacks reach their root\n{listed}", 100.0 * share));
        if !stopped.is_empty() {
            println!("LIVE {} {} Hz: stopped:\n{listed}", self.name, self.frequency);
        }
        let (lost, recorded) = (self.recorded.lost(), total(&self.recorded.stacks));
        let bearable = self.loss_share > 0.0 && lost as f64 <= self.loss_share * (lost + recorded) as f64;
        let counted = |line: &&str| line.contains("lost: ") || line.contains("process events lost");
        let losses: Vec<&str> =
            self.recorded.losses().into_iter().filter(|line| !(bearable && counted(line))).collect();
        self.require(losses.is_empty(), losses.join("; "));
        let Row { root, chain, split, expected } = &self.row;
        let chain = chain.map_or_else(String::new, |share| format!("{:.2} %", 100.0 * share));
        let (name, rate, root) = (&self.name, self.frequency, 100.0 * root);
        println!("LIVE | {name} | {rate} | {all} | {expected} | {root:.2} % | {chain} | {split} |");
        let summary = &self.recorded.summary;
        assert!(self.problems.is_empty(), "{}:\n{}\n{summary}", self.name, self.problems.join("\n"));
    }
}

/// The most frequent of these stacks, one a line.
pub(crate) fn list(stacks: &[&Stack]) -> String {
    let mut stacks = stacks.to_vec();
    stacks.sort_by_key(|stack| std::cmp::Reverse(stack.count));
    let lines = stacks.iter().take(12).map(|stack| format!("    {} x {}", stack.count, shortened(&stack.parts)));
    lines.collect::<Vec<_>>().join("\n")
}

fn shortened(parts: &[String]) -> String {
    if parts.len() <= 40 {
        return parts.join(";");
    }
    format!("{};... {} ...;{}", parts[..20].join(";"), parts.len() - 40, parts[parts.len() - 20..].join(";"))
}
