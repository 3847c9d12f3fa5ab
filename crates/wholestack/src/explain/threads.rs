//! What each thread does now.

use inspect::{Captured, capture, native_stack};
use processes::thread_pointer::{Patience, ThreadProblem, of_threads};
use processes::{Proc, namespaces};
use python::Ready;
use python::prove::{self, all_states, states};
use python::stack::{Namer, RawStack, take};

use super::interpreters::Found;
use super::report::{PythonFrame, PythonStack, Thread};
use super::{Subject, native};
use crate::exit::with_causes;

/// The thread pointers of these threads, as far as they can be had.
pub(super) fn identify(tids: &[u32]) -> Vec<prove::Thread> {
    let proc = Proc::system();
    let looks = of_threads(tids, Patience::default());
    let threads = tids.iter().zip(looks).filter_map(|(tid, looked)| {
        Some(prove::Thread {
            tid: *tid,
            native: namespaces::namespace_pids(&proc, *tid).ok().and_then(|ids| ids.last().copied()),
            thread_pointer: looked.ok()?.registers.thread_pointer,
        })
    });
    threads.collect()
}

/// An interpreter whose stacks are taken.
struct Walked<'a> {
    /// Position among all interpreters.
    index: usize,
    ready: &'a Ready,
    /// States of all its threads.
    states: Vec<u64>,
}

/// Looks at one thread after the other.
pub(super) fn look(subject: &Subject, tids: &[u32], interpreters: &[Found]) -> Vec<Thread> {
    let walked: Vec<Walked<'_>> = (0..)
        .zip(interpreters)
        .filter_map(|(index, found)| {
            let ready = found.ready()?;
            Some(Walked { index, ready, states: all_states(ready, &subject.memory).unwrap_or_default() })
        })
        .collect();
    let mut words = Vec::with_capacity(tids.len());
    let mut threads: Vec<Thread> = tids.iter().map(|tid| one(subject, *tid, &walked, &mut words)).collect();
    let mut named = native::name(&subject.files, words);
    for thread in &mut threads {
        thread.native = named.remove(&thread.tid);
    }
    threads
}

fn one(subject: &Subject, tid: u32, walked: &[Walked<'_>], words: &mut Vec<(u32, Vec<u64>)>) -> Thread {
    let name = Proc::system().comm(subject.target.pid, tid).map(|comm| comm.to_string()).unwrap_or_default();
    let mut thread = Thread { tid, name, held_us: None, not_held: None, native: None, python: Vec::new() };
    match hold(subject, tid, walked) {
        Ok((held_us, captured)) => {
            thread.held_us = Some(held_us);
            words.push((tid, native_stack(&subject.files, &captured.stack)));
            let named = captured.value.iter().map(|(walked, stack)| name_frames(subject, walked, stack));
            thread.python = named.collect();
        }
        Err(problem) => thread.not_held = Some(with_causes(&problem)),
    }
    thread
}

type PythonStacks<'a> = Vec<(&'a Walked<'a>, RawStack)>;

fn hold<'a>(
    subject: &Subject,
    tid: u32,
    walked: &'a [Walked<'a>],
) -> Result<(f64, Captured<PythonStacks<'a>>), ThreadProblem> {
    let held = capture(tid, &subject.memory, &subject.ranges, |registers| {
        let mut stacks = Vec::new();
        for walked in walked {
            let states = states(walked.ready, &subject.memory, &walked.states, registers.thread_pointer);
            let taken = states.into_iter().flatten().map(|state| take(walked.ready, &subject.memory, state));
            stacks.extend(taken.map(|stack| (walked, stack)));
        }
        stacks
    })?;
    Ok((held.held.as_secs_f64() * 1e6, held.value))
}

fn name_frames(subject: &Subject, walked: &Walked<'_>, stack: &RawStack) -> PythonStack {
    let namer = Namer::new(walked.ready, &subject.memory);
    let frames = stack.frames.iter().map(|frame| {
        let named = namer.name(frame);
        PythonFrame {
            name: named.name,
            file: named.path,
            line: named.line,
            first_line: u32::try_from(named.first_line).unwrap_or(0),
        }
    });
    PythonStack {
        interpreter: walked.index,
        thread_state: stack.state,
        frames: frames.collect(),
        stopped: stack.fault.map(|fault| fault.text().to_owned()),
    }
}
