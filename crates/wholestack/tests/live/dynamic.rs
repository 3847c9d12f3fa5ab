//! The dynamic linker at work: lazy binding, libraries that come late, come and go, and take each other's place.

use crate::support::build::Workshop;
use crate::support::folded::Stack;
use crate::support::judge::Judge;
use crate::support::needs;
use crate::support::record::Recording;
use crate::support::workload::Truth;

/// `LD_BIND_NOT` makes every call through the PLT a first call.
#[test]
fn lazy_binding() {
    needs!("cc");
    let shop = Workshop::new();
    let library = shop.c("liblazy.so", "lazy_library.c", &["-shared", "-fPIC"]);
    let runpath = format!("-Wl,-rpath,{}", shop.path("").display());
    let library = library.to_str().expect("UTF-8");
    let program = shop.c("lazy", "lazy.c", &["-Wl,-z,lazy", "-Wl,--no-as-needed", library, &runpath]);
    let recording = Recording::at(999).variable("LD_BIND_NOT", "1");
    let recorded = recording.command(&[program.as_os_str(), "3".as_ref()]);
    let truth = Truth::parse(&recorded.stdout);
    let in_resolver = |stack: &Stack| stack.user().iter().any(|frame| frame.starts_with("_dl_runtime_resolve"));
    let chain = |stack: &Stack| {
        let frames = stack.from("main")?;
        match frames.as_slice() {
            ["main", "bound", "call_all", ..] if in_resolver(stack) => Some("resolver".to_owned()),
            ["main", "bound", "call_all", ..] | ["main"] | ["main", "bound" | "clock_gettime", ..] => {
                Some(String::new())
            }
            _ => None,
        }
    };
    let mut judge = Judge::of(&recorded, "lazy", "C, lazy binding", 999).samples_for(truth.cpu).chains(&truth, chain);
    let resolver: u64 = recorded.stacks.iter().filter(|stack| in_resolver(stack)).map(|stack| stack.count).sum();
    judge.require(resolver >= 1000, format!("{resolver} samples in the resolver"));
    judge.end();
}

/// The functions of the library that runs, from the one that was called from `main` on.
fn coloured(stack: &Stack) -> Option<String> {
    let frames = stack.from("main")?;
    let what = match frames.as_slice() {
        ["main", "run_a", "entry", "red_outer", "red_inner", "red_leaf"] => "a",
        ["main", "run_b", "entry", "blue_outer", "blue_inner", "blue_leaf"] => "b",
        ["main", "own", "own_leaf"] => "own",
        ["main", "run_a", "clock_gettime", ..] | ["main", "run_a"] => "a",
        ["main", "run_b", "clock_gettime", ..] | ["main", "run_b"] => "b",
        ["main", "own" | "load" | "dlclose" | "clock_gettime", ..] | ["main"] => "",
        ["main", "run_a", "entry", calls @ ..] if calls.iter().all(|call| call.starts_with("red_")) => "a",
        ["main", "run_b", "entry", calls @ ..] if calls.iter().all(|call| call.starts_with("blue_")) => "b",
        _ => return None,
    };
    Some(what.to_owned())
}

fn libraries(shop: &Workshop) -> [std::path::PathBuf; 2] {
    let library = |colour: &str, space: &str| {
        let options = [&format!("-DCOLOUR={colour}"), &format!("-DSPACE={space}"), "-shared", "-fPIC"];
        shop.c(&format!("lib{colour}.so"), "colour.c", &options)
    };
    [library("red", "500"), library("blue", "9000")]
}

fn alternate(phase_ms: &str) {
    let shop = Workshop::new();
    let program = shop.c("host", "host.c", &[]);
    let [red, blue] = libraries(&shop);
    let mut command = vec![program.as_os_str(), "3".as_ref(), "alternate".as_ref(), phase_ms.as_ref()];
    command.extend([red.as_os_str(), blue.as_os_str()]);
    let recorded = Recording::at(999).command(&command);
    let truth = Truth::parse(&recorded.stdout);
    let name = format!("C, dlopen/dlclose, {phase_ms} ms");
    let mut judge = Judge::of(&recorded, "host", &name, 999).samples_for(truth.cpu).chains(&truth, coloured);
    let (loads, same) = (truth.number("loads"), truth.number("same"));
    judge.require(loads > 10.0 && same > 0.8 * loads, format!("{same} of {loads} loads at the same address"));
    judge.end();
}

#[test]
fn two_libraries_in_turn_at_one_address() {
    needs!("cc");
    alternate("100");
}

#[test]
fn two_libraries_in_fast_turn_at_one_address() {
    needs!("cc");
    alternate("5");
}

#[test]
fn library_loaded_long_after_the_start() {
    needs!("cc");
    let shop = Workshop::new();
    let program = shop.c("host", "host.c", &[]);
    let [red, _] = libraries(&shop);
    let recorded = Recording::at(999).command(&[program.as_os_str(), "3".as_ref(), "late".as_ref(), red.as_os_str()]);
    let truth = Truth::parse(&recorded.stdout);
    Judge::of(&recorded, "host", "C, late library", 999).samples_for(truth.cpu).chains(&truth, coloured).end();
}
