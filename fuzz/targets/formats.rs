//! Every output format, of a profile whose names, counts and numbers are chosen.
#![no_main]

use arbitrary::Arbitrary;
use formats::Format;
use libfuzzer_sys::fuzz_target;
use profile::{
    Builder, FoundBy, FrameId, FrameKey, FunctionKey, Kind, Losses, Module, ProcessStatus, Profile, StopCount, ThreadId,
};
use std::time::{Duration, UNIX_EPOCH};

#[derive(Arbitrary, Debug)]
struct Input {
    names: Vec<String>,
    frames: Vec<MadeFrame>,
    threads: Vec<MadeThread>,
    samples: Vec<MadeSample>,
    lines: bool,
    frequency: u32,
    start: i64,
    duration: u64,
    lost: u64,
}

#[derive(Arbitrary, Debug)]
struct MadeFrame {
    name: u8,
    kind: u8,
    module: Option<(u8, Option<u8>)>,
    file: Option<u8>,
    start_line: u32,
    line: u32,
    offset: u64,
    inlined: bool,
    by_frame_pointer: bool,
}

#[derive(Arbitrary, Debug)]
struct MadeThread {
    pid: u32,
    tid: u32,
    process: u8,
    thread: u8,
    command_line: Option<u8>,
}

#[derive(Arbitrary, Debug)]
struct MadeSample {
    thread: u8,
    stack: Vec<u8>,
    count: u64,
}

fuzz_target!(|input: Input| {
    let profile = input.profile();
    for format in Format::ALL {
        let mut bytes = Vec::new();
        format.write(&profile, &mut bytes).expect("a profile can be written");
        match format {
            Format::Html => fuzz::outputs::html(&bytes),
            Format::Svg => fuzz::outputs::svg(&bytes),
            Format::Speedscope => fuzz::outputs::speedscope(&profile, &bytes),
            Format::Pprof => fuzz::outputs::pprof(&profile, &bytes),
            Format::Folded => fuzz::outputs::folded(&profile, &bytes),
        }
    }
});

impl Input {
    fn name(&self, number: u8) -> &str {
        self.names.get(usize::from(number)).or(self.names.first()).map_or("", String::as_str)
    }

    fn profile(&self) -> Profile {
        let mut builder = Builder::default();
        let frames: Vec<FrameId> = self.frames.iter().map(|frame| self.frame(&mut builder, frame)).collect();
        let threads: Vec<ThreadId> = self.threads.iter().map(|thread| self.thread(&mut builder, thread)).collect();
        for sample in self.samples.iter().filter(|_| !threads.is_empty()) {
            let stack = sample.stack.iter().filter_map(|frame| frames.get(usize::from(*frame)).copied());
            let stack = builder.stack(stack);
            builder.add(threads[usize::from(sample.thread) % threads.len()], stack, sample.count);
        }
        self.describe(&mut builder);
        builder.finish()
    }

    fn frame(&self, builder: &mut Builder, frame: &MadeFrame) -> FrameId {
        let module = frame.module.map(|(path, build_id)| {
            let path = builder.text(self.name(path));
            let build_id = build_id.map(|id| builder.text(self.name(id)));
            builder.module(Module { path, build_id })
        });
        let name = builder.text(self.name(frame.name));
        let file = frame.file.map(|file| builder.text(self.name(file)));
        let kind = Kind::ALL[usize::from(frame.kind) % Kind::ALL.len()];
        let function = builder.function(FunctionKey { name, kind, file, start_line: frame.start_line, module });
        let found_by = if frame.by_frame_pointer { FoundBy::FramePointer } else { FoundBy::UnwindInfo };
        let (line, offset, inlined) = (frame.line, frame.offset, frame.inlined);
        builder.frame(FrameKey { function, line, offset, inlined, found_by })
    }

    fn thread(&self, builder: &mut Builder, thread: &MadeThread) -> ThreadId {
        let process = builder.process(thread.pid, self.name(thread.process));
        if let Some(line) = thread.command_line {
            builder.set_command_line(process, self.name(line));
        }
        builder.thread(process, thread.tid, self.name(thread.thread))
    }

    fn describe(&self, builder: &mut Builder) {
        let names = self.names.join(" ");
        let count = self.lost;
        let meta = builder.meta_mut();
        (meta.lines, meta.frequency, meta.duration) = (self.lines, self.frequency, Duration::from_nanos(self.duration));
        let distance = Duration::from_nanos(self.start.unsigned_abs());
        meta.start = if self.start < 0 { UNIX_EPOCH - distance } else { UNIX_EPOCH + distance };
        for text in [&mut meta.version, &mut meta.command_line, &mut meta.target, &mut meta.host, &mut meta.event] {
            text.clone_from(&names);
        }
        meta.losses = self.names.iter().map(|cause| Losses { cause: cause.clone(), count }).collect();
        let stops: Vec<_> = self
            .names
            .iter()
            .map(|reason| StopCount { reason: reason.clone(), whole: count.is_multiple_of(2), count })
            .collect();
        meta.interpreters = self.names.clone();
        meta.statuses = vec![ProcessStatus { pid: 1, name: names, samples: count, stops: stops.clone() }];
        meta.stops = stops;
    }
}
