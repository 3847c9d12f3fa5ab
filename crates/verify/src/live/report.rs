//! What the comparison of stacks found, for people and for programs.

use std::collections::BTreeMap;
use std::fmt;

use serde::Serialize;

use super::judge::{Parting, Site, Tally};
use crate::rows::{self, Kind, Mode, Verdict};

/// Examples that are shown of each kind.
const EXAMPLES: usize = 3;

/// One program.
#[derive(Clone, Debug, Default, Serialize)]
pub struct ProgramReport {
    /// What it is.
    pub name: String,
    /// Samples with a user stack.
    pub samples: u64,
    /// Of those, walked in the kernel; the others were walked in user space by the same code.
    pub in_kernel: u64,
    /// Stacks of the kernel that differ from the same walk over the copied memory in user space.
    pub kernel_differs: u64,
    /// Whole stacks that are equal.
    pub equal: u64,
    /// Stacks that are equal as far as memory was copied.
    pub equal_in_copy: u64,
    /// Frames that are equal.
    pub frames: u64,
    /// Our stacks by how they end.
    pub stops: BTreeMap<&'static str, u64>,
    /// Why the others differ.
    pub disagreements: Vec<Disagreement>,
}

/// Stacks that differ for one reason.
#[derive(Clone, Debug, Serialize)]
pub struct Disagreement {
    /// `None`: a fault of ours, or not understood.
    pub kind: Option<Kind>,
    /// Why, in words.
    pub why: String,
    /// How many stacks.
    pub count: u64,
    /// Where, and how each side goes on.
    pub examples: Vec<String>,
}

impl Disagreement {
    fn is_fault(&self) -> bool {
        self.kind.is_none_or(|kind| matches!(kind.verdict(), Verdict::Fault | Verdict::OursWrong))
    }
}

impl ProgramReport {
    /// Explains each place where the sides part by the row of that place.
    pub(super) fn new(name: &str, tally: &Tally) -> ProgramReport {
        let mut kinds: BTreeMap<Option<Kind>, Disagreement> = BTreeMap::new();
        let mut sites: Vec<(&Site, &Parting)> = tally.sites.iter().collect();
        sites.sort_by_key(|(site, parting)| (std::cmp::Reverse(parting.count), site.object, site.offset));
        for (site, parting) in sites {
            let kind = explain(tally, parting);
            let why = kind.map_or("not explained by the row of the place", Kind::why).to_owned();
            let entry = kinds.entry(kind).or_insert(Disagreement { kind, why, count: 0, examples: Vec::new() });
            entry.count += parting.count;
            if entry.examples.len() < EXAMPLES {
                entry.examples.push(describe(tally, site, parting));
            }
        }
        ProgramReport {
            name: name.to_owned(),
            samples: tally.samples,
            in_kernel: tally.in_kernel,
            kernel_differs: tally.kernel_differs,
            equal: tally.equal,
            equal_in_copy: tally.equal_in_copy,
            frames: tally.frames,
            stops: tally.stops.clone(),
            disagreements: kinds.into_values().collect(),
        }
    }

    /// Samples in which ours is wrong, or nobody knows who is.
    pub fn faults(&self) -> u64 {
        let faults = self.disagreements.iter().filter(|disagreement| disagreement.is_fault());
        faults.map(|disagreement| disagreement.count).sum::<u64>() + self.kernel_differs
    }
}

/// The sides part at the last frame that they share, or have parted in another register at one before it, which only
/// shows there.
fn explain(tally: &Tally, parting: &Parting) -> Option<Kind> {
    parting.frames.iter().find_map(|site| {
        let source = tally.sources.get(&site.object)?;
        let mode = if site.called { Mode::Called } else { Mode::Interrupted };
        rows::kind_at(&source.image, site.offset, mode)
    })
}

fn describe(tally: &Tally, site: &Site, parting: &Parting) -> String {
    let place = tally.sources.get(&site.object).map_or("(no file)", |source| &source.path);
    let called = if site.called { "called from" } else { "interrupted" };
    let Parting { count, ours, theirs, .. } = parting;
    format!("{count} x {called} {place}+{:#x}: ours {ours:?}, framehop {theirs:?}", site.offset)
}

/// All programs.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Report {
    /// One each.
    pub programs: Vec<ProgramReport>,
    /// Programs that could not be run, and what they lack.
    pub missing: Vec<String>,
}

/// Least share of samples without a fault of ours.
const RIGHT: f64 = 0.999;

impl Report {
    /// Whether at least 99.9 % of the stacks are equal, or differ for a known reason that is not ours.
    pub fn holds(&self) -> bool {
        let (samples, faults) = self.total(|program| (program.samples, program.faults()));
        samples > 0 && faults as f64 <= (1.0 - RIGHT) * samples as f64
    }

    fn total(&self, of: impl Fn(&ProgramReport) -> (u64, u64)) -> (u64, u64) {
        self.programs.iter().map(of).fold((0, 0), |(a, b), (c, d)| (a + c, b + d))
    }
}

fn percent(part: u64, whole: u64) -> f64 {
    100.0 * part as f64 / whole.max(1) as f64
}

impl fmt::Display for ProgramReport {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let equal = self.equal + self.equal_in_copy;
        writeln!(
            out,
            "{}: {} samples, {} frames; equal {:.2} % ({} of them up to the end of the copy); faults {}",
            self.name,
            self.samples,
            self.frames,
            percent(equal, self.samples),
            self.equal_in_copy,
            self.faults(),
        )?;
        writeln!(
            out,
            "  walked in the kernel: {:.1} %, of which {} differ from the same walk in user space",
            percent(self.in_kernel, self.samples),
            self.kernel_differs
        )?;
        for (stop, count) in &self.stops {
            writeln!(out, "  ends: {:.2} % {stop}", percent(*count, self.samples))?;
        }
        for Disagreement { why, count, examples, .. } in &self.disagreements {
            writeln!(out, "  {count} differ ({:.2} %): {why}", percent(*count, self.samples))?;
            examples.iter().try_for_each(|example| writeln!(out, "    {example}"))?;
        }
        Ok(())
    }
}

impl fmt::Display for Report {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for missing in &self.missing {
            writeln!(out, "not run: {missing}")?;
        }
        let (samples, equal) = self.total(|program| (program.samples, program.equal + program.equal_in_copy));
        let (_, faults) = self.total(|program| (0, program.faults()));
        writeln!(
            out,
            "{} programs, {samples} stacks: {:.3} % equal to framehop's, {:.3} % equal or with a known reason",
            self.programs.len(),
            percent(equal, samples),
            percent(samples - faults.min(samples), samples),
        )
    }
}
