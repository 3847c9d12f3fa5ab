//! Raw frames to named ones: from the words of a stack to the functions, files and lines of a profile.
//!
//! [`attribute`] takes stacks and counts as they come from a recording, asks the namers of [`symbols`] once for each
//! distinct address, and builds a [`profile::Profile`]. What the words refer to (objects by number, perf maps by
//! process) comes from [`Sources`]; where that comes from, and how stacks were taken, is not known here.

mod frames;
mod native;
mod python_frames;
mod stops;
mod wanted;

use profile::{Builder, ProcessId, Profile};
use python::code_object::CodeObject;
use rustc_hash::FxHashMap;
use symbols::{ObjectFile, PerfMap, Reason};

use crate::frames::Frames;
use crate::python_frames::{Tallies, in_doubt, mark_eval_loops_of_before};
use crate::stops::Stops;
use crate::wanted::Wanted;

/// An executable file that words refer to.
pub struct Object<'a> {
    /// Path, or a name in brackets.
    pub path: &'a str,
    /// Build-id in hexadecimal digits.
    pub build_id: Option<String>,
    /// The open file; `None` if it could not be opened.
    pub file: Option<&'a ObjectFile>,
}

/// What words refer to.
pub trait Sources {
    /// The object with this number.
    fn object(&self, number: u32) -> Option<Object<'_>>;
    /// The perf map of a process.
    fn perf_map(&self, instance: u64) -> Option<&PerfMap>;
    /// A code object of a process, by its address and its check; `None` if it could not be read in time.
    fn code_object(&self, instance: u64, code: u64, check: u32) -> Option<&CodeObject> {
        let _ = (instance, code, check);
        None
    }
    /// Whether a place in an object is in the eval loop of a process's interpreter that was proven.
    fn is_eval_loop(&self, instance: u64, object: u32, offset: u64) -> bool {
        let _ = (instance, object, offset);
        false
    }
    /// What is to be said of a process's interpreters, a line each.
    fn interpreters(&self, instance: u64) -> Vec<String> {
        let _ = instance;
        Vec::new()
    }
    /// Name and command line of a process.
    fn process(&self, instance: u64) -> Option<ProcessLabel>;
}

/// How a process is called.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ProcessLabel {
    /// Process id.
    pub pid: u32,
    /// Name of its first thread.
    pub name: String,
    /// Command line, arguments joined by blanks.
    pub command_line: Option<String>,
}

/// A thread under one name.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ThreadLabel {
    /// Number of its process, unique in a recording.
    pub instance: u64,
    /// Process id.
    pub pid: u32,
    /// Thread id.
    pub tid: u32,
    /// Name.
    pub name: String,
}

/// How often a thread had a stack.
pub struct RawSample {
    /// The thread.
    pub thread: ThreadLabel,
    /// Words ([`abi::word`]), innermost first.
    pub words: Vec<u64>,
    /// How often.
    pub count: u64,
}

/// Why names are missing, for the user.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Unnamed {
    /// Path of the object, or `kernel`.
    pub of: String,
    /// The reason.
    pub reason: Reason,
    /// Frames without a name there.
    pub frames: u64,
}

/// A profile and what is missing in it.
pub struct Attributed {
    /// The profile; `meta` has stops and statuses and nothing else.
    pub profile: Profile,
    /// Missing names, most frames first.
    pub unnamed: Vec<Unnamed>,
}

/// Names everything and builds the profile.
pub fn attribute(mut samples: Vec<RawSample>, sources: &dyn Sources) -> Attributed {
    let mut builder = Builder::default();
    refuse_doubtful_frames(&mut samples, sources);
    let wanted = Wanted::collect(&samples);
    let mut frames = Frames::name(&wanted, sources, &mut builder);
    let mut stops = Stops::default();
    let mut processes = FxHashMap::default();
    let mut tallies = Tallies::default();
    for sample in &samples {
        let process = *processes
            .entry((sample.thread.instance, sample.thread.pid))
            .or_insert_with(|| add_process(&mut builder, &sample.thread, sources));
        let thread = builder.thread(process, sample.thread.tid, &sample.thread.name);
        let stack = frames.stack(sample, sources, &mut builder);
        builder.add(thread, stack, sample.count);
        stops.add(process, sample, sources);
        tallies.add(sample);
    }
    let unnamed = frames.unnamed();
    let mut profile = builder.finish();
    stops.finish(&mut profile);
    profile.meta.interpreters = tallies.lines(sources);
    Attributed { profile, unnamed }
}

fn refuse_doubtful_frames(samples: &mut [RawSample], sources: &dyn Sources) {
    for sample in samples {
        match in_doubt(&sample.words) {
            Some(words) => sample.words = words,
            None => mark_eval_loops_of_before(sample, sources),
        }
    }
}

fn add_process(builder: &mut Builder, thread: &ThreadLabel, sources: &dyn Sources) -> ProcessId {
    let label = sources.process(thread.instance);
    let name = label.as_ref().map_or(thread.name.as_str(), |label| label.name.as_str());
    let process = builder.process(thread.pid, name);
    if let Some(line) = label.as_ref().and_then(|label| label.command_line.as_ref()) {
        builder.set_command_line(process, line);
    }
    process
}

/// The last part of a path.
fn base_name(path: &str) -> &str {
    path.rsplit('/').next().filter(|name| !name.is_empty()).unwrap_or(path)
}
