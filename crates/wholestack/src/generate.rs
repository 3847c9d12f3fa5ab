//! Completions and manual pages, from the definition of the command line.

use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;

use clap::CommandFactory;
use clap_complete::Shell;

use crate::Outcome;
use crate::cli::Arguments;
use crate::exit::Failure;

/// Prints completions for a shell.
pub(crate) fn completions(shell: Shell) -> Outcome {
    let mut text = Vec::new();
    clap_complete::generate(shell, &mut Arguments::command(), "wholestack", &mut text);
    print(&text)
}

/// Writes manual pages into a directory, or the main one to standard output.
pub(crate) fn manual(directory: Option<&Path>) -> Outcome {
    match directory {
        Some(directory) => {
            let written = std::fs::create_dir_all(directory)
                .and_then(|()| clap_mangen::generate_to(Arguments::command(), directory));
            written.map_err(|error| Failure::failed(format!("{}: {error}", directory.display())))?;
            Ok(ExitCode::SUCCESS)
        }
        None => {
            let mut page = Vec::new();
            clap_mangen::Man::new(Arguments::command()).render(&mut page).map_err(Failure::failed)?;
            print(&page)
        }
    }
}

/// Prints; a reader that went away is no failure.
fn print(text: &[u8]) -> Outcome {
    match io::stdout().lock().write_all(text) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(Failure::failed(error)),
        _ => Ok(ExitCode::SUCCESS),
    }
}
