//! Words of stacks to the frames of a profile, whatever the words are.
#![no_main]

use arbitrary::Arbitrary;
use attribution::{Object, ProcessLabel, RawSample, Sources, ThreadLabel, attribute};
use libfuzzer_sys::fuzz_target;
use python::code_object::CodeObject;
use python::lines::LineFormat;
use python::lines::lasti::Lasti;
use python::strings::{Bytes, Text};
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
    Python { code: u8, check: u8, instruction: u16 },
    PythonFault(u8),
}

impl Word {
    fn bits(self) -> Vec<u64> {
        let word = match self {
            Word::Python { code, check, instruction } => {
                let at = abi::word::python_at(u32::from(check % 4), instruction.into());
                return vec![abi::word::python(u64::from(code % 8) * 64), at];
            }
            Word::PythonFault(code) => abi::word::python_fault(code),
            // for kernel words, all of /proc/kallsyms would be read each time
            Word::Any(bits) if bits >> abi::word::TAG_SHIFT == u64::from(abi::word::KERNEL) => bits >> 1,
            Word::Any(bits) => bits,
            Word::Object { flags, object, offset } => abi::word::object(flags & 0xf0, object.into(), offset.into()),
            Word::Raw { flags, address } => abi::word::raw(flags & 0xf0, address.into()),
            Word::End { stop, detail, more } => abi::word::end(stop, detail.into(), more),
            Word::Cut(count) => abi::word::cut(count.into()),
        };
        vec![word]
    }
}

/// Objects whose files could not be opened, processes without perf maps, and one code object at each address.
struct NoFiles {
    code: CodeObject,
}

fn code() -> CodeObject {
    let text = |text: &str| Text { text: text.to_owned(), is_cut: false };
    CodeObject {
        name: text("work"),
        path: text("one.py"),
        first_line: 1,
        flags: 0,
        arguments: 1,
        positional_only: 0,
        keyword_only: 0,
        line_table: Bytes { bytes: vec![4, 1, 12, 1, 10, 1, 2, 2, 2, 255], is_cut: false },
        line_format: LineFormat::Pairs,
        lasti: Lasti::UnitIndex,
        code_begin: 0,
        code_size: 30,
    }
}

impl Sources for NoFiles {
    fn object(&self, number: u32) -> Option<Object<'_>> {
        (number < 100).then_some(Object { path: "/usr/lib/some.so", build_id: None, file: None })
    }

    fn perf_map(&self, _: u64) -> Option<&PerfMap> {
        None
    }

    fn code_object(&self, _: u64, _: u64, check: u32) -> Option<&CodeObject> {
        (check == 1).then_some(&self.code)
    }

    fn is_eval_loop(&self, _: u64, object: u32, offset: u64) -> bool {
        object == 7 && offset < 1 << 15
    }

    fn interpreters(&self, _: u64) -> Vec<String> {
        vec!["python".to_owned()]
    }

    fn process(&self, instance: u64) -> Option<ProcessLabel> {
        (instance < 100).then(|| ProcessLabel { pid: 1, name: "name".to_owned(), command_line: None })
    }
}

fuzz_target!(|samples: Vec<Sample>| {
    let raw: Vec<RawSample> = samples.iter().map(raw).collect();
    let profile = attribute(raw, &NoFiles { code: code() }).profile;
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
    RawSample { thread, words: sample.words.iter().flat_map(|word| word.bits()).collect(), count: sample.count.into() }
}
