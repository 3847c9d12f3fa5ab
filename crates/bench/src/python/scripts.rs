//! The Python programs that are profiled.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Result;

use super::interpreters::Interpreter;
use crate::workload::Workload;

const SOURCES: [(&str, &str); 4] = [
    ("gate.py", include_str!("../../workloads/python/gate.py")),
    ("deep.py", include_str!("../../workloads/python/deep.py")),
    ("mix.py", include_str!("../../workloads/python/mix.py")),
    ("truth.py", include_str!("../../workloads/python/truth.py")),
];

/// A directory that has them.
pub struct Scripts {
    directory: PathBuf,
}

impl Scripts {
    /// In a directory below `parent`.
    ///
    /// # Errors
    /// If they cannot be written.
    pub fn write(parent: &Path) -> Result<Scripts> {
        let directory = parent.join("python");
        std::fs::create_dir(&directory)?;
        for (name, source) in SOURCES {
            std::fs::write(directory.join(name), source)?;
        }
        Ok(Scripts { directory })
    }

    /// Starts one; it waits for [`Workload::go`].
    ///
    /// # Errors
    /// If it cannot be started or does not say that it is ready.
    pub fn start(&self, interpreter: &Interpreter, name: &str, arguments: &[String]) -> Result<Workload> {
        let mut command = Command::new(&interpreter.path);
        // no files beside the scripts, nothing of the user's
        command.args(["-B", "-s"]).arg(self.directory.join(name)).args(arguments.iter().map(OsString::from));
        Workload::start(name, command)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::python::interpreters::choose;

    /// The oracle is the clock of the process itself.
    #[test]
    fn scripts_work_as_long_as_they_are_asked_to() {
        let Ok(interpreters) = choose(&[]) else { return println!("SKIPPED: no python3") };
        let directory = tempfile::tempdir().expect("a directory");
        let scripts = Scripts::write(directory.path()).expect("written");
        for interpreter in &interpreters {
            for arguments in [
                ["deep.py", "plain", "1000", "0.05"].as_slice(),
                &["deep.py", "nested", "300", "0.05"],
                &["truth.py", "0.05"],
            ] {
                let words: Vec<String> = arguments[1..].iter().map(|word| (*word).to_owned()).collect();
                let mut workload = scripts.start(interpreter, arguments[0], &words).expect("starts");
                workload.go().expect("waits");
                let work = workload.work().expect("ends");
                assert!(work.cpu >= 0.05 && work.wall >= work.cpu * 0.99, "{interpreter} {arguments:?}: {work:?}");
            }
            let mut workload = scripts.start(interpreter, "mix.py", &["3".to_owned()]).expect("starts");
            workload.go().expect("waits");
            assert!(workload.work().expect("ends").cpu > 0.0);
        }
    }
}
