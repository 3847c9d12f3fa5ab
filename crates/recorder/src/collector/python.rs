//! CPython in processes: when which is looked at, and what becomes of it.

use std::io;
use std::rc::Rc;
use std::time::{Duration, Instant};

use abi::python::{ENTRIES, EVAL_LOOPS};
use rustc_hash::FxHashSet;
use rustix::event::{PollFd, PollFlags};

use super::{Collector, wait};
use crate::interpreters::{Answer, Proven, Question};
use crate::pythons::{CODE_BYTES, Known};
use crate::ring::NewCode;

/// An interpreter that is not ready is looked at again after this time, and after twice as long the next time.
const FIRST_PAUSE: Duration = Duration::from_millis(3);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);
/// So long at most it is waited for what processes need before sampling begins.
const PREPARATION: Duration = Duration::from_secs(1);

/// What is known of the interpreter in a process.
#[derive(Default)]
pub(super) enum State {
    /// Nobody has looked yet, or not since more was mapped.
    #[default]
    Unknown,
    /// It is being looked at, for the question with this number.
    Asked {
        number: u64,
        /// What the process maps has changed since.
        changed: bool,
    },
    /// There is none.
    None,
    /// There is one that may be ready later.
    Later { at: Instant, pause: Duration },
    /// It is proven.
    Known(Known),
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
        let has_file = |number: &u32| self.objects.get(*number).is_some_and(|object| object.file.is_some());
        let pause = match attention.python {
            State::Later { pause, .. } => Some(pause),
            _ => None,
        };
        let instance = self.recent.get(&pid).copied().unwrap_or(0);
        self.pythons.asked += 1;
        let number = self.pythons.asked;
        let question =
            Question { pid, instance, number, pause, objects: unsure.into_iter().filter(has_file).collect() };
        if self.pythons.interpreters.ask(question) {
            attention.python = State::Asked { number, changed: false };
        }
    }

    /// Before sampling begins: looks at the interpreters of processes that are there, and waits for them. The tables of selected
    /// processes are waited for, too: their first stacks shall be as whole as all others.
    pub(crate) fn prepare(&mut self) -> io::Result<()> {
        let pids: Vec<u32> = self.attention.keys().copied().collect();
        for pid in pids {
            // elsewhere a name is no more than a hint at what may be worth a look before the first sample
            if self.selective() || self.has_object_called(pid, "python") {
                self.look_for_python(pid);
            }
        }
        let begun = Instant::now();
        while self.is_preparing() && begun.elapsed() < PREPARATION {
            self.wait_for_helpers(PREPARATION.saturating_sub(begun.elapsed()))?;
            self.take_tables();
            self.take_pythons();
        }
        self.flush();
        Ok(())
    }

    fn is_preparing(&self) -> bool {
        self.pythons.interpreters.busy() || self.selective() && self.builders.busy()
    }

    fn wait_for_helpers(&self, longest: Duration) -> io::Result<()> {
        let helpers = [self.pythons.ready(), self.builders.ready()];
        let mut helpers = helpers.map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN));
        wait(&mut helpers, longest).map(drop)
    }

    /// Keeps what a code object says.
    pub(super) fn name_code(&mut self, code: &NewCode) {
        if !self.pythons.name(code) {
            self.troubles.no_room = Some(format!("room for {} MB of Python code objects only", CODE_BYTES >> 20));
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
        for answer in self.pythons.interpreters.take() {
            self.learn_python(answer);
        }
    }

    fn learn_python(&mut self, answer: Answer) {
        self.pythons.not_python.extend(&answer.not_python);
        // if it has become another program since, the answer is about none that runs
        let has_changed = match self.attention.get(&answer.pid).map(|attention| &attention.python) {
            Some(State::Asked { number, changed }) if *number == answer.number => *changed,
            _ => return,
        };
        self.pythons.note(answer.instance, answer.statuses, answer.found.is_some());
        let state = match answer.found {
            Some(found) => self.enter_python(answer.pid, answer.instance, found),
            None if answer.may_pass || has_changed => State::Unknown,
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
        self.pythons.copy_statuses(from, instance);
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
            self.pythons.remove(known);
        }
    }

    /// What a process maps has changed, to these objects: its interpreter may be gone, or have come.
    pub(super) fn keep_python(&mut self, pid: u32, objects: &FxHashSet<u32>) {
        let Some(attention) = self.attention.get_mut(&pid) else { return };
        match &attention.python {
            State::Known(known) if objects.contains(&known.object) => {}
            State::Known(_) => self.forget_python(pid),
            State::None => attention.python = State::Unknown,
            State::Asked { number, .. } => attention.python = State::Asked { number: *number, changed: true },
            State::Unknown | State::Later { .. } => {}
        }
        if self.selective() {
            self.look_for_python(pid);
        }
    }
}
