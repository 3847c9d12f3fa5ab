//! The first samples of a recording: an interpreter that runs already is not known yet, and Python frames are there, or
//! what is missing is said.

use crate::explain::interpreters::{self, Interpreter};
use crate::judge::label::Label;
use crate::judge::{Verdict, Wanted};
use crate::support::folded::Stack;
use crate::support::needs;
use crate::support::record::Recording;
use crate::workload::{Running, command, with_each};

fn check(interpreter: &Interpreter) {
    let name = &interpreter.name;
    let mut command = command(interpreter, "forks.py", &["0.3"]);
    command.env("WARM_UP", "0");
    let mut running = Running::start(command);
    let recording = Recording::at(999).option("--lines").processes(&[running.pid()]);
    running.go();
    running.done();
    let recorded = recording.stop();
    // each process is named before it burns, and only then it is told where it is
    let burns = recorded.stacks.iter().filter(|stack| stack.parts.iter().any(|part| part.starts_with("burn (")));
    let wanted = Wanted::with_lines(true);
    let verdict = Verdict::over(burns, &running.told, wanted);
    let labels = |stack: &Stack| stack.parts.iter().map(|part| Label::parse(part)).collect::<Vec<Label>>();
    let is_bare = |stack: &&Stack| {
        let labels = labels(stack);
        let has = |is: fn(&Label) -> bool| labels.iter().any(is);
        has(|label| matches!(label, Label::EvalLoop(_)))
            && !has(|label| matches!(label, Label::Python(_) | Label::PythonMarker(_)))
    };
    let bare: u64 = recorded.stacks.iter().filter(is_bare).map(|stack| stack.count).sum();
    let all: u64 = recorded.stacks.iter().map(|stack| stack.count).sum();
    println!("LIVE start | {name} | {} right | {bare} of {all} without Python | cut {:?}", verdict.right, verdict.cut);
    let problems = verdict.problems(wanted);
    assert!(problems.is_empty(), "{name}: {}", problems.join("\n"));
    assert!(bare * 200 <= all, "{name}: {bare} of {all} stacks have no Python frames, and do not say why");
}

#[test]
fn from_the_first_sample_on() {
    needs!();
    with_each(&interpreters::all(), check);
}
