//! Libraries that come and go, hundreds a second, and take each other's place.

use crate::storm::Watched;
use crate::support::build::Workshop;
use crate::support::folded::{End, Stack, total};
use crate::support::judge::{Judge, list};
use crate::support::needs;
use crate::support::workload::Truth;

/// Names of the libraries, each with the size of its frames. The file of one is larger than that of another only by that
/// of its code, so all fit into the same gap.
const LIBRARIES: [(&str, &str); 4] = [("red", "500"), ("blue", "3000"), ("green", "40"), ("grey", "1500")];

/// The library whose function a frame is.
fn library(frame: &str) -> Option<usize> {
    LIBRARIES.iter().position(|(name, _)| frame.strip_prefix(name).is_some_and(|rest| rest.starts_with('_')))
}

/// Whether it has a frame of a library that was not there at that time, as the thread's name says.
fn is_wrong(stack: &Stack) -> bool {
    let there = (0..LIBRARIES.len()).find(|number| stack.parts[1] == format!("run_{number}"));
    stack.user().iter().filter_map(|frame| library(frame)).any(|library| there != Some(library))
}

/// The library that is called, if all callers are there.
fn chain(stack: &Stack) -> Option<String> {
    if is_wrong(stack) {
        return None;
    }
    let Some(run) = stack.parts[1].strip_prefix("run_") else {
        return (stack.end() == End::Whole).then(String::new);
    };
    let frames = stack.from("churn")?;
    let (colour, _) = LIBRARIES.get(run.parse::<usize>().ok()?)?;
    let expected = ["outer", "inner", "leaf"].map(|part| format!("{colour}_{part}"));
    let right = match frames.as_slice() {
        ["churn", own, "entry", calls @ ..] if *own == stack.parts[1] => {
            calls.len() <= expected.len() && calls.iter().zip(&expected).all(|(call, expected)| call == expected)
        }
        ["churn", own, other @ ..] if *own == stack.parts[1] => !other.contains(&"entry"),
        // before and after the call
        ["churn"] | ["churn", "prctl", ..] => true,
        _ => false,
    };
    right.then(|| if frames.len() > 2 { stack.parts[1].clone() } else { String::new() })
}

#[test]
fn hundreds_a_second_at_the_same_addresses() {
    needs!("cc");
    let shop = Workshop::new();
    let churn = shop.c("churn", "churn.c", &["-pthread"]);
    let mut command = vec![churn, "6".into(), "2000".into()];
    for (name, space) in LIBRARIES {
        let options = [&format!("-DCOLOUR={name}"), &format!("-DSPACE={space}"), "-shared", "-fPIC"];
        command.push(shop.c(&format!("lib{name}.so"), "colour.c", &options));
    }
    let recorded = Watched::command(999, &command).finish();
    let truth = Truth::parse(&recorded.stdout);
    let mut judge = Judge::of(&recorded, "churn", "C, dlopen/dlclose storm", 999).chains(&truth, chain);
    let wrong: Vec<&Stack> = recorded.stacks.iter().filter(|stack| is_wrong(stack)).collect();
    judge.require(wrong.is_empty(), format!("frames of another library:\n{}", list(&wrong)));
    // there may be more: interrupts for changed page tables are sampled, and are nobody's CPU time
    let (samples, expected) = (total(recorded.of("churn")), truth.cpu * 999.0);
    let bound = 5.0 * expected.sqrt() + (0.05 + recorded.stolen) * 999.0;
    judge.require(samples as f64 >= expected - bound, format!("{samples} samples, {expected:.0} -{bound:.0} expected"));
    let (loads, same) = (truth.number("loads"), truth.number("same"));
    judge.require(same > 0.8 * loads, format!("{same} of {loads} loads at the same address"));
    println!(
        "LIVE dlopen/dlclose storm: {:.0} a second of CPU time, {same} of {loads} at the same address",
        loads / truth.cpu
    );
    judge.end();
}
