//! Words of this very process, whose truth is what its own symbols and mappings say.

use std::fs;

use abi::stop::Stop;
use abi::word::{self, flag};
use attribution::{Attributed, Object, ProcessLabel, RawSample, Sources, ThreadLabel, attribute};
use profile::{FoundBy, Kind, Profile};
use symbols::{ObjectFile, PerfMap};

#[inline(never)]
fn a_function_of_the_test(value: u64) -> u64 {
    std::hint::black_box(value) + 77
}

/// Object 1 is this program, object 2 a file that is gone.
struct Own {
    file: ObjectFile,
    path: String,
}

impl Own {
    fn new() -> Own {
        let path = std::env::current_exe().expect("has a path");
        Own { file: ObjectFile::open(&path).expect("can be opened"), path: path.display().to_string() }
    }
}

impl Sources for Own {
    fn object(&self, number: u32) -> Option<Object<'_>> {
        match number {
            1 => Some(Object { path: &self.path, build_id: None, file: Some(&self.file) }),
            2 => Some(Object { path: "/lib/gone.so", build_id: None, file: None }),
            _ => None,
        }
    }
    fn perf_map(&self, _instance: u64) -> Option<&PerfMap> {
        None
    }
    fn process(&self, instance: u64) -> Option<ProcessLabel> {
        let label = ProcessLabel { pid: 5, name: "main thread".to_owned(), command_line: Some("a b".to_owned()) };
        (instance == 9).then_some(label)
    }
}

/// Where in this program's file a function is, by /proc/self/maps.
fn file_offset(function: fn(u64) -> u64) -> u64 {
    let address = function as usize as u64;
    let maps = fs::read_to_string("/proc/self/maps").expect("can be read");
    let inside = maps.lines().find_map(|line| {
        let mut fields = line.split_whitespace();
        let (start, end) = fields.next()?.split_once('-')?;
        let start = u64::from_str_radix(start, 16).ok()?;
        let end = u64::from_str_radix(end, 16).ok()?;
        let offset = u64::from_str_radix(fields.nth(1)?, 16).ok()?;
        (start..end).contains(&address).then(|| address - start + offset)
    });
    inside.expect("the function is mapped")
}

fn sample(tid: u32, words: Vec<u64>, count: u64) -> RawSample {
    RawSample { thread: ThreadLabel { instance: 9, pid: 5, tid, name: format!("thread {tid}") }, words, count }
}

/// Labels of a sample's frames, innermost first.
fn labels(profile: &Profile, index: usize) -> Vec<String> {
    profile.frames_of(profile.samples[index].stack).map(|frame| profile.label(frame, false)).collect()
}

fn end(stop: Stop, object: u32) -> u64 {
    word::end(stop as u8, object, 0)
}

#[test]
fn a_return_address_is_named_by_the_call_before_it() {
    assert_eq!(a_function_of_the_test(1), 78);
    let begin = file_offset(a_function_of_the_test);
    let exact = |offset| vec![word::object(flag::EXACT, 1, offset), end(Stop::Root, 1)];
    let after = |offset| vec![word::object(flag::BY_FRAME_POINTER, 1, offset), end(Stop::Root, 1)];
    let samples = [sample(1, exact(begin), 1), sample(2, after(begin), 1), sample(3, after(begin + 1), 1)];
    let Attributed { profile, .. } = attribute(samples.into(), &Own::new());
    let is_it = |index: usize| labels(&profile, index).iter().any(|name| name.contains("a_function_of_the_test"));
    assert_eq!([0, 1, 2].map(is_it), [true, false, true]);
    let found_by = |index: usize| {
        let frame = profile.frames_of(profile.samples[index].stack).last().expect("a frame");
        profile.frames[frame.index()].found_by
    };
    assert_eq!([found_by(0), found_by(2)], [FoundBy::UnwindInfo, FoundBy::FramePointer]);
}

#[test]
fn what_cannot_be_named_says_where_it_is_and_why() {
    let words = vec![
        0xffff_ffff_ffff_fff0,
        word::raw(flag::EXACT, 0x7000),
        word::object(0, 2, 0x1234),
        word::cut(300),
        word::object(0, 3, 0x1234),
        end(Stop::NoUnwindInfo, 2),
    ];
    let Attributed { profile, unnamed } = attribute(vec![sample(1, words, 7)], &Own::new());
    let expected = [
        ("[kernel]", Kind::Kernel),
        ("[code in no file]", Kind::Jit),
        ("[gone.so]", Kind::Native),
        ("[frames left out]", Kind::Marker),
        ("[unknown object]", Kind::Native),
        ("[stopped: no unwind info in gone.so]", Kind::Marker),
    ];
    let kinds = profile.frames_of(profile.samples[0].stack).map(|frame| profile.function_of(frame).kind);
    let got: Vec<(String, Kind)> = labels(&profile, 0).into_iter().zip(kinds).collect();
    assert_eq!(got, expected.map(|(name, kind)| (name.to_owned(), kind)));
    assert!(unnamed.iter().any(|unnamed| unnamed.of == "/lib/gone.so" && unnamed.frames == 1), "{unnamed:?}");
}

#[test]
fn ends_are_summed_by_reason_and_process() {
    let stack = |stop, count| sample(1, vec![word::raw(flag::EXACT, 0x7000), end(stop, 0)], count);
    let samples = [stack(Stop::Root, 90), stack(Stop::UnreadableStack, 7), stack(Stop::Exiting, 3)];
    let Attributed { profile, .. } = attribute(samples.into(), &Own::new());
    let stops: Vec<(&str, bool, u64)> =
        profile.meta.stops.iter().map(|stop| (stop.reason.as_str(), stop.whole, stop.count)).collect();
    let exiting = ("process exiting, its memory is gone", true, 3);
    assert_eq!(stops, [("root", true, 90), ("unreadable stack", false, 7), exiting]);
    let [status] = profile.meta.statuses.as_slice() else { panic!("one process") };
    assert_eq!((status.pid, status.name.as_str(), status.samples), (5, "main thread", 100));
    assert_eq!(profile.total(), 100);
    assert_eq!(profile.processes[0].command_line.map(|line| profile.text(line)), Some("a b"));
    // a whole stack has no bracket
    let outermost = |index| labels(&profile, index).pop().expect("a frame");
    assert_eq!(outermost(0), "[code in no file]");
    assert_eq!(outermost(1), "[stopped: unreadable stack]");
    assert_eq!(outermost(2), "[process exiting, its memory is gone]");
}

#[test]
fn every_word_is_taken() {
    for tag in 0..=255u64 {
        for payload in [0, 1, u64::MAX >> 8] {
            let words = vec![tag << 56 | payload, tag << 56 | payload];
            let Attributed { profile, .. } = attribute(vec![sample(1, words, 1)], &Own::new());
            assert_eq!(profile.total(), 1);
        }
    }
}
