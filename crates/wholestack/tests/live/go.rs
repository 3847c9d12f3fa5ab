//! Go without cgo: goroutines.

use crate::support::build::Workshop;
use crate::support::folded::Stack;
use crate::support::judge::Judge;
use crate::support::needs;
use crate::support::record::Recording;
use crate::support::workload::Truth;

fn chain(stack: &Stack) -> Option<String> {
    let frames = stack.user();
    let leaf = [("main.leaf60", "sixty"), ("main.leaf30", "thirty"), ("main.leaf10", "ten")];
    let leaf = leaf.into_iter().find(|(leaf, _)| frames.contains(leaf));
    let Some((leaf, kind)) = leaf else {
        // the scheduler, the garbage collector
        return Some(String::new());
    };
    let frames = stack.from("main.main.func1")?;
    match frames.as_slice() {
        ["main.main.func1", "main.drive", wrapper, work, called, ..] => {
            let right = *wrapper == format!("main.(*{kind}).work") && *work == format!("main.{kind}.work");
            (right && *called == leaf).then(|| leaf.trim_start_matches("main.").to_owned())
        }
        _ => None,
    }
}

#[test]
fn goroutines() {
    needs!("go");
    let shop = Workshop::new();
    let program = shop.go("goroutines", "goroutines.go");
    for (frequency, seconds) in [(99, "5"), (999, "3")] {
        let recorded = Recording::at(frequency).command(&[program.as_os_str(), seconds.as_ref()]);
        let truth = Truth::parse(&recorded.stdout);
        let judge = Judge::of(&recorded, "goroutines", "Go", frequency);
        judge.samples_for(truth.cpu).chains(&truth, chain).end();
    }
}
