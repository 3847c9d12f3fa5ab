//! Native stacks, named.

use attribution::{Attributed, Object, ProcessLabel, RawSample, Sources, ThreadLabel, attribute};
use inspect::Files;
use profile::{FrameId, Kind, Profile};
use rustc_hash::FxHashMap;
use symbols::PerfMap;

use super::report::{NativeFrame, NativeStack};

/// Names the stacks of threads: words by thread id.
pub(super) fn name(files: &Files, words: Vec<(u32, Vec<u64>)>) -> FxHashMap<u32, NativeStack> {
    let pid = files.pid();
    let samples: Vec<RawSample> = words
        .into_iter()
        .map(|(tid, words)| RawSample {
            thread: ThreadLabel { instance: 0, pid, tid, name: String::new() },
            words,
            count: 1,
        })
        .collect();
    let sources = OfProcess { files, perf_map: PerfMap::open(pid).ok() };
    let Attributed { profile, .. } = attribute(samples, &sources);
    let stacks = profile.samples.iter().map(|sample| {
        let frames: Vec<FrameId> = profile.frames_of(sample.stack).collect();
        let whole = frames.last().is_none_or(|frame| profile.function_of(*frame).kind != Kind::Marker);
        let frames = frames.into_iter().map(|frame| named(&profile, frame)).collect();
        (profile.threads[sample.thread.index()].tid, NativeStack { frames, whole })
    });
    stacks.collect()
}

fn named(profile: &Profile, id: FrameId) -> NativeFrame {
    let frame = &profile.frames[id.index()];
    let function = profile.function_of(id);
    let module = function.module.map(|module| profile.text(profile.modules[module.index()].path).to_owned());
    NativeFrame { name: profile.label(id, true), module, offset: frame.offset, inlined: frame.inlined }
}

struct OfProcess<'a> {
    files: &'a Files,
    perf_map: Option<PerfMap>,
}

impl Sources for OfProcess<'_> {
    fn object(&self, number: u32) -> Option<Object<'_>> {
        self.files.object(number)
    }

    fn perf_map(&self, _instance: u64) -> Option<&PerfMap> {
        self.perf_map.as_ref()
    }

    fn process(&self, _instance: u64) -> Option<ProcessLabel> {
        None
    }
}
