//! What came out, for readers and for programs.

use std::fmt;

use serde::Serialize;

use super::places::Kind;
use super::steps::Events;

/// Places that the text shows of each kind.
const SHOWN: usize = 12;

/// One run of one program.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Run {
    /// Program.
    pub program: &'static str,
    /// Variant.
    pub variant: &'static str,
    /// Walks that were compared.
    pub states: u64,
    /// Whole and right.
    pub whole: u64,
    /// Right as far as they went, with a reason why not further.
    pub stopped: u64,
    /// Wrong.
    pub wrong: u64,
    /// Other than the calls, while the program was overwriting its return addresses: libgcc, about to land an exception.
    pub rewritten: u64,
    /// Of all, those in which a frame pointer led to a frame.
    pub by_frame_pointer: u64,
    /// What happened.
    pub events: Events,
    /// Calls that had not returned when it ended.
    pub left: u64,
    /// How it ended.
    pub ended: String,
}

/// A run that could not be made.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Skipped {
    /// Program.
    pub program: &'static str,
    /// Variant.
    pub variant: &'static str,
    /// Why.
    pub reason: String,
}

/// Walks that stopped with a reason.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Stops {
    /// The reason.
    pub reason: &'static str,
    /// The last frame.
    pub place: String,
    /// The rule there.
    pub rule: String,
    /// How many.
    pub states: u64,
    /// The first one, if it is kept.
    pub example: Option<Example>,
}

/// Wrong walks.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Wrong {
    /// How they were wrong.
    pub kind: Kind,
    /// The frame whose caller is wrong.
    pub place: String,
    /// The rule there.
    pub rule: String,
    /// How many.
    pub states: u64,
    /// The first one, if it is kept.
    pub example: Option<Example>,
}

/// A walk.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Example {
    /// Program and variant.
    pub program: String,
    /// The instruction at which it was made.
    pub instruction: String,
    /// The calls that were made.
    pub truth: Vec<String>,
    /// The walk.
    pub walked: Vec<String>,
    /// What the walk gave as the reason of its end.
    pub end: String,
}

/// All runs.
#[derive(Clone, Default, PartialEq, Eq, Debug, Serialize)]
pub struct Report {
    /// Each.
    pub runs: Vec<Run>,
    /// Those that could not be made.
    pub skipped: Vec<Skipped>,
    /// Walks that were compared.
    pub states: u64,
    /// Whole and right.
    pub whole: u64,
    /// Right as far as they went.
    pub stopped: u64,
    /// Wrong.
    pub wrong: u64,
    /// Other than the calls, while the program was overwriting its return addresses.
    pub rewritten: u64,
    /// Distinct instructions, by file and offset.
    pub distinct_instructions: usize,
    /// Distinct stacks, by program.
    pub distinct_stacks: usize,
    /// Why and where walks stopped, most frequent first.
    pub stops: Vec<Stops>,
    /// Wrong ones, most frequent first.
    pub faults: Vec<Wrong>,
}

impl Report {
    /// Adds up the runs.
    pub fn sum(&mut self) {
        let total = |of: fn(&Run) -> u64| self.runs.iter().map(of).sum::<u64>();
        let (states, whole) = (total(|run| run.states), total(|run| run.whole));
        let (stopped, wrong) = (total(|run| run.stopped), total(|run| run.wrong));
        let rewritten = total(|run| run.rewritten);
        (self.states, self.whole, self.stopped) = (states, whole, stopped);
        (self.wrong, self.rewritten) = (wrong, rewritten);
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{:34} {:>9} {:>9} {:>8} {:>9} {:>6}  end",
            "program", "states", "whole", "stopped", "rewritten", "wrong"
        )?;
        for run in &self.runs {
            let name = format!("{} {}", run.program, run.variant);
            let Run { states, whole, stopped, rewritten, wrong, ended, .. } = run;
            writeln!(f, "{name:34} {states:9} {whole:9} {stopped:8} {rewritten:9} {wrong:6}  {ended}")?;
        }
        for Skipped { program, variant, reason } in &self.skipped {
            writeln!(f, "SKIPPED: {program} {variant}: {reason}")?;
        }
        self.write_stops(f)?;
        self.write_faults(f)?;
        writeln!(
            f,
            "\n{} runs, {} states at {} distinct instructions with {} distinct stacks: \
             {} whole and right ({:.3} %), {} stopped by name, {} while return addresses were overwritten, {} wrong",
            self.runs.len(),
            self.states,
            self.distinct_instructions,
            self.distinct_stacks,
            self.whole,
            100.0 * self.whole as f64 / self.states.max(1) as f64,
            self.stopped,
            self.rewritten,
            self.wrong
        )
    }
}

impl Report {
    fn write_stops(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut reasons: Vec<(&str, u64)> = Vec::new();
        for stop in &self.stops {
            match reasons.iter_mut().find(|(reason, _)| *reason == stop.reason) {
                Some((_, states)) => *states += stop.states,
                None => reasons.push((stop.reason, stop.states)),
            }
        }
        for (reason, states) in reasons {
            writeln!(f, "\nstopped by \"{reason}\": {states}")?;
            for stop in self.stops.iter().filter(|stop| stop.reason == reason).take(SHOWN) {
                writeln!(f, "{:9}  {} ({})", stop.states, stop.place, stop.rule)?;
                let Some(Example { program, instruction, truth, .. }) = &stop.example else { continue };
                writeln!(f, "           such as {program}: {instruction} in {}", truth.join(", "))?;
            }
        }
        Ok(())
    }

    fn write_faults(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, Wrong { kind, place, rule, states, example }) in self.faults.iter().enumerate() {
            writeln!(f, "\nWRONG: {states} times {kind:?} at {place} ({rule})")?;
            let Some(example) = example.as_ref().filter(|_| number < SHOWN) else { continue };
            writeln!(f, "  in {} at {}", example.program, example.instruction)?;
            writeln!(f, "  truth: {}", example.truth.join("\n         "))?;
            writeln!(f, "  walk:  {}", example.walked.join("\n         "))?;
            writeln!(f, "  end:   {}", example.end)?;
        }
        Ok(())
    }
}
