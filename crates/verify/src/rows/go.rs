//! Go programs. They have no `.eh_frame`, so framehop cannot judge them; their machine code can. Our table comes from
//! `.gopclntab`, which this judge does not read.

use abi::process::Mapping;
use abi::record::Registers;
use abi::table::{Rule, cfa};
use anyhow::Context;
use object::{Object, ObjectSection};
use objects::{Architecture, Image, UnwindTable};
use rustc_hash::FxHashMap;

use super::answer::{Answer, Caller};
use super::compare::describe;
use super::flow::{Frame, FramePointer, Reached, Text};
use super::kinds::Kind;
use super::ours::{self, Code, Walker};
use super::progress::Progress;
use super::report::{Example, FileReport};
use super::thread::{Mode, RBP, Thread};

/// What Go programs are compared with.
const JUDGE: &str = "their machine code";
/// The CFA of the made-up frame: below all that [`Thread`] has in registers.
const CFA: u64 = 0x0fff_0000_0000;
/// What the caller has in rbp.
const CALLERS_RBP: u64 = 0x0ffe_1234_5678;
/// The return address.
const RETURN: u64 = 0x1234_5678;

/// Compares the table of a Go program with its code; `None` if it is none.
///
/// # Errors
/// The file's headers cannot be read.
pub fn compare_go(image: &Image, table: &UnwindTable, name: &str) -> anyhow::Result<Option<FileReport>> {
    let file = object::File::parse(image.bytes()).context("cannot read the file's headers")?;
    let is_go = file.section_by_name(".gopclntab").is_some() && image.architecture() == Architecture::X86_64;
    let Some(text) = file.section_by_name(".text").filter(|_| is_go) else { return Ok(None) };
    let bytes = text.data().context("cannot read .text")?;
    let text = Text { bytes, address: text.address() };
    let mappings = ours::mappings(&file);
    let mut comparison = Comparison::new(table, &mappings, name);
    comparison.functions(&text);
    Ok(Some(comparison.report.finish(&file)))
}

struct Comparison<'t> {
    code: Code<'t>,
    walker: Walker,
    report: FileReport,
}

impl<'t> Comparison<'t> {
    fn new(table: &'t UnwindTable, mappings: &'t [Mapping], name: &str) -> Comparison<'t> {
        let code = Code { table, mappings };
        Comparison { code, walker: Walker::new(), report: FileReport::new(name, JUDGE) }
    }

    fn functions(&mut self, text: &Text<'_>) {
        let entries = text.called();
        let mut progress = Progress::new(&self.report.file, entries.len());
        for (done, entry) in entries.iter().enumerate() {
            progress.at(done);
            let Some(reached) = text.follow(*entry) else {
                self.report.functions_outside += 1;
                continue;
            };
            self.report.functions += 1;
            for (address, reached, in_order) in in_order(&reached) {
                self.report.intervals += 1;
                self.report.code_bytes += reached.next - address;
                self.place(address, Mode::Interrupted, reached.frame, in_order);
                if reached.is_call {
                    self.place(reached.next - 1, Mode::Called, reached.frame, in_order);
                }
            }
        }
    }

    fn place(&mut self, place: u64, mode: Mode, frame: Frame, in_order: i64) {
        let thread = Thread::new(place, mode, 1);
        let fp = match frame.fp {
            FramePointer::Callers => CALLERS_RBP,
            FramePointer::Below(below) => CFA.wrapping_add_signed(-below),
            FramePointer::Other => thread.register(RBP),
        };
        let registers = Registers { sp: CFA.wrapping_add_signed(-frame.depth), fp, ..thread.registers() };
        let saved = frame.saved.map(|saved| CFA.wrapping_add_signed(-saved));
        let memory = |address| match address {
            address if address == CFA - 8 => RETURN,
            address if Some(address) == saved => CALLERS_RBP,
            address => thread.memory(address),
        };
        let ours = self.walker.step_from(self.code, registers, mode, memory);
        // where the code has put rbp where nobody sees it, the caller's is not known
        let known = frame.saved.is_some() || frame.fp == FramePointer::Callers;
        let equal = match ours {
            Answer::Caller(Caller { pc, sp, fp }) => (pc, sp) == (RETURN, CFA) && (!known || fp == Some(CALLERS_RBP)),
            _ => false,
        };
        self.report.described.count(equal);
        if !equal {
            let code = self.code;
            self.report.disagree(kind(&code.rule(place), &ours, frame.depth, in_order), || Example {
                address: place,
                mode: Some(mode),
                ours: describe(&code.rule(place)),
                judge: say(frame),
                ..Example::default()
            });
        }
    }
}

/// The instructions of a function by address, each with the distance of the stack pointer from the CFA that comes out if
/// they are run in this order, whatever jumps there are.
fn in_order(reached: &FxHashMap<u64, Reached>) -> Vec<(u64, Reached, i64)> {
    let mut instructions: Vec<(u64, Reached, i64)> = reached.iter().map(|(at, reached)| (*at, *reached, 0)).collect();
    instructions.sort_by_key(|(address, ..)| *address);
    let (mut next, mut depth) = (0, 0);
    for (address, reached, in_order) in &mut instructions {
        if *address != next {
            depth = reached.frame.depth;
        }
        *in_order = depth;
        depth += reached.moves;
        next = reached.next;
    }
    instructions
}

fn kind(rule: &Rule, ours: &Answer, depth: i64, in_order: i64) -> Kind {
    match ours {
        _ if rule.cfa == cfa::NONE => Kind::GoNoRule,
        Answer::Root => Kind::GoTopFrame,
        Answer::Caller(caller) if caller.fp.is_none() => Kind::FramePointerLost,
        _ if rule.cfa == cfa::SP && i64::from(rule.cfa_offset) == in_order && in_order != depth => Kind::GoBehindJump,
        _ => Kind::Contradicted,
    }
}

fn say(frame: Frame) -> String {
    let fp = match (frame.fp, frame.saved) {
        (FramePointer::Callers, _) => "rbp kept".to_owned(),
        (_, Some(saved)) => format!("rbp at CFA-{saved}"),
        (_, None) => "rbp not known".to_owned(),
    };
    format!("CFA=rsp{:+}, {fp}", frame.depth)
}
