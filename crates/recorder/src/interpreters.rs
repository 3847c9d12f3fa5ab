//! A thread that looks at processes for CPython, so that nothing waits for it.

use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use abi::python::Entry;
use crossbeam_channel::{Receiver, Sender, unbounded};
use python::Ready;
use python::code_object::CodeLayout;
use python::eval_loop::EvalLoop;
use python::interpreters::{self, Cache};
use python::prove::Effort;
use python::strings::StringLayout;
use rustix::event::{EventfdFlags, eventfd};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use symbols::ObjectFile;

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
    /// Its files that may be one, with their numbers.
    pub(crate) files: Vec<(u32, Arc<ObjectFile>)>,
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

/// The thread and its queues.
pub(crate) struct Interpreters {
    questions: Option<Sender<Question>>,
    /// Those that nobody has begun to answer.
    waiting: Receiver<Question>,
    answers: Receiver<Answer>,
    ready: Arc<OwnedFd>,
    thread: Option<JoinHandle<()>>,
}

impl Interpreters {
    /// Starts the thread.
    pub(crate) fn start() -> std::io::Result<Interpreters> {
        let (questions, todo) = unbounded::<Question>();
        let (done, answers) = unbounded();
        let ready = Arc::new(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?);
        let (signal, waiting) = (ready.clone(), todo.clone());
        let work = move || {
            let cache = Cache::new();
            for question in todo {
                if done.send(answer(&cache, question)).is_err() {
                    break;
                }
                // the counter cannot overflow: one is added per answer
                let _ = rustix::io::write(&*signal, &1u64.to_ne_bytes());
            }
        };
        let thread = std::thread::Builder::new().name("interpreters".to_owned()).spawn(work)?;
        Ok(Interpreters { questions: Some(questions), waiting, answers, ready, thread: Some(thread) })
    }

    /// Asks; false if nobody answers any more.
    pub(crate) fn ask(&self, question: Question) -> bool {
        self.questions.as_ref().is_some_and(|questions| questions.send(question).is_ok())
    }

    /// Becomes readable when there are answers.
    pub(crate) fn ready(&self) -> BorrowedFd<'_> {
        self.ready.as_fd()
    }

    /// The next answer.
    pub(crate) fn take(&mut self) -> Option<Answer> {
        self.answers.try_recv().ok()
    }

    /// Resets the signal that there are answers; call it before [`Interpreters::take`].
    pub(crate) fn acknowledge(&self) {
        let mut count = [0; 8];
        let _ = rustix::io::read(&*self.ready, &mut count);
    }
}

impl Drop for Interpreters {
    fn drop(&mut self) {
        self.questions = None;
        while self.waiting.try_recv().is_ok() {}
        self.thread.take().map(JoinHandle::join);
    }
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
        answer.not_python = question.files.iter().map(|(number, _)| *number).collect();
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
