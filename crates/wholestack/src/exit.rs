//! Exit codes, and how a failure is told.

use std::process::ExitCode;

/// Text of `--help` on exit codes.
pub(crate) const HELP: &str = "\
Exit codes:
  0    done; with a command, the command's own code, or 128 and the number of the signal that killed it
  1    the recording or the writing of its result failed
  2    the command line is wrong, or an output cannot be written there
  3    this machine or user does not allow it; `wholestack check` says what is missing
  4    the process to be recorded is not there or cannot be recorded
  127  the command could not be started
  130  interrupted a second time (Ctrl-C twice): nothing was written";

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
        Failure::new(3, message)
    }

    /// The target is in the way.
    pub(crate) fn target(message: impl ToString) -> Failure {
        Failure::new(4, message)
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
        eprintln!("wholestack: {}", self.message);
        if let Some(remedy) = &self.remedy {
            eprintln!("  {remedy}");
        }
        ExitCode::from(self.code)
    }
}
