//! `wholestack explain` on every interpreter and on programs that have one, compared with what they say of themselves.
//!
//! `cargo xtask interpreters` gets what the distribution does not have. What is missing is said (`SKIPPED: ...`).

#[path = "../common/mod.rs"]
mod common;
mod support;

<<<<<<< HEAD
mod explained;
mod harmless;
mod programs;
mod refused;
mod stacks;
=======
use support::embedded::{Embedding, LINKINGS, MODES};
use support::{interpreters, programs, skip};

const GROUPS: [&str; 5] = ["interpreters", "gil", "busy", "signal", "fork"];

#[test]
fn every_interpreter_parks() {
    skip(&interpreters::missing());
    for interpreter in interpreters::all() {
        let parked = interpreter.park(&[]);
        let about = parked.about.as_ref().expect("a version");
        println!("{} {}: {} threads", interpreter.name, about.version, parked.threads.len());
        assert!(about.version.starts_with(&format!("3.{}.", interpreter.minor)), "{}", about.version);
        assert!(parked.threads.len() > 70 && parked.threads.iter().all(|thread| thread.pid == parked.pid));
        assert!(parked.end().success());
        for group in GROUPS {
            assert!(interpreter.park(&[group]).end().success(), "{group}");
        }
    }
}

#[test]
fn every_embedding_parks() {
    for interpreter in programs::embeddable() {
        for linking in LINKINGS {
            let embedding = match Embedding::build(&interpreter, linking) {
                Ok(embedding) => embedding,
                Err(reason) => {
                    skip(&[reason]);
                    continue;
                }
            };
            for mode in MODES {
                println!("{} {linking:?} {mode}: {} threads", interpreter.name, embedding.park(mode).threads.len());
            }
            let waiting = embedding.wait();
            let pid = waiting.pid();
            assert_eq!(waiting.go().pid, pid);
        }
    }
}

#[test]
fn every_program_parks() {
    for program in programs::EXPLAINED.iter().chain(programs::REFUSED) {
        match (program.start)() {
            Ok(parked) => println!("{}: {} threads", program.name, parked.threads.len()),
            Err(reason) => skip(&[reason]),
        }
    }
    for interpreter in interpreters::all() {
        match programs::with_keys(&interpreter, &["worker"]) {
            Ok(parked) => assert_eq!(parked.threads.len(), 3, "{}", interpreter.name),
            Err(reason) => skip(&[reason]),
        }
    }
}
>>>>>>> b47fcd4 (Park what embeds Python, too, and say what could not be fetched)
