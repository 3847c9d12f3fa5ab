//! C programs that embed Python.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::rc::Rc;

use serde_json::Value;
use tempfile::TempDir;

use super::interpreters::Interpreter;
use super::parked::{Parked, Waiting};
use super::{compile, output, workloads};

/// How a program has its Python.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Linking {
    /// libpython.a, with its symbols exported for extension modules, as is usual.
    Static,
    /// libpython.a, with nothing exported. Extension modules cannot be loaded.
    Hidden,
    /// The same, without a symbol table.
    Stripped,
    /// libpython.so.
    Shared,
    /// libpython.so, loaded when it is needed.
    Loaded,
}

pub(crate) const LINKINGS: [Linking; 5] =
    [Linking::Static, Linking::Hidden, Linking::Stripped, Linking::Shared, Linking::Loaded];

/// Modes of `embed.c` that do not wait; it tells what each is.
pub(crate) const MODES: [&str; 4] = ["plain", "again", "beside", "within"];

/// Cases for an interpreter without extension modules, or without source files.
pub(crate) const PLAIN: &[&str] = &["worker", "sleeper", "deep", "re_entries", "yield_from", "methods"];

/// A program that embeds the Python of an interpreter.
pub(crate) struct Embedding {
    program: PathBuf,
    linking: Linking,
    libpython: PathBuf,
    home: String,
    directory: Rc<TempDir>,
}

impl Embedding {
    /// Builds it; an error says what is missing.
    pub(crate) fn build(interpreter: &Interpreter, linking: Linking) -> Result<Embedding, String> {
        let directory = Rc::new(tempfile::tempdir().expect("a temporary directory"));
        let program = directory.path().join("embed");
        let says = configuration(interpreter)?;
        let text = |name: &str| says[name].as_str().unwrap_or_default().to_owned();
        let archive = Path::new(&text("LIBPL")).join(text("LIBRARY"));
        let library = Path::new(&text("LIBDIR")).join(text("INSTSONAME"));
        let needed = if matches!(linking, Linking::Shared | Linking::Loaded) { &library } else { &archive };
        if !needed.is_file() {
            return Err(format!("{} has no {}", interpreter.name, needed.display()));
        }
        let libraries = ["LIBS", "SYSLIBS", "MODLIBS"].map(text).join(" ");
        let with_archive = || {
            let mut options = vec![archive.display().to_string()];
            options.extend(libraries.split_whitespace().chain(["-ldl", "-lm"]).map(str::to_owned));
            options
        };
        let options = match linking {
            Linking::Static => [vec!["-Wl,--export-dynamic".to_owned()], with_archive()].concat(),
            Linking::Hidden => with_archive(),
            Linking::Stripped => [vec!["-s".to_owned()], with_archive()].concat(),
            Linking::Shared => {
                vec![library.display().to_string(), format!("-Wl,-rpath,{}", text("LIBDIR")), "-ldl".to_owned()]
            }
            Linking::Loaded => vec!["-DLATE".to_owned(), "-ldl".to_owned()],
        };
        compile("embed.c", &program, &options)?;
        Ok(Embedding { program, linking, libpython: library, home: text("prefix"), directory })
    }

    fn command(&self, mode: &str, cases: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        command.arg(mode).arg(code(cases, self.before())).arg(&self.libpython).env("PYTHONHOME", &self.home);
        command
    }

    /// The cases for it, of all.
    pub(crate) fn cases(&self) -> &'static [&'static str] {
        if matches!(self.linking, Linking::Hidden | Linking::Stripped) { PLAIN } else { &[] }
    }

    /// What runs before: those of pyenv's extension modules that were linked to a libpython would bring a second one.
    fn before(&self) -> &'static str {
        if self.cases().is_empty() { "" } else { "sys.path = [path for path in sys.path if 'dynload' not in path]; " }
    }

    /// Parks in one of [`MODES`].
    pub(crate) fn park(&self, mode: &str) -> Parked {
        let command = self.command(mode, self.cases());
        Parked::start(command).keeping(self.directory.clone())
    }

    /// Starts without Python being initialised, or even loaded; keep the embedding as long.
    pub(crate) fn wait(&self) -> Waiting {
        Waiting::start(self.command("late", self.cases()))
    }
}

/// Python code that parks as `park.py` does, for programs that run code; other code, which has `sys`, goes before.
pub(crate) fn code(cases: &[&str], before: &str) -> String {
    let directory = workloads();
    let arguments: String = cases.iter().map(|case| format!(", '{case}'")).collect();
    format!(
        "import sys; {before}sys.argv = ['park.py'{arguments}]; sys.path.insert(0, '{0}'); import runpy; \
         runpy.run_path('{0}/park.py', run_name='__main__')",
        directory.display()
    )
}

/// How an interpreter was built.
fn configuration(interpreter: &Interpreter) -> Result<Value, String> {
    let script = "import json, sys, sysconfig; print(json.dumps(dict(sysconfig.get_config_vars(), prefix=sys.prefix)))";
    let text = output(interpreter.command(&[]).args(["-c", script]))?;
    serde_json::from_str(&text).map_err(|error| error.to_string())
}
