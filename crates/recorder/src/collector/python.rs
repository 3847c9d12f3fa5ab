//! CPython in processes: which has one, as far as it is proven, and the code objects of its samples.

use std::io;
use std::rc::Rc;
use std::time::{Duration, Instant};

use abi::python::{ENTRIES, EVAL_LOOPS, Entry};
use processes::memory::ProcessMemory;
use python::code_object::CodeObject;
use python::sampled::Sampled;
use rustc_hash::{FxHashMap, FxHashSet};
use rustix::fd::BorrowedFd;

use super::{Attention, Collector};
use crate::interpreters::{Answer, Interpreters, Proven, Question};
use crate::python_map::PythonMap;
use crate::ring::NewCode;

/// An interpreter that is not ready is looked at again after this time, and after twice as long the next time.
const FIRST_PAUSE: Duration = Duration::from_millis(3);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);
/// So long at most it is waited for what selected processes need before sampling begins.
const PREPARATION: Duration = Duration::from_secs(1);

/// What is known of the interpreter in a process.
#[derive(Default)]
pub(super) enum State {
    /// Nobody has looked yet, or not since more was mapped.
    #[default]
    Unknown,
    /// It is being looked at, for the question with this number.
    Asked(u64),
    /// There is none.
    None,
    /// There is one that may be ready later.
    Later { at: Instant, pause: Duration },
    /// It is proven.
    Known(Known),
}

/// An interpreter that is in the sampler's map.
pub(super) struct Known {
    index: u32,
    found: Rc<Proven>,
    object: u32,
}

/// One line about a process for the user.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Status {
    /// What was found, or refused.
    pub(crate) text: String,
    /// Something was found: what is found later is not about the same.
    is_final: bool,
}

/// A code object in a process: number of the process, address, check.
type CodeKey = (u64, u64, u32);

/// Interpreters and code objects of a recording.
pub(crate) struct Pythons {
    interpreters: Interpreters,
    map: PythonMap,
    keeps_eval_loops: bool,
    /// By the sampler's id: number of the process, and the interpreter.
    by_id: FxHashMap<u32, (u64, Rc<Proven>)>,
    /// By number of the process: the object with the eval loop, and the interpreter.
    by_instance: FxHashMap<u64, (u32, Rc<Proven>)>,
    /// Processes to be looked at again.
    later: Vec<u32>,
    /// How many questions were asked.
    asked: u64,
    codes: FxHashMap<CodeKey, Option<CodeObject>>,
    statuses: FxHashMap<u64, Vec<Status>>,
    /// Objects that are known to be no interpreter.
    not_python: FxHashSet<u32>,
}

impl Pythons {
    pub(crate) fn new(interpreters: Interpreters, map: PythonMap, keeps_eval_loops: bool) -> Pythons {
        Pythons {
            interpreters,
            map,
            keeps_eval_loops,
            by_id: FxHashMap::default(),
            by_instance: FxHashMap::default(),
            later: Vec::new(),
            asked: 0,
            codes: FxHashMap::default(),
            statuses: FxHashMap::default(),
            not_python: FxHashSet::default(),
        }
    }

    /// Becomes readable when there are answers.
    pub(super) fn ready(&self) -> BorrowedFd<'_> {
        self.interpreters.ready()
    }

    /// Reads a code object out of what the sampler sent of it, and of the process what is missing.
    pub(super) fn name(&mut self, code: &NewCode) {
        let Some((instance, found)) = self.by_id.get(&code.id) else { return };
        let pieces = code.pieces.iter().map(|(address, bytes)| (*address, bytes.as_slice())).collect();
        let sampled = Sampled { address: code.code, check: code.check, pieces };
        let live = || ProcessMemory::open(code.pid).ok();
        let (layout, strings) = (found.code_layout(), found.string_layout());
        let object = sampled.read(live, &found.entry.code, &layout, &strings);
        let known = self.codes.entry((*instance, code.code, code.check)).or_default();
        // one that was sent again may lack what was there before
        if object.is_some() {
            *known = object;
        }
    }

    /// A code object of a process, if it could be read in time.
    pub(crate) fn code(&self, instance: u64, code: u64, check: u32) -> Option<&CodeObject> {
        self.codes.get(&(instance, code, check))?.as_ref()
    }

    /// Lines about the interpreters of a process.
    pub(crate) fn statuses(&self, instance: u64) -> &[Status] {
        self.statuses.get(&instance).map(Vec::as_slice).unwrap_or_default()
    }

    /// What the sampler knows of the interpreter that a process has or had last.
    pub(super) fn of_process(&self, instance: u64) -> Option<(Entry, Rc<Proven>)> {
        let (object, found) = self.by_instance.get(&instance)?;
        Some((self.entry_of(found, *object), found.clone()))
    }

    fn entry_of(&self, found: &Proven, object: u32) -> Entry {
        Entry { object, keeps_native: self.keeps_eval_loops.into(), ..found.entry }
    }

    /// Whether a place in an object is in the eval loop of the interpreter that a process has or had last.
    pub(crate) fn is_eval_loop(&self, instance: u64, object: u32, offset: u64) -> bool {
        let known = self.by_instance.get(&instance).filter(|(of, _)| *of == object);
        known.is_some_and(|(_, found)| found.eval_loop.at(offset).is_some())
    }

    /// Notes what is to be said of a process: beside what it had before it became another program, in place of what was only
    /// not ready.
    fn note(&mut self, instance: u64, texts: Vec<String>, is_final: bool) {
        let statuses = self.statuses.entry(instance).or_default();
        statuses.retain(|status| status.is_final);
        for text in texts {
            if statuses.iter().all(|status| status.text != text) {
                statuses.push(Status { text, is_final });
            }
        }
    }

    fn insert(&mut self, instance: u64, found: Rc<Proven>, object: u32) -> Option<Known> {
        let (index, id) = self.map.insert(&self.entry_of(&found, object), &found.eval_loop)?;
        self.by_id.insert(id, (instance, found.clone()));
        self.by_instance.insert(instance, (object, found.clone()));
        Some(Known { index, found, object })
    }
}

impl Collector {
    /// A process was sampled: if it may have an interpreter and nobody has looked, somebody does.
    pub(super) fn look_for_python(&mut self, pid: u32) {
        if self.testimony.is_some() {
            // who checks native stacks wants all of them
            return;
        }
        let Some(attention) = self.attention.get_mut(&pid) else { return };
        match attention.python {
            State::Unknown => {}
            State::Later { at, .. } if at <= Instant::now() => {}
            _ => return,
        }
        let unsure: Vec<u32> =
            attention.objects.iter().copied().filter(|number| !self.pythons.not_python.contains(number)).collect();
        if unsure.is_empty() {
            attention.python = State::None;
            return;
        }
        let files = unsure.iter().filter_map(|number| Some((*number, self.objects.get(*number)?.file.clone()?)));
        let pause = match attention.python {
            State::Later { pause, .. } => Some(pause),
            _ => None,
        };
        let instance = self.recent.get(&pid).copied().unwrap_or(0);
        self.pythons.asked += 1;
        let number = self.pythons.asked;
        let question = Question { pid, instance, number, pause, files: files.collect() };
        if self.pythons.interpreters.ask(question) {
            attention.python = State::Asked(number);
        }
    }

    /// Before sampling begins: looks at the interpreters of processes that are there. Those of selected processes are waited
    /// for, and their tables, too: their first stacks shall be as whole as all others.
    pub(crate) fn prepare(&mut self) -> io::Result<()> {
        let pids: Vec<u32> = self.attention.keys().copied().collect();
        for pid in pids {
            // elsewhere a name is no more than a hint at what may be worth a look before the first sample
            if self.selective() || self.has_object_called(pid, "python") {
                self.look_for_python(pid);
            }
        }
        let begun = Instant::now();
        while self.selective() && self.is_preparing() && begun.elapsed() < PREPARATION {
            self.wait_for_helpers(PREPARATION.saturating_sub(begun.elapsed()))?;
            self.take_tables();
            self.take_pythons();
        }
        self.flush();
        Ok(())
    }

    fn is_preparing(&self) -> bool {
        self.builders.busy() || self.attention.values().any(|attention| matches!(attention.python, State::Asked(_)))
    }

    fn wait_for_helpers(&self, longest: Duration) -> io::Result<()> {
        use rustix::event::{PollFd, PollFlags, Timespec, poll};
        let timeout = Timespec { tv_sec: longest.as_secs() as i64, tv_nsec: i64::from(longest.subsec_nanos()) };
        let ready = [self.pythons.ready(), self.builders.ready()].map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN));
        match poll(&mut ready.to_vec(), Some(&timeout)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// How long until a process is to be looked at again.
    pub(super) fn until_next_look(&self) -> Duration {
        let until = |pid: &u32| match self.attention.get(pid)?.python {
            State::Later { at, .. } => Some(at.saturating_duration_since(Instant::now())),
            _ => None,
        };
        self.pythons.later.iter().filter_map(until).min().unwrap_or(Duration::MAX)
    }

    fn has_object_called(&self, pid: u32, name: &str) -> bool {
        let objects = self.attention.get(&pid).map(|attention| attention.objects.as_slice()).unwrap_or_default();
        objects.iter().filter_map(|number| self.objects.get(*number)).any(|object| object.path.contains(name))
    }

    /// Takes what was found out, and looks again at what was not ready.
    pub(super) fn take_pythons(&mut self) {
        for pid in std::mem::take(&mut self.pythons.later) {
            self.look_for_python(pid);
            if self.attention.get(&pid).is_some_and(|attention| matches!(attention.python, State::Later { .. })) {
                self.pythons.later.push(pid);
            }
        }
        self.pythons.interpreters.acknowledge();
        while let Some(answer) = self.pythons.interpreters.take() {
            self.learn_python(answer);
        }
    }

    fn learn_python(&mut self, answer: Answer) {
        self.pythons.not_python.extend(&answer.not_python);
        // if it has become another program since, the answer is about none that runs
        let is_asked =
            |attention: &Attention| matches!(attention.python, State::Asked(number) if number == answer.number);
        if !self.attention.get(&answer.pid).is_some_and(is_asked) {
            return;
        }
        self.pythons.note(answer.instance, answer.statuses, answer.found.is_some());
        let state = match answer.found {
            Some(found) => self.enter_python(answer.pid, answer.instance, found),
            None if answer.may_pass => State::Unknown,
            None => State::None,
        };
        let state = match state {
            // else it would be looked at again with every sample
            State::Unknown => self.later(answer.pid, answer.pause),
            state => state,
        };
        if let Some(attention) = self.attention.get_mut(&answer.pid) {
            attention.python = state;
            self.dirty.insert(answer.pid);
        }
    }

    fn later(&mut self, pid: u32, pause: Option<Duration>) -> State {
        let pause = pause.map_or(FIRST_PAUSE, |pause| (pause * 2).min(LONGEST_PAUSE));
        self.pythons.later.push(pid);
        State::Later { at: Instant::now() + pause, pause }
    }

    fn enter_python(&mut self, pid: u32, instance: u64, found: Proven) -> State {
        let mappings = self.mappings_of(pid);
        let index = mappings.partition_point(|mapping| mapping.begin <= found.address);
        let Some(mapping) = mappings[..index].last().filter(|mapping| found.address < mapping.end) else {
            return State::Unknown;
        };
        self.insert_python(instance, Rc::new(found), mapping.object).map_or(State::None, State::Known)
    }

    fn insert_python(&mut self, instance: u64, found: Rc<Proven>, object: u32) -> Option<Known> {
        let known = self.pythons.insert(instance, found, object);
        if known.is_none() {
            let (processes, files) = (ENTRIES - 1, EVAL_LOOPS);
            let room = format!("room for the interpreters of {processes} processes and {files} files only");
            self.troubles.no_room = Some(room);
        }
        known
    }

    /// Index of a process's interpreter in the sampler's map; 0 = none.
    pub(super) fn python_index(&self, pid: u32) -> u32 {
        match self.attention.get(&pid).map(|attention| &attention.python) {
            Some(State::Known(known)) => known.index,
            _ => 0,
        }
    }

    /// Gives a child its parent's interpreter, under a number of its own: its code objects will differ.
    pub(super) fn inherit_python(&mut self, parent: u32, child: u32) -> u32 {
        let Some(State::Known(known)) = self.attention.get(&parent).map(|attention| &attention.python) else {
            return 0;
        };
        let (found, object) = (known.found.clone(), known.object);
        let instance_of = |pid: u32| self.recent.get(&pid).copied().unwrap_or(0);
        let (from, instance) = (instance_of(parent), instance_of(child));
        let statuses = self.pythons.statuses(from).to_vec();
        self.pythons.statuses.insert(instance, statuses);
        // one that had this pid before, and was not seen to end
        self.forget_python(child);
        let Some(known) = self.insert_python(instance, found, object) else { return 0 };
        let index = known.index;
        self.attention.entry(child).or_default().python = State::Known(known);
        index
    }

    /// A process has ended, or become another program.
    pub(super) fn forget_python(&mut self, pid: u32) {
        let Some(attention) = self.attention.get_mut(&pid) else { return };
        if let State::Known(known) = std::mem::take(&mut attention.python) {
            self.pythons.map.remove(known.index);
        }
    }

    /// What a process maps has changed, to these objects: its interpreter may be gone, or have come.
    pub(super) fn keep_python(&mut self, pid: u32, objects: &FxHashSet<u32>) {
        let Some(attention) = self.attention.get_mut(&pid) else { return };
        match &attention.python {
            State::Known(known) if objects.contains(&known.object) => {}
            State::Known(_) => self.forget_python(pid),
            State::None => attention.python = State::Unknown,
            _ => {}
        }
        if self.selective() {
            self.look_for_python(pid);
        }
    }
}
