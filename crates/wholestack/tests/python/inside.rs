//! The judge of recordings, on stacks that the interpreter itself gives: it must find all of them right.

use crate::explain::interpreters::{self, Interpreter};
use crate::judge::{Verdict, Wanted};
use crate::support::folded;
use crate::workload::{Running, cases, command};

fn check(interpreter: &Interpreter, name: &str, arguments: &[&str]) {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let file = directory.path().join("samples");
    let mut command = command(interpreter, name, arguments);
    let mut running = Running::start({
        command.env("SAMPLES", &file);
        command
    });
    running.go();
    running.done();
    let text = std::fs::read_to_string(file).expect("samples");
    let wanted = Wanted::with_lines(true);
    // it says nothing of C
    running.told.through_c.clear();
    let verdict = Verdict::over(&folded::parse(&text), &running.told, wanted);
    let problems = verdict.problems(wanted);
    assert!(problems.is_empty(), "{name} {}: {}", interpreter.name, problems.join("\n"));
    println!("LIVE inside {} {name}: {} stacks right", interpreter.name, verdict.right);
}

#[test]
fn sampled_from_within() {
    let suits = |interpreter: &Interpreter| !interpreter.is_in_tree() && interpreter.name != "free-threaded";
    let all = interpreters::all().into_iter().filter(suits);
    for interpreter in all {
        check(&interpreter, "spin.py", &["0.01", &cases(&interpreter).display().to_string()]);
        for name in ["quick.py", "mixed.py", "blocking.py"] {
            check(&interpreter, name, &["0.1"]);
        }
    }
}
