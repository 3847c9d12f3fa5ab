//! The whole machine, with ten interpreters at once, some of them in containers.

use std::process::Command;

use crate::explain::interpreters::{self, Interpreter};
use crate::explain::skip;
use crate::judge::{Verdict, Wanted};
use crate::support::needs;
use crate::support::record::Recording;
use crate::workload::{Running, cases, command, is_long};

/// So many interpreters run, of as many versions as there are.
const INTERPRETERS: usize = 10;

/// What each runs.
const CASES: [&str; 10] = [
    "worker",
    "deep",
    "deep_through_c",
    "re_entries",
    "methods",
    "yield_from",
    "comprehensions",
    "in_turn_through_c",
    "generators_of_generators",
    "on_one_line",
];

/// A process in mount and process namespaces of its own, in which others can be started.
struct Container(Running);

impl Container {
    fn new() -> Container {
        let mut command = Command::new("unshare");
        let script = "mount -t proc proc /proc && echo READY && exec cat > /dev/null";
        command.args(["--mount", "--pid", "--fork", "--kill-child", "sh", "-c", script]);
        Container(Running::start(command))
    }

    /// The command, in it.
    fn within(&self, command: Command) -> Command {
        let unshare = self.0.pid();
        let children = format!("/proc/{unshare}/task/{unshare}/children");
        let first = std::fs::read_to_string(children).expect("it lives");
        let mut entering = Command::new("nsenter");
        entering.args(["--mount", "--pid", "--target", first.trim(), "--"]);
        entering.arg(command.get_program()).args(command.get_args());
        entering.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
        entering
    }
}

/// One of each version first.
fn chosen() -> Vec<Interpreter> {
    let mut all = interpreters::all();
    let mut chosen: Vec<Interpreter> = Vec::new();
    while chosen.len() < INTERPRETERS && !all.is_empty() {
        let times = |minor: u32| chosen.iter().filter(|interpreter| interpreter.minor == minor).count();
        let index = (0..all.len()).min_by_key(|index| times(all[*index].minor)).expect("some are left");
        chosen.push(all.remove(index));
    }
    chosen
}

#[test]
fn ten_interpreters_and_two_containers() {
    needs!("unshare", "nsenter");
    let containers = [Container::new(), Container::new()];
    let seconds = if is_long() { "1" } else { "0.1" };
    let all = chosen();
    if all.len() < INTERPRETERS {
        skip(&[format!("{} interpreters, not {INTERPRETERS}", all.len())]);
    }
    let mut running: Vec<Running> = Vec::new();
    for (number, interpreter) in all.iter().enumerate() {
        let place = cases(interpreter).display().to_string();
        let mut command = command(interpreter, "spin.py", &[&[seconds, place.as_str()], CASES.as_slice()].concat());
        command.env("PREFIX", format!("i{number}"));
        // every other one, in the one and the other in turn
        let command = if number % 2 == 0 { containers[number / 2 % 2].within(command) } else { command };
        running.push(Running::start(command));
    }
    let recording = Recording::at(999).option("--lines").machine();
    running.iter_mut().for_each(Running::go);
    running.iter_mut().for_each(Running::done);
    let recorded = recording.stop();
    let mut problems = Vec::new();
    for (number, (interpreter, running)) in std::iter::zip(&all, &running).enumerate() {
        let stacks = recorded.of(&format!("i{number}main"));
        let wanted = Wanted::with_lines(true);
        let verdict = Verdict::over(stacks, &running.told, wanted);
        let name = &interpreter.name;
        println!(
            "LIVE together | {name} | {} right | cut {:?} | stopped {:?}",
            verdict.right, verdict.cut, verdict.stopped
        );
        problems.extend(verdict.problems(wanted).into_iter().map(|problem| format!("{name}: {problem}")));
        let expected = running.told.seconds() * 999.0;
        if (verdict.all() as f64) < expected - 5.0 * expected.sqrt() - (0.05 + recorded.stolen) * 999.0 {
            problems.push(format!("{name}: {} samples, not {expected:.0}", verdict.all()));
        }
    }
    problems.extend(recorded.losses().into_iter().map(str::to_owned));
    assert!(problems.is_empty(), "{}\n{}", problems.join("\n"), recorded.summary);
}
