//! Compiles programs.

use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use super::programs::{Language, Program, Source, Variant};

/// A compiled program.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Compiled {
    /// The executable.
    pub path: PathBuf,
    /// Its library.
    pub opened: Option<PathBuf>,
}

/// Why a program cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum CompileError {
    /// Its files cannot be written.
    #[error("writing the source: {0}")]
    Source(#[from] io::Error),
    /// There is no such compiler.
    #[error("{compiler}: {error}")]
    NoCompiler {
        /// Command.
        compiler: &'static str,
        /// Why it cannot be run.
        error: io::Error,
    },
    /// The compiler refuses.
    #[error("{compiler} {flags}: {message}")]
    Refused {
        /// Command.
        compiler: &'static str,
        /// Options.
        flags: String,
        /// Its last words.
        message: String,
    },
    /// The code would need what this CPU does not have.
    #[error("this CPU has no {0}")]
    Cpu(&'static str),
}

impl Language {
    fn compiler(self) -> &'static str {
        match self {
            Language::C => "cc",
            Language::Cpp => "c++",
            Language::Rust => "rustc",
            Language::Musl => "musl-gcc",
        }
    }
}

/// Compiles a variant of a program in a directory, where its files have names of their own.
///
/// # Errors
/// A [`CompileError`].
pub fn compile(program: &Program, variant: &Variant, directory: &Path) -> Result<Compiled, CompileError> {
    if variant.flags.contains(&"-mavx2") && !is_x86_feature_detected!("avx2") {
        return Err(CompileError::Cpu("AVX2"));
    }
    let path = directory.join(format!("{}-{}", program.name, variant.name));
    let math: &[&str] = if program.language == Language::C { &["-lm"] } else { &[] };
    let sources: Vec<Source> = [program.source].into_iter().chain(program.more).collect();
    translate(program.language, &sources, variant, math, directory, &path)?;
    let library = program.opens.map(|source| {
        let path = path.with_extension("so");
        translate(program.language, &[source], variant, &["-shared", "-fPIC"], directory, &path).map(|()| path)
    });
    Ok(Compiled { path, opened: library.transpose()? })
}

fn translate(
    language: Language,
    sources: &[Source],
    variant: &Variant,
    more: &[&str],
    directory: &Path,
    to: &Path,
) -> Result<(), CompileError> {
    let mut from = Vec::new();
    for source in sources {
        let path = directory.join(source.name);
        std::fs::write(&path, source.text)?;
        from.push(path);
    }
    let compiler = language.compiler();
    let mut command = Command::new(compiler);
    match language {
        Language::Rust => command.args(["--edition=2021", "-Cpanic=unwind"]),
        _ => command.args(["-g0", "-w"]),
    };
    command.args(variant.flags).args(&from).arg("-o").arg(to).args(more);
    let done = command.output().map_err(|error| CompileError::NoCompiler { compiler, error })?;
    if done.status.success() {
        return Ok(());
    }
    Err(CompileError::Refused { compiler, flags: variant.flags.join(" "), message: last_line(&done) })
}

fn last_line(output: &Output) -> String {
    let text = String::from_utf8_lossy(&output.stderr);
    text.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or_default().to_owned()
}
