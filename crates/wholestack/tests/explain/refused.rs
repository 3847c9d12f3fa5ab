//! What cannot be proven is refused by name, and says what to do.

use crate::explained::explain;
use crate::support::{programs, skip};

/// Where Python frames belong among native ones is not known then; they are shown by themselves.
#[test]
fn an_eval_loop_that_is_not_found() {
    let parked = match programs::without_eval_loop() {
        Ok(parked) => parked,
        Err(reason) => return skip(&[reason]),
    };
    let report = explain(parked.pid);
    let [found] = report.interpreters.as_slice() else { panic!("{:?}", report.interpreters) };
    assert!(found.refusal.is_none() && found.eval_loop().is_none(), "{found:?}");
    let refusal = found.not_recorded.as_ref().expect("it is said");
    assert_eq!((refusal.name.as_str(), refusal.step.as_str()), ("eval-loop-no-symbol", "eval loop"));
    assert!(!refusal.cause.is_empty() && !refusal.remedy.is_empty(), "{refusal:?}");
    let wrong = report.mismatches(&parked);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn what_is_not_walked_says_so() {
    for program in programs::REFUSED {
        let parked = match (program.start)() {
            Ok(parked) => parked,
            Err(reason) => {
                skip(&[reason]);
                continue;
            }
        };
        let report = explain(parked.pid);
        let refusals = report.refusals();
        assert_eq!(refusals.len(), 1, "{}: {:?}", program.name, report.interpreters);
        let (name, step) = (refusals[0].name.as_str(), refusals[0].step.as_str());
        let expected = match program.name {
            "python2.7" => ("version-not-measured", "layout"),
            _ => ("other-implementation", "file"),
        };
        assert_eq!((name, step), expected, "{}", program.name);
        assert!(!refusals[0].cause.is_empty() && !refusals[0].remedy.is_empty(), "{}", program.name);
        assert!(report.threads.iter().all(|thread| thread.python.is_empty()), "{}", program.name);
        assert!(report.threads.iter().any(|thread| thread.native.is_some()), "{}: still native", program.name);
    }
}
