//! Runs programs and judges each of their states.

use std::process::{Command, Stdio};

use abi::stop::Stop;
use abi::word::Word;
use anyhow::{Context, bail};

use super::code::disassemble;
use super::compile::{CompileError, Compiled, compile};
use super::files::{Alter, Files};
use super::judge::{Verdict, has_frame_pointer, judge};
use super::places::{Key, Place, Places, culprit};
use super::programs::{Program, Variant, programs};
use super::report::{Example, Report, Run, Skipped, Stops, Wrong};
use super::steps::{Ended, Steps};
use super::tracee::Tracee;
use super::world::World;
use crate::edges::Arguments;

/// Frames of an example that are shown.
const FRAMES: usize = 24;

/// Steps that are made at most behind the wanted states, to see whether a call returns.
const UNDECIDED: u32 = 10_000;

/// Steps the programs and prints what was found; false: a walk was wrong.
///
/// # Errors
/// If nothing could be stepped, or a target did what the judge cannot follow.
pub fn run(arguments: &Arguments, json: bool) -> anyhow::Result<bool> {
    let wanted = arguments.program.as_deref().unwrap_or_default();
    let all = programs().iter().flat_map(|program| program.variants.iter().map(move |variant| (program, variant)));
    let chosen: Vec<_> =
        all.filter(|(program, variant)| format!("{} {}", program.name, variant.name).starts_with(wanted)).collect();
    if chosen.is_empty() {
        bail!("no program is called {wanted}");
    }
    if arguments.list {
        chosen
            .iter()
            .for_each(|(program, variant)| println!("{} {}: {}", program.name, variant.name, variant.flags.join(" ")));
        return Ok(true);
    }
    let mut judge = Judge::new(None)?;
    for (program, variant) in chosen {
        judge.run(program, variant, arguments.states)?;
        judge.progress();
    }
    let report = judge.finish();
    match json {
        true => println!("{}", serde_json::to_string(&report)?),
        false => print!("{report}"),
    }
    if report.states == 0 {
        bail!("no program could be stepped");
    }
    Ok(report.wrong == 0)
}

/// Compiles, runs and judges programs.
pub struct Judge {
    directory: tempfile::TempDir,
    files: Files,
    places: Places,
    report: Report,
}

/// What a run has at hand.
struct State<'a> {
    world: World<'a>,
    walked: Vec<u64>,
    truth: Vec<u64>,
    suspects: Vec<Suspect>,
}

/// A walk that is not the truth. It is wrong unless one of the calls in question turns out to have lost its return address.
struct Suspect {
    calls: Vec<u64>,
    key: Key,
}

impl Judge {
    /// Has judged nothing yet; `alter` may spoil tables.
    ///
    /// # Errors
    /// If there is no room for temporary files.
    pub fn new(alter: Option<Alter>) -> anyhow::Result<Judge> {
        Ok(Judge {
            directory: tempfile::tempdir().context("a directory for the programs")?,
            files: Files::new(alter),
            places: Places::default(),
            report: Report::default(),
        })
    }

    /// Compiles and runs a program, and compares at most `states` walks. A program that cannot be compiled here is noted as
    /// skipped.
    ///
    /// # Errors
    /// If it cannot be run under ptrace, or did what the judge cannot follow.
    pub fn run(&mut self, program: &Program, variant: &Variant, states: u64) -> anyhow::Result<()> {
        match compile(program, variant, self.directory.path()) {
            Ok(compiled) => {
                let run = self
                    .step(program, variant, &compiled, states)
                    .with_context(|| format!("{} {}", program.name, variant.name))?;
                self.report.runs.push(run);
            }
            Err(CompileError::Source(error)) => return Err(error).context("writing a program's source"),
            Err(error) => self.report.skipped.push(Skipped {
                program: program.name,
                variant: variant.name,
                reason: error.to_string(),
            }),
        }
        Ok(())
    }

    /// Says on the standard error output what the last run found.
    fn progress(&self) {
        if let Some(Run { program, variant, states, stopped, wrong, .. }) = self.report.runs.last() {
            eprintln!("{program} {variant}: {states} states, {stopped} stopped, {wrong} wrong");
        }
    }

    fn step(&mut self, program: &Program, variant: &Variant, compiled: &Compiled, states: u64) -> anyhow::Result<Run> {
        let mut tracee = start(compiled)?;
        if !program.from_first {
            tracee.run_to(entry_point(tracee.pid())?)?;
        }
        let pid = tracee.pid();
        let mut steps = Steps::new(tracee)?;
        let mut run = Run {
            program: program.name,
            variant: variant.name,
            states: 0,
            whole: 0,
            stopped: 0,
            wrong: 0,
            rewritten: 0,
            by_frame_pointer: 0,
            events: steps.events,
            left: 0,
            ended: "was left after the wanted states".to_owned(),
        };
        let mut state = State {
            world: World::new(pid, &mut self.files),
            walked: Vec::new(),
            truth: Vec::new(),
            suspects: Vec::new(),
        };
        let mut mapped = true;
        while run.states < states {
            if std::mem::take(&mut mapped) {
                state.world.read_mappings();
            }
            state.walk(&steps);
            count(&mut run, &mut state, &mut self.places, &steps);
            match steps.step(&mut state.world.pages, &mut mapped)? {
                None if run.states == states => decide(&mut steps, &mut state)?,
                None => {}
                Some(Ended::Exited(status)) => {
                    run.ended = format!("exit status {status}");
                    break;
                }
                Some(Ended::Killed(signal)) => bail!("killed by signal {signal} after {} states", run.states),
            }
        }
        run.events = steps.events;
        run.left = steps.shadow.depth() as u64;
        for Suspect { calls, key } in state.suspects {
            if calls.iter().any(|call| steps.shadow.was_rewritten(*call)) {
                run.rewritten += 1;
            } else {
                run.wrong += 1;
                self.places.counts.add(key);
            }
        }
        Ok(run)
    }

    /// The report of all runs.
    pub fn finish(mut self) -> Report {
        self.report.sum();
        self.report.distinct_instructions = self.places.innermost.len();
        self.report.distinct_stacks = self.places.stacks.len();
        for (key, states) in self.places.counts.sorted() {
            let example = self.places.examples.remove(&key);
            let (Key::Stop(_, at) | Key::Fault(at, _)) = key;
            let (place, rule) = (self.files.name(at), self.files.explain(at));
            match key {
                Key::Stop(code, _) => {
                    let reason = Stop::from_code(code).map_or("unknown", Stop::text);
                    self.report.stops.push(Stops { reason, place, rule, states, example });
                }
                Key::Fault(_, kind) => self.report.faults.push(Wrong { kind, place, rule, states, example }),
            }
        }
        self.report
    }
}

impl State<'_> {
    fn walk(&mut self, steps: &Steps) {
        self.world.walk(&steps.registers, &mut self.walked);
        self.truth.clear();
        self.truth.extend(steps.shadow.frames(steps.registers.rip).map(|frame| self.world.word(frame)));
    }
}

/// Goes on, without comparing, until what became of the calls of the latest suspects is known.
fn decide(steps: &mut Steps, state: &mut State<'_>) -> anyhow::Result<()> {
    for _ in 0..UNDECIDED {
        let calls = state.suspects.last().map(|suspect| &suspect.calls[..]).unwrap_or_default();
        let open = calls.iter().any(|call| steps.shadow.is_open(*call));
        if !open || steps.step(&mut state.world.pages, &mut false)?.is_some() {
            break;
        }
    }
    Ok(())
}

fn count(run: &mut Run, state: &mut State<'_>, places: &mut Places, steps: &Steps) {
    run.states += 1;
    let State { world, walked, truth, .. } = &*state;
    let (object, offset) = world.place(steps.registers.rip);
    places.innermost.insert(Place { object, offset, exact: true });
    // the program's own file is among the words
    places.stacks.insert(truth.iter().fold(0, |hash, word| walk::mix(hash, *word)));
    run.by_frame_pointer += u64::from(has_frame_pointer(walked));
    match judge(walked, truth) {
        Verdict::Whole => run.whole += 1,
        Verdict::Stopped(stop) => {
            run.stopped += 1;
            let last = walked.len().checked_sub(2).and_then(|index| Place::of(walked[index]));
            let key = Key::Stop(stop as u8, last.unwrap_or(Place::NONE));
            places.add_example(key, || example(run, state, steps));
            places.counts.add(key);
        }
        Verdict::Wrong(fault) => {
            let (frame, place, kind) = culprit(walked, fault);
            let key = Key::Fault(place, kind);
            places.add_example(key, || example(run, state, steps));
            let calls = steps.shadow.innermost(frame + 1).collect();
            state.suspects.push(Suspect { calls, key });
        }
    }
}

fn example(run: &Run, state: &mut State<'_>, steps: &Steps) -> Example {
    let stop = match state.walked.last().map(|word| Word::decode(*word)) {
        Some(Word::End { stop, .. }) => Stop::from_code(stop),
        _ => None,
    };
    let frames = state.walked.len().saturating_sub(1);
    let files = &mut state.world.files;
    let mut name = |word: &u64| match Place::of(*word) {
        Some(place) => files.name(place),
        None => format!("{word:#x}"),
    };
    Example {
        program: format!("{} {}", run.program, run.variant),
        instruction: disassemble(steps.tracee.pid(), steps.registers.rip),
        truth: state.truth.iter().take(FRAMES).map(&mut name).collect(),
        walked: state.walked[..frames].iter().take(FRAMES).map(&mut name).collect(),
        end: stop.map_or("none", Stop::text).to_owned(),
    }
}

fn start(compiled: &Compiled) -> anyhow::Result<Tracee> {
    let mut command = Command::new(&compiled.path);
    // an environment that changes nothing in the dynamic linker
    command.env_clear().env("LC_ALL", "C").args(&compiled.opened);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    Tracee::start(&mut command).context("starting it under ptrace")
}

/// The program's first instruction: `AT_ENTRY` of the auxiliary vector.
fn entry_point(pid: u32) -> anyhow::Result<u64> {
    let vector = std::fs::read(format!("/proc/{pid}/auxv")).context("its auxiliary vector")?;
    let (words, _) = vector.as_chunks::<8>();
    let mut pairs = words.chunks_exact(2).map(|pair| (u64::from_le_bytes(pair[0]), u64::from_le_bytes(pair[1])));
    let entry = pairs.find(|(kind, _)| *kind == libc::AT_ENTRY).map(|(_, entry)| entry);
    entry.context("no entry point in its auxiliary vector")
}
