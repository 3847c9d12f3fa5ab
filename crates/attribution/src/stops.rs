//! How user stacks ended: the bracketed frame, and the sums by reason and process.

use std::collections::HashMap;

use abi::stop::Stop;
use abi::table::unsupported;
use abi::word::Word;
use profile::{ProcessId, ProcessStatus, Profile, StopCount};
use rustc_hash::FxHashMap;

use crate::{RawSample, Sources, base_name};

/// Counts by process and reason.
#[derive(Default)]
pub(crate) struct Stops {
    counts: FxHashMap<ProcessId, HashMap<(String, bool), u64>>,
}

impl Stops {
    /// Notes how the stack of a sample ended.
    pub(crate) fn add(&mut self, process: ProcessId, sample: &RawSample, sources: &dyn Sources) {
        let Some(Word::End { stop, detail, more }) = sample.words.last().map(|word| Word::decode(*word)) else {
            return;
        };
        let whole = Stop::from_code(stop).is_some_and(Stop::is_whole);
        let key = (reason(stop, detail, more, sources), whole);
        *self.counts.entry(process).or_default().entry(key).or_default() += sample.count;
    }

    /// Writes the sums into the profile.
    pub(crate) fn finish(self, profile: &mut Profile) {
        let mut all: HashMap<(String, bool), u64> = HashMap::new();
        for (process, counts) in self.counts {
            counts.iter().for_each(|(key, count)| *all.entry(key.clone()).or_default() += count);
            let process = &profile.processes[process.index()];
            let name = profile.text(process.name).to_owned();
            let samples = counts.values().sum();
            let status = ProcessStatus { pid: process.pid, name, samples, stops: sorted(counts) };
            profile.meta.statuses.push(status);
        }
        profile.meta.statuses.sort_by_key(|status| (std::cmp::Reverse(status.samples), status.pid));
        profile.meta.stops = sorted(all);
    }
}

fn sorted(counts: HashMap<(String, bool), u64>) -> Vec<StopCount> {
    let mut stops: Vec<StopCount> =
        counts.into_iter().map(|((reason, whole), count)| StopCount { reason, whole, count }).collect();
    stops.sort_by(|a, b| b.count.cmp(&a.count).then_with(|| a.reason.cmp(&b.reason)));
    stops
}

/// The outermost frame that says why a stack is not whole; `None` if it is, or has no user part.
pub(crate) fn marker(stop: u8, detail: u32, more: u8, sources: &dyn Sources) -> Option<String> {
    match Stop::from_code(stop) {
        Some(Stop::Root | Stop::NoUserStack) => None,
        Some(stop @ (Stop::Exiting | Stop::Execing)) => Some(stop.text().to_owned()),
        _ => Some(format!("stopped: {}", reason(stop, detail, more, sources))),
    }
}

fn reason(stop: u8, detail: u32, more: u8, sources: &dyn Sources) -> String {
    let Some(stop) = Stop::from_code(stop) else { return format!("unknown reason {stop}") };
    let text = match stop {
        Stop::UnsupportedRule => format!("{} ({})", stop.text(), unsupported_text(more)),
        _ => stop.text().to_owned(),
    };
    match sources.object(detail) {
        Some(object) if !stop.is_whole() && detail != 0 => format!("{text} in {}", base_name(object.path)),
        // only code in no file has no object there
        None if matches!(stop, Stop::NoUnwindInfo | Stop::NoCall) => format!("{text} in code in no file"),
        _ => text,
    }
}

fn unsupported_text(reason: u8) -> &'static str {
    match reason {
        unsupported::CFA_EXPRESSION => "CFA expression",
        unsupported::RETURN_ADDRESS => "return address elsewhere",
        unsupported::TOO_MANY_RULES => "too many distinct rules",
        unsupported::BAD_FDE => "damaged FDE",
        unsupported::OFFSET => "offset too large",
        _ => "unknown form",
    }
}
