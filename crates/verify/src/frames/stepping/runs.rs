//! Steps an interpreter and judges its stacks.

use std::collections::HashSet;
use std::process::Command;

use abi::python::{Entry, Fault};
use abi::stop::Stop;
use abi::word::Word;
use anyhow::{Context as _, bail};
use libc::user_regs_struct;
use processes::memory::ProcessMemory;
use python::code_object::CodeObject;

use super::report::{EXAMPLES, Example, Report};
use super::target::Target;
use crate::edges::stepping::code::{Effect, Instructions, disassemble};
use crate::edges::stepping::files::Files;
use crate::edges::stepping::places::Place;
use crate::edges::stepping::tracee::Stood;
use crate::edges::stepping::world::{Interpreter, World};
use crate::frames::Arguments;
use crate::frames::continuity::{Break, Continuity};
use crate::frames::stack::Stack;

/// One stack of so many outside of the eval loop is judged, too.
const OUTSIDE: u64 = 16;
/// Frames of an example that are shown.
const FRAMES: usize = 12;

/// Steps the interpreters and prints what was found; false: a walk was wrong, or said of a frame that it is missing.
///
/// # Errors
/// If one cannot be stepped.
pub fn run(arguments: &Arguments, json: bool) -> anyhow::Result<bool> {
    let mut reports = Vec::new();
    for program in &arguments.programs {
        let target = Target::start(Command::new(program)).with_context(|| program.display().to_string())?;
        let report = judge(target, arguments.stacks)?;
        if !json {
            println!("{report}");
        }
        reports.push(report);
    }
    if json {
        println!("{}", serde_json::to_string_pretty(&reports)?);
    }
    Ok(reports.iter().all(Report::holds))
}

/// Steps an interpreter through the workload, and judges at most `stacks` stacks.
///
/// # Errors
/// If it ends otherwise than it should, or its file is not among its mappings.
pub fn judge(target: Target, stacks: u64) -> anyhow::Result<Report> {
    let mut files = Files::new(None);
    let pid = target.tracee.pid();
    let mut world = World::new(pid, &mut files);
    world.read_mappings();
    let (object, _) = world.place(target.entry);
    if object == 0 {
        bail!("{}: its file is not mapped", target.name);
    }
    let entry = Entry { object, ..target.ready.entry() };
    world.set_interpreter(Interpreter { entry, eval_loop: target.eval_loop.clone() });
    let report = Report {
        name: target.name.clone(),
        steps: 0,
        judged: 0,
        in_eval_loop: 0,
        pushed: 0,
        popped: 0,
        deepest: 0,
        misled: 0,
        breaks: 0,
        half_pushed: 0,
        faults: Default::default(),
        cuts: Default::default(),
        examples: Vec::new(),
        is_done: false,
    };
    let run = Run {
        target,
        world,
        object,
        words: Vec::new(),
        depth: 0,
        continuity: Continuity::default(),
        shown: HashSet::new(),
        report,
    };
    run.steps(stacks)
}

struct Run<'a> {
    target: Target,
    world: World<'a>,
    object: u32,
    words: Vec<u64>,
    /// Native frames, by the calls that were made and have not returned.
    depth: usize,
    continuity: Continuity,
    /// What there is an example of: what was found, and where.
    shown: HashSet<(Option<Break>, Option<Fault>, u64)>,
    report: Report,
}

impl Run<'_> {
    fn steps(mut self, stacks: u64) -> anyhow::Result<Report> {
        let mut instructions = Instructions::default();
        let (pid, mut signal) = (self.target.tracee.pid(), 0);
        let registers = self.target.tracee.registers()?;
        let mut last = registers.rip;
        self.depth = self.native_depth(&registers);
        while self.report.judged < stacks {
            match self.target.tracee.step(std::mem::take(&mut signal))? {
                Stood::Signal(libc::SIGTRAP) => {}
                Stood::Signal(libc::SIGUSR1) => {
                    self.report.is_done = true;
                    break;
                }
                Stood::Signal(other) => signal = other,
                ended => bail!("{}: {ended:?} after {} instructions", self.report.name, self.report.steps),
            }
            self.report.steps += 1;
            match instructions.effect(pid, last) {
                Effect::Call(_) => self.depth += 1,
                Effect::Return => self.depth = self.depth.saturating_sub(1),
                _ => {}
            }
            self.world.pages.forget();
            let registers = self.target.tracee.registers()?;
            self.continuity.pass(registers.rsp);
            let (object, offset) = self.world.place(registers.rip);
            let is_inside = object == self.object && self.target.eval_loop.at(offset).is_some();
            if is_inside || self.report.steps.is_multiple_of(OUTSIDE) {
                self.report.in_eval_loop += u64::from(is_inside);
                self.world.walk(&registers, &mut self.words);
                self.judge(&registers, last);
            }
            last = registers.rip;
        }
        (self.report.pushed, self.report.popped) = (self.continuity.pushed, self.continuity.popped);
        Ok(self.report)
    }

    /// Native frames, as the walk finds them.
    fn native_depth(&mut self, registers: &user_regs_struct) -> usize {
        let mut words = Vec::new();
        self.world.walk_native(registers, &mut words);
        // the last word says how it ended
        words.len() - 1
    }

    fn judge(&mut self, registers: &user_regs_struct, last: u64) {
        let (pc, sp) = (registers.rip, registers.rsp);
        self.report.judged += 1;
        let (object, eval_loop) = (self.object, &self.target.eval_loop);
        let stack = Stack::of(&self.words, |word| match Word::decode(word) {
            Word::Object { object: of, offset, exact, .. } => {
                of == object && eval_loop.at(offset.wrapping_sub(u64::from(!exact))).is_some()
            }
            _ => false,
        });
        if !self.continuity.is_unchanged(&stack) && self.native_depth(registers) != self.depth {
            self.report.misled += 1;
            return self.continuity.forget();
        }
        self.report.deepest = self.report.deepest.max(stack.frames.len());
        if stack.faults == [Fault::HalfPushed] && stack.cut.is_none() {
            self.report.half_pushed += 1;
            return;
        }
        for fault in &stack.faults {
            *self.report.faults.entry(format!("python: {}", fault.text())).or_default() += 1;
        }
        if let Some(stop) = stack.cut {
            *self.report.cuts.entry(Stop::text(stop).to_owned()).or_default() += 1;
        }
        let fault = stack.faults.first().copied();
        if !stack.is_whole() {
            let before = self.continuity.before().cloned().unwrap_or_default();
            return self.show(None, fault, [pc, last], [&before, &stack]);
        }
        if let Some((found, before)) = self.continuity.judge(stack.clone(), sp) {
            self.report.breaks += 1;
            self.show(Some(found), fault, [pc, last], [&before, &stack]);
        }
    }

    fn show(&mut self, found: Option<Break>, fault: Option<Fault>, pcs: [u64; 2], stacks: [&Stack; 2]) {
        if self.report.examples.len() == EXAMPLES || !self.shown.insert((found, fault, pcs[0])) {
            return;
        }
        let pid = self.target.tracee.pid();
        let (object, offset) = self.world.place(pcs[0]);
        let [before, now] = stacks.map(|stack| self.names(stack));
        let place = self.world.files.name(Place { object, offset, exact: true });
        let moment = self.target.eval_loop.truth_at(offset);
        let place = format!("{place} ({offset:#x}, {moment:?})");
        let instructions = pcs.map(|pc| disassemble(pid, pc));
        self.report.examples.push(Example { found, place, instructions, before, now });
    }

    /// How many native frames, and Python frames with their instructions, innermost first.
    fn names(&self, stack: &Stack) -> Vec<String> {
        let ready = &self.target.ready;
        let (codes, strings) = (ready.layout.code_layout(ready.types.code), ready.layout.string_layout(&ready.types));
        let memory = ProcessMemory::open(self.target.tracee.pid()).ok();
        let name = |code| {
            let object = CodeObject::read(memory.as_ref()?, code, &codes, &strings).ok()?;
            Some(object.name.to_string())
        };
        let bare = (0..stack.bare).map(|_| "(eval loop)".to_owned());
        let faults = stack.faults.iter().map(|fault| format!("[{}]", fault.text()));
        let frames = stack.frames.iter().rev().take(FRAMES).map(|frame| {
            let name = name(frame.code).unwrap_or_else(|| format!("{:#x}", frame.code));
            format!("{name}+{} ({} further out)", frame.instruction, frame.natives)
        });
        let natives = std::iter::once(format!("{} natives", stack.natives.len()));
        natives.chain(bare).chain(faults).chain(frames).collect()
    }
}
