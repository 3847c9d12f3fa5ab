//! Interpreters and programs that have one are explained, and compared with what they say of themselves.
//!
//! `cargo xtask interpreters` gets what the distribution does not have. What is missing is said (`SKIPPED: ...`).

mod support;

use support::embedded::{Embedding, LINKINGS, Linking};
use support::{interpreters, programs, skip};

#[test]
fn every_interpreter_parks() {
    skip(&interpreters::missing());
    for interpreter in interpreters::all() {
        let start = std::time::Instant::now();
        let parked = interpreter.park(&[]);
        let about = parked.about.as_ref().expect("a version");
        println!(
            "{:<40} {:<8} {:>3} threads, {:?}, without {:?}",
            interpreter.name,
            about.version,
            parked.threads.len(),
            start.elapsed(),
            about.left_out
        );
        assert!(about.version.starts_with(&format!("3.{}.", interpreter.minor)), "{}", about.version);
        assert!(parked.threads.len() > 70 && parked.threads.iter().all(|thread| thread.pid == parked.pid));
        assert!(parked.end().success());
    }
}

#[test]
fn every_group_parks() {
    for interpreter in interpreters::all() {
        for group in ["interpreters", "gil", "busy", "signal", "fork"] {
            let parked = interpreter.park(&[group]);
            println!("{:<40} {group} {}", interpreter.name, parked.threads.len());
            assert!(parked.end().success());
        }
    }
}

#[test]
fn every_embedding_parks() {
    for interpreter in programs::embeddable() {
        for linking in LINKINGS {
            for mode in ["plain", "again", "beside", "within"] {
                match Embedding::build(&interpreter, linking) {
                    Ok(embedding) => {
                        let parked = embedding.park(mode);
                        println!("{} {linking:?} {mode}: {} threads", interpreter.name, parked.threads.len());
                    }
                    Err(reason) => skip(&[reason]),
                }
            }
        }
        let embedding = Embedding::build(&interpreter, Linking::Loaded).unwrap();
        let waiting = embedding.wait();
        let pid = waiting.pid();
        assert_eq!(waiting.go().pid, pid);
    }
}

#[test]
fn every_program_parks() {
    for program in programs::EXPLAINED.iter().chain(programs::REFUSED) {
        let start = std::time::Instant::now();
        match (program.start)() {
            Ok(parked) => println!("{}: {} threads, {:?}", program.name, parked.threads.len(), start.elapsed()),
            Err(reason) => skip(&[reason]),
        }
    }
    for interpreter in interpreters::all() {
        match programs::with_keys(&interpreter, &["worker"]) {
            Ok(parked) => println!("{} with keys: {} threads", interpreter.name, parked.threads.len()),
            Err(reason) => skip(&[reason]),
        }
    }
}
