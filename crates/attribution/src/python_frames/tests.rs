//! Stacks of eval loops, as the walk shows those of 3.10 and earlier, and as they are.

use abi::stop::Stop;

use super::*;

const OBJECT: u32 = 7;
const EVAL_LOOPS: u64 = 0x1000;

/// What a thread runs, innermost first.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Native {
    /// Any function.
    Other,
    /// An eval loop.
    EvalLoop,
}

/// The word of a native frame; eval loops are called from different places.
fn native(kind: Native, index: usize) -> u64 {
    let flags = if index == 0 { flag::EXACT } else { 0 };
    let begin = if kind == Native::EvalLoop { EVAL_LOOPS } else { 0x9000 };
    word::object(flags, OBJECT, begin + index as u64 * 16)
}

fn frame(id: u64) -> [u64; 2] {
    [word::python(0x5000 + id * 0x100), word::python_at(id as u32, 3 * id as u32)]
}

fn root() -> u64 {
    word::end(Stop::Root as u8, OBJECT, 0)
}

/// The frames of eval loops: the innermost one has none if it is unlinked.
fn truth(natives: &[Native], unlinked: bool, keeps: bool) -> Vec<u64> {
    let mut words = Vec::new();
    let (mut id, mut lacking) = (0, unlinked);
    for (index, kind) in natives.iter().enumerate() {
        let is_shown = match kind {
            Native::Other => true,
            Native::EvalLoop if lacking => {
                lacking = false;
                true
            }
            Native::EvalLoop => {
                words.extend(frame(id));
                id += 1;
                keeps
            }
        };
        words.extend(is_shown.then(|| native(*kind, index)));
    }
    words.push(root());
    words
}

/// The same as the walk has it: each eval loop takes the next frame of the chain.
fn walked(natives: &[Native], unlinked: bool, keeps: bool) -> Vec<u64> {
    let eval_loops = natives.iter().filter(|kind| **kind == Native::EvalLoop).count();
    let chain = eval_loops - usize::from(unlinked);
    let innermost = natives.iter().position(|kind| *kind == Native::EvalLoop).expect("an eval loop");
    let mut words = Vec::new();
    let mut id = 0;
    for (index, kind) in natives.iter().enumerate() {
        let is_lacking = id == chain;
        match kind {
            Native::EvalLoop if is_lacking => words.push(word::python_lacks(native(*kind, innermost))),
            Native::EvalLoop => {
                words.extend(frame(id as u64));
                id += 1;
            }
            Native::Other => {}
        }
        words.extend((*kind == Native::Other || is_lacking || keeps).then(|| native(*kind, index)));
    }
    words.push(root());
    words
}

/// All stacks of up to seven native frames with an eval loop.
fn stacks() -> impl Iterator<Item = Vec<Native>> {
    let of_length = |length: u32| (1..1u32 << length).map(move |bits| (length, bits));
    (1..=7).flat_map(of_length).map(|(length, bits)| {
        let kind = |index| if bits >> index & 1 != 0 { Native::EvalLoop } else { Native::Other };
        (0..length).map(kind).collect()
    })
}

#[test]
fn frames_are_put_where_they_belong() {
    for (natives, keeps) in stacks().flat_map(|natives| [(natives.clone(), false), (natives, true)]) {
        let words = walked(&natives, false, keeps);
        assert_eq!(words, truth(&natives, false, keeps));
        assert_eq!(in_place(&words, keeps), None);
        let words = walked(&natives, true, keeps);
        let expected = truth(&natives, true, keeps);
        assert_eq!(in_place(&words, keeps), Some(expected), "{natives:?} {keeps}");
    }
}

/// The eval loop may have been interrupted by a signal, whose handler's frames are further in.
#[test]
fn an_interrupted_eval_loop_stays_one() {
    let handler = word::object(flag::EXACT, OBJECT, 0x9000);
    let eval_loop = word::object(flag::EXACT | flag::BY_FRAME_POINTER, OBJECT, EVAL_LOOPS);
    let [code, at] = frame(1);
    let held = word::object(0, OBJECT, EVAL_LOOPS + 0x80);
    let words = [handler, code, at, word::python_lacks(eval_loop), held, root()];
    assert_eq!(in_place(&words, false), Some(vec![handler, eval_loop, code, at, root()]));
}

/// A part of an eval loop stays where it is.
#[test]
fn what_stands_before_the_eval_loop_that_lacks_its_frame_stays() {
    let part = word::object(0, OBJECT, 0x2000);
    let (inner, held) = (native(Native::EvalLoop, 0), native(Native::EvalLoop, 2));
    let [code, at] = frame(1);
    let words = [code, at, part, word::python_lacks(inner), held, root()];
    assert_eq!(in_place(&words, false), Some(vec![inner, part, code, at, root()]));
}

/// Words that were left out are not bridged: no frame moves over them.
#[test]
fn no_frame_moves_over_words_that_were_left_out() {
    let natives = [Native::EvalLoop, Native::Other].repeat(20);
    let (words, whole) = (walked(&natives, true, false), truth(&natives, true, false));
    for (begin, end) in (1..words.len()).flat_map(|end| (1..end).map(move |begin| (begin, end))) {
        let lacks = words.iter().position(|word| matches!(Word::decode(*word), Word::PythonLacks { .. }));
        if lacks.is_none_or(|at| at < end) {
            continue;
        }
        let cut = word::cut((end - begin) as u64);
        let with_cut: Vec<u64> = words[..begin].iter().chain([&cut]).chain(&words[end..]).copied().collect();
        let moved = in_place(&with_cut, false).expect("moved");
        let at = moved.iter().position(|word| *word == cut).expect("still there");
        // what is there before and behind is there in the truth
        assert_eq!(moved[..at], whole[..at], "{begin}..{end}");
        let behind: Vec<u64> = moved[at + 1..].to_vec();
        let same = |from: usize| {
            let mut at = 0;
            for word in &whole[from..] {
                // a frame of which something was left out is left out, too
                match behind.get(at) {
                    Some(shown) if shown == word => at += 1,
                    _ if at == 0 || matches!(Word::decode(*word), Word::Python(_) | Word::PythonAt { .. }) => {}
                    _ => return false,
                }
            }
            at == behind.len()
        };
        let held = native(Native::EvalLoop, natives.len() - 2);
        let is_native = behind.contains(&held);
        assert!(is_native || (0..whole.len()).any(same), "{begin}..{end}: {behind:x?}");
    }
}

#[test]
fn what_cannot_be_told_is_not_shown() {
    let unproven = word::python_fault(Fault::Unproven as u8);
    let other = native(Native::Other, 1);
    let ([a, a_at], [b, b_at]) = (frame(1), frame(2));
    let words = [a, a_at, other, b, b_at, unproven, root()];
    assert_eq!(in_place(&words, false), Some(vec![unproven, other, unproven, root()]));
    // two eval loops without a frame cannot be
    let lacks = word::python_lacks(native(Native::EvalLoop, 0));
    let (one, two) = (native(Native::EvalLoop, 4), native(Native::EvalLoop, 5));
    let words = [a, a_at, lacks, one, lacks, two, root()];
    assert_eq!(in_place(&words, false), Some(vec![unproven, one, two, root()]));
    // a fault on the way stays
    let fault = word::python_fault(Fault::FrameUnreadable as u8);
    let words = [a, a_at, fault, one, unproven, root()];
    assert_eq!(in_place(&words, false), Some(vec![unproven, fault, one, root()]));
}

#[test]
fn any_words_are_taken() {
    let all =
        [frame(1)[0], frame(2)[1], word::python_lacks(0), word::cut(3), native(Native::Other, 1), root(), u64::MAX];
    let pick = |number: usize| (0..6).map(move |digit| all[number / 7usize.pow(digit) % 7]).collect::<Vec<_>>();
    for words in (0..7usize.pow(6)).step_by(3).map(pick) {
        for keeps in [false, true] {
            let moved = in_place(&words, keeps).unwrap_or(words.clone());
            assert!(moved.len() <= words.len() + 1);
        }
    }
}

#[test]
fn numbers_are_grouped() {
    for (number, text) in [
        (0, "0"),
        (999, "999"),
        (1000, "1,000"),
        (1204, "1,204"),
        (1_234_567, "1,234,567"),
        (u64::MAX, "18,446,744,073,709,551,615"),
    ] {
        assert_eq!(grouped(number), text);
    }
}
