//! What the sampler has done between two moments: its runs, and what of them was samples of the target.

use abi::counter::Counter;
use anyhow::{Context, Result};

use crate::bpf::{self, Runs};
use crate::harness::Figures;
use crate::profiler::Profiling;

/// The sampler at one moment.
pub struct Look {
    runs: Runs,
    counters: [u64; Counter::COUNT],
}

impl Look {
    /// At this moment.
    ///
    /// # Errors
    /// If the profiler is gone or has no sampler.
    pub fn at(profiling: &Profiling) -> Result<Look> {
        let runs = bpf::runs(profiling.pid())?.get("sample").copied().context("no program named sample")?;
        Ok(Look { runs, counters: bpf::counters(profiling.pid())? })
    }
}

/// What samples took.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Cost {
    /// Nanoseconds of a run, whoever it hit.
    run: f64,
    /// Nanoseconds of a run that hit nobody who is followed.
    idle: f64,
    /// Nanoseconds of a sample of the target.
    pub each: f64,
    samples: u64,
    deferred: u64,
}

impl Cost {
    /// From `before` to `after`. From `attached` to `before` the target did not work: those runs tell what one costs that hits
    /// others. `None` without samples.
    pub fn between(attached: &Look, before: &Look, after: &Look) -> Option<Cost> {
        let idle = before.runs.since(attached.runs).mean()?;
        let work = after.runs.since(before.runs);
        let of = |counter: Counter| after.counters[counter as usize] - before.counters[counter as usize];
        let deferred = of(Counter::Deferred);
        let samples = of(Counter::Counted) + deferred;
        if samples == 0 {
            return None;
        }
        let others = work.count.saturating_sub(samples) as f64 * idle;
        let each = (work.nanoseconds as f64 - others) / samples as f64;
        Some(Cost { run: work.mean()?, idle, each, samples, deferred })
    }

    /// By name.
    pub fn figures(self) -> Figures {
        Figures::from([
            ("ns a run", self.run),
            ("ns an idle run", self.idle),
            ("ns a sample", self.each),
            ("samples", self.samples as f64),
            ("deferred", self.deferred as f64),
        ])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(count: u64, nanoseconds: u64, idle: u64, counted: u64, deferred: u64) -> Look {
        let mut counters = [0; Counter::COUNT];
        counters[Counter::Idle as usize] = idle;
        counters[Counter::Counted as usize] = counted;
        counters[Counter::Deferred as usize] = deferred;
        Look { runs: Runs { count, nanoseconds }, counters }
    }

    #[test]
    fn idle_runs_are_taken_off() {
        // 10 idle runs of 200 ns; then 10 more and 5 samples of 4000 ns, of which one is deferred
        let (attached, before) = (at(0, 0, 0, 0, 0), at(10, 2000, 10, 0, 0));
        let figures = Cost::between(&attached, &before, &at(25, 24_000, 20, 4, 1)).expect("samples").figures();
        assert_eq!((figures["ns an idle run"], figures["ns a sample"]), (200.0, 4000.0));
        assert_eq!((figures["samples"], figures["deferred"]), (5.0, 1.0));
        assert_eq!(Cost::between(&attached, &before, &at(30, 9000, 30, 0, 0)), None);
    }
}
