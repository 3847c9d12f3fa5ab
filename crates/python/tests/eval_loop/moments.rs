//! Moments: where an eval loop's code links and unlinks frames. That they are the right ones is shown by stepping through it.

use abi::python::{NONE, run};
use python::eval_loop::{EvalLoop, Links, Moment, Truth};
use python::file::PythonFile;

use crate::code_support::builds;
use crate::stripped;

/// The moments of a file's eval loop, and by which words it links frames.
fn of(data: &[u8]) -> Option<(EvalLoop, Links)> {
    let file = PythonFile::parse(data).ok()?;
    let facts = python::facts::PythonFacts::of(&file, file.identify()?);
    let eval_loop = facts.eval_loop.ok()?;
    let links = eval_loop.links?;
    Some((EvalLoop::clone(&eval_loop), links))
}

/// Sorted, disjoint, each within a piece, one at the entry, and of the kinds that the version has.
fn check_form(eval_loop: &EvalLoop, links: Links) {
    let moments = &eval_loop.moments;
    assert!(moments.iter().all(|moment| moment.begin < moment.end));
    assert!(moments.windows(2).all(|pair| pair[0].end <= pair[1].begin), "{moments:x?}");
    let is_within = |moment: &Moment| eval_loop.at(moment.begin).is_some() && eval_loop.at(moment.end - 1).is_some();
    assert!(moments.iter().all(is_within), "{moments:x?}");
    for moment in moments {
        assert_eq!(eval_loop.truth_at(moment.begin), Some(moment.what));
        assert_eq!(eval_loop.truth_at(moment.end - 1), Some(moment.what));
        assert_ne!(eval_loop.truth_at(moment.end).map(|_| moment.end), Some(moment.begin));
    }
    let unlinked = moments.iter().filter(|moment| moment.what == Truth::Unlinked).count();
    match (links.run, links.cframe_current) {
        // the entry, and at least one way out
        (run::EVERY, _) => assert!(unlinked >= 2 && unlinked == moments.len(), "{moments:x?}"),
        (_, NONE) => assert_eq!(unlinked, 0, "{moments:x?}"),
        _ => assert_eq!(unlinked, 1, "{moments:x?}"),
    }
}

#[test]
fn every_interpreter_has_those_of_its_version() {
    let (mut found, mut count) = (0, 0);
    for build in builds() {
        let Some((eval_loop, links)) = of(&build.data) else { continue };
        println!("{}: {} moments", build.path.display(), eval_loop.moments.len());
        check_form(&eval_loop, links);
        (found, count) = (found + 1, count + eval_loop.moments.len());
        // code says it, with or without symbols
        if let Some((without, _)) = stripped(&build.data).as_deref().and_then(of) {
            assert_eq!(without.moments, eval_loop.moments, "{} without its symbols", build.path.display());
        }
    }
    println!("{count} moments in {found} files");
    if found == 0 {
        println!("SKIPPED: no interpreter here");
    }
}
