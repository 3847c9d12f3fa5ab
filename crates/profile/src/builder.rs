//! Builds a profile: each text, function, frame and stack once.

use rustc_hash::FxHashMap;
use std::collections::HashMap;
use std::hash::{BuildHasher, Hash};

use crate::{
    FrameId, FrameKey, FunctionId, FunctionKey, Meta, Module, ModuleId, NodeId, Process, ProcessId, Profile, Sample,
    StackNode, Text, Thread, ThreadId,
};

/// Collects a profile. Equal things get equal ids.
#[derive(Default, Debug)]
pub struct Builder {
    profile: Profile,
    // texts are chosen by the targets: std's hasher cannot be flooded
    texts: HashMap<String, Text>,
    modules: FxHashMap<Module, ModuleId>,
    functions: FxHashMap<FunctionKey, FunctionId>,
    frames: FxHashMap<FrameKey, FrameId>,
    nodes: FxHashMap<StackNode, NodeId>,
    threads: FxHashMap<(ProcessId, u32, Text), ThreadId>,
    samples: FxHashMap<(ThreadId, Option<NodeId>), usize>,
}

/// The id of `key` in `list`, added if it is new.
fn intern<K: Hash + Eq + Clone, I: Copy, S: BuildHasher>(
    ids: &mut HashMap<K, I, S>,
    list: &mut Vec<K>,
    key: K,
    id: impl Fn(u32) -> I,
) -> I {
    if let Some(id) = ids.get(&key) {
        return *id;
    }
    let new = id(list.len() as u32);
    list.push(key.clone());
    ids.insert(key, new);
    new
}

impl Builder {
    /// Interns a text.
    pub fn text(&mut self, text: &str) -> Text {
        if let Some(id) = self.texts.get(text) {
            return *id;
        }
        intern(&mut self.texts, &mut self.profile.texts, text.to_owned(), Text)
    }

    /// Interns a module.
    pub fn module(&mut self, module: Module) -> ModuleId {
        intern(&mut self.modules, &mut self.profile.modules, module, ModuleId)
    }

    /// Interns a function.
    pub fn function(&mut self, function: FunctionKey) -> FunctionId {
        intern(&mut self.functions, &mut self.profile.functions, function, FunctionId)
    }

    /// Interns a frame.
    pub fn frame(&mut self, frame: FrameKey) -> FrameId {
        intern(&mut self.frames, &mut self.profile.frames, frame, FrameId)
    }

    /// Interns a stack whose frames come outermost first; `None` if there are none.
    pub fn stack(&mut self, outermost_first: impl IntoIterator<Item = FrameId>) -> Option<NodeId> {
        outermost_first.into_iter().fold(None, |parent, frame| Some(self.push(parent, frame)))
    }

    /// The stack of `frame` called by `parent`.
    pub fn push(&mut self, parent: Option<NodeId>, frame: FrameId) -> NodeId {
        intern(&mut self.nodes, &mut self.profile.nodes, StackNode { parent, frame }, NodeId)
    }

    /// Adds a process. Not interned: the caller knows whether a pid is the same process.
    pub fn process(&mut self, pid: u32, name: &str) -> ProcessId {
        let name = self.text(name);
        self.profile.processes.push(Process { pid, name, command_line: None });
        ProcessId(self.profile.processes.len() as u32 - 1)
    }

    /// Notes the command line of a process.
    pub fn set_command_line(&mut self, process: ProcessId, command_line: &str) {
        let text = self.text(command_line);
        self.profile.processes[process.index()].command_line = Some(text);
    }

    /// Interns a thread of a process under a name.
    pub fn thread(&mut self, process: ProcessId, tid: u32, name: &str) -> ThreadId {
        let name = self.text(name);
        let threads = &mut self.profile.threads;
        *self.threads.entry((process, tid, name)).or_insert_with(|| {
            threads.push(Thread { process, tid, name });
            ThreadId(threads.len() as u32 - 1)
        })
    }

    /// Adds `count` samples of a stack in a thread. More than `u64::MAX` of them count as so many.
    pub fn add(&mut self, thread: ThreadId, stack: Option<NodeId>, count: u64) {
        let samples = &mut self.profile.samples;
        let at = *self.samples.entry((thread, stack)).or_insert_with(|| {
            samples.push(Sample { thread, stack, count: 0 });
            samples.len() - 1
        });
        samples[at].count = samples[at].count.saturating_add(count);
    }

    /// What is to be said about the recording.
    pub fn meta_mut(&mut self) -> &mut Meta {
        &mut self.profile.meta
    }

    /// The finished profile.
    pub fn finish(self) -> Profile {
        self.profile
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Kind;
    use proptest::prelude::*;

    fn frame(builder: &mut Builder, name: &str) -> FrameId {
        let name = builder.text(name);
        let function =
            builder.function(FunctionKey { name, kind: Kind::Native, file: None, start_line: 0, module: None });
        builder.frame(FrameKey::of(function))
    }

    #[test]
    fn counts_beyond_64_bits_saturate() {
        let mut builder = Builder::default();
        let process = builder.process(1, "p");
        let [first, second] = [1, 2].map(|tid| builder.thread(process, tid, "t"));
        for count in [u64::MAX - 1, 1, 1] {
            builder.add(first, None, count);
        }
        builder.add(second, None, 7);
        let profile = builder.finish();
        let counts: Vec<u64> = profile.samples.iter().map(|sample| sample.count).collect();
        assert_eq!((counts, profile.total()), (vec![u64::MAX, 7], u64::MAX));
    }

    proptest! {
        /// Whatever is added comes out again, stack by stack and count by count.
        #[test]
        fn nothing_is_lost(stacks in prop::collection::vec((prop::collection::vec(0..5u8, 0..6), 1..9u64, 0..3u32), 0..40)) {
            let mut builder = Builder::default();
            let process = builder.process(1, "p");
            let mut expected: HashMap<(Vec<String>, u32), u64> = HashMap::new();
            for (names, count, tid) in &stacks {
                let names: Vec<String> = names.iter().map(|n| format!("f{n}")).collect();
                let frames: Vec<FrameId> = names.iter().map(|n| frame(&mut builder, n)).collect();
                let stack = builder.stack(frames);
                let thread = builder.thread(process, *tid, "t");
                builder.add(thread, stack, *count);
                *expected.entry((names, *tid)).or_default() += count;
            }
            let profile = builder.finish();
            let mut got = HashMap::new();
            for sample in &profile.samples {
                let mut names: Vec<String> =
                    profile.frames_of(sample.stack).map(|frame| profile.label(frame, false)).collect();
                names.reverse();
                let tid = profile.threads[sample.thread.index()].tid;
                prop_assert!(got.insert((names, tid), sample.count).is_none(), "a stack occurs twice");
            }
            prop_assert_eq!(got, expected);
            for (index, node) in profile.nodes.iter().enumerate() {
                prop_assert!(node.parent.is_none_or(|parent| parent.index() < index));
            }
        }
    }
}
