//! C++: exceptions, virtual calls into a shared library.

use crate::support::build::Workshop;
use crate::support::folded::{End, Stack, total};
use crate::support::judge::Judge;
use crate::support::needs;
use crate::support::record::Recording;
use crate::support::workload::Truth;

/// Names without parameters and without what the compiler adds.
fn bare<'a>(frames: &[&'a str]) -> Vec<&'a str> {
    frames.iter().map(|frame| frame.split(['(', ' ']).next().unwrap_or(frame)).collect()
}

/// While the unwinder puts the handler's registers in place of its own, there is no stack that could be walked: a
/// handful of instructions of libgcc, in which a loop that only throws spends half a percent of its time.
#[test]
fn exceptions_thrown_and_caught() {
    needs!("c++");
    let shop = Workshop::new();
    let program = shop.cpp("exceptions", "exceptions.cpp", &[]);
    let recorded = Recording::at(999).command(&[program.as_os_str(), "3".as_ref()]);
    let truth = Truth::parse(&recorded.stdout);
    let chain = |stack: &Stack| {
        let frames = bare(&stack.from("main")?);
        let leaf = match frames.as_slice() {
            ["main", "first", "second", "third", "thrower", "leaf_before"] => "leaf_before",
            ["main", "first", "leaf_caught"] => "leaf_caught",
            [.., "leaf_before" | "leaf_caught"] => return None,
            _ => "",
        };
        Some(leaf.to_owned())
    };
    let judge = Judge::of(&recorded, "exceptions", "C++, exceptions", 999).root_at_least(0.99);
    let mut judge = judge.samples_for(truth.cpu).chains(&truth, chain);
    let stopped = || recorded.stacks.iter().filter(|stack| stack.end() == End::Stopped);
    let in_unwinder = stopped().filter(|stack| {
        let user = stack.user();
        user.last().is_some_and(|frame| frame.starts_with("_Unwind_") || *frame == "[libgcc_s.so.1]")
    });
    let elsewhere = total(stopped()) - total(in_unwinder);
    judge.require(elsewhere <= 4, format!("{elsewhere} stacks stopped outside the unwinder"));
    judge.end();
}

#[test]
fn virtual_calls_into_a_library() {
    needs!("c++");
    let shop = Workshop::new();
    let library = shop.cpp("libshapes.so", "shapes.cpp", &["-shared", "-fPIC"]);
    let runpath = format!("-Wl,-rpath,{}", shop.path("").display());
    let library = library.to_str().expect("UTF-8");
    let program = shop.cpp("virtual", "virtual.cpp", &["-Wl,--no-as-needed", library, &runpath]);
    for (frequency, seconds) in [(99, "5"), (999, "3")] {
        let recorded = Recording::at(frequency).command(&[program.as_os_str(), seconds.as_ref()]);
        let truth = Truth::parse(&recorded.stdout);
        let chain = |stack: &Stack| {
            let frames = bare(&stack.from("main")?);
            let leaf = match frames.as_slice() {
                ["main", "measure", "Circle::area", "leaf_circle"] => "leaf_circle",
                ["main", "measure", "Square::area", "leaf_square"] => "leaf_square",
                ["main", "measure", "Pentagon::area", "leaf_pentagon"] => "leaf_pentagon",
                ["main"] | ["main", "measure"] | ["main", "measure", _] | ["main", "clock_gettime", ..] => "",
                _ => return None,
            };
            Some(leaf.to_owned())
        };
        let judge = Judge::of(&recorded, "virtual", "C++, virtual calls", frequency);
        judge.samples_for(truth.cpu).chains(&truth, chain).end();
    }
}
