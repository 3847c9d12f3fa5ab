//! The profile as bytes for the page's script (`viewer/profile.js` reads them).
//!
//! Numbers are LEB128; a column is its length and its numbers. In this order:
//!
//! | part | content |
//! |---|---|
//! | header | length, then JSON: see [`Header`] |
//! | strings | columns *shared* and *rest* (lengths in UTF-16 units), then the rests: length, UTF-8 |
//! | functions | columns: name (zigzag difference to the previous one), kind, file + 1, first line, module + 1 |
//! | modules | column: string |
//! | frames | columns: function, line, inlined |
//! | nodes | columns: levels up from a child of the previous node, frame |
//! | processes | columns: pid, name, command line + 1 |
//! | threads | columns: process, tid, name |
//! | samples | columns: node + 1 (difference to the previous one; 0 is the empty stack), thread, count |
//!
//! "+ 1" leaves 0 for "none". Functions, frames and nodes that no sample uses are left out.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::time::SystemTime;

use profile::{FunctionId, FunctionKey, Kind, Losses, Meta, Module, ModuleId, Profile, StopCount};
use serde::Serialize;

use super::columns::{put_bytes, put_column, zigzag};
use super::strings::{Strings, visible};
use super::tree::PageTree;

/// What the page says about the recording.
#[derive(Serialize)]
struct Header<'a> {
    version: &'a str,
    command: Cow<'a, str>,
    target: Cow<'a, str>,
    host: Cow<'a, str>,
    kernel: &'a str,
    /// Seconds since 1970; null where the recording's start is not known.
    start: Option<f64>,
    /// Seconds.
    duration: f64,
    /// Samples per second and CPU; 0 = not known.
    frequency: u32,
    event: &'a str,
    /// Whether lines are shown at first.
    lines: bool,
    /// Names of the kinds, by the numbers used in the column of functions.
    kinds: Vec<&'static str>,
    losses: Vec<LossRow<'a>>,
    stops: Vec<StopRow<'a>>,
    statuses: Vec<StatusRow<'a>>,
    /// A line each.
    interpreters: Vec<Cow<'a, str>>,
}

#[derive(Serialize)]
struct LossRow<'a> {
    cause: Cow<'a, str>,
    count: u64,
}

#[derive(Serialize)]
struct StopRow<'a> {
    reason: Cow<'a, str>,
    whole: bool,
    count: u64,
}

#[derive(Serialize)]
struct StatusRow<'a> {
    pid: u32,
    name: Cow<'a, str>,
    samples: u64,
    stops: Vec<StopRow<'a>>,
}

impl<'a> Header<'a> {
    fn new(meta: &'a Meta) -> Header<'a> {
        let since_1970 = meta.start.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let losses = meta.losses.iter().map(|Losses { cause, count }| LossRow { cause: visible(cause), count: *count });
        Header {
            version: &meta.version,
            command: visible(&meta.command_line),
            target: visible(&meta.target),
            host: visible(&meta.host),
            kernel: &meta.kernel,
            start: (!since_1970.is_zero()).then_some(since_1970.as_secs_f64()),
            duration: meta.duration.as_secs_f64(),
            frequency: meta.frequency,
            event: &meta.event,
            lines: meta.lines,
            kinds: Kind::ALL.iter().map(|kind| kind.name()).collect(),
            losses: losses.collect(),
            stops: stop_rows(&meta.stops),
            statuses: meta
                .statuses
                .iter()
                .map(|status| StatusRow {
                    pid: status.pid,
                    name: visible(&status.name),
                    samples: status.samples,
                    stops: stop_rows(&status.stops),
                })
                .collect(),
            interpreters: meta.interpreters.iter().map(|line| visible(line)).collect(),
        }
    }
}

fn stop_rows(stops: &[StopCount]) -> Vec<StopRow<'_>> {
    stops.iter().map(|stop| StopRow { reason: visible(&stop.reason), whole: stop.whole, count: stop.count }).collect()
}

/// The profile as bytes.
pub(super) fn encode(profile: &Profile) -> Result<Vec<u8>, serde_json::Error> {
    let tree = PageTree::new(profile);
    let functions = used_functions(profile, &tree);
    let modules = used_modules(&functions);
    let strings = strings(profile, &functions, &modules);
    let mut out = Vec::new();
    put_bytes(&mut out, &serde_json::to_vec(&Header::new(&profile.meta))?);
    strings.put(&mut out);
    put_functions(&mut out, profile, &functions, &modules, &strings);
    put_column(&mut out, modules.keys().map(|module| strings.number(module_path(profile, *module))));
    put_frames(&mut out, &tree, &functions);
    put_nodes(&mut out, &tree);
    put_threads(&mut out, profile, &strings);
    put_samples(&mut out, profile, &tree);
    Ok(out)
}

/// The functions of the tree's frames, by name.
fn used_functions<'a>(profile: &'a Profile, tree: &PageTree) -> Vec<(FunctionId, &'a FunctionKey)> {
    let mut ids: Vec<FunctionId> = tree.frames.iter().map(|frame| frame.function).collect();
    ids.sort_unstable();
    ids.dedup();
    let mut functions: Vec<_> = ids.into_iter().map(|id| (id, &profile.functions[id.index()])).collect();
    functions.sort_by_key(|(id, function)| (profile.text(function.name), *id));
    functions
}

/// Their modules, with their numbers in the page.
fn used_modules(functions: &[(FunctionId, &FunctionKey)]) -> BTreeMap<ModuleId, u64> {
    let mut modules: BTreeMap<ModuleId, u64> =
        functions.iter().filter_map(|(_, function)| function.module).map(|module| (module, 0)).collect();
    for (number, place) in modules.values_mut().enumerate() {
        *place = number as u64;
    }
    modules
}

fn module_path(profile: &Profile, module: ModuleId) -> &str {
    let Module { path, .. } = &profile.modules[module.index()];
    profile.text(*path)
}

fn strings<'a>(
    profile: &'a Profile,
    functions: &[(FunctionId, &FunctionKey)],
    modules: &BTreeMap<ModuleId, u64>,
) -> Strings<'a> {
    let names = functions.iter().map(|(_, function)| function.name);
    let files = functions.iter().filter_map(|(_, function)| function.file);
    let processes = profile.processes.iter().flat_map(|process| [Some(process.name), process.command_line]).flatten();
    let threads = profile.threads.iter().map(|thread| thread.name);
    let texts = names.chain(files).chain(processes).chain(threads).map(|text| profile.text(text));
    Strings::new(texts.chain(modules.keys().map(|module| module_path(profile, *module))))
}

fn put_functions(
    out: &mut Vec<u8>,
    profile: &Profile,
    functions: &[(FunctionId, &FunctionKey)],
    modules: &BTreeMap<ModuleId, u64>,
    strings: &Strings<'_>,
) {
    let text = |text| strings.number(profile.text(text));
    let mut previous = 0;
    let names = functions.iter().map(|(_, function)| {
        let name = text(function.name) as i64;
        zigzag(name - std::mem::replace(&mut previous, name))
    });
    put_column(out, names);
    put_column(out, functions.iter().map(|(_, function)| kind_number(function.kind)));
    put_column(out, functions.iter().map(|(_, function)| function.file.map_or(0, |file| text(file) + 1)));
    put_column(out, functions.iter().map(|(_, function)| function.start_line.into()));
    put_column(out, functions.iter().map(|(_, function)| function.module.map_or(0, |module| modules[&module] + 1)));
}

fn kind_number(kind: Kind) -> u64 {
    Kind::ALL.iter().position(|known| *known == kind).unwrap_or(Kind::ALL.len()) as u64
}

fn put_frames(out: &mut Vec<u8>, tree: &PageTree, functions: &[(FunctionId, &FunctionKey)]) {
    let length = functions.iter().map(|(id, _)| id.index() + 1).max().unwrap_or(0);
    let mut numbers = vec![0u64; length];
    for (number, (id, _)) in functions.iter().enumerate() {
        numbers[id.index()] = number as u64;
    }
    put_column(out, tree.frames.iter().map(|frame| numbers[frame.function.index()]));
    put_column(out, tree.frames.iter().map(|frame| frame.line.into()));
    put_column(out, tree.frames.iter().map(|frame| frame.inlined.into()));
}

fn put_nodes(out: &mut Vec<u8>, tree: &PageTree) {
    // an outermost node is a child of the root, which comes before all others
    let mut child_depth = 0;
    let up = tree.nodes.iter().map(|node| {
        let up = child_depth - node.depth;
        child_depth = node.depth + 1;
        u64::from(up)
    });
    put_column(out, up);
    put_column(out, tree.nodes.iter().map(|node| node.frame.into()));
}

fn put_threads(out: &mut Vec<u8>, profile: &Profile, strings: &Strings<'_>) {
    let text = |text| strings.number(profile.text(text));
    let processes = &profile.processes;
    put_column(out, processes.iter().map(|process| process.pid.into()));
    put_column(out, processes.iter().map(|process| text(process.name)));
    put_column(out, processes.iter().map(|process| process.command_line.map_or(0, |line| text(line) + 1)));
    let threads = &profile.threads;
    put_column(out, threads.iter().map(|thread| thread.process.0.into()));
    put_column(out, threads.iter().map(|thread| thread.tid.into()));
    put_column(out, threads.iter().map(|thread| text(thread.name)));
}

fn put_samples(out: &mut Vec<u8>, profile: &Profile, tree: &PageTree) {
    let mut samples: BTreeMap<(u64, u32), u64> = BTreeMap::new();
    for sample in &profile.samples {
        let node = sample.stack.map_or(0, |stack| u64::from(tree.place(stack)) + 1);
        // stacks that differ in what the page does not show have become one
        let count = samples.entry((node, sample.thread.0)).or_default();
        *count = count.saturating_add(sample.count);
    }
    let mut previous = 0;
    put_column(out, samples.keys().map(|(node, _)| node - std::mem::replace(&mut previous, *node)));
    put_column(out, samples.keys().map(|(_, thread)| u64::from(*thread)));
    put_column(out, samples.values().copied());
}

#[cfg(test)]
mod tests;
