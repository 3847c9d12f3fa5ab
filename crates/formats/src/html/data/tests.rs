//! Reads what `encode` wrote, as the page's script does, and compares it with the profile.

use std::collections::BTreeMap;
use std::time::Duration;

use profile::{Builder, FrameId, FrameKey, ProcessStatus};
use proptest::prelude::*;

use super::*;

struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn number(&mut self) -> u64 {
        let mut value = 0;
        for shift in (0..).step_by(7) {
            let (byte, rest) = self.0.split_first().unwrap();
            self.0 = rest;
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                break;
            }
        }
        value
    }

    fn column(&mut self) -> Vec<u64> {
        (0..self.number()).map(|_| self.number()).collect()
    }

    fn bytes(&mut self) -> &'a [u8] {
        let length = self.number() as usize;
        let (bytes, rest) = self.0.split_at(length);
        self.0 = rest;
        bytes
    }

    fn strings(&mut self) -> Vec<String> {
        let (shared, rest) = (self.column(), self.column());
        let rests: Vec<u16> = std::str::from_utf8(self.bytes()).unwrap().encode_utf16().collect();
        let (mut at, mut previous, mut strings) = (0, Vec::new(), Vec::new());
        for (shared, rest) in shared.into_iter().zip(rest) {
            previous.truncate(shared as usize);
            previous.extend_from_slice(&rests[at..at + rest as usize]);
            at += rest as usize;
            strings.push(String::from_utf16(&previous).unwrap());
        }
        assert_eq!(at, rests.len());
        strings
    }
}

/// A frame with all that the page knows of it.
type Shown = (String, String, Option<String>, u64, Option<String>, u64, bool);
/// Samples by thread, its process, and the stack from the outermost frame on.
type Stacks = BTreeMap<(u64, String, u64, String, Vec<Shown>), u64>;

/// The stacks in encoded bytes.
fn decode(bytes: &[u8]) -> (serde_json::Value, Stacks) {
    let mut reader = Reader(bytes);
    let header: serde_json::Value = serde_json::from_slice(reader.bytes()).unwrap();
    let strings = reader.strings();
    let text = |number: u64| strings[number as usize].clone();
    let optional = |number: u64| number.checked_sub(1).map(text);
    let mut name = 0i64;
    let names: Vec<u64> = reader
        .column()
        .into_iter()
        .map(|code| {
            name += (code >> 1) as i64 ^ -((code & 1) as i64);
            name as u64
        })
        .collect();
    let [kinds, files, first_lines, function_modules] = std::array::from_fn(|_| reader.column());
    let modules = reader.column();
    let [functions, lines, inlined] = std::array::from_fn(|_| reader.column());
    let [up, frames] = std::array::from_fn(|_| reader.column());
    let [pids, process_names, commands] = std::array::from_fn(|_| reader.column());
    let [processes, tids, thread_names] = std::array::from_fn(|_| reader.column());
    let [nodes, threads, counts] = std::array::from_fn(|_| reader.column());
    assert!(reader.0.is_empty());
    assert_eq!(commands.len(), pids.len());

    let shown = |frame: u64| {
        let function = functions[frame as usize] as usize;
        (
            text(names[function]),
            header["kinds"][kinds[function] as usize].as_str().unwrap().to_owned(),
            optional(files[function]),
            first_lines[function],
            function_modules[function].checked_sub(1).map(|module| text(modules[module as usize])),
            lines[frame as usize],
            inlined[frame as usize] == 1,
        )
    };
    let mut stacks: Vec<Vec<Shown>> = vec![Vec::new()];
    for (up, frame) in up.into_iter().zip(frames) {
        let mut stack = stacks.last().unwrap().clone();
        stack.truncate(stack.len() - up as usize);
        stack.push(shown(frame));
        stacks.push(stack);
    }
    let mut node = 0;
    let mut samples = BTreeMap::new();
    for (step, (thread, count)) in nodes.into_iter().zip(threads.into_iter().zip(counts)) {
        node += step;
        let process = processes[thread as usize] as usize;
        let key = (
            pids[process],
            text(process_names[process]),
            tids[thread as usize],
            text(thread_names[thread as usize]),
            stacks[node as usize].clone(),
        );
        assert!(samples.insert(key, count).is_none(), "a stack occurs twice in a thread");
    }
    (header, samples)
}

/// The stacks of a profile, with texts as the page shows them.
fn stacks_of(profile: &Profile) -> Stacks {
    let text = |text| visible(profile.text(text)).into_owned();
    let shown = |frame: FrameId| {
        let key = &profile.frames[frame.index()];
        let function = profile.function_of(frame);
        (
            text(function.name),
            function.kind.name().to_owned(),
            function.file.map(text),
            u64::from(function.start_line),
            function.module.map(|module| text(profile.modules[module.index()].path)),
            u64::from(key.line),
            key.inlined,
        )
    };
    let mut stacks = BTreeMap::new();
    for sample in &profile.samples {
        let thread = &profile.threads[sample.thread.index()];
        let process = &profile.processes[thread.process.index()];
        let mut stack: Vec<_> = profile.frames_of(sample.stack).map(shown).collect();
        stack.reverse();
        let key = (process.pid.into(), text(process.name), thread.tid.into(), text(thread.name), stack);
        *stacks.entry(key).or_default() += sample.count;
    }
    stacks
}

const HOSTILE: &[&str] = &[
    "</script><script>alert(1)</script>",
    "<!-- <script> ]]>",
    "\"';&quot;&#x27;`${1}",
    "\x1b[31mred\x1b]0;title\x07",
    "two\nlines\r\n\0",
    "right\u{202e}to\u{2066}left",
    "\u{feff}mark",
    "🔥🔥",
    "🔥🦀",
    "",
];

fn frame(builder: &mut Builder, name: &str, index: u8) -> FrameId {
    let name = builder.text(name);
    let path = builder.text(&format!("/lib/{}.so", index % 3));
    let module = (!index.is_multiple_of(4)).then(|| builder.module(Module { path, build_id: None }));
    let file = index.is_multiple_of(3).then_some(path);
    let kind = Kind::ALL[usize::from(index) % Kind::ALL.len()];
    let function = FunctionKey { name, kind, file, start_line: u32::from(index % 2), module };
    let function = builder.function(function);
    // frames that differ in their address only become one
    let (line, offset) = (u32::from(index % 5), u64::from(index) << 50);
    builder.frame(FrameKey { line, offset, inlined: index.is_multiple_of(7), ..FrameKey::of(function) })
}

proptest! {
    #[test]
    fn what_is_written_is_read_again(
        stacks in prop::collection::vec((prop::collection::vec((0..12usize, any::<u8>()), 0..9), 1..u64::MAX >> 12, 0..4u32), 0..40),
        other: String,
    ) {
        let mut names: Vec<String> = HOSTILE.iter().map(|name| (*name).to_owned()).collect();
        names.extend([other, "x".repeat(300)]);
        let mut builder = Builder::default();
        let processes = [builder.process(7, &names[0]), builder.process(7, "again")];
        builder.set_command_line(processes[1], "again --twice");
        for (frames, count, thread) in &stacks {
            let frames: Vec<_> = frames.iter().map(|(name, index)| frame(&mut builder, &names[*name], *index)).collect();
            let thread = builder.thread(processes[*thread as usize % 2], *thread, &names[*thread as usize]);
            let stack = builder.stack(frames);
            builder.add(thread, stack, *count);
        }
        let profile = builder.finish();
        let (_, read) = decode(&encode(&profile).unwrap());
        prop_assert_eq!(read, stacks_of(&profile));
    }
}

#[test]
fn counts_of_stacks_that_become_one_saturate() {
    let mut builder = Builder::default();
    let process = builder.process(1, "p");
    let thread = builder.thread(process, 1, "p");
    // they differ in their address only
    for (index, count) in [(1, u64::MAX - 1), (1 + 2 * 3 * 4 * 5 * 2, 5)] {
        let frame = frame(&mut builder, "f", index);
        let stack = builder.stack([frame]);
        builder.add(thread, stack, count);
    }
    let (_, read) = decode(&encode(&builder.finish()).unwrap());
    assert_eq!(read.into_values().collect::<Vec<_>>(), [u64::MAX]);
}

#[test]
fn long_names_stay_whole() {
    let mut builder = Builder::default();
    let process = builder.process(1, "p");
    let thread = builder.thread(process, 1, "p");
    for index in 0..Kind::ALL.len() as u8 {
        let frame = frame(&mut builder, &format!("{}{index}", "long::".repeat(10_000)), index);
        let stack = builder.stack([frame]);
        builder.add(thread, stack, 1);
    }
    let profile = builder.finish();
    assert_eq!(decode(&encode(&profile).unwrap()).1, stacks_of(&profile));
}

#[test]
fn header_says_what_meta_says() {
    let mut builder = Builder::default();
    let stop = StopCount { reason: "no unwind info in a\nb.so".to_owned(), whole: false, count: 3 };
    *builder.meta_mut() = Meta {
        target: "pid 4711 (nginx)".to_owned(),
        start: SystemTime::UNIX_EPOCH + Duration::from_millis(1_500),
        duration: Duration::from_secs(30),
        frequency: 99,
        event: "cpu-clock".to_owned(),
        lines: true,
        losses: vec![Losses { cause: "ring buffer full".to_owned(), count: 12 }],
        stops: vec![stop.clone()],
        statuses: vec![ProcessStatus { pid: 4711, name: "ng\tinx".to_owned(), samples: 9, stops: vec![stop] }],
        interpreters: vec!["pid 4711 python 3.12.1\n: refused".to_owned()],
        ..Meta::default()
    };
    let (header, samples) = decode(&encode(&builder.finish()).unwrap());
    assert!(samples.is_empty());
    let stop = serde_json::json!({ "reason": "no unwind info in a\\nb.so", "whole": false, "count": 3 });
    assert_eq!(
        header,
        serde_json::json!({
            "version": "", "command": "", "target": "pid 4711 (nginx)", "host": "", "kernel": "",
            "start": 1.5, "duration": 30.0, "frequency": 99, "event": "cpu-clock", "lines": true,
            "kinds": ["kernel", "native", "jit", "python", "marker"],
            "losses": [{ "cause": "ring buffer full", "count": 12 }],
            "stops": [stop],
            "statuses": [{ "pid": 4711, "name": "ng\\tinx", "samples": 9, "stops": [stop] }],
            "interpreters": ["pid 4711 python 3.12.1\\n: refused"],
        })
    );
}

#[test]
fn what_no_sample_uses_is_left_out() {
    let mut builder = Builder::default();
    let process = builder.process(1, "p");
    let thread = builder.thread(process, 1, "p");
    let (used, unused) = (frame(&mut builder, "used", 1), frame(&mut builder, "left out", 2));
    let stack = builder.stack([used]);
    builder.stack([used, unused]);
    builder.add(thread, stack, 1);
    let bytes = encode(&builder.finish()).unwrap();
    assert!(!bytes.windows(8).any(|window| window == b"left out"));
}

#[test]
fn a_deep_stack_needs_no_recursion() {
    let mut builder = Builder::default();
    let process = builder.process(1, "p");
    let thread = builder.thread(process, 1, "p");
    let frame = frame(&mut builder, "f", 1);
    let stack = builder.stack(std::iter::repeat_n(frame, 300_000));
    builder.add(thread, stack, 1);
    let bytes = encode(&builder.finish()).unwrap();
    // a level is one byte for the way up, and one for the frame
    assert!(bytes.len() > 600_000 && bytes.len() < 601_000, "{}", bytes.len());
}
