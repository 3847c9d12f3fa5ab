//! Code objects of live interpreters by those pieces of their memory that the sampler sends, and nothing else.

mod interpreters;

use std::cell::Cell;
use std::io::{BufRead as _, BufReader};
use std::process::{Child, Stdio};

use abi::python::{CodeFacts, NONE};
use abi::record::{FRAGMENT_BYTES, FRAGMENTS};
use interpreters::Interpreter;
use processes::memory::read_memory;
use python::code_object::{Bytecode, CodeLayout, CodeObject};
use python::layout::confirm::Types;
use python::layout::{Layout, Platform};
use python::lines::CODE_UNIT;
use python::lines::lasti::Lasti;
use python::sampled::{Gone, Sampled, check_of};
use python::strings::StringLayout;
use python::{Memory, Unreadable};
use serde_json::Value;

const SCRIPT: &str = include_str!("scripts/packages.py");
/// What the sampler reads at most: see `bpf/src/code.rs`.
const PAGE: u64 = 4096;
const FIELDS: u64 = 512;
const STRING: u64 = 512;
const LINES: u64 = 8192;
const BYTECODE: u64 = 64;
/// Pages that a piece is in at most.
const STEPS: usize = 3;

/// Memory of a process, or what replaces some words of it.
struct Live {
    pid: u32,
    changed: Option<(u64, u64)>,
    asked: Cell<bool>,
}

impl Memory for &Live {
    fn read(&self, address: u64, into: &mut [u8]) -> Result<(), Unreadable> {
        self.asked.set(true);
        let length = into.len();
        match read_memory(self.pid, address, into) {
            Ok(count) if count == length => {}
            _ => return Err(Unreadable { address, length }),
        }
        let Some((at, value)) = self.changed else { return Ok(()) };
        for (index, byte) in value.to_le_bytes().into_iter().enumerate() {
            if let Some(to) = (at + index as u64).checked_sub(address).and_then(|at| into.get_mut(at as usize)) {
                *to = byte;
            }
        }
        Ok(())
    }
}

/// Reads what the sampler would send.
struct Sender<'a> {
    live: &'a Live,
    pieces: Vec<(u64, Vec<u8>)>,
    length: usize,
}

impl Sender<'_> {
    fn send(live: &Live, facts: &CodeFacts, code: u64) -> Vec<(u64, Vec<u8>)> {
        let mut sender = Sender { live, pieces: Vec::new(), length: 0 };
        let word = |address: u64| live.u64(address).unwrap_or(0);
        let pointer = |offset: u16| word(code + u64::from(offset));
        sender.piece(code, FIELDS.min(facts.size.into()));
        sender.piece(pointer(facts.name), STRING);
        sender.piece(pointer(facts.path), STRING);
        let lines = pointer(facts.lines);
        let length = word(lines + u64::from(facts.bytes_size)).min(LINES);
        let length = if length < 8 { 8 } else { length + 1 };
        sender.piece(lines, u64::from(facts.bytes_data) + length);
        if facts.bytecode != NONE {
            let bytecode = pointer(facts.bytecode);
            let length = word(bytecode + u64::from(facts.bytes_size));
            sender.piece(bytecode, BYTECODE);
            sender.piece(bytecode + u64::from(facts.bytes_data) + length, 1);
        }
        assert!(sender.pieces.len() <= FRAGMENTS && sender.length <= FRAGMENT_BYTES);
        sender.pieces
    }

    fn piece(&mut self, address: u64, length: u64) {
        let (mut address, mut left) = (address, length);
        for _ in 0..STEPS {
            let count = left.min(PAGE - address % PAGE);
            let mut bytes = vec![0; count as usize];
            if left == 0 || self.length > FRAGMENT_BYTES - PAGE as usize || self.live.read(address, &mut bytes).is_err()
            {
                return;
            }
            self.length += bytes.len().next_multiple_of(8);
            self.pieces.push((address, bytes));
            (address, left) = (address + count, left - count);
        }
    }
}

/// A process that has said what it has, and waits.
struct Target {
    child: Child,
    live: Live,
    objects: Vec<Value>,
    facts: CodeFacts,
    codes: CodeLayout,
    strings: StringLayout,
}

impl Drop for Target {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        self.child.wait().expect("a child");
    }
}

impl Target {
    fn start(interpreter: &Interpreter, layout: &Layout) -> Target {
        let mut command = interpreter.place.command();
        command.env("PYTHONIOENCODING", "utf-8").args(["-c", SCRIPT]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().expect("an interpreter that ran before");
        let lines = BufReader::new(child.stdout.take().expect("piped")).lines();
        let objects = lines.map(|line| serde_json::from_str(&line.expect("a line")).expect("JSON"));
        let mut objects: Vec<Value> = objects.take_while(|object: &Value| object["id"] != 0).collect();
        let said = objects.remove(0);
        let address = |name: &str| said[name].as_u64().expect("an address");
        let types =
            Types { code: address("code"), frame: address("frame"), unicode: address("str"), bytes: address("bytes") };
        Target {
            live: Live { pid: child.id(), changed: None, asked: Cell::new(false) },
            child,
            objects,
            facts: layout.code_facts(),
            codes: layout.code_layout(types.code),
            strings: layout.string_layout(&types),
        }
    }

    fn read(&self, sampled: &Sampled<'_>, live: &Live) -> Option<CodeObject> {
        sampled.read(|| Some(live), &self.facts, &self.codes, &self.strings)
    }

    fn read_gone(&self, sampled: &Sampled<'_>) -> Option<CodeObject> {
        sampled.read(|| None::<Gone>, &self.facts, &self.codes, &self.strings)
    }

    /// Compares the code object with what its interpreter says.
    fn compare(&self, object: &Value, code: &CodeObject) {
        let text = |name: &str| object[name].as_str().expect("a text").to_owned();
        assert_eq!((code.name.text.clone(), code.path.text.clone()), (text("name"), text("path")));
        assert_eq!(i64::from(code.first_line), object["first"].as_i64().expect("a number"));
        assert_eq!(u64::from(code.code_size), object["size"].as_u64().expect("a number"));
        let address = object["id"].as_u64().expect("an address");
        let runs = object["lines"].as_array().expect("a list");
        // large ones by some of their lines: each is looked up from the table's beginning
        let step = runs.len() / 64 + 1;
        let mut begin = 0;
        for (index, run) in runs.iter().enumerate() {
            let end = (run[0].as_u64().expect("an offset") as u32).min(code.code_size);
            let line = run[1].as_u64().map(|line| line as u32);
            for offset in (begin..end).step_by(CODE_UNIT as usize).filter(|_| index % step == 0) {
                let found = code.line_of_sample(address, self.instruction(offset)).number();
                assert_eq!(found, line, "{} at {offset}", code.name);
            }
            begin = end;
        }
    }

    /// What the word of a frame has that is at this offset of its bytecode.
    fn instruction(&self, offset: u32) -> u32 {
        match (self.codes.lasti, self.codes.bytecode) {
            (Lasti::ByteOffset, _) => offset + 1,
            (Lasti::UnitIndex, _) => offset / CODE_UNIT + 1,
            (_, Bytecode::Inline { co_code_adaptive, .. }) => (co_code_adaptive as u32 + offset) / 2,
            (_, Bytecode::Object { .. }) => panic!("no version has it so"),
        }
    }
}

fn borrowed(pieces: &[(u64, Vec<u8>)]) -> Vec<(u64, &[u8])> {
    pieces.iter().map(|(address, bytes)| (*address, bytes.as_slice())).collect()
}

/// Code objects that were named by what is sent, and those for which the process was asked.
fn check_interpreter(interpreter: &Interpreter) -> Option<(usize, usize)> {
    let platform = Platform {
        architecture: objects::Architecture::X86_64,
        musl: false,
        free_threaded: interpreter.is_free_threaded,
    };
    let layout = Layout::measured(interpreter.version, platform).ok()?;
    let target = Target::start(interpreter, &layout);
    let (mut by_pieces, mut by_process) = (0, 0);
    for object in &target.objects {
        let address = object["id"].as_u64().expect("an address");
        let check = check_of(&&target.live, &target.facts, address).expect("a code object");
        let pieces = Sender::send(&target.live, &target.facts, address);
        let sampled = Sampled { address, check, pieces: borrowed(&pieces) };
        target.live.asked.set(false);
        let code = target.read(&sampled, &target.live).unwrap_or_else(|| panic!("no code object: {object}"));
        target.compare(object, &code);
        let gone = target.read_gone(&sampled);
        if target.live.asked.get() {
            by_process += 1;
            assert_eq!(gone, None);
            check_changes(&target, &sampled);
        } else {
            by_pieces += 1;
            assert_eq!(gone, Some(code));
        }
        // another one by the time it was read
        for other in [check ^ 1, 0] {
            let sampled = Sampled { address, check: other, pieces: borrowed(&pieces) };
            assert_eq!(target.read(&sampled, &target.live), None);
        }
        // nothing was in memory
        let nothing = Sampled { address, check, pieces: Vec::new() };
        assert_eq!(target.read_gone(&nothing), None);
        target.compare(object, &target.read(&nothing, &target.live).expect("from the process"));
    }
    Some((by_pieces, by_process))
}

/// What the process has now is believed as long as the code object is the one that was sampled.
fn check_changes(target: &Target, sampled: &Sampled<'_>) {
    let facts = &target.facts;
    let changing = |field: u16, by: u64| {
        let at = sampled.address + u64::from(field);
        let value = (&target.live).u64(at).expect("a field");
        Live { pid: target.live.pid, changed: Some((at, value ^ by)), asked: Cell::new(false) }
    };
    for field in [facts.name, facts.path, facts.lines] {
        assert_eq!(target.read(sampled, &changing(field, 16)), None);
    }
    for (field, mask) in facts.checked.iter().zip(facts.masks).filter(|(field, _)| **field != NONE) {
        assert_eq!(target.read(sampled, &changing(*field, mask & mask.wrapping_neg())), None);
    }
    // those that may change do not matter
    let fields = facts.checked.iter().zip(facts.masks).filter(|(field, mask)| **field != NONE && *mask != u64::MAX);
    for (field, mask) in fields {
        assert!(target.read(sampled, &changing(*field, !mask)).is_some());
    }
}

#[test]
fn whole_packages_by_what_is_sent() {
    let all = interpreters::all();
    if all.is_empty() {
        println!("SKIPPED: no CPython here");
    }
    for interpreter in &all {
        let (version, file) = (interpreter.version, interpreter.place.file.display());
        match check_interpreter(interpreter) {
            None => println!("NOT HERE: the layout of {version}, {file}"),
            Some((by_pieces, by_process)) => {
                println!("{version} {file}: {by_pieces} code objects by pieces, {by_process} with the process");
                assert!(by_pieces > 1000 && (3..=by_pieces / 100).contains(&by_process));
            }
        }
    }
}
