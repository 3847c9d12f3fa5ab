//! The interpreters of a process, waited for and reported.

use std::time::Duration;

use python::eval_loop::EvalLoopRefusal;
use python::interpreters::{Found, Process, Threads};
use python::refusal::Step;
use python::{Noted, Refusal};

use super::report;

/// An interpreter that is not ready is looked at again, so often, and after this time.
const TRIES: u32 = 10;
const PAUSE: Duration = Duration::from_millis(100);

/// Finds and examines the interpreters of a process, and proves them on these threads. If none is ready but one may be soon, it
/// is waited for a little.
pub(super) fn find(process: &Process<'_>, threads: &mut Threads) -> Vec<Found> {
    let mut found = process.find(threads);
    for _ in 1..TRIES {
        let may_be_soon = |found: &Found| found.result.as_ref().is_err_and(Refusal::may_pass);
        if found.iter().any(|found| found.result.is_ok()) || !found.iter().any(may_be_soon) {
            break;
        }
        std::thread::sleep(PAUSE);
        found = process.find(threads);
    }
    found
}

pub(super) fn report(found: &Found) -> report::Interpreter {
    let proven = found.result.as_ref();
    let refusal = proven.err().map(|refusal| report::Refusal {
        name: refusal.name(),
        step: refusal.step().name(),
        cause: refusal.to_string(),
        remedy: refusal.remedy().to_owned(),
    });
    let eval_loop = proven.ok().map(|interpreter| interpreter.eval_loop.as_ref());
    let noted = eval_loop.and_then(Result::ok).map(|eval_loop| eval_loop.noted());
    report::Interpreter {
        runtime: found.runtime,
        version: found.version.map(|version| version.to_string()),
        file: found.path.clone(),
        build_id: found.build_id.map(|id| id.to_string()),
        steps: found.steps.iter().cloned().chain(noted).map(step).collect(),
        refusal,
        not_recorded: eval_loop.and_then(Result::err).map(not_recorded),
    }
}

fn step(noted: Noted) -> report::Step {
    report::Step { name: noted.step.name(), result: noted.result, evidence: noted.evidence }
}

/// Without its eval loop it is not known where among native frames Python frames belong.
fn not_recorded(refusal: &EvalLoopRefusal) -> report::Refusal {
    report::Refusal {
        name: refusal.name(),
        step: Step::EvalLoop.name(),
        cause: refusal.to_string(),
        remedy: refusal.remedy().to_owned(),
    }
}
