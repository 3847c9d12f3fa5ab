//! Threads that run while they are looked at: what is shown is of one moment.

use std::io::BufRead;
use std::process::{Child, Command, Stdio};

use crate::explained::{PythonFrame, Report, explain};
use crate::support::interpreters::{self, Interpreter};

/// Explanations of each program.
const LOOKS: usize = 20;

/// Every module is made anew and calls nothing but the function of its own number; none lives for long.
const FRESH: &str = r"
import itertools, os, time
os.write(1, b'READY\n')
for number in itertools.count():
    source = 'def f_{0}():\n  t = pc()\n  while pc() - t < 0.001: pass\nf_{0}()\n'.format(number)
    exec(compile(source, 'file_%d' % number, 'exec'), {'pc': time.perf_counter})
";

/// Down one function, up again, down the other.
const IN_TURN: &str = r"
import os, sys, threading, time
sys.setrecursionlimit(10 ** 6)
threading.stack_size(256 << 20)
def red(depth): return red(depth - 1) if depth else spin()
def blue(depth): return blue(depth - 1) if depth else spin()
def spin():
    t = time.perf_counter()
    while time.perf_counter() - t < 0.01: pass
def turns():
    while True: red(DEPTH), blue(DEPTH)
os.write(1, b'READY\n')
thread = threading.Thread(target=turns)
thread.start()
";

/// A child by `fork` alone, which CPython is not told of: the threads that are not in it are still listed, and lie where new
/// ones lie.
const FORKED: &str = r"
import _thread, ctypes, os, threading, time
def ghost(): time.sleep(1000)
def real(): time.sleep(1000)
for _ in range(3): threading.Thread(target=ghost, daemon=True).start()
time.sleep(0.2)
child = ctypes.PyDLL(None).fork()
if child == 0:
    for _ in range(3): _thread.start_new_thread(real, ())
    time.sleep(0.2)
    os.write(1, b'READY\n')
    time.sleep(1000)
time.sleep(1000)
";

struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn run(interpreter: &Interpreter, script: &str) -> Running {
    let mut command = Command::new(&interpreter.program);
    let mut child = command.args(["-c", script]).stdout(Stdio::piped()).spawn().expect("started");
    let mut line = String::new();
    let output = child.stdout.take().expect("its output");
    std::io::BufReader::new(output).read_line(&mut line).expect("a line");
    assert_eq!(line, "READY\n", "{}", interpreter.name);
    Running(child)
}

fn here() -> Vec<Interpreter> {
    interpreters::installed().into_iter().chain(interpreters::pyenv()).collect()
}

fn stacks(report: &Report) -> impl Iterator<Item = &[PythonFrame]> {
    report.threads.iter().flat_map(|thread| &thread.python).map(|stack| stack.frames.as_slice())
}

fn number(text: &str) -> Option<u64> {
    text.rsplit_once('_')?.1.parse().ok()
}

#[test]
fn code_that_comes_and_goes() {
    for interpreter in here() {
        let running = run(&interpreter, FRESH);
        let mut seen = 0;
        for _ in 0..LOOKS {
            for frames in stacks(&explain(running.0.id())) {
                let files = frames.iter().filter(|frame| frame.file.starts_with("file_")).map(|frame| &frame.file);
                let names = frames.iter().filter(|frame| frame.name.starts_with("f_")).map(|frame| &frame.name);
                let numbers: Vec<_> = files.chain(names).map(|text| number(text)).collect();
                assert!(numbers.windows(2).all(|pair| pair[0] == pair[1]), "{}: {frames:?}", interpreter.name);
                seen += numbers.len();
            }
        }
        assert!(seen > 0, "{}", interpreter.name);
    }
}

#[test]
fn deep_functions_in_turn() {
    for interpreter in here() {
        for depth in ["900", "5000"] {
            // a C stack of its own for each call, up to 3.10
            let running = run(&interpreter, &IN_TURN.replace("DEPTH", depth));
            for _ in 0..LOOKS / 4 {
                for frames in stacks(&explain(running.0.id())) {
                    let count = |name: &str| frames.iter().filter(|frame| frame.name == name).count();
                    assert!(count("red") == 0 || count("blue") == 0, "{}: both", interpreter.name);
                }
            }
        }
    }
}

#[test]
fn threads_that_a_fork_left_behind() {
    for interpreter in here() {
        let running = run(&interpreter, FORKED);
        let children = format!("/proc/{0}/task/{0}/children", running.0.id());
        let children = std::fs::read_to_string(children).expect("its children");
        let child: u32 = children.trim().parse().expect("one child");
        let report = explain(child);
        let names: Vec<Vec<&str>> =
            stacks(&report).map(|frames| frames.iter().map(|frame| frame.name.as_str()).collect()).collect();
        let real = names.iter().filter(|names| names.contains(&"real")).count();
        assert!(real == 3 && !names.iter().any(|names| names.contains(&"ghost")), "{}: {names:?}", interpreter.name);
        let _ = Command::new("kill").args(["-9", &child.to_string()]).status();
    }
}
