//! Words of stacks to the frames of a profile, whatever the words are.
#![no_main]

use arbitrary::Arbitrary;
use attribution::{Object, ProcessLabel, RawSample, Sources, ThreadLabel, attribute};
use libfuzzer_sys::fuzz_target;
use symbols::PerfMap;

#[derive(Arbitrary, Debug)]
struct Sample {
    instance: u8,
    pid: u8,
    tid: u8,
    words: Vec<Word>,
    count: u32,
}

#[derive(Arbitrary, Clone, Copy, Debug)]
enum Word {
    Any(u64),
    Object { flags: u8, object: u8, offset: u16 },
    Raw { flags: u8, address: u32 },
    End { stop: u8, detail: u8, more: u8 },
    Cut(u16),
}

impl Word {
    fn bits(self) -> u64 {
        match self {
            // for kernel words, all of /proc/kallsyms would be read each time
            Word::Any(bits) if bits >> abi::word::TAG_SHIFT == u64::from(abi::word::KERNEL) => bits >> 1,
            Word::Any(bits) => bits,
            Word::Object { flags, object, offset } => abi::word::object(flags & 0xf0, object.into(), offset.into()),
            Word::Raw { flags, address } => abi::word::raw(flags & 0xf0, address.into()),
            Word::End { stop, detail, more } => abi::word::end(stop, detail.into(), more),
            Word::Cut(count) => abi::word::cut(count.into()),
        }
    }
}

/// Objects whose files could not be opened, and processes without perf maps.
struct NoFiles;

impl Sources for NoFiles {
    fn object(&self, number: u32) -> Option<Object<'_>> {
        (number < 100).then_some(Object { path: "/usr/lib/some.so", build_id: None, file: None })
    }

    fn perf_map(&self, _: u64) -> Option<&PerfMap> {
        None
    }

    fn process(&self, instance: u64) -> Option<ProcessLabel> {
        (instance < 100).then(|| ProcessLabel { pid: 1, name: "name".to_owned(), command_line: None })
    }
}

fuzz_target!(|samples: Vec<Sample>| {
    let raw: Vec<RawSample> = samples.iter().map(raw).collect();
    let profile = attribute(&raw, &NoFiles).profile;
    assert_eq!(profile.total(), samples.iter().map(|sample| u64::from(sample.count)).sum::<u64>());
    for (index, node) in profile.nodes.iter().enumerate() {
        assert!(node.parent.is_none_or(|parent| parent.index() < index) && node.frame.index() < profile.frames.len());
    }
    for frame in &profile.frames {
        let function = &profile.functions[frame.function.index()];
        assert!(!profile.text(function.name).is_empty());
    }
    let stops: u64 = profile.meta.stops.iter().map(|stop| stop.count).sum();
    assert!(stops <= profile.total());
});

fn raw(sample: &Sample) -> RawSample {
    let instance = sample.instance.into();
    let name = format!("thread {}", sample.tid % 3);
    let thread = ThreadLabel { instance, pid: sample.pid.into(), tid: sample.tid.into(), name };
    RawSample { thread, words: sample.words.iter().map(|word| word.bits()).collect(), count: sample.count.into() }
}
