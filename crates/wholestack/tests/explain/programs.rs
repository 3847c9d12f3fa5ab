//! Programs that are or have an interpreter: found by what their files are.

use crate::explained::{Report, explain};
use crate::support::embedded::{Embedding, LINKINGS, Linking};
use crate::support::parked::Parked;
use crate::support::{interpreters, programs, skip};

fn check(name: &str, parked: &Parked) -> Report {
    let report = explain(parked.pid);
    assert!(!report.interpreters.is_empty(), "{name}: no interpreter found");
    let wrong = report.mismatches(parked);
    // an extension module may bring along a libpython that nobody uses
    let is_idle = |name: &str| name == "not-initialised" && report.interpreters.len() > 1;
    let refusals: Vec<_> = report.refusals().into_iter().filter(|refusal| !is_idle(&refusal.name)).collect();
    assert!(wrong.is_empty() && refusals.is_empty(), "{name}: {refusals:?}\n{}", wrong.join("\n"));
    let proven = report.interpreters.iter().filter(|interpreter| interpreter.refusal.is_none());
    let lacking: Vec<_> = proven.filter(|interpreter| interpreter.eval_loop().is_none()).collect();
    assert!(lacking.is_empty(), "{name}: {lacking:?}");
    report
}

#[test]
fn whatever_it_is_called_and_wherever_it_lies() {
    for program in programs::EXPLAINED {
        match (program.start)() {
            Ok(parked) => _ = check(program.name, &parked),
            Err(reason) => skip(&[reason]),
        }
    }
}

/// A key of 32 or more lies in another block.
#[test]
fn keys_beyond_the_first_block() {
    for interpreter in interpreters::all() {
        match programs::with_keys(&interpreter, &["worker", "deep"]) {
            Ok(parked) => {
                let report = check(&interpreter.name, &parked);
                let way = report.interpreters[0].steps.iter().find(|step| step.name == "way").expect("a way");
                let key = way.result.strip_prefix("value of key ").and_then(|key| key.parse::<u32>().ok());
                // 3.15 needs no key
                assert!(key.is_none_or(|key| key >= 32), "{}: {}", interpreter.name, way.result);
            }
            Err(reason) => skip(&[reason]),
        }
    }
}

#[test]
fn embedded_in_c_programs() {
    for interpreter in programs::embeddable() {
        for linking in LINKINGS {
            let embedding = match Embedding::build(&interpreter, linking) {
                Ok(embedding) => embedding,
                Err(reason) => {
                    skip(&[reason]);
                    continue;
                }
            };
            let name = format!("{} {linking:?}", interpreter.name);
            let parked = embedding.park("plain");
            if linking == Linking::Stripped {
                let report = explain(parked.pid);
                let names: Vec<&str> = report.refusals().iter().map(|refusal| refusal.name.as_str()).collect();
                // before 3.10 nothing in the file says that it is Python
                assert!(names == ["no-symbol"] || (names.is_empty() && interpreter.minor < 10), "{name}: {names:?}");
                assert!(report.threads.iter().all(|thread| thread.python.is_empty()), "{name}");
                continue;
            }
            check(&name, &parked);
        }
    }
}

/// Finalised and initialised again.
#[test]
fn a_second_life() {
    for interpreter in programs::embeddable() {
        match Embedding::build(&interpreter, Linking::Shared) {
            Ok(embedding) => _ = check(&interpreter.name, &embedding.park("again")),
            Err(reason) => skip(&[reason]),
        }
    }
}

/// A program that loads Python, or initialises it, when it runs already.
#[test]
fn python_that_comes_later() {
    for interpreter in programs::embeddable() {
        for linking in [Linking::Shared, Linking::Loaded] {
            let Ok(embedding) = Embedding::build(&interpreter, linking) else { continue };
            let name = format!("{} {linking:?}", interpreter.name);
            let waiting = embedding.wait();
            let early = explain(waiting.pid());
            match linking {
                Linking::Shared => {
                    let names: Vec<&str> = early.refusals().iter().map(|refusal| refusal.name.as_str()).collect();
                    assert_eq!(names, ["not-initialised"], "{name}");
                }
                _ => assert!(early.interpreters.is_empty(), "{name}: {:?}", early.interpreters),
            }
            check(&name, &waiting.go());
        }
    }
}
