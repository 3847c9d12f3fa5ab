//! Stacks, in whichever format they come.

use std::io::Read as _;
use std::path::Path;

use formats::pprof::messages::{Function, Location, Profile, Sample};
use prost::Message as _;

use super::label::{Label, Python, visible};
use super::truth::Told;
use crate::support::folded::{End, Stack};

/// How often a thread was seen in a stack.
#[derive(Clone, Debug)]
pub(crate) struct Sampled {
    pub(crate) thread: String,
    /// Outermost first.
    pub(crate) frames: Vec<Label>,
    pub(crate) count: u64,
    /// The process was ending: it had no stack any more.
    pub(crate) is_leaving: bool,
    /// As the format has it.
    pub(crate) shown: Vec<String>,
}

impl Sampled {
    /// From a line of a folded file, which has the thread's name only if it is not the process's.
    pub(crate) fn folded(stack: &Stack, told: &Told) -> Sampled {
        let is_thread = |name: &&String| told.threads.contains_key(*name) || told.cpu.contains_key(*name);
        let (thread, frames) = match stack.parts.get(1).filter(is_thread) {
            Some(name) => (name.as_str(), &stack.parts[2..]),
            None => (stack.process(), &stack.parts[1..]),
        };
        Sampled {
            thread: thread.to_owned(),
            frames: frames.iter().map(|part| Label::parse(part)).collect(),
            count: stack.count,
            is_leaving: stack.end() == End::Leaving,
            shown: stack.parts.clone(),
        }
    }
}

/// The stacks of a pprof file, which has the whole paths of files and first lines of functions.
pub(crate) fn pprof(file: &Path) -> Vec<Sampled> {
    let bytes = std::fs::read(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    let mut plain = Vec::new();
    flate2::read::GzDecoder::new(bytes.as_slice()).read_to_end(&mut plain).expect("gzip");
    let profile = Profile::decode(plain.as_slice()).expect("a profile");
    profile.sample.iter().map(|sample| of_pprof(&profile, sample)).collect()
}

fn of_pprof(profile: &Profile, sample: &Sample) -> Sampled {
    let text = |index: i64| profile.string_table[index as usize].clone();
    let named = |name: &str| {
        let label = sample.label.iter().find(|label| text(label.key) == name);
        label.map(|label| text(label.str)).unwrap_or_default()
    };
    let location = |id: &u64| profile.location.iter().find(|location| location.id == *id).expect("a location");
    let frames: Vec<Label> =
        sample.location_id.iter().rev().flat_map(|id| of_location(profile, location(id))).collect();
    Sampled {
        thread: named("thread"),
        count: sample.value[0] as u64,
        is_leaving: frames.iter().any(|frame| matches!(frame, Label::Native(name) if name.starts_with("[process "))),
        shown: frames.iter().map(|frame| format!("{frame:?}")).collect(),
        frames,
    }
}

/// Outermost first; what was inlined is in the location of its caller.
fn of_location<'a>(profile: &'a Profile, location: &'a Location) -> impl Iterator<Item = Label> + 'a {
    let function = |id: u64| profile.function.iter().find(|function| function.id == id).expect("a function");
    let is_kernel = profile.mapping.iter().any(|mapping| {
        mapping.id == location.mapping_id && profile.string_table[mapping.filename as usize].starts_with("[kernel")
    });
    location.line.iter().rev().map(move |line| of_function(profile, function(line.function_id), line.line, is_kernel))
}

/// Python functions have no system name; their name has the file's behind it.
fn of_function(profile: &Profile, function: &Function, line: i64, is_kernel: bool) -> Label {
    let text = |index: i64| profile.string_table[index as usize].as_str();
    let (name, file) = (text(function.name), text(function.filename));
    if is_kernel {
        return Label::Kernel(name.to_owned());
    }
    if function.system_name != 0 || name.starts_with('[') {
        return Label::parse(name);
    }
    let name = visible(name);
    let name = if file.is_empty() { name.as_str() } else { name.rsplit_once(" (").map_or("", |(name, _)| name) };
    Label::Python(Python {
        name: name.to_owned(),
        file: visible(file),
        line: u32::try_from(line).ok().filter(|line| *line != 0),
        first_line: u32::try_from(function.start_line).ok(),
    })
}
