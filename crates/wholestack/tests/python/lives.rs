//! Interpreters that start, end, fork, exec, come late and come again while they are recorded, and that are several.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::explain::interpreters::{self, Interpreter};
use crate::explain::{self, output, skip};
use crate::judge::label::Label;
use crate::judge::truth::Told;
use crate::lived::Lived;
use crate::support::build::Workshop;
use crate::support::folded::{Stack, total};
use crate::support::needs;
use crate::support::record::{Recorded, Recording};
use crate::workload::{Running, command, prepared, script, with_each, workloads};

/// At which most of these are recorded.
const RATE: u32 = 999;
/// CPU seconds of each thread.
const SECONDS: &str = "0.4";

/// Those that are started in one step, whose files are where ours are.
fn here() -> Vec<Interpreter> {
    interpreters::all().into_iter().filter(|interpreter| !interpreter.is_in_tree()).collect()
}

#[track_caller]
fn judged(what: &str, recorded: &Recorded, told: &Told) {
    Lived { what, recorded, told, frequency: RATE }.judged();
}

/// Recorded from where it says that it is ready.
#[track_caller]
fn recorded_when_ready(mut running: Running, what: &str) -> (Recorded, Told) {
    let recording = Recording::at(RATE).option("--lines").processes(&[running.pid()]);
    running.go();
    running.done();
    let recorded = recording.stop();
    assert!(!running.told.cpu.is_empty(), "{what}");
    (recorded, running.told.clone())
}

fn words(command: &Command) -> Vec<std::ffi::OsString> {
    std::iter::once(command.get_program()).chain(command.get_args()).map(Into::into).collect()
}

fn recording() -> Recording {
    let recording = Recording::at(RATE).option("--lines");
    recording.variable("LC_ALL", "C.UTF-8").variable("PYTHONDONTWRITEBYTECODE", "1")
}

/// Twenty processes of thirty milliseconds each, gone before anybody could look at them.
#[test]
fn short_lives() {
    needs!("sh");
    with_each(&interpreters::all(), |interpreter| {
        let told = output(&mut command(interpreter, "short.py", &["0.01"])).expect("it runs");
        let mut told = Told::all(&told);
        told.cpu.clear();
        let line = words(&command(interpreter, "short.py", &["0.03"]));
        let loops = "i=0; while [ $i -lt 20 ]; do \"$@\"; i=$((i+1)); done";
        let shell = ["sh", "-c", loops, "sh"].map(Into::into);
        let recorded = recording().command(&[shell.to_vec(), line].concat());
        recorded.stdout.lines().for_each(|line| told.hear(line));
        let what = format!("short lives: {}", interpreter.name);
        Lived { what: &what, recorded: &recorded, told: &told, frequency: RATE }.judged();
    });
}

#[test]
fn forks() {
    needs!();
    with_each(&interpreters::all(), |interpreter| {
        let what = format!("forks: {}", interpreter.name);
        let running = Running::start(command(interpreter, "forks.py", &[SECONDS]));
        let (recorded, told) = recorded_when_ready(running, &what);
        judged(&what, &recorded, &told);
    });
}

/// One process id, one version after the other.
#[test]
fn one_interpreter_becomes_another() {
    needs!();
    let all = here();
    let programs: Vec<String> = all.iter().map(|interpreter| interpreter.program.display().to_string()).collect();
    let mut line = vec![programs[0].clone(), script(&all[0], "execs.py").display().to_string(), SECONDS.to_owned()];
    line.extend_from_slice(&programs[1..]);
    let recorded = recording().command(&line);
    let mut told = Told::all(&recorded.stdout);
    assert_eq!(told.cpu.len(), programs.len(), "{programs:?}: {}", recorded.stdout);
    // some of them call Python from C where others do not
    told.version.clear();
    judged(&format!("{} interpreters, one after the other", programs.len()), &recorded, &told);
}

/// A thread of C in a process that has Python: native, and nothing is said of Python.
#[test]
fn threads_that_never_ran_python() {
    needs!("cc");
    let shop = Workshop::new();
    let library = shop.compile("cc", "stranger.so", &workloads().join("stranger.c"), &["-shared", "-fPIC", "-pthread"]);
    with_each(&here(), |interpreter| {
        let what = format!("a thread of C: {}", interpreter.name);
        if output(interpreter.command(&[]).args(["-c", "import ctypes"])).is_err() {
            skip(&[format!("{} has no ctypes", interpreter.name)]);
            return;
        }
        let command = command(interpreter, "strangers.py", &[SECONDS, &library.display().to_string()]);
        let (recorded, mut told) = recorded_when_ready(Running::start(command), &what);
        let seconds = told.cpu.remove("stranger").expect("its time");
        judged(&what, &recorded, &told);
        strange(&recorded, &told, &what, seconds);
    });
}

#[track_caller]
fn strange(recorded: &Recorded, told: &Told, what: &str, seconds: f64) {
    let of_it = |stack: &&Stack| stack.parts.get(1).is_some_and(|name| name == "stranger");
    let stacks: Vec<&Stack> = recorded.stacks.iter().filter(of_it).collect();
    for stack in &stacks {
        let is_of_python = stack.parts[2..].iter().any(|part| match Label::parse(part) {
            Label::Native(_) | Label::Kernel(_) => false,
            Label::Python(_) => true,
            // it begins and ends somewhere, too
            _ => part.starts_with("[python"),
        });
        assert!(!is_of_python, "{what}: {}", stack.parts.join(";"));
    }
    let at_work = |stack: &&&Stack| stack.parts.iter().any(|part| part.split(" (").next() == Some("stranger_main"));
    let working = total(stacks.iter().filter(at_work).copied());
    let all = total(stacks.iter().copied());
    assert!(working as f64 >= 0.95 * all as f64, "{what}: {working} of {all} at work");
    let got = total(stacks.iter().copied()) as f64;
    let (least, most) = Lived { what, recorded, told, frequency: RATE }.expected(seconds);
    assert!((least..=most).contains(&got), "{what}: {got} samples of it, not {least:.0} to {most:.0}");
}

/// A program that loads libpython when it is recorded already.
#[test]
fn python_that_comes_late() {
    needs!("cc");
    with_each(&interpreters::pyenv(), |interpreter| {
        let what = format!("late: {}", interpreter.name);
        let Some((_shop, command)) = embedding(interpreter, "late") else { return };
        let running = Running::start_until(command, "WAITING");
        let (recorded, told) = recorded_when_ready(running, &what);
        judged(&what, &recorded, &told);
    });
}

/// Finalised and initialised again.
#[test]
fn a_second_life() {
    needs!("cc");
    with_each(&interpreters::pyenv(), |interpreter| {
        let Some((_shop, command)) = embedding(interpreter, "again") else { return };
        let home = command.get_envs().find(|(name, _)| *name == "PYTHONHOME").and_then(|(_, value)| value);
        let home = home.expect("a home").display().to_string();
        let recorded = recording().variable("PYTHONHOME", &home).command(&words(&command));
        let told = Told::all(&recorded.stdout);
        assert_eq!(told.cpu.len(), 1, "{}", recorded.summary);
        judged(&format!("a second life: {}", interpreter.name), &recorded, &told);
    });
}

/// A C program that loads an interpreter's library and runs `lone.py`.
fn embedding(interpreter: &Interpreter, mode: &str) -> Option<(Workshop, Command)> {
    let shop = Workshop::new();
    let program = shop.path("embed");
    explain::compile("embed.c", &program, &["-DLATE", "-ldl"]).expect("a compiler");
    let about = "import sys, sysconfig as s; print(s.get_config_var('LIBDIR') + '/' + s.get_config_var('INSTSONAME')); \
                 print(sys.prefix)";
    let about = output(interpreter.command(&[]).args(["-c", about])).expect("it runs");
    let (library, home) = about.trim().split_once('\n').expect("two lines");
    if !Path::new(library).is_file() {
        skip(&[format!("{} has no {library}", interpreter.name)]);
        return None;
    }
    let lone: PathBuf = workloads().join("lone.py");
    let code = format!(
        "import sys; sys.argv = ['lone.py', 'embedded', '{SECONDS}']; import runpy; \
         runpy.run_path('{}', run_name='__main__')",
        lone.display()
    );
    let mut command = Command::new(program);
    command.arg(mode).arg(code).arg(library).env("PYTHONHOME", home);
    prepared(&mut command);
    Some((shop, command))
}
