//! Interpreters of live processes: each file is read once, whatever lies under its path by then, and what is no CPython that can be
//! walked is refused by name.

mod interpreters;

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use interpreters::Interpreter;
use python::interpreters::{Cache, Found, Interpreter as Proven, ProcessProblem, of_process};
use python::prove::Effort;

const PARK: &str = "import os, time; os.write(1, b'READY\\n'); time.sleep(1000)";
/// Threads that have no state of their own, as a program has them that starts Python late, and one that has.
const CROWD: &str = "import os, threading, time
for _ in range(40): threading.Thread(target=time.sleep, args=(1000,), daemon=True).start()
time.sleep(0.2)
os.write(1, b'READY\\n')
time.sleep(1000)";

struct Running(Child);

impl Running {
    /// Starts a program that says READY when it is.
    fn start(command: &mut Command) -> Running {
        let mut child = command.stdout(Stdio::piped()).stdin(Stdio::null()).spawn().expect("started");
        let mut line = String::new();
        BufReader::new(child.stdout.take().expect("its output")).read_line(&mut line).expect("a line");
        assert_eq!(line, "READY\n", "{command:?}");
        Running(child)
    }

    fn find(&self, cache: &Cache) -> Vec<Found> {
        of_process(cache, self.0.id(), &Effort::SMALL).expect("a process that can be looked into")
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn python(interpreter: &Interpreter, code: &str) -> Running {
    Running::start(interpreter.place.command().args(["-c", code]))
}

/// The interpreters of the machine itself that are walked.
fn walked() -> Vec<Interpreter> {
    let all = interpreters::all();
    all.into_iter().filter(|interpreter| interpreter.place.tree.is_none() && !interpreter.is_free_threaded).collect()
}

/// One whose program is the whole interpreter, so that a copy of the program runs anywhere.
fn of_one_file() -> Option<Interpreter> {
    walked().into_iter().find(|interpreter| {
        let running = python(interpreter, PARK);
        let found = running.find(&Cache::new());
        found.first().is_some_and(|found| Path::new(&found.path) == interpreter.place.file)
    })
}

#[test]
fn a_second_process_of_a_file_is_the_same_at_another_place() {
    let interpreters = interpreters::all();
    if interpreters.is_empty() {
        return println!("SKIPPED: no CPython here");
    }
    for interpreter in interpreters {
        let cache = Cache::new();
        let (first, second) = (python(&interpreter, PARK), python(&interpreter, CROWD));
        let (one, other) = (&first.find(&cache)[0], &second.find(&cache)[0]);
        println!("{one}");
        let version = interpreter.version;
        assert_eq!((one.version, one.file, one.build_id), (Some(version), other.file, other.build_id));
        let kind = if interpreter.is_free_threaded { "t" } else { "" };
        assert!(one.to_string().starts_with(&format!("python {version}{kind} ")), "{one}");
        match [&one.result, &other.result] {
            [Ok(first), Ok(second)] => compare(one, first, second),
            // builds whose structures are not known
            [Err(first), Err(second)] => {
                assert_eq!(first, second);
                assert!(interpreter.is_free_threaded, "{one}");
            }
            _ => panic!("{one}, {other}"),
        }
    }
}

fn compare(one: &Found, first: &Proven, second: &Proven) {
    assert_eq!((first.ready.key, first.ready.place), (second.ready.key, second.ready.place), "{one}");
    assert_eq!(first.ready.facts.slot, second.ready.facts.slot, "{one}");
    assert!(first.eval_loop.as_ref().is_ok_and(|eval_loop| !eval_loop.pieces.is_empty()), "{one}");
    assert_eq!(first.eval_loop, second.eval_loop);
    let moved = second.bias.wrapping_sub(first.bias);
    let types = [first, second].map(|proven| proven.ready.types.code);
    assert_eq!(types[1].wrapping_sub(types[0]), moved);
    if one.path.contains(".so") {
        assert_ne!(moved, 0, "libraries lie elsewhere in each process: {one}");
    }
    assert!(one.to_string().ends_with(", live]"), "{one}");
}

#[test]
fn what_lies_under_a_path_is_asked_of_the_process() {
    let Some(interpreter) = of_one_file() else { return println!("NOT HERE: no interpreter in one file") };
    let directory = tempfile::tempdir().expect("a directory");
    let program = directory.path().join("program");
    fs::copy(&interpreter.place.file, &program).expect("a copy");
    let cache = Cache::new();
    let begun = Running::start(Command::new(&program).args(["-c", PARK]));
    let before = begun.find(&cache);
    assert_eq!(before[0].version, Some(interpreter.version));

    // another file under the same path: no Python at all
    let replacement = directory.path().join("replacement");
    fs::copy("/bin/sleep", &replacement).expect("a copy");
    fs::rename(&replacement, &program).expect("replaced");
    let sleeping = Running(Command::new(&program).arg("1000").spawn().expect("started"));
    while fs::read_link(format!("/proc/{}/exe", sleeping.0.id())).ok().as_deref() != Some(program.as_path()) {
        std::thread::yield_now();
    }
    assert!(sleeping.find(&cache).is_empty());

    // and the process that began before still runs its own, deleted file; with a cache that knows nothing of it, too
    for cache in [&cache, &Cache::new()] {
        let after = begun.find(cache);
        let inode = |found: &Found| (found.file.device, found.file.inode);
        assert_eq!((after[0].version, inode(&after[0])), (before[0].version, inode(&before[0])));
        assert!(after[0].result.is_ok(), "{}", after[0]);
    }
}

#[test]
fn a_file_in_another_mount_namespace_is_found() {
    let Some(interpreter) = of_one_file() else { return println!("NOT HERE: no interpreter in one file") };
    let own = Command::new("unshare").args(["--mount", "true"]).status();
    if !own.is_ok_and(|status| status.success()) {
        return println!("NOT HERE: no right to make mount namespaces");
    }
    let directory = tempfile::tempdir().expect("a directory");
    let script = format!("mount -t tmpfs none \"$1\" && cp \"$0\" \"$1/program\" && exec \"$1/program\" -c \"{PARK}\"");
    let mut command = Command::new("unshare");
    command.args(["--mount", "sh", "-c", &script]).arg(&interpreter.place.file).arg(directory.path());
    let running = Running::start(&mut command);
    let found = running.find(&Cache::new());
    assert!(!directory.path().join("program").exists(), "it is not to be seen from here");
    assert_eq!(found[0].version, Some(interpreter.version));
    assert!(found[0].result.is_ok(), "{}", found[0]);
}

#[test]
fn a_library_that_was_not_initialised_may_be_later() {
    let cache = Cache::new();
    let mut libraries = Vec::new();
    for interpreter in walked() {
        let found = python(&interpreter, PARK).find(&cache);
        libraries.extend(
            found.into_iter().filter(|found| found.path.contains(".so")).map(|found| (interpreter.clone(), found)),
        );
    }
    let [(interpreter, own), .., (_, other)] = &libraries[..] else {
        return println!("NOT HERE: no two interpreters in libraries");
    };
    // its symbols stay its own, and it is not asked for anything
    let code = format!("import ctypes, os; ctypes.CDLL({:?}, os.RTLD_LOCAL); {PARK}", other.path);
    let found = python(interpreter, &code).find(&cache);
    let of = |path: &str| found.iter().find(|found| found.path == path).expect("found");
    assert!(of(&own.path).result.is_ok());
    let refused = of(&other.path);
    assert_eq!(refused.result.as_ref().err().map(|refusal| refusal.name()), Some("not-initialised"));
    assert!(refused.may_pass() && refused.to_string().contains(": refused: "), "{refused}");
}

/// Starts threads that never run Python, and then one that does; the program's own thread does not, either.
const LATE: &str = r#"#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>
static char **arguments;
static void *rest(void *unused) { for (;;) pause(); }
static void *run(void *unused) {
    void *library = dlopen(arguments[1], RTLD_NOW | RTLD_GLOBAL);
    if (!library) { puts(dlerror()); return 0; }
    ((void (*)(int))dlsym(library, "Py_InitializeEx"))(0);
    ((int (*)(const char *))dlsym(library, "PyRun_SimpleString"))(arguments[2]);
    return 0;
}
int main(int count, char **given) {
    pthread_t thread;
    arguments = given;
    for (int i = 0; i < 20; i++) pthread_create(&thread, 0, rest, 0);
    pthread_create(&thread, 0, run, 0);
    rest(0);
}
"#;

/// Compiles a program; `None` if there is no compiler.
fn compile(directory: &Path, name: &str, source: &str, options: &[&str]) -> Option<PathBuf> {
    let (file, program) = (directory.join(name).with_extension("c"), directory.join(name));
    fs::write(&file, source).expect("written");
    let compiled = Command::new("cc").arg("-o").arg(&program).arg(&file).args(options).status();
    compiled.is_ok_and(|status| status.success()).then_some(program)
}

#[test]
fn threads_are_asked_until_one_has_run_python() {
    let library = walked().into_iter().find_map(|interpreter| {
        let found = python(&interpreter, PARK).find(&Cache::new());
        found.into_iter().map(|found| found.path).find(|path| path.contains("/lib/libpython"))
    });
    let Some(library) = library else { return println!("NOT HERE: no interpreter in a library") };
    let directory = tempfile::tempdir().expect("a directory");
    let Some(program) = compile(directory.path(), "late", LATE, &["-pthread", "-ldl"]) else {
        return println!("SKIPPED: no C compiler");
    };
    let home = Path::new(&library).ancestors().nth(2).expect("a prefix");
    let running = Running::start(Command::new(program).args([&library, PARK]).env("PYTHONHOME", home));
    let found = running.find(&Cache::new());
    let result = found[0].result.as_ref().map(|_| found[0].steps.last().map(|step| step.result.as_str()));
    // eight are asked at a time, in the order in which they began
    assert_eq!(result, Ok(Some("1 of 22 have a state of their own")), "{}", found[0]);
}

#[test]
fn other_programs_are_none_or_refused() {
    let cache = Cache::new();
    let sleeping = Running(Command::new("sleep").arg("1000").spawn().expect("started"));
    assert!(sleeping.find(&cache).is_empty());

    let directory = tempfile::tempdir().expect("a directory");
    let source = "#include <unistd.h>\n__attribute__((section(\".PyRuntime\"))) long r = 1;\n\
                  int main(void) { write(1, \"READY\\n\", 6); for (;;) pause(); }\n";
    if let Some(program) = compile(directory.path(), "stripped", source, &["-s"]) {
        let found = Running::start(&mut Command::new(&program)).find(&cache);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].result.as_ref().err().map(|refusal| refusal.name()), Some("no-symbol"));
        assert!(!found[0].may_pass());
    } else {
        println!("SKIPPED: no C compiler");
    }

    let Ok(child) = Command::new("pypy3").args(["-c", PARK]).stdout(Stdio::piped()).spawn() else {
        return println!("NOT HERE: no pypy3");
    };
    let mut running = Running(child);
    let mut line = String::new();
    BufReader::new(running.0.stdout.take().expect("its output")).read_line(&mut line).expect("a line");
    let found = running.find(&cache);
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].result.as_ref().err().map(|refusal| refusal.name()), Some("other-implementation"));
}

#[test]
fn a_process_that_is_gone_is_a_problem() {
    let mut child = Command::new("true").spawn().expect("started");
    let pid = child.id();
    child.wait().expect("ended");
    let gone = of_process(&Cache::new(), pid, &Effort::SMALL);
    assert!(matches!(gone, Err(ProcessProblem::Memory(_))), "{gone:?}");
}
