//! A thread that stays in one stack, but for the last few frames.

use super::label::{Label, Python};
use super::truth::{Place, Tail, Thread};

/// Whether the frames are the thread's, with one of the tails. Where markers say that frames are missing, those that are
/// there must be of it, and in order.
pub(crate) fn judge(frames: &[Label], thread: &Thread, tails: &[Tail], with_lines: bool) -> Result<(), String> {
    let python: Vec<&Python> = super::verdict::python(frames).collect();
    let is_cut = super::verdict::is_cut(frames);
    let right = tails.iter().any(|tail| {
        let is_open = tail.last().is_some_and(Option::is_none);
        // without a file and without its line, a function looks like any
        let is_shown = |place: &&Place| with_lines || !place.file.is_empty();
        let expected: Vec<&Place> = thread.chain.iter().chain(tail.iter().flatten()).filter(is_shown).collect();
        let shown = if is_open { &python[..python.len().min(expected.len())] } else { python.as_slice() };
        let fit = || std::iter::zip(&expected, shown).all(|(place, shown)| place.has(shown, with_lines));
        match is_cut {
            true if is_open => {
                let known = |shown: &&Python| expected.iter().any(|place| place.has(shown, with_lines));
                let known: Vec<&Python> = python.iter().copied().filter(known).collect();
                is_within(&known, &expected, with_lines)
            }
            true => is_within(shown, &expected, with_lines),
            false => expected.len() == shown.len() && fit(),
        }
    });
    right.then_some(()).ok_or_else(|| difference(&python, thread, with_lines))
}

/// Whether all are of the expected, in their order.
fn is_within(shown: &[&Python], expected: &[&Place], with_lines: bool) -> bool {
    let mut expected = expected.iter();
    shown.iter().all(|shown| expected.any(|place| place.has(shown, with_lines)))
}

fn difference(python: &[&Python], thread: &Thread, with_lines: bool) -> String {
    let pairs = std::iter::zip(&thread.chain, python);
    let same = pairs.take_while(|(place, shown)| place.has(shown, with_lines)).count();
    let is = python.get(same).map_or_else(|| "nothing".to_owned(), |shown| format!("{shown:?}"));
    let due = thread.chain.get(same).map_or_else(|| "a tail".to_owned(), |place| format!("{place:?}"));
    format!("frame {same} is {is}, not {due}")
}
