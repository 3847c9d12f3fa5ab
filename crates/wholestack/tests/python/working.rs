//! Threads whose stacks change all the time: calls that there are, and the time of threads, functions and lines.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::explain::interpreters::{self, Interpreter};
use crate::explain::skip;
use crate::judge::label::{Label, Python};
use crate::judge::truth::Share;
use crate::judge::{Verdict, Wanted};
use crate::support::folded::Stack;
use crate::support::judge::Judge;
use crate::support::needs;
use crate::support::record::{Recorded, Recording};
use crate::support::workload::Truth;
use crate::workload::{Running, command, is_long, wanted, with_each};

/// CPU seconds of each thread.
fn seconds() -> &'static str {
    if is_long() { "15" } else { "0.8" }
}

/// A recording of one of these workloads.
struct Worked {
    running: Running,
    recorded: Recorded,
    what: String,
    frequency: u32,
    lines: bool,
}

fn record(interpreter: &Interpreter, workload: &str, frequency: u32, lines: bool) -> Worked {
    let script = format!("{workload}.py");
    let mut command = command(interpreter, &script, &[seconds()]);
    command.env("PREFIX", "p");
    let mut running = Running::start(command);
    let recording = Recording::at(frequency);
    let recording = if lines { recording.option("--lines") } else { recording };
    let recording = recording.processes(&[running.pid()]);
    running.go();
    running.done();
    let recorded = recording.stop();
    Worked { running, recorded, what: format!("{workload}: {}", interpreter.name), frequency, lines }
}

fn python(stack: &Stack) -> impl DoubleEndedIterator<Item = Python> {
    let labels = stack.parts[1..].iter().map(|part| Label::parse(part));
    labels.filter_map(|label| if let Label::Python(python) = label { Some(python) } else { None })
}

fn in_block(stack: &Stack, share: &Share) -> Option<Python> {
    python(stack).find(|shown| share.block.is_of(shown))
}

impl Worked {
    /// No stack is wrong, few are cut.
    #[track_caller]
    fn judged(&self, wanted: Wanted) {
        let verdict = Verdict::over(&self.recorded.stacks, &self.running.told, wanted);
        let problems = verdict.problems(wanted);
        println!(
            "LIVE {} | {} Hz | {} right | cut {:?} | stopped {:?} |",
            self.what, self.frequency, verdict.right, verdict.cut, verdict.stopped
        );
        assert!(problems.is_empty(), "{}:\n{}\n{}", self.what, problems.join("\n"), self.recorded.summary);
    }

    /// A judge of shares: where stacks end was judged already.
    fn judge<'a>(&'a self, stacks: Vec<&'a Stack>, what: &str) -> Judge<'a> {
        Judge::among(&self.recorded, stacks, what, self.frequency).root_at_least(0.0)
    }

    /// The samples of what a name can be given to are in proportion to their CPU time.
    #[track_caller]
    fn compared(&self, what: &str, shares: BTreeMap<String, f64>, name: impl Fn(&Stack) -> Option<String>) {
        let truth = Truth { cpu: self.running.told.seconds(), shares, all: Value::Null };
        let stacks = self.recorded.stacks.iter().filter(|stack| name(stack).is_some()).collect();
        let what = format!("{}, {what}", self.what);
        self.judge(stacks, &what).chains(&truth, &name).end();
    }

    /// As many samples as its CPU time makes, in proportion to that of its threads.
    #[track_caller]
    fn by_thread(&self) {
        let told = &self.running.told;
        let of_worker = |stack: &&Stack| told.cpu.contains_key(&stack.parts[1]);
        let stacks = self.recorded.stacks.iter().filter(of_worker).collect();
        let truth = Truth { cpu: told.seconds(), shares: told.cpu.clone(), all: Value::Null };
        let what = format!("{}, threads", self.what);
        let judge = self.judge(stacks, &what);
        judge.samples_for(truth.cpu).chains(&truth, |stack| Some(stack.parts[1].clone())).end();
    }

    #[track_caller]
    fn by_block(&self) {
        let shares = &self.running.told.shares;
        let seconds = shares.iter().map(|share| (share.block.name.clone(), share.seconds)).collect();
        let block = |stack: &Stack| shares.iter().find(|share| in_block(stack, share).is_some());
        self.compared("blocks", seconds, |stack| Some(block(stack)?.block.name.clone()));
    }

    #[track_caller]
    fn by_line(&self) {
        for share in self.running.told.shares.iter().filter(|share| self.lines && !share.lines.is_empty()) {
            let name = |lines: &[u32]| format!("{lines:?}");
            let seconds = share.lines.iter().map(|line| (name(&line.lines), line.seconds)).collect();
            self.compared(&format!("lines of {}", share.block.name), seconds, |stack| {
                let line = in_block(stack, share)?.line?;
                share.lines.iter().find(|busy| busy.lines.contains(&line)).map(|busy| name(&busy.lines))
            });
        }
    }
}

/// `a` calls `a_leaf`, `b` calls `b_leaf`, millions of times a second; recursion, generators, exceptions, coroutines.
#[test]
fn quick_changes() {
    needs!();
    skip(&interpreters::missing());
    for (frequency, lines) in [(999, true), (99, false)] {
        with_each(&interpreters::all(), |interpreter| {
            let worked = record(interpreter, "quick", frequency, lines);
            worked.judged(wanted(interpreter, lines));
            worked.by_thread();
            worked.by_block();
            worked.by_line();
        });
    }
}

/// Names of native functions that must stand below a block, where the interpreter takes them from a library that names them.
const NATIVE: [(&str, &str, &str); 2] = [("compressing", "libz.so", "deflate"), ("hashing", "libcrypto.so", "")];

/// C libraries called from Python, some of which call back.
#[test]
fn mixed_work() {
    needs!();
    with_each(&interpreters::all(), |interpreter| {
        let worked = record(interpreter, "mixed", 999, true);
        let wanted = wanted(interpreter, true);
        worked.judged(Wanted { cut: 0.01, stopped: wanted.stopped.max(0.01), ..wanted });
        worked.by_thread();
        worked.by_block();
        let maps = std::fs::read_to_string(format!("/proc/{}/maps", worked.running.pid())).expect("it lives");
        for (block, library, function) in NATIVE.iter().filter(|(_, library, _)| maps.contains(library)) {
            worked.calls_into(block, library, function);
        }
    });
}

impl Worked {
    /// Most of a block's samples are in a library's function, which is the leaf's side of the block's frame; how many depends on what
    /// allocating and copying takes on the machine.
    #[track_caller]
    fn calls_into(&self, block: &str, library: &str, function: &str) {
        let share = self.running.told.shares.iter().find(|share| share.block.name == block).expect("a block");
        let (mut inside, mut all) = (0, 0);
        for stack in &self.recorded.stacks {
            if in_block(stack, share).is_none() {
                continue;
            }
            all += stack.count;
            let last = stack.parts.iter().rposition(|part| matches!(Label::parse(part), Label::Python(_)));
            let below = &stack.parts[last.map_or(0, |last| last + 1)..];
            let is_it = |part: &String| !function.is_empty() && part.starts_with(function);
            if below.iter().any(|part| is_it(part) || (function.is_empty() && !part.starts_with('['))) {
                inside += stack.count;
            }
        }
        println!("LIVE {}: {inside} of {all} samples of {block} in {library} {function}", self.what);
        assert!(2 * inside >= all && all > 20, "{}: {inside} of {all} of {block} in {library}", self.what);
    }
}

/// Which line of `calls` makes which system call, and how the kernel's function for it ends.
const CALLS: [(usize, &str); 4] = [(0, "sys_read"), (1, "sys_pread64"), (2, "stat"), (3, "sys_read")];

/// The time in the kernel is the line's that made the call.
#[test]
fn system_calls() {
    needs!();
    with_each(&interpreters::all(), |interpreter| {
        let worked = record(interpreter, "blocking", 999, true);
        worked.judged(wanted(interpreter, true));
        worked.by_thread();
        worked.by_line();
        worked.calls_the_kernel();
    });
}

impl Worked {
    #[track_caller]
    fn calls_the_kernel(&self) {
        let share = &self.running.told.shares[0];
        let mut counts = [0; CALLS.len()];
        for stack in &self.recorded.stacks {
            let Some(line) = in_block(stack, share).and_then(|shown| shown.line) else { continue };
            let kernel = stack.kernel();
            let Some(entry) = kernel.iter().find(|frame| is_entry(frame)) else { continue };
            let called = share.lines.iter().position(|busy| busy.lines.contains(&line));
            let right = called.is_some_and(|number| entry.contains(CALLS[number].1));
            // the clock's call, what threads do between blocks, and memory for what is read
            let other = ["clock_gettime", "lseek", "futex", "mmap", "munmap", "mprotect", "mremap", "brk", "madvise"]
                .iter()
                .any(|call| entry.contains(call));
            assert!(right || other, "{}: {entry} in line {line}: {}", self.what, stack.parts.join(";"));
            if let Some(number) = called.filter(|_| right) {
                counts[number] += stack.count;
            }
        }
        println!("LIVE {}: samples in system calls, by line: {counts:?}", self.what);
        assert!(counts.iter().all(|count| *count > 20), "{}: {counts:?}", self.what);
    }
}

/// As in `__x64_sys_read_[k]`, `__arm64_sys_read_[k]`; `ksys_read_[k]`, where that was inlined.
fn is_entry(frame: &str) -> bool {
    (frame.starts_with("__") && frame.contains("_sys_")) || frame.starts_with("ksys_")
}
