//! Threads that look at processes for CPython.

use std::sync::Arc;
use std::time::Duration;

use abi::python::Entry;
use python::Ready;
use python::code_object::CodeLayout;
use python::eval_loop::EvalLoop;
use python::interpreters::{self, Cache};
use python::prove::Effort;
use python::strings::StringLayout;

use crate::workers::Workers;

/// Which interpreter is in this process?
pub(crate) struct Question {
    /// The process.
    pub(crate) pid: u32,
    /// Its number in the recording.
    pub(crate) instance: u64,
    /// Number of the question.
    pub(crate) number: u64,
    /// How long was waited since the last one.
    pub(crate) pause: Option<Duration>,
    /// Its objects that may be one.
    pub(crate) objects: Vec<u32>,
}

/// What was found.
pub(crate) struct Answer {
    /// See [`Question`].
    pub(crate) pid: u32,
    /// See [`Question`].
    pub(crate) instance: u64,
    /// See [`Question`].
    pub(crate) number: u64,
    /// Objects that are no interpreter, whatever maps them.
    pub(crate) not_python: Vec<u32>,
    /// A line about each interpreter, found or refused.
    pub(crate) statuses: Vec<String>,
    /// The interpreter.
    pub(crate) found: Option<Proven>,
    /// If there is none: it may be worth another look later.
    pub(crate) may_pass: bool,
    /// See [`Question`].
    pub(crate) pause: Option<Duration>,
}

/// An interpreter that was proven on the live process.
pub(crate) struct Proven {
    ready: Ready,
    /// What the sampler must know, except what only the collector does.
    pub(crate) entry: Entry,
    /// Where the eval loop is.
    pub(crate) eval_loop: Arc<EvalLoop>,
    /// An address in the mapping that has the eval loop.
    pub(crate) address: u64,
}

impl Proven {
    /// Of its code objects.
    pub(crate) fn code_layout(&self) -> CodeLayout {
        self.ready.layout.code_layout(self.ready.types.code)
    }

    /// Of its strings.
    pub(crate) fn string_layout(&self) -> StringLayout {
        self.ready.layout.string_layout(&self.ready.types)
    }
}

/// Finds and proves interpreters.
pub(crate) type Interpreters = Workers<Question, Answer>;

/// Starts `threads` threads that share what they know of files.
pub(crate) fn start(threads: usize) -> std::io::Result<Interpreters> {
    let cache = Arc::new(Cache::new());
    Workers::start("interpreters", threads, move |_| {
        let cache = cache.clone();
        move |question| answer(&cache, question)
    })
}

fn answer(cache: &Cache, question: Question) -> Answer {
    let mut answer = Answer {
        pid: question.pid,
        instance: question.instance,
        number: question.number,
        not_python: Vec::new(),
        statuses: Vec::new(),
        found: None,
        may_pass: false,
        pause: question.pause,
    };
    let found = match interpreters::of_process(cache, question.pid, &Effort::SMALL) {
        Ok(found) => found,
        Err(problem) => {
            answer.statuses.push(problem.to_string());
            return answer;
        }
    };
    if found.is_empty() {
        answer.not_python = question.objects;
    }
    for found in found {
        answer.may_pass |= found.may_pass();
        match proven(&found) {
            Err(refusal) => answer.statuses.push(refusal),
            Ok(_) if answer.found.is_some() => {
                answer.statuses.push(format!("{found}: not walked, for the process has another one"));
            }
            Ok(interpreter) => {
                answer.statuses.push(found.to_string());
                answer.found = Some(interpreter);
            }
        }
    }
    answer
}

/// What the sampler needs, or what to say of it.
fn proven(found: &interpreters::Found) -> Result<Proven, String> {
    let interpreter = found.result.as_ref().map_err(|_| found.to_string())?;
    let eval_loop = interpreter.eval_loop.as_ref().map_err(|_| found.to_string())?;
    let (ready, eval_loop) = (interpreter.ready, eval_loop.clone());
    let address = eval_loop.address.wrapping_add(interpreter.bias);
    Ok(Proven { ready, entry: ready.entry(), eval_loop, address })
}
