//! What each thread does now.

use inspect::{Captured, capture, native_stack};
use processes::Proc;
use processes::thread_pointer::{Held, ThreadProblem};
use python::Ready;
use python::interpreters::Found;
use python::prove::States;
use python::stack::{End, Taken};

use super::report::{PythonFrame, PythonStack, Thread};
use super::{Subject, native};
use crate::exit::with_causes;

/// An interpreter whose stacks are taken.
struct Walked<'a> {
    /// Position among all interpreters.
    index: usize,
    ready: &'a Ready,
    states: States,
}

/// Looks at one thread after the other.
pub(super) fn look(subject: &Subject, tids: &[u32], interpreters: &[Found]) -> Vec<Thread> {
    hurry();
    let walked: Vec<Walked<'_>> = (0..)
        .zip(interpreters)
        .filter_map(|(index, found)| {
            let ready = &found.result.as_ref().ok()?.ready;
            Some(Walked { index, ready, states: States::list(ready, &subject.memory).unwrap_or_default() })
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

/// A thread is held for as long as this program needs, also for a CPU. Without the right to go first it waits its turn.
fn hurry() {
    const NICE: i32 = -10;
    let _ = rustix::process::setpriority_process(None, NICE);
}

fn one(subject: &Subject, tid: u32, walked: &[Walked<'_>], words: &mut Vec<(u32, Vec<u64>)>) -> Thread {
    let name = Proc::system().comm(subject.target.pid, tid).map(|comm| comm.to_string()).unwrap_or_default();
    let mut thread = Thread { tid, name, held_us: None, not_held: None, native: None, python: Vec::new() };
    match hold(subject, tid, walked) {
        Ok(held) => {
            thread.held_us = Some(held.held.as_secs_f64() * 1e6);
            let Captured { stack, value, .. } = held.value;
            if held.in_time {
                words.push((tid, native_stack(&subject.files, &stack)));
            }
            thread.python = value.iter().map(|(walked, taken)| told(walked, taken, held.in_time)).collect();
        }
        Err(problem) => thread.not_held = Some(with_causes(&problem)),
    }
    thread
}

type PythonStacks<'a> = Vec<(&'a Walked<'a>, Taken)>;

/// Takes the stacks of a thread; once more if it ran on before all was read.
fn hold<'a>(
    subject: &Subject,
    tid: u32,
    walked: &'a [Walked<'a>],
) -> Result<Held<Captured<PythonStacks<'a>>>, ThreadProblem> {
    let once = || {
        capture(tid, &subject.memory, &subject.ranges, |registers, deadline| {
            let mut stacks = Vec::new();
            for walked in walked {
                let (ready, memory) = (walked.ready, &subject.memory);
                let states = walked.states.of_thread(ready, memory, registers.thread_pointer);
                let taken = states.into_iter().flatten().map(|state| Taken::take(ready, memory, state, deadline));
                stacks.extend(taken.map(|taken| (walked, taken)));
            }
            stacks
        })
    };
    let held = once()?;
    if held.in_time { Ok(held) } else { once() }
}

/// What was taken while the thread ran on is of several moments, and not shown.
fn told(walked: &Walked<'_>, taken: &Taken, in_time: bool) -> PythonStack {
    let frames = taken.frames().map(|named| PythonFrame {
        name: named.name,
        file: named.path,
        line: named.line,
        first_line: u32::try_from(named.first_line).unwrap_or(0),
    });
    let stopped = match taken.end {
        _ if !in_time => Some("the thread ran on before its stack was read".to_owned()),
        End::Whole => None,
        End::Fault(fault) => Some(fault.text().to_owned()),
        End::TooLong => Some("the thread would have been held for too long".to_owned()),
    };
    PythonStack {
        interpreter: walked.index,
        thread_state: taken.state,
        frames: if in_time { frames.collect() } else { Vec::new() },
        stopped,
    }
}
