//! Every interpreter, every way to call: threads that use their CPU in a stack that they know.

use crate::explain::interpreters::{self, Interpreter};
use crate::explain::skip;
use crate::judge::{Verdict, sampled};
use crate::support::needs;
use crate::support::record::Recording;
use crate::workload::{self, Running, cases, command, is_long, with_each};

/// CPU seconds of each thread, for about as many samples at either rate; ten times as long in long runs.
fn seconds(frequency: u32) -> f64 {
    let seconds = if frequency < 500 { 0.06 } else { 0.03 };
    if is_long() { 10.0 * seconds } else { seconds }
}

fn check(interpreter: &Interpreter, frequency: u32, lines: bool) {
    let name = &interpreter.name;
    let (seconds, cases) = (seconds(frequency).to_string(), cases(interpreter));
    let mut command = command(interpreter, "spin.py", &[&seconds, &cases.display().to_string()]);
    command.env("PREFIX", "p");
    let mut running = Running::start(command);
    let recording = Recording::at(frequency);
    let recording = if lines { recording.option("--lines") } else { recording };
    let directory = tempfile::tempdir().expect("a temporary directory");
    let file = directory.path().join("out.pb.gz");
    let recording = recording.output(file.clone()).processes(&[running.pid()]);
    running.go();
    running.done();
    let recorded = recording.stop();
    let wanted = workload::wanted(interpreter, lines);
    let verdict = Verdict::over(&recorded.stacks, &running.told, wanted);
    println!(
        "LIVE spin | {name} | {frequency} | {} threads | {} right | cut {:?} | stopped {:?} |",
        running.told.threads.len(),
        verdict.right,
        verdict.cut,
        verdict.stopped
    );
    let mut problems = verdict.problems(wanted);
    // where files and first lines are whole, and lines are always there
    let wanted = workload::wanted(interpreter, true);
    let verdict = Verdict::of(sampled::pprof(&file), &running.told, wanted);
    problems.extend(verdict.problems(wanted).into_iter().map(|problem| format!("pprof: {problem}")));
    problems.extend(recorded.losses().into_iter().map(str::to_owned));
    assert!(problems.is_empty(), "{name} at {frequency} Hz:\n{}\n{}", problems.join("\n"), recorded.summary);
}

#[test]
fn every_interpreter() {
    needs!();
    skip(&interpreters::missing());
    for (frequency, lines) in [(999, true), (99, false)] {
        with_each(&interpreters::all(), |interpreter| check(interpreter, frequency, lines));
    }
}
