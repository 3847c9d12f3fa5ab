//! Looks at each sample of a recording and keeps count.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

use abi::stop::Stop;
use recorder::{Evidence, Witness};
use rustc_hash::FxHashMap;

use super::compare::{Next, Outcome, compare};
use super::modules::{Process, Source, Sources};
use super::stack::{Frame, Ours};
use crate::rows::Mode;

/// Frames that are compared of a stack; framehop has no way to begin in the middle.
const MOST_FRAMES: usize = 8192;

/// Counts of a recording.
#[derive(Default)]
pub(super) struct Tally {
    /// Samples with a user stack.
    pub(super) samples: u64,
    /// Walked in the kernel; the rest in user space, since the kernel did not know the process or a table yet.
    pub(super) in_kernel: u64,
    /// Of those, where the same walk in user space found something else, though no memory was missing.
    pub(super) kernel_differs: u64,
    /// Equal to their ends.
    pub(super) equal: u64,
    /// Equal as far as the copied memory goes.
    pub(super) equal_in_copy: u64,
    /// Frames that were compared and are equal.
    pub(super) frames: u64,
    /// Our stacks by how they end.
    pub(super) stops: BTreeMap<&'static str, u64>,
    /// Where the sides part.
    pub(super) sites: FxHashMap<Site, Parting>,
    /// Files of the sites.
    pub(super) sources: FxHashMap<u32, Arc<Source>>,
}

/// A place where the two sides part.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct Site {
    /// Number of the object; 0 outside all files.
    pub(super) object: u32,
    /// Offset in the file, or address.
    pub(super) offset: u64,
    pub(super) called: bool,
}

/// How often they part there, and how.
#[derive(Clone, Debug)]
pub(super) struct Parting {
    pub(super) count: u64,
    pub(super) ours: Next,
    pub(super) theirs: Next,
    /// The frames of the first such stack up to there, outermost first.
    pub(super) frames: Vec<Site>,
}

/// The judge; what it counts can be read when the recording is over.
pub(super) struct Judge {
    tally: Rc<RefCell<Tally>>,
    sources: Sources,
    processes: FxHashMap<u64, Process>,
}

impl Judge {
    pub(super) fn new(tally: Rc<RefCell<Tally>>) -> Judge {
        Judge { tally, sources: Sources::default(), processes: FxHashMap::default() }
    }

    fn compare(&mut self, evidence: &Evidence, ours: &Ours) -> Outcome {
        let process = self.processes.entry(evidence.instance);
        let process = process.or_insert_with(|| Process::new(evidence, &mut self.sources));
        if !process.is(evidence.mappings) {
            *process = Process::new(evidence, &mut self.sources);
        }
        // one more than ours has shows whether theirs goes on where ours ends
        let (frames, end) = process.walk(evidence, (ours.frames.len() + 1).min(MOST_FRAMES));
        let theirs: Vec<Frame> = frames.iter().map(|frame| Frame::of(*frame, evidence.mappings)).collect();
        let mut tally = self.tally.borrow_mut();
        tally.frames += ours.places().zip(&theirs).take_while(|(ours, theirs)| ours == *theirs).count() as u64;
        compare(ours, &theirs, end)
    }

    fn part(&mut self, evidence: &Evidence, frames: &[(Frame, Mode)], ours: Next, theirs: Next) {
        let frames: Vec<Site> = frames.iter().rev().map(|frame| Site::of(*frame)).collect();
        let Some(site) = frames.first().copied() else { return };
        let mut tally = self.tally.borrow_mut();
        for object in frames.iter().map(|site| site.object) {
            if let Some(source) = self.sources.get(evidence, object) {
                tally.sources.entry(object).or_insert(source);
            }
        }
        tally.sites.entry(site).or_insert(Parting { count: 0, ours, theirs, frames }).count += 1;
    }
}

impl Site {
    fn of((frame, mode): (Frame, Mode)) -> Site {
        let (object, offset) = match frame {
            Frame::File { object, offset } => (object, offset),
            Frame::Address(address) => (0, address),
        };
        Site { object, offset, called: mode == Mode::Called }
    }
}

impl Witness for Judge {
    fn see(&mut self, evidence: &Evidence) {
        let words = evidence.in_kernel.unwrap_or(evidence.in_user_space);
        let ours = Ours::of(words);
        if ours.frames.is_empty() || evidence.is_execing() {
            return;
        }
        {
            let mut tally = self.tally.borrow_mut();
            tally.samples += 1;
            *tally.stops.entry(ours.stop.map_or("none", Stop::text)).or_default() += 1;
            if let Some(words) = evidence.in_kernel {
                tally.in_kernel += 1;
                tally.kernel_differs += u64::from(!agree(words, evidence.in_user_space));
            }
        }
        match self.compare(evidence, &ours) {
            Outcome::Equal => self.tally.borrow_mut().equal += 1,
            Outcome::EqualInCopy => self.tally.borrow_mut().equal_in_copy += 1,
            Outcome::Differ { same, ours: next, theirs } => self.part(evidence, &ours.frames[..same], next, theirs),
        }
    }
}

/// Whether the walk over the copy is that of the kernel, up to where the copy ends.
fn agree(in_kernel: &[u64], in_user_space: &[u64]) -> bool {
    let (ours, theirs) = (Ours::of(in_kernel), Ours::of(in_user_space));
    if ours.cut || theirs.cut {
        return true;
    }
    if matches!(theirs.stop, Some(Stop::CopyEnds | Stop::UnreadableStack)) {
        return ours.frames.starts_with(&theirs.frames);
    }
    ours.frames == theirs.frames && ours.stop == theirs.stop
}
