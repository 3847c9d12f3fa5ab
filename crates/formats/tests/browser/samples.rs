//! Profiles for the page, and what their figures must be, computed another way.

use std::collections::{BTreeMap, BTreeSet};

use profile::{Builder, FrameId, FrameKey, FunctionKey, Kind, Module, ProcessId, Profile, Sample};

/// Numbers that look random and are the same every time (xorshift).
pub struct Numbers(pub u64);

impl Numbers {
    /// A number below `limit`.
    pub fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }
}

/// A frame of the one function of a name.
pub fn frame(builder: &mut Builder, name: &str, kind: Kind, inlined: bool, line: u32) -> FrameId {
    let path = builder.text(if kind == Kind::Kernel { "[kernel]" } else { "/usr/lib/libsample.so.1" });
    let module = Some(builder.module(Module { path, build_id: None }));
    let name = builder.text(name);
    let file = Some(builder.text("src/sample.c"));
    let function = builder.function(FunctionKey { name, kind, file, start_line: 10, module });
    builder.frame(FrameKey { line, inlined, ..FrameKey::of(function) })
}

/// A frame of a Python function.
pub fn python(builder: &mut Builder, name: &str, file: &str, start_line: u32, line: u32) -> FrameId {
    let name = builder.text(name);
    let file = Some(builder.text(file));
    let function = FunctionKey { name, kind: Kind::Python, file, start_line, module: None };
    let function = builder.function(function);
    builder.frame(FrameKey { line, ..FrameKey::of(function) })
}

/// A profile with three processes, five threads, recursion, inlined frames, lines, and empty stacks.
pub fn random_profile(seed: u64) -> Profile {
    let mut numbers = Numbers(seed * 2 + 1);
    let mut builder = Builder::default();
    let mut threads = Vec::new();
    for (pid, tids) in [(100, [100, 101]), (200, [200, 201]), (300, [300, 300])] {
        let process = builder.process(pid, &format!("process-{pid}"));
        threads.extend(tids.map(|tid| builder.thread(process, tid, &format!("thread-{tid}"))));
    }
    let mut stacks: Vec<Vec<FrameId>> = vec![Vec::new()];
    for _ in 0..300 {
        let base = &stacks[numbers.below(stacks.len() as u64) as usize];
        let mut stack = base[..numbers.below(base.len() as u64 + 1) as usize].to_vec();
        for _ in 0..numbers.below(6) {
            let function = numbers.below(20);
            let kind = Kind::ALL[function as usize % Kind::ALL.len()];
            let inlined = kind == Kind::Native && numbers.below(3) == 0;
            stack.push(frame(
                &mut builder,
                &format!("function_{function}"),
                kind,
                inlined,
                numbers.below(2) as u32 * 7,
            ));
        }
        let thread = threads[numbers.below(threads.len() as u64) as usize];
        let node = builder.stack(stack.iter().copied());
        builder.add(thread, node, 1 + numbers.below(50));
        stacks.push(stack);
    }
    builder.meta_mut().frequency = 99;
    builder.finish()
}

/// A profile of one thread; stacks of frame names from the outermost on.
pub fn plain_profile(stacks: &[(&[&str], u64)]) -> Profile {
    let mut builder = Builder::default();
    let process = builder.process(1, "process");
    let thread = builder.thread(process, 1, "thread");
    for (names, count) in stacks {
        let frames: Vec<_> = names.iter().map(|name| frame(&mut builder, name, Kind::Native, false, 0)).collect();
        let stack = builder.stack(frames);
        builder.add(thread, stack, *count);
    }
    builder.finish()
}

/// How the tests write a frame: its label, with `~` if it was inlined.
fn written(profile: &Profile, frame: FrameId, lines: bool) -> String {
    let inlined = if profile.frames[frame.index()].inlined { "~" } else { "" };
    format!("{}{inlined}", profile.label(frame, lines))
}

/// The function's name alone.
fn function_name(profile: &Profile, frame: FrameId) -> String {
    profile.text(profile.function_of(frame).name).to_owned()
}

/// Samples below each path of boxes, if each sample is drawn as `path` says.
pub fn tree(profile: &Profile, path: impl Fn(&Sample) -> Vec<String>) -> BTreeMap<String, u64> {
    let mut tree = BTreeMap::new();
    for sample in &profile.samples {
        let path = path(sample);
        for end in 1..=path.len() {
            *tree.entry(path[..end].join(" > ")).or_default() += sample.count;
        }
    }
    tree
}

/// The frames of a sample from the outermost on.
pub fn outermost_first(profile: &Profile, sample: &Sample, lines: bool) -> Vec<String> {
    let mut frames = innermost_first(profile, sample, lines);
    frames.reverse();
    frames
}

/// The frames of a sample from the innermost on.
pub fn innermost_first(profile: &Profile, sample: &Sample, lines: bool) -> Vec<String> {
    profile.frames_of(sample.stack).map(|frame| written(profile, frame, lines)).collect()
}

/// The process of a sample.
pub fn process_of(profile: &Profile, sample: &Sample) -> ProcessId {
    profile.threads[sample.thread.index()].process
}

/// Self and total samples of each function among the samples that pass; recursion counts once.
pub fn functions(profile: &Profile, passes: impl Fn(&Sample) -> bool) -> BTreeMap<String, (u64, u64)> {
    let mut figures: BTreeMap<String, (u64, u64)> = BTreeMap::new();
    for sample in profile.samples.iter().filter(|sample| passes(sample)) {
        let names: Vec<_> = profile.frames_of(sample.stack).map(|frame| function_name(profile, frame)).collect();
        if let Some(innermost) = names.first() {
            figures.entry(innermost.clone()).or_default().0 += sample.count;
        }
        for name in names.into_iter().collect::<BTreeSet<_>>() {
            figures.entry(name).or_default().1 += sample.count;
        }
    }
    figures
}

/// Whether a sample's stack holds a function.
pub fn holds(profile: &Profile, sample: &Sample, name: &str) -> bool {
    profile.frames_of(sample.stack).any(|frame| function_name(profile, frame) == name)
}
