//! Real programs: how many of their stacks are whole, and what stops the rest.
//!
//! The least shares are what was measured, less a margin. With `WHOLESTACK_LIVE_PICTURES=DIRECTORY`, each recording is
//! kept there as SVG and HTML.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::support::build::{Workshop, must, source};
use crate::support::folded::{End, Stack, total};
use crate::support::judge::Judge;
use crate::support::needs;
use crate::support::record::{Recorded, Recording};
use crate::support::workload::Truth;

/// Per second; frequent enough for some thousand samples of a few seconds.
const RATE: u32 = 999;

fn recording(name: &str) -> Recording {
    match std::env::var_os("WHOLESTACK_LIVE_PICTURES").map(PathBuf::from) {
        Some(directory) => {
            let picture = |ending: &str| directory.join(format!("{name}.{ending}"));
            Recording::at(RATE).output(picture("svg")).output(picture("html"))
        }
        None => Recording::at(RATE),
    }
}

/// How often user stacks stopped, by reason.
fn stops(recorded: &Recorded) -> BTreeMap<&str, u64> {
    let mut stops = BTreeMap::new();
    for stack in recorded.stacks.iter().filter(|stack| stack.end() == End::Stopped) {
        let reason = stack.parts.iter().find(|part| part.starts_with("[stopped: ")).expect("it stopped");
        *stops.entry(reason.as_str()).or_default() += stack.count;
    }
    stops
}

/// Judges all samples of a recording; at least `samples` of them are of `process`.
fn judge<'a>(recorded: &'a Recorded, name: &str, process: &str, samples: u64, whole: f64) -> Judge<'a> {
    println!("LIVE {name}: stops: {:?}", stops(recorded));
    assert!(recorded.status.success(), "{name}: {}\n{}", recorded.status, recorded.summary);
    let got = total(recorded.of(process));
    let mut judge = Judge::among(recorded, recorded.stacks.iter().collect(), name, RATE).root_at_least(whole);
    judge.require(got >= samples, format!("{got} samples of {process}"));
    judge
}

/// The share of the samples of a process that have one of these frames.
fn share_with(recorded: &Recorded, process: &str, has: impl Fn(&str) -> bool) -> f64 {
    let of = recorded.of(process);
    let with = of.iter().copied().filter(|stack| stack.parts[1..].iter().any(|part| has(part)));
    total(with) as f64 / total(of.iter().copied()).max(1) as f64
}

#[test]
fn gcc() {
    needs!("cc", "awk");
    let shop = Workshop::new();
    let text = must(Command::new("awk").args(["-v", "functions=300", "-f"]).arg(source("large.awk")));
    let large = shop.write("large.c", &text);
    let out = shop.path("large.o");
    let command = ["cc".as_ref(), "-O2".as_ref(), "-c".as_ref(), "-o".as_ref(), out.as_os_str(), large.as_os_str()];
    let recorded = recording("gcc").command(&command);
    judge(&recorded, "gcc -O2", "cc1", 1000, 0.995).end();
}

#[test]
fn rustc() {
    needs!("rustc");
    let shop = Workshop::new();
    let (out, many) = (shop.path("many"), source("many.rs"));
    let options = ["rustc", "--edition", "2024", "-C", "opt-level=2", "-o"];
    let mut command: Vec<&std::ffi::OsStr> = options.iter().map(|word| word.as_ref()).collect();
    command.extend([out.as_os_str(), many.as_os_str()]);
    let recorded = recording("rustc").command(&command);
    judge(&recorded, "rustc", "rustc", 500, 0.8).end();
}

#[test]
fn sqlite() {
    needs!("sqlite3");
    let script = format!(".read {}", source("mix.sql").display());
    let recorded = recording("sqlite3").command(&["sqlite3", ":memory:", &script]);
    let mut judge = judge(&recorded, "sqlite3", "sqlite3", 500, 0.995);
    let share = share_with(&recorded, "sqlite3", |frame| frame == "sqlite3_step");
    judge.require(share > 0.9, format!("sqlite3_step in {:.1} %", 100.0 * share));
    judge.end();
}

/// Its C frames; those of Python are not the subject here.
#[test]
fn python() {
    needs!("/usr/bin/python3");
    let script = source("mix.py");
    let recorded = recording("python3").command(&["/usr/bin/python3".as_ref(), script.as_os_str(), "100".as_ref()]);
    let mut judge = judge(&recorded, "python3", "python3", 300, 0.995);
    for frame in ["Py_BytesMain", "<module> (mix.py)"] {
        let share = share_with(&recorded, "python3", |other| other == frame);
        judge.require(share > 0.9, format!("{frame} in {:.1} %", 100.0 * share));
    }
    judge.end();
}

#[test]
fn grep() {
    needs!("grep");
    let pattern = "(foo|bar|[a-z]+_init)[0-9a-z]+_t *\\(";
    let places: Vec<&str> =
        ["/usr/include", "/usr/lib/gcc"].into_iter().filter(|place| Path::new(place).exists()).collect();
    let command = format!("for i in 1 2; do grep -rE '{pattern}' {}; done | sort | tail -n 1", places.join(" "));
    let recorded = recording("grep").command(&["sh", "-c", &command]);
    judge(&recorded, "grep -r", "grep", 500, 0.99).end();
}

/// HotSpot's interpreter is returned to where no call ends, and much of its compiled code leaves by jumps: what stops there
/// says so, and what never enters Java is whole.
#[test]
fn java() {
    needs!("java");
    let script = source("Mix.java");
    let recorded = recording("java").command(&["java".as_ref(), script.as_os_str(), "300".as_ref()]);
    let mut judge = judge(&recorded, "java", "java", 1000, 0.3);
    let native = recorded.stacks.iter().filter(|stack| !stack.parts.iter().any(|part| part.ends_with("_[j]")));
    let (all, stopped) = (total(native.clone()), total(native.filter(|stack| stack.end() == End::Stopped)));
    judge.require(
        all >= 200 && stopped as f64 <= 0.01 * all as f64,
        format!("{stopped} of {all} stacks without Java frames stopped"),
    );
    judge.end();
}

/// V8's interpreter: a frame of it is a JavaScript function that is not compiled yet, and of which the perf map says nothing.
/// How long that lasts depends on the machine.
const INTERPRETER: &str = "Builtins_InterpreterEntryTrampoline";

/// The leaf below its callers, as far as they are compiled.
/// In the map: `JS:*leaf60 /path/split.js:7:16`.
fn javascript(stack: &Stack) -> Option<String> {
    let name = |frame| if frame == INTERPRETER { Some(INTERPRETER) } else { function(frame) };
    let functions: Vec<&str> = stack.user().into_iter().filter_map(name).collect();
    let [callers @ .., leaf] = functions.last_chunk::<4>()?;
    let right = std::iter::zip(callers, ["work", "outer", "inner"]).all(|(is, due)| *is == due || *is == INTERPRETER);
    (right && leaf.starts_with("leaf")).then(|| (*leaf).to_owned())
}

fn function(frame: &str) -> Option<&str> {
    let name = frame.strip_prefix("JS:")?.split(' ').next()?;
    Some(name.trim_start_matches(['*', '~', '^', '+', '\'']))
}

#[test]
fn node() {
    needs!("node");
    let script = source("split.js");
    let options = ["node", "--perf-basic-prof", "--no-turbo-inlining"];
    let mut command: Vec<&std::ffi::OsStr> = options.iter().map(|word| word.as_ref()).collect();
    command.extend([script.as_os_str(), "3".as_ref()]);
    // node leaves a log in its directory, and its perf map
    let shop = Workshop::new();
    let recorded = recording("node").directory(shop.path("")).command(&command);
    let pid = recorded.stdout.lines().find_map(|line| line.strip_prefix("READY "));
    std::fs::remove_file(format!("/tmp/perf-{}.map", pid.unwrap_or_default())).expect("a perf map");
    let truth = Truth::parse(&recorded.stdout);
    judge(&recorded, "node", "node", 2000, 0.99).end();
    let in_leaf =
        |stack: &&&Stack| stack.user().iter().any(|frame| function(frame).is_some_and(|f| f.starts_with("leaf")));
    let of_node = recorded.of("node");
    let leaves: Vec<&Stack> = of_node.iter().filter(in_leaf).copied().collect();
    let (all, of_leaves) = (total(of_node.iter().copied()), total(leaves.iter().copied()));
    let mut judge =
        Judge::among(&recorded, leaves, "node: JavaScript", RATE).chain_at_least(0.99).chains(&truth, javascript);
    judge.require(of_leaves * 10 > all * 7, format!("{of_leaves} of {all} samples in JavaScript leaves"));
    judge.end();
}
