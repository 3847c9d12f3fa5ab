//! Programs that are, have or resemble an interpreter.

use std::io::Write;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::embedded::{PLAIN, code};
use super::interpreters::{Interpreter, bundle, entries, installed, pyenv, pyenv_versions};
use super::parked::{Parked, Which};
use super::{compile, output, workloads};

/// A program that parks; an error says why it cannot be had here.
pub(crate) struct Program {
    pub(crate) name: &'static str,
    pub(crate) start: fn() -> Result<Parked, String>,
}

/// Programs with an interpreter to explain, apart from those of `embedded`.
pub(crate) const EXPLAINED: &[Program] = &[
    Program { name: "renamed", start: renamed },
    Program { name: "deleted", start: deleted },
    Program { name: "replaced", start: replaced },
    Program { name: "hardlinked", start: hardlinked },
    Program { name: "secluded", start: secluded },
    Program { name: "loader", start: loader },
    Program { name: "keys", start: keys },
    Program { name: "gdb", start: gdb },
    Program { name: "uwsgi", start: uwsgi },
    Program { name: "pyinstaller", start: pyinstaller },
];

/// Programs that have to be refused by name.
pub(crate) const REFUSED: &[Program] =
    &[Program { name: "python2.7", start: python_2 }, Program { name: "pypy3", start: pypy }];

/// The distribution's own program, which finds its library wherever it lies itself.
fn system() -> Result<Interpreter, String> {
    installed().into_iter().next().ok_or_else(|| "there is no /usr/bin/python3.N".to_owned())
}

fn copy(name: &str) -> Result<(tempfile::TempDir, PathBuf), String> {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let program = directory.path().join(name);
    std::fs::copy(system()?.program, &program).expect("a copy");
    Ok((directory, program))
}

fn parking(program: &Path) -> Command {
    let mut command = Command::new(program);
    command.arg(workloads().join("park.py"));
    command
}

/// Without the name of its eval loop, for which nothing in it asks.
pub(crate) fn without_eval_loop() -> Result<Parked, String> {
    const NAME: &[u8] = b"_PyEval_EvalFrameDefault\0";
    let (directory, program) = copy("python3")?;
    let mut bytes = std::fs::read(&program).expect("it is there");
    let places: Vec<usize> =
        (0..bytes.len()).filter(|at| bytes[*at] == NAME[0] && bytes[*at..].starts_with(NAME)).collect();
    if places.is_empty() {
        return Err(format!("{} has its eval loop in a library", system()?.name));
    }
    places.into_iter().for_each(|at| bytes[at] = b'-');
    std::fs::write(&program, bytes).expect("written");
    Ok(Parked::start(parking(&program)).keeping(directory))
}

fn renamed() -> Result<Parked, String> {
    let (directory, program) = copy("myapp")?;
    Ok(Parked::start(parking(&program)).keeping(directory))
}

fn deleted() -> Result<Parked, String> {
    let (directory, program) = copy("python3")?;
    let parked = Parked::start(parking(&program));
    std::fs::remove_file(program).expect("removed");
    Ok(parked.keeping(directory))
}

/// Deleted, with another file in its place, as after an upgrade.
fn replaced() -> Result<Parked, String> {
    let (directory, program) = copy("python3")?;
    let parked = Parked::start(parking(&program));
    std::fs::remove_file(&program).expect("removed");
    std::fs::copy("/bin/true", program).expect("a copy");
    Ok(parked.keeping(directory))
}

fn hardlinked() -> Result<Parked, String> {
    let (directory, program) = copy("first")?;
    let second = directory.path().join("second");
    std::fs::hard_link(&program, &second).expect("a link");
    Ok(Parked::start(parking(&second)).keeping(directory))
}

/// Below other mount and process namespaces, its file in a file system that is mounted there only.
fn secluded() -> Result<Parked, String> {
    if !rustix::process::geteuid().is_root() {
        return Err("namespaces need root".to_owned());
    }
    let directory = tempfile::tempdir().expect("a temporary directory");
    let (place, source) = (directory.path().display(), system()?.program);
    let script = format!(
        "mount -t tmpfs none {place} && cp {} {place}/only_here && mount -t proc proc /proc && \
         exec {place}/only_here {}/park.py",
        source.display(),
        workloads().display()
    );
    let mut command = Command::new("unshare");
    command.args(["--mount", "--pid", "--fork", "--kill-child", "sh", "-c", &script]);
    Ok(Parked::start_in(command, Which::OnlyChild).keeping(directory))
}

/// Run by the dynamic linker, which is then the program as far as the kernel knows.
fn loader() -> Result<Parked, String> {
    let loaders = ["/lib64/ld-linux-x86-64.so.2", "/lib/ld-linux-aarch64.so.1"];
    let loader = loaders.iter().find(|path| Path::new(path).exists()).ok_or("there is no dynamic linker")?;
    let mut command = Command::new(loader);
    command.arg(system()?.program).arg(workloads().join("park.py"));
    // it does not know where its library is, since it is not the program
    command.env("PYTHONHOME", "/usr");
    Ok(Parked::start(command))
}

/// The library that takes 40 keys, in a directory that is kept.
pub(crate) fn keys_library() -> Result<(tempfile::TempDir, PathBuf), String> {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let library = directory.path().join("keys.so");
    // linked with no libc, it takes that of the program, whichever and how old that is
    compile("keys.c", &library, &["-shared", "-fPIC", "-nostdlib"])?;
    Ok((directory, library))
}

/// An interpreter whose key is one of those that lie elsewhere.
pub(crate) fn with_keys(interpreter: &Interpreter, cases: &[&str]) -> Result<Parked, String> {
    let (directory, library) = keys_library()?;
    let library = interpreter.lend(&library);
    // below another root directory, `chroot` complains first that it does not find the library, and goes on
    Ok(interpreter.park_with(cases, &[("LD_PRELOAD", &library)]).keeping(directory))
}

fn keys() -> Result<Parked, String> {
    with_keys(&system()?, &[])
}

fn gdb() -> Result<Parked, String> {
    found("gdb")?;
    let mut command = Command::new("gdb");
    command.args(["-nx", "-quiet", "-batch", "-ex", &format!("python {}", code(&[], ""))]);
    Ok(Parked::start(command))
}

/// One worker of a server that forks them, asked for a page.
fn uwsgi() -> Result<Parked, String> {
    found("uwsgi_python3")?;
    let directory = tempfile::tempdir().expect("a temporary directory");
    let socket = directory.path().join("socket");
    let mut command = Command::new("uwsgi_python3");
    command.args(["--master", "--no-orphans", "--die-on-term", "--processes=1", "--threads=2", "--wsgi-file"]);
    command.arg(workloads().join("serve.py")).arg("--http-socket").arg(&socket).stderr(Stdio::null());
    let parked = Parked::start_and_ask(command, |_| {
        let mut stream = loop {
            match UnixStream::connect(&socket) {
                Ok(stream) => break stream,
                Err(_) => std::thread::sleep(std::time::Duration::from_millis(5)),
            }
        };
        stream.write_all(b"GET / HTTP/1.0\r\n\r\n").expect("it reads");
        // it has to stay open
        std::mem::forget(stream);
    });
    Ok(parked.keeping(directory))
}

/// A program of one file, which unpacks its interpreter and runs it in a child.
fn pyinstaller() -> Result<Parked, String> {
    let bundle = bundle("pyinstaller").ok_or("there is no pyinstaller: run `cargo xtask interpreters`")?;
    let directory = tempfile::tempdir().expect("a temporary directory");
    let mut make = Command::new(bundle.join("bin/pyinstaller"));
    make.args(["--onefile", "--log-level=ERROR", "--distpath=.", "--paths"]).arg(workloads());
    // by their lines it knows when they are parked
    make.arg("--add-data").arg(format!("{}/*.py:.", workloads().display()));
    for file in entries(&workloads()) {
        let name = file.file_stem().unwrap_or_default().to_string_lossy();
        if name.starts_with("cases_") {
            make.arg(format!("--hidden-import={name}"));
        }
    }
    output(make.arg(workloads().join("park.py")).current_dir(directory.path()))?;
    let mut command = Command::new(directory.path().join("park"));
    command.args(PLAIN);
    Ok(Parked::start(command).keeping(directory))
}

fn python_2() -> Result<Parked, String> {
    let versions = entries(&pyenv_versions()).into_iter();
    let mut programs = versions.map(|version| version.join("bin/python2.7")).chain(["/usr/bin/python2.7".into()]);
    let program = programs.find(|program| program.is_file());
    Ok(saying_nothing(&program.ok_or("there is no python2.7 (pyenv install 2.7.18)")?))
}

fn pypy() -> Result<Parked, String> {
    found("pypy3").map(|()| saying_nothing(Path::new("pypy3")))
}

/// Waits for the end of its input, and tells nothing.
fn saying_nothing(program: &Path) -> Parked {
    let mut command = Command::new(program);
    command.args(["-c", "import os, sys\nos.write(1, b'READY\\n')\nos.read(0, 1)"]);
    Parked::start(command)
}

fn found(program: &str) -> Result<(), String> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let there = std::env::split_paths(&path).any(|directory| directory.join(program).is_file());
    there.then_some(()).ok_or_else(|| format!("{program} is not installed"))
}

/// Interpreters that C programs can embed in every way.
pub(crate) fn embeddable() -> Vec<Interpreter> {
    pyenv()
}
