//! An interpreter that waits to be stepped.

use std::io::{self, BufRead as _, BufReader, Write as _};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

use python::eval_loop::{EvalLoop, EvalLoopRefusal};
use python::interpreters::{Cache, Found, ProcessProblem, of_process};
use python::prove::Effort;
use python::{Ready, Refusal};

use crate::edges::stepping::tracee::Tracee;

/// What it runs.
const WORKLOAD: &str = include_str!("workload.py");

/// The running interpreter, stopped and proven.
pub struct Target {
    /// The process.
    pub tracee: Tracee,
    /// What it is, as `explain` shows it.
    pub name: String,
    /// Address of its eval loop's function.
    pub entry: u64,
    /// What is known of it.
    pub ready: Ready,
    /// Its eval loop.
    pub eval_loop: Arc<EvalLoop>,
    /// What it is waiting for was written; kept open.
    _input: std::process::ChildStdin,
}

/// Why an interpreter cannot be stepped.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// It does not start, or may not be traced.
    #[error("the interpreter cannot be run and traced: {0}")]
    System(#[from] io::Error),
    /// It ended before it was ready.
    #[error("the interpreter does not run the workload")]
    NotReady,
    /// It cannot be looked into.
    #[error(transparent)]
    Process(#[from] ProcessProblem),
    /// It is no CPython.
    #[error("the program has no interpreter")]
    None,
    /// It is not walked.
    #[error("{0}")]
    Refused(Refusal),
    /// Its eval loop is not known.
    #[error("{0}")]
    NoEvalLoop(EvalLoopRefusal),
}

/// Ends a process that was not handed on.
struct Guard(Option<Child>);

impl Drop for Guard {
    fn drop(&mut self) {
        if let Some(child) = &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

impl Target {
    /// Starts the workload, and proves the interpreter while it waits.
    ///
    /// # Errors
    /// A [`StartError`].
    pub fn start(mut command: Command) -> Result<Target, StartError> {
        command.args(["-S", "-E", "-c", WORKLOAD]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut guard = Guard(Some(command.spawn()?));
        let child = guard.0.as_mut().ok_or(StartError::NotReady)?;
        let (pid, input, output) = (child.id(), child.stdin.take(), child.stdout.take());
        let (Some(mut input), Some(output)) = (input, output) else { return Err(StartError::NotReady) };
        let mut line = String::new();
        BufReader::new(output).read_line(&mut line)?;
        if line != "READY\n" {
            return Err(StartError::NotReady);
        }
        let found = of_process(&Cache::new(), pid, &Effort::FULL)?.into_iter().next().ok_or(StartError::None)?;
        let name = found.to_string();
        let Found { result, .. } = found;
        let interpreter = result.map_err(StartError::Refused)?;
        let eval_loop = interpreter.eval_loop.map_err(StartError::NoEvalLoop)?;
        let tracee = Tracee::attach(pid)?;
        guard.0 = None;
        input.write_all(b"x")?;
        let entry = eval_loop.address.wrapping_add(interpreter.bias);
        Ok(Target { tracee, name, entry, ready: interpreter.ready, eval_loop, _input: input })
    }
}
