//! What all measures share: the measured program, the workloads, and how long and how often.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::{Result, ensure};

use crate::private_cache::PrivateCache;
use crate::profiler::{Job, Target, Tool};
use crate::workload::{Workload, Workloads};

/// How `calls` is asked to work: `DEPTH` of its recursion and the share of it, in percent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Shape {
    /// Frames of the recursion.
    pub depth: u32,
    /// Share of the work that is done there.
    pub share: u32,
}

/// The usual mix: four fifths at about eight frames, one fifth 61 deep.
pub const MIX: Shape = Shape { depth: 60, share: 20 };

/// A series of measurements.
pub struct Bench {
    /// The program to measure.
    pub wholestack: PathBuf,
    /// What is profiled.
    pub workloads: Workloads,
    /// Its cache of tables.
    pub cache: PrivateCache,
    /// For profiles.
    pub directory: PathBuf,
    /// Rounds of each measure.
    pub rounds: usize,
    /// Shorter runs, which say less.
    pub quick: bool,
    outputs: AtomicUsize,
}

impl Bench {
    /// In a directory of its own.
    ///
    /// # Errors
    /// If workloads cannot be compiled or the cache cannot be put in its place.
    pub fn new(wholestack: PathBuf, directory: &Path, rounds: usize, quick: bool) -> Result<Bench> {
        ensure!(
            wholestack.is_file(),
            "{}: there is no such program; build it or give --wholestack",
            wholestack.display()
        );
        let cache = PrivateCache::install(directory)?;
        let workloads = Workloads::build(directory)?;
        let directory = directory.to_owned();
        Ok(Bench { wholestack, workloads, cache, directory, rounds, quick, outputs: AtomicUsize::new(0) })
    }

    /// A time, or the shorter one.
    pub fn time(&self, usual: f64, quick: f64) -> Duration {
        Duration::from_secs_f64(if self.quick { quick } else { usual })
    }

    /// Ours.
    pub fn ours(&self) -> Tool {
        Tool::Wholestack(self.wholestack.clone())
    }

    /// A recording into a file of its own.
    pub fn job(&self, tool: Tool, target: Target, hertz: u32, extension: &str) -> Job {
        let number = self.outputs.fetch_add(1, Ordering::Relaxed);
        let extension = if matches!(tool, Tool::Wholestack(_)) { extension } else { "data" };
        let output = self.directory.join(format!("profile-{number}.{extension}"));
        Job { tool, target, hertz, output }
    }

    /// `calls` with so many rounds, waiting to begin; 0 rounds never end.
    ///
    /// # Errors
    /// If it cannot be started.
    pub fn calls(&self, rounds: u64, shape: Shape) -> Result<Workload> {
        let arguments = [rounds.to_string(), shape.depth.to_string(), shape.share.to_string()];
        self.workloads.start("calls", arguments)
    }

    /// Two endless ones, at work.
    ///
    /// # Errors
    /// If they cannot be started.
    pub fn busy_pair(&self) -> Result<[Workload; 2]> {
        let mut pair = [self.calls(0, MIX)?, self.calls(0, MIX)?];
        pair.iter_mut().try_for_each(Workload::go)?;
        Ok(pair)
    }

    /// Rounds of `calls` that take about so much CPU time here.
    ///
    /// # Errors
    /// If a trial run fails.
    pub fn rounds_for(&self, time: Duration, shape: Shape) -> Result<u64> {
        let trial = 4000;
        let mut workload = self.calls(trial, shape)?;
        workload.go()?;
        let each = workload.work()?.cpu / trial as f64;
        Ok((time.as_secs_f64() / each).ceil() as u64)
    }
}
