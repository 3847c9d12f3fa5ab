//! Exit codes, and how a failure is told.

use std::process::ExitCode;

use crate::say::say;

/// Text of `--help` on exit codes.
pub(crate) const HELP: &str = "\
Exit codes:
  0    done, also by Ctrl-C; with a command that ended, its own code
       (128 and the number of the signal, if one killed it)
  1    the recording or the writing of its result failed
  2    the command line is wrong, or an output cannot be written there
  3    this machine or user does not allow it; `wholestack check` says what is missing
  4    the process to be recorded is not there or cannot be recorded
  127  the command could not be started
  130  interrupted before the command was started, or a second time (Ctrl-C twice): nothing was written";

/// The machine or the user's rights are in the way.
pub(crate) const NOT_ALLOWED: u8 = 3;

/// Interrupted, and nothing was written.
pub(crate) const INTERRUPTED: u8 = 130;

/// An error and what caused it, as far as its own text does not say that already.
pub(crate) fn with_causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let more = error.to_string();
        if !text.contains(&more) {
            text = format!("{text}: {more}");
        }
        cause = error.source();
    }
    text
}

/// Whether an error of the system with this number is among the causes.
pub(crate) fn is_caused_by(error: &(dyn std::error::Error + 'static), number: i32) -> bool {
    let code = error.downcast_ref::<std::io::Error>().and_then(std::io::Error::raw_os_error);
    code == Some(number) || error.source().is_some_and(|cause| is_caused_by(cause, number))
}

/// Why wholestack ends without a result.
#[derive(Debug)]
pub(crate) struct Failure {
    code: u8,
    message: String,
    remedy: Option<String>,
}

impl Failure {
    fn new(code: u8, message: impl ToString) -> Failure {
        Failure { code, message: message.to_string(), remedy: None }
    }

    /// The recording or the writing failed.
    pub(crate) fn failed(message: impl ToString) -> Failure {
        Failure::new(1, message)
    }

    /// The command line is wrong.
    pub(crate) fn usage(message: impl ToString) -> Failure {
        Failure::new(2, message)
    }

    /// The machine or the user's rights are in the way.
    pub(crate) fn not_allowed(message: impl ToString) -> Failure {
        Failure::new(NOT_ALLOWED, message)
    }

    /// The target is in the way.
    pub(crate) fn target(message: impl ToString) -> Failure {
        Failure::new(4, message)
    }

    /// The user changed his mind.
    pub(crate) fn interrupted(message: impl ToString) -> Failure {
        Failure::new(INTERRUPTED, message)
    }

    /// The command could not be started.
    pub(crate) fn command(message: impl ToString) -> Failure {
        Failure::new(127, message)
    }

    /// Adds what to do about it.
    pub(crate) fn with_remedy(mut self, remedy: impl ToString) -> Failure {
        self.remedy = Some(remedy.to_string());
        self
    }

    /// Prints it and gives its code.
    pub(crate) fn report(&self) -> ExitCode {
        say!("wholestack: {}", self.message);
        if let Some(remedy) = &self.remedy {
            remedy.lines().for_each(|line| say!("  {line}"));
        }
        ExitCode::from(self.code)
    }
}
