//! JSON for [speedscope](https://www.speedscope.app), by its `file-format-schema.json` (release 1.25).
//!
//! The first profile is that of all threads together, each stack below its process and thread; then comes one per
//! thread, the busiest first. All are of type `sampled`, their stacks weighted by numbers of samples.
//!
//! Speedscope takes each entry of its list of frames for a function of its own. So an entry is a (name, file,
//! line): the line is that of the function's beginning, or the current one where lines were asked for. A function
//! whose source is not known has its module as file, which is also what speedscope colours by.
//!
//! `comments`, which is not in the schema and which speedscope does not show, has what is to be known of the recording, its
//! interpreters and its processes, a text each.

use std::collections::HashMap;
use std::io::Write;

use profile::{FrameId, Profile, Sample, ThreadId};
use serde::Serialize;
use serde::ser::{SerializeSeq, Serializer};

use crate::{Error, comments};

const SCHEMA: &str = "https://www.speedscope.app/file-format-schema.json";

/// Writes the JSON.
pub fn write(profile: &Profile, out: &mut dyn Write) -> Result<(), Error> {
    let frames = Frames::new(profile);
    let file = File {
        schema: SCHEMA,
        name: &profile.meta.target,
        exporter: format!("wholestack {}", profile.meta.version),
        active_profile_index: 0,
        shared: Shared { frames: &frames.list },
        profiles: profiles(profile, &frames),
        comments: [comments::of_recording(&profile.meta), comments::of_processes(&profile.meta)].concat(),
    };
    let mut json = serde_json::Serializer::new(out);
    file.serialize(&mut json).map_err(|error| Error::Io(error.into()))
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct File<'a> {
    #[serde(rename = "$schema")]
    schema: &'static str,
    name: &'a str,
    exporter: String,
    active_profile_index: u32,
    shared: Shared<'a>,
    profiles: Vec<Sampled<'a>>,
    comments: Vec<String>,
}

#[derive(Serialize)]
struct Shared<'a> {
    frames: &'a [Frame<'a>],
}

/// A frame; the order of its fields is that of the schema's documentation.
#[derive(Serialize, Clone, Copy, PartialEq, Eq, Hash)]
struct Frame<'a> {
    name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<u32>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Sampled<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    name: String,
    unit: &'static str,
    start_value: u64,
    end_value: u64,
    samples: Stacks<'a>,
    weights: Weights<'a>,
}

/// The list of frames, and where the model's frames and names of tasks are in it.
struct Frames<'a> {
    list: Vec<Frame<'a>>,
    of_frame: Vec<usize>,
    of_process: Vec<usize>,
    of_thread: Vec<usize>,
}

impl<'a> Frames<'a> {
    fn new(profile: &'a Profile) -> Frames<'a> {
        let mut ids: HashMap<Frame<'a>, usize> = HashMap::new();
        let mut list = Vec::new();
        let mut id = |frame: Frame<'a>| {
            *ids.entry(frame).or_insert_with(|| {
                list.push(frame);
                list.len() - 1
            })
        };
        let of_frame = (0..profile.frames.len() as u32).map(|at| id(frame(profile, FrameId(at)))).collect();
        let mut task = |name| id(Frame { name: profile.text(name), file: None, line: None });
        let of_process = profile.processes.iter().map(|process| task(process.name)).collect();
        let of_thread = profile.threads.iter().map(|thread| task(thread.name)).collect();
        Frames { list, of_frame, of_process, of_thread }
    }
}

fn frame(profile: &Profile, id: FrameId) -> Frame<'_> {
    let key = &profile.frames[id.index()];
    let function = profile.function_of(id);
    let source = function.file.map(|file| profile.text(file));
    let module = function.module.map(|module| profile.text(profile.modules[module.index()].path));
    let line = if profile.meta.lines { key.line } else { function.start_line };
    Frame {
        name: profile.text(function.name),
        file: source.or(module),
        line: Some(line).filter(|line| *line != 0 && source.is_some()),
    }
}

/// The profile of all threads, and one of each that has samples.
fn profiles<'a>(profile: &'a Profile, frames: &'a Frames<'a>) -> Vec<Sampled<'a>> {
    let mut of_thread: Vec<Vec<&Sample>> = vec![Vec::new(); profile.threads.len()];
    for sample in &profile.samples {
        of_thread[sample.thread.index()].push(sample);
    }
    let mut threads: Vec<(usize, u64)> = of_thread.iter().map(|samples| sum(samples)).enumerate().collect();
    threads.retain(|(_, total)| *total > 0);
    threads.sort_by_key(|(_, total)| std::cmp::Reverse(*total));
    let one_of_each = threads.into_iter().map(|(id, _)| {
        let samples = std::mem::take(&mut of_thread[id]);
        sampled(profile, frames, thread_name(profile, ThreadId(id as u32)), samples, false)
    });
    let all = sampled(profile, frames, "all threads".to_owned(), profile.samples.iter().collect(), true);
    std::iter::once(all).chain(one_of_each).collect()
}

fn thread_name(profile: &Profile, id: ThreadId) -> String {
    let thread = &profile.threads[id.index()];
    let process = &profile.processes[thread.process.index()];
    let (process_name, name) = (profile.text(process.name), profile.text(thread.name));
    if process_name == name && process.pid == thread.tid {
        format!("{name} ({})", process.pid)
    } else {
        format!("{process_name} ({}) / {name} ({})", process.pid, thread.tid)
    }
}

fn sampled<'a>(
    profile: &'a Profile,
    frames: &'a Frames<'a>,
    name: String,
    samples: Vec<&'a Sample>,
    with_tasks: bool,
) -> Sampled<'a> {
    Sampled {
        kind: "sampled",
        name,
        unit: "none",
        start_value: 0,
        end_value: sum(&samples),
        weights: Weights(samples.clone()),
        samples: Stacks { profile, frames, samples, with_tasks },
    }
}

fn sum(samples: &[&Sample]) -> u64 {
    samples.iter().fold(0, |total: u64, sample| total.saturating_add(sample.count))
}

struct Weights<'a>(Vec<&'a Sample>);

impl Serialize for Weights<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.iter().map(|sample| sample.count))
    }
}

/// The stacks of samples, outermost frame first. Written one by one, never in memory together.
struct Stacks<'a> {
    profile: &'a Profile,
    frames: &'a Frames<'a>,
    samples: Vec<&'a Sample>,
    with_tasks: bool,
}

impl Stacks<'_> {
    fn tasks(&self, sample: &Sample) -> impl Iterator<Item = usize> {
        let thread = &self.profile.threads[sample.thread.index()];
        let process = self.frames.of_process[thread.process.index()];
        let thread = self.frames.of_thread[sample.thread.index()];
        // innermost first, as frames_of
        [(thread != process).then_some(thread), Some(process)].into_iter().flatten().filter(|_| self.with_tasks)
    }
}

impl Serialize for Stacks<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut list = serializer.serialize_seq(Some(self.samples.len()))?;
        let mut stack = Vec::new();
        for sample in &self.samples {
            stack.clear();
            stack.extend(self.profile.frames_of(sample.stack).map(|frame| self.frames.of_frame[frame.index()]));
            stack.extend(self.tasks(sample));
            stack.reverse();
            list.serialize_element(&stack)?;
        }
        list.end()
    }
}
