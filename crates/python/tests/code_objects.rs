//! Strings, code objects and positions of frames in live interpreters, read from outside and compared with what the
//! interpreter says.

mod interpreters;

use std::collections::HashMap;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::FileExt;
use std::process::{Child, Stdio};

use interpreters::Interpreter;
use interpreters::layouts::{self, Types};
use python::code_object::{CodeLayout, CodeObject, GarbledCode};
use python::lines::{CODE_UNIT, Line};
use python::strings::{GarbledString, MAX_CHARACTERS, StringLayout, Text};
use python::{Memory, Unreadable};
use serde_json::Value;

const SCRIPT: &str = include_str!("scripts/names.py");
/// What is wrong in a layout by so many bytes must be noticed.
const SHIFTS: [i64; 4] = [-8, -4, 4, 8];

/// `/proc/PID/mem`.
struct ProcMemory(File);

impl Memory for ProcMemory {
    fn read(&self, address: u64, into: &mut [u8]) -> Result<(), Unreadable> {
        self.0.read_exact_at(into, address).map_err(|_| Unreadable { address, length: into.len() })
    }
}

/// A process that has said what it has, and waits.
struct Target {
    child: Child,
    memory: ProcMemory,
    objects: Vec<Value>,
    strings: StringLayout,
    codes: CodeLayout,
    minor: u8,
    header: u64,
}

impl Drop for Target {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        self.child.wait().expect("a child");
    }
}

impl Target {
    fn start(interpreter: &Interpreter) -> Target {
        let mut command = interpreter.place.command();
        let command = command.args(["-c", SCRIPT]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().expect("an interpreter that ran before");
        let lines = BufReader::new(child.stdout.take().expect("piped")).lines();
        let objects = lines.map(|line| serde_json::from_str(&line.expect("a line")).expect("JSON"));
        let mut objects: Vec<Value> = objects.take_while(|object: &Value| object["kind"] != "end").collect();
        let types = objects.remove(0);
        let address = |name| types[name].as_u64();
        let types = Types { of_str: address("str"), of_bytes: address("bytes"), of_code: address("code") };
        let (minor, is_free_threaded) = (interpreter.version.minor, interpreter.is_free_threaded);
        Target {
            memory: ProcMemory(File::open(format!("/proc/{}/mem", child.id())).expect("memory of a child")),
            child,
            objects,
            strings: layouts::strings(minor, is_free_threaded, types),
            codes: layouts::codes(minor, is_free_threaded, types),
            minor,
            header: if is_free_threaded { 32 } else { 16 },
        }
    }

    fn of_kind(&self, kind: &str) -> impl Iterator<Item = &Value> {
        self.objects.iter().filter(move |object| object["kind"] == kind)
    }

    fn code(&self, address: u64) -> Result<CodeObject, GarbledCode> {
        CodeObject::read(&self.memory, address, &self.codes, &self.strings)
    }

    /// What a frame object's frame keeps of its instruction.
    fn raw_lasti(&self, frame: u64) -> u64 {
        let of_frame_object = match self.minor {
            6 => 120,
            7..=9 => 104,
            10 => 96,
            _ => {
                let inner = self.memory.u64(frame + self.header + 8).expect("f_frame");
                return self.memory.u64(inner + 56).expect("prev_instr or instr_ptr");
            }
        };
        u64::from(self.memory.u32(frame + of_frame_object).expect("f_lasti"))
    }
}

fn address(object: &Value) -> u64 {
    object["id"].as_u64().expect("an address")
}

fn numbers(value: &Value) -> Vec<u32> {
    value.as_array().expect("a list").iter().map(|number| number.as_u64().expect("a number") as u32).collect()
}

/// What is expected of a string of these code points: cut, with lone surrogates replaced.
fn text_of(points: &Value) -> Text {
    let points = numbers(points);
    let shown = points.iter().take(MAX_CHARACTERS as usize);
    let text = shown.map(|point| char::from_u32(*point).unwrap_or(char::REPLACEMENT_CHARACTER)).collect();
    Text { text, is_cut: points.len() as u64 > MAX_CHARACTERS }
}

fn check_strings(target: &Target) -> usize {
    for object in target.of_kind("str") {
        let found = target.strings.text(&target.memory, address(object));
        assert_eq!(found, Ok(text_of(&object["points"])), "{object}");
    }
    for object in target.of_kind("bytes") {
        let (expected, length) = (numbers(&object["bytes"]), object["length"].as_u64().expect("a length"));
        let found = target.strings.bytes(&target.memory, address(object), expected.len() as u64).expect("bytes");
        assert!(found.bytes.iter().map(|byte| u32::from(*byte)).eq(expected));
        assert_eq!(found.is_cut, length > found.bytes.len() as u64);
        assert_eq!(target.strings.bytes_length(&target.memory, address(object)), Ok(length));
    }
    target.of_kind("str").count() + target.of_kind("bytes").count()
}

fn check_code(target: &Target, object: &Value) {
    let code = target.code(address(object)).unwrap_or_else(|error| panic!("{error}: {object}"));
    assert_eq!(code.name, text_of(&object["name"]));
    assert_eq!(code.path, text_of(&object["path"]));
    let found =
        [code.arguments, code.positional_only, code.keyword_only, code.flags, code.first_line as u32, code.code_size];
    let expected = ["arguments", "positional", "keyword", "flags", "first", "size"];
    assert_eq!(found.map(u64::from).to_vec(), expected.map(|name| object[name].as_u64().expect("a number")).to_vec());
    let mut offset = 0;
    let runs = object["lines"].as_array().expect("a list");
    // Large ones by some of their lines: each is looked up from the table's beginning.
    let step = runs.len() / 64 + 1;
    for run in runs.iter().step_by(step).chain(runs.last()) {
        let line = run[1].as_u64().map_or(Line::Absent, |line| Line::Number(line as u32));
        let end = (run[0].as_u64().expect("an offset") as u32).min(code.code_size);
        if step == 1 {
            assert!((offset..end).step_by(CODE_UNIT as usize).all(|offset| code.line_at(offset) == line), "{object}");
        }
        offset = end;
        // A line far behind what is read of a huge table is not known.
        let found = code.line_at(end - CODE_UNIT);
        assert!(found == line || code.line_table.is_cut && found == Line::Unknown, "{found:?} {line:?}");
    }
    assert_eq!(offset, code.code_size);
}

fn check_frames(target: &Target) -> usize {
    let lines = target.of_kind("frame").map(|frame| {
        let code = target.code(frame["code"].as_u64().expect("an address")).expect("a code object");
        let raw = target.raw_lasti(address(frame));
        assert_eq!(
            code.line_of(raw).number().map(u64::from),
            frame["line"].as_u64(),
            "{} at {raw:#x}: {frame}",
            code.name
        );
    });
    lines.count()
}

/// What is no string, no bytes, no code object is refused, whether the addresses of the types are known or not.
fn check_others(target: &Target) {
    let untyped = StringLayout { str_type: None, bytes_type: None, ..target.strings };
    let kinds: HashMap<u64, &str> =
        target.objects.iter().map(|object| (address(object), object["kind"].as_str().expect("a kind"))).collect();
    for (address, kind) in kinds {
        for strings in [&target.strings, &untyped] {
            let text = strings.text(&target.memory, address);
            assert!(kind == "str" || matches!(text, Err(GarbledString::Type { .. })), "{kind}: {text:?}");
            let bytes = strings.bytes(&target.memory, address, 100);
            assert!(kind == "bytes" || matches!(bytes, Err(GarbledString::Type { .. })), "{kind}: {bytes:?}");
        }
        let code = target.code(address);
        assert!(kind == "code" || matches!(code, Err(GarbledCode::Type { .. })), "{kind}: {code:?}");
    }
    for address in [0, 1, 8, 0xfff8, u64::MAX - 7, 1 << 63, target.codes.code_type.expect("known") + 1] {
        assert!(target.code(address).is_err());
        assert!(target.strings.text(&target.memory, address).is_err());
    }
}

/// Strings in which one offset is wrong are refused, or cannot be told: those of a kind that does not use it.
fn check_shifted_strings(target: &Target) {
    let shifts: [fn(&mut StringLayout) -> &mut u64; 6] = [
        |layout| &mut layout.ob_type,
        |layout| &mut layout.length,
        |layout| &mut layout.state,
        |layout| &mut layout.ascii_data,
        |layout| &mut layout.compact_data,
        |layout| &mut layout.data,
    ];
    for (field, shift) in shifts.iter().flat_map(|field| SHIFTS.map(|shift| (field, shift))) {
        let mut layout = target.strings;
        let offset = field(&mut layout);
        *offset = offset.wrapping_add_signed(shift);
        let differs = |object: &&Value| {
            layout.text(&target.memory, address(object)) != target.strings.text(&target.memory, address(object))
        };
        assert!(target.of_kind("str").filter(differs).count() > 0, "{layout:x?}");
    }
}

fn check_interpreter(interpreter: &Interpreter) {
    let target = Target::start(interpreter);
    let strings = check_strings(&target);
    target.of_kind("code").for_each(|code| check_code(&target, code));
    let frames = check_frames(&target);
    check_others(&target);
    check_shifted_strings(&target);
    let codes = target.of_kind("code").count();
    println!(
        "{} {}: {strings} strings, {codes} code objects, {frames} frames",
        interpreter.version,
        interpreter.place.file.display()
    );
    assert!(strings > 100 && codes > 50 && frames >= 8);
}

#[test]
fn all_that_live_interpreters_have() {
    let all = interpreters::all();
    if all.is_empty() {
        println!("SKIPPED: no CPython here");
    }
    all.iter().for_each(check_interpreter);
}
