//! What cannot be proven is refused by name, and says what to do.

use crate::explained::explain;
use crate::support::{programs, skip};

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
