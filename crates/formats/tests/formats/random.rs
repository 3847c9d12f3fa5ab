//! Random profiles for property tests.

use profile::{Builder, FrameId, FrameKey, FunctionKey, Kind, Module, Profile, ThreadId};
use proptest::prelude::*;

use crate::synthetic::HOSTILE;

/// A name: often one of a few, so that things meet, else a hostile one or any characters at all.
fn name() -> impl Strategy<Value = String> {
    prop_oneof![
        3 => prop::sample::select(vec!["a", "b", "main", "a b", "a!", "operator()(int; char)"]).prop_map(String::from),
        1 => prop::sample::select(HOSTILE).prop_map(String::from),
        1 => prop::collection::vec(any::<char>(), 0..12).prop_map(|chars| chars.into_iter().collect()),
    ]
}

#[derive(Clone, Debug)]
struct Frame {
    name: usize,
    kind: Kind,
    module: Option<usize>,
    file: Option<usize>,
    start_line: u32,
    line: u32,
    offset: u64,
    inlined: bool,
}

fn frame() -> impl Strategy<Value = Frame> {
    let place = (prop::option::of(0..NAMES), prop::option::of(0..NAMES), 0..3_u32, prop_oneof![0..3_u32, any::<u32>()]);
    let offset = prop_oneof![0..0x5000_u64, any::<u64>()];
    (0..NAMES, prop::sample::select(Kind::ALL), place, offset, any::<bool>()).prop_map(
        |(name, kind, (module, file, start_line, line), offset, inlined)| Frame {
            name,
            kind,
            module,
            file,
            start_line,
            line,
            offset,
            inlined,
        },
    )
}

const NAMES: usize = 12;

/// Profiles whose counts add up to less than 2^53, which every format can say exactly.
pub fn profile() -> impl Strategy<Value = Profile> {
    let names = prop::collection::vec(name(), NAMES);
    let frames = prop::collection::vec(frame(), 1..20);
    let threads = prop::collection::vec((0..4_u32, 0..NAMES, 0..3_u32, 0..NAMES), 1..5);
    let count = prop_oneof![1..50_u64, 1..1_u64 << 46];
    let samples = prop::collection::vec((any::<usize>(), prop::collection::vec(any::<usize>(), 0..8), count), 0..40);
    (names, frames, threads, samples, any::<bool>(), prop_oneof![Just(0), Just(99), 1..50_000_u32]).prop_map(
        |(names, frames, threads, samples, lines, frequency)| {
            let mut builder = Builder::default();
            let frames: Vec<FrameId> = frames.iter().map(|frame| add_frame(&mut builder, &names, frame)).collect();
            let threads: Vec<ThreadId> = threads
                .iter()
                .map(|(pid, process, tid, thread)| {
                    let process = builder.process(*pid, &names[*process]);
                    builder.thread(process, *tid, &names[*thread])
                })
                .collect();
            for (thread, stack, count) in samples {
                let stack = builder.stack(stack.iter().map(|at| frames[at % frames.len()]));
                builder.add(threads[thread % threads.len()], stack, count);
            }
            builder.meta_mut().lines = lines;
            builder.meta_mut().frequency = frequency;
            builder.meta_mut().target = names[0].clone();
            builder.meta_mut().command_line = names.join(" ");
            builder.finish()
        },
    )
}

fn add_frame(builder: &mut Builder, names: &[String], frame: &Frame) -> FrameId {
    let module = frame.module.map(|at| {
        let path = builder.text(&names[at]);
        builder.module(Module { path, build_id: Some(path) })
    });
    let name = builder.text(&names[frame.name]);
    let file = frame.file.map(|at| builder.text(&names[at]));
    let start_line = frame.start_line;
    let function = builder.function(FunctionKey { name, kind: frame.kind, file, start_line, module });
    builder.frame(FrameKey { line: frame.line, offset: frame.offset, inlined: frame.inlined, ..FrameKey::of(function) })
}
