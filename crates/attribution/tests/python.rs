//! Python frames by name: line tables as CPython wrote them, and the lines that it says they mean.

use abi::python::Fault;
use abi::stop::Stop;
use abi::word::{self, flag};
use attribution::{Attributed, Object, ProcessLabel, RawSample, Sources, ThreadLabel, attribute};
use profile::{Kind, Profile};
use python::code_object::CodeObject;
use python::lines::LineFormat;
use python::lines::lasti::Lasti;
use python::strings::{Bytes, Text};
use symbols::PerfMap;

/// `co_linetable` and length of `co_code` of these functions, of one file, and what `co_lines` of 3.10.13 says of them:
///
/// ```python
/// def work(n):
///     total = 0
///     for i in range(n):
///         total += i
///     return (
///         total
///     )
/// key = lambda x: x + 1
/// other = lambda x: (
///     x - 1)
/// ```
const WORK: (&[u8], u32) = (&[4, 1, 12, 1, 10, 1, 2, 2, 2, 255], 30);
const WORK_LINES: [(u32, u32); 5] = [(4, 2), (16, 3), (26, 4), (28, 6), (30, 5)];
const KEY: (&[u8], u32) = (&[8, 0], 8);
const OTHER: (&[u8], u32) = (&[8, 1], 8);
/// The same of `work` by 3.11.2.
const WORK_11: (&[u8], u32) = (
    &[
        128, 0, 216, 12, 13, 128, 69, 221, 13, 18, 144, 49, 137, 88, 140, 88, 240, 0, 1, 5, 19, 240, 0, 1, 5, 19, 136,
        1, 216, 8, 13, 144, 17, 137, 10, 136, 5, 136, 5, 224, 8, 13, 240, 3, 2, 5, 6,
    ],
    56,
);
const WORK_11_LINES: [(u32, u32); 6] = [(2, 1), (6, 2), (40, 3), (52, 4), (54, 6), (56, 5)];
/// Bytes of a code object of 3.11 before its bytecode.
const BEFORE_CODE: u64 = 184;

fn text(text: &str) -> Text {
    Text { text: text.to_owned(), is_cut: false }
}

fn code(name: &str, path: &str, first_line: i32, (table, code_size): (&[u8], u32)) -> CodeObject {
    CodeObject {
        name: text(name),
        path: text(path),
        first_line,
        flags: 0,
        arguments: 1,
        positional_only: 0,
        keyword_only: 0,
        line_table: Bytes { bytes: table.to_vec(), is_cut: false },
        line_format: LineFormat::Pairs,
        lasti: Lasti::UnitIndex,
        code_begin: 0,
        code_size,
    }
}

/// Code objects of process 9, with their addresses and checks.
struct Codes(Vec<(u64, u32, CodeObject)>);

impl Sources for Codes {
    fn object(&self, _: u32) -> Option<Object<'_>> {
        Some(Object { path: "/usr/bin/python3.10", build_id: None, file: None })
    }
    fn perf_map(&self, _: u64) -> Option<&PerfMap> {
        None
    }
    fn code_object(&self, instance: u64, code: u64, check: u32) -> Option<&CodeObject> {
        let found = self.0.iter().find(|(address, of, _)| instance == 9 && *address == code && *of == check);
        found.map(|(.., object)| object)
    }
    fn is_eval_loop(&self, instance: u64, _: u32, offset: u64) -> bool {
        instance == 9 && (0x1000..0x2000).contains(&offset)
    }
    fn interpreters(&self, instance: u64) -> Vec<String> {
        match instance {
            9 => vec!["python 3.10.13: key 0".to_owned()],
            _ => Vec::new(),
        }
    }
    fn process(&self, _: u64) -> Option<ProcessLabel> {
        None
    }
}

fn sample(words: Vec<u64>, count: u64) -> RawSample {
    RawSample { thread: ThreadLabel { instance: 9, pid: 5, tid: 5, name: "thread".to_owned() }, words, count }
}

fn root() -> u64 {
    word::end(Stop::Root as u8, 1, 0)
}

/// A stack of these Python frames: address, check, instruction.
fn stack(frames: &[(u64, u32, u32)]) -> Vec<u64> {
    let words = frames.iter().flat_map(|(code, check, at)| [word::python(*code), word::python_at(*check, *at)]);
    words.chain([root()]).collect()
}

fn labels(profile: &Profile, index: usize, lines: bool) -> Vec<String> {
    profile.frames_of(profile.samples[index].stack).map(|frame| profile.label(frame, lines)).collect()
}

/// Labels of the only sample.
fn labels_of(words: Vec<u64>, codes: &Codes) -> Vec<String> {
    labels(&attribute(vec![sample(words, 1)], codes).profile, 0, true)
}

#[test]
fn lines_are_those_that_the_interpreter_says() {
    let codes = Codes(vec![(0x5000, 1, code("work", "/src/one.py", 1, WORK))]);
    let mut begin = 0;
    for (end, line) in WORK_LINES {
        for offset in (begin..end).step_by(2) {
            // one more than the index of the instruction
            let words = stack(&[(0x5000, 1, offset / 2 + 1)]);
            assert_eq!(labels_of(words, &codes), [format!("work (one.py:{line})")], "{offset}");
        }
        begin = end;
    }
    // before the first instruction; behind the last; one that did not fit
    assert_eq!(labels_of(stack(&[(0x5000, 1, 0)]), &codes), ["work (one.py:1)"]);
    for instruction in [16, 1 << 20, word::NO_INSTRUCTION] {
        assert_eq!(labels_of(stack(&[(0x5000, 1, instruction)]), &codes), ["work (one.py)"]);
    }
}

/// From 3.11 on a frame has the address of an instruction, of which the word keeps the distance from the code object.
#[test]
fn lines_by_distance_from_the_code_object() {
    let address = 0x7f00_1234_5670;
    let object = code("Class.work", "one.py", 1, WORK_11);
    let object = CodeObject { line_format: LineFormat::Locations, code_begin: address + BEFORE_CODE, ..object };
    for lasti in [Lasti::PreviousUnit, Lasti::InstructionPointer] {
        let codes = Codes(vec![(address, 1, CodeObject { lasti, ..object.clone() })]);
        let mut begin = 0;
        for (end, line) in WORK_11_LINES {
            for offset in (begin..end).step_by(2) {
                let words = stack(&[(address, 1, (BEFORE_CODE as u32 + offset) / 2)]);
                assert_eq!(labels_of(words, &codes), [format!("Class.work (one.py:{line})")], "{offset}");
            }
            begin = end;
        }
        let before = labels_of(stack(&[(address, 1, BEFORE_CODE as u32 / 2 - 1)]), &codes);
        let expected = if lasti == Lasti::PreviousUnit { "Class.work (one.py:1)" } else { "Class.work (one.py)" };
        assert_eq!(before, [expected]);
        for instruction in [0, (BEFORE_CODE as u32 + 56) / 2, word::NO_INSTRUCTION] {
            assert_eq!(labels_of(stack(&[(address, 1, instruction)]), &codes), ["Class.work (one.py)"]);
        }
    }
}

#[test]
fn functions_of_one_name_stay_apart() {
    let codes = Codes(vec![
        (0x5000, 1, code("work", "/src/one.py", 1, WORK)),
        (0x6000, 2, code("work", "/src/two.py", 1, WORK)),
        (0x7000, 3, code("work", "/lib/one.py", 1, WORK)),
        (0x8000, 4, code("<lambda>", "/src/one.py", 8, KEY)),
        (0x9000, 5, code("<lambda>", "/src/one.py", 9, OTHER)),
        // the same function in another place: its module was loaded twice
        (0xa000, 6, code("work", "/src/one.py", 1, WORK)),
    ]);
    let frames = [(0x5000, 1, 1), (0x6000, 2, 1), (0x7000, 3, 1), (0x8000, 4, 1), (0x9000, 5, 1), (0xa000, 6, 1)];
    let Attributed { profile, unnamed } = attribute(vec![sample(stack(&frames), 1)], &codes);
    let expected = [
        "work (one.py:2)",
        "work (two.py:2)",
        "work (one.py:2)",
        "<lambda> (one.py:8)",
        "<lambda> (one.py:10)",
        "work (one.py:2)",
    ];
    assert_eq!(labels(&profile, 0, true), expected);
    assert_eq!(labels(&profile, 0, false)[3..5], ["<lambda> (one.py)", "<lambda> (one.py)"]);
    let mut functions: Vec<_> = profile
        .frames_of(profile.samples[0].stack)
        .map(|frame| {
            let function = profile.function_of(frame);
            let path = function.file.map(|file| profile.text(file).to_owned());
            (profile.text(function.name).to_owned(), path, function.start_line, function.kind == Kind::Python)
        })
        .collect();
    assert!(functions.iter().all(|(.., is_python)| *is_python));
    assert_eq!(functions[0], functions[5]);
    functions.sort();
    functions.dedup();
    assert_eq!(functions.len(), 5);
    assert_eq!(profile.functions.len(), 5);
    assert!(unnamed.is_empty());
}

/// No frame is named by a code object that is another one.
#[test]
fn a_code_object_with_another_check_is_gone() {
    let codes = Codes(vec![(0x5000, 1, code("work", "one.py", 1, WORK))]);
    let words = stack(&[(0x5000, 2, 1), (0x5000, 1, 1), (0x5008, 1, 1)]);
    let Attributed { profile, .. } = attribute(vec![sample(words, 3)], &codes);
    let gone = "[python: code object gone]";
    assert_eq!(labels(&profile, 0, true), [gone, "work (one.py:2)", gone]);
    let kinds = profile.frames_of(profile.samples[0].stack).map(|frame| profile.function_of(frame).kind);
    assert_eq!(kinds.collect::<Vec<_>>(), [Kind::Marker, Kind::Python, Kind::Marker]);
    // nor by one of another process
    let mut other = sample(stack(&[(0x5000, 1, 1)]), 1);
    other.thread.instance = 10;
    assert_eq!(labels(&attribute(vec![other], &codes).profile, 0, true), [gone]);
}

/// What is left of a frame whose words were cut apart names nothing.
#[test]
fn halves_of_frames_are_not_put_together() {
    let codes = Codes(vec![(0x5000, 1, code("work", "one.py", 1, WORK)), (0x6000, 2, code("play", "one.py", 1, WORK))]);
    let at = word::python_at(1, 9);
    let words = vec![word::python(0x5000), word::cut(100), at, word::python(0x6000), word::python_at(2, 9), root()];
    assert_eq!(labels_of(words, &codes), ["[frames left out]", "play (one.py:4)"]);
    assert!(labels_of(vec![at, word::python(0x5000), root()], &codes).is_empty());
}

#[test]
fn faults_are_shown_where_frames_would_be() {
    let codes = Codes(Vec::new());
    for fault in Fault::ALL.iter().filter(|fault| **fault != Fault::Unproven) {
        let eval_loop = word::object(flag::EXACT, 1, 0x1100);
        let words = vec![word::python_fault(*fault as u8), eval_loop, root()];
        let expected = [format!("[python: {}]", fault.text()), "[python3.10]".to_owned()];
        assert_eq!(labels_of(words, &codes), expected);
    }
    let unknown = labels_of(vec![word::python_fault(200), root()], &codes);
    assert_eq!(unknown, ["[python: unknown fault]"]);
}

#[test]
fn a_line_of_status_for_each_interpreter() {
    let codes = Codes(vec![(0x5000, 1, code("work", "one.py", 1, WORK))]);
    let fault = vec![word::python_fault(Fault::FrameUnreadable as u8), word::object(0, 1, 0x1100), root()];
    let unproven = vec![word::python(0x5000), word::python_at(1, 1), word::python_fault(Fault::Unproven as u8), root()];
    let before = vec![word::object(0, 1, 0x1100), root()];
    let native = vec![word::object(0, 1, 0x3000), root()];
    let whole = stack(&[(0x5000, 1, 1), (0x5000, 1, 2)]);
    let status = |samples: Vec<RawSample>| attribute(samples, &codes).profile.meta.interpreters;
    let line = |tally: &str| vec![format!("pid 5 python 3.10.13: key 0; {tally}")];
    assert_eq!(status(vec![sample(whole.clone(), 1204)]), line("1,204 stacks, 0 refused"));
    assert_eq!(status(vec![sample(native, 7)]), line("0 stacks, 0 refused"));
    let mut other = sample(whole.clone(), 5);
    other.thread.instance = 10;
    let samples = vec![sample(whole, 1), sample(fault, 20), sample(unproven, 1000), sample(before, 3), other];
    assert_eq!(status(samples), line("1 stacks, 1,020 refused, 3 before it was proven"));
}
