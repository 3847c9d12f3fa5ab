//! Python frames among native ones, in made-up processes: what is shown for which eval loop.
extern crate std;

mod made;
mod random;

use abi::python::{FRAMES, moment};
use abi::record::{HEAD, WORDS};
use abi::word;
use made::{Made, VERSIONS, frame_at, has_runs};
use std::vec;
use std::vec::Vec;

use crate::cpython::tests::{BASE, STATE, TYPE, new, old, v3_11, v3_12, v3_15};

#[test]
fn frames_stand_where_their_eval_loop_was() {
    for python in VERSIONS.map(|version| version()) {
        let made = Made::new(&python, "NENENNER", &[&[1], &[2], &[3]]);
        assert_eq!(made.shown(), "NaNbNNcR.", "{python:?}");
    }
}

#[test]
fn all_frames_of_one_eval_loop_stand_together() {
    for python in VERSIONS.map(|version| version()).into_iter().filter(has_runs) {
        let made = Made::new(&python, "ENENER", &[&[1, 2, 3], &[4], &[5, 6]]);
        assert_eq!(made.shown(), "abcNdNefR.", "{python:?}");
        // eval loops that call each other without C between them
        let made = Made::new(&python, "NEEER", &[&[1, 2], &[3], &[4, 5]]);
        assert_eq!(made.shown(), "NabcdeR.", "{python:?}");
    }
}

#[test]
fn an_eval_loop_that_has_no_frame_is_shown() {
    for python in VERSIONS.map(|version| version()).into_iter().filter(has_runs) {
        // it has not linked its frame yet, or has unlinked it already
        let made = Made::unlinked(&python, "ENENER", &[&[1, 2], &[3]]);
        assert_eq!(made.shown(), "ENabNcR.", "{python:?}");
        let made = Made::unlinked(&python, "PEER", &[&[1, 2, 3]]);
        assert_eq!(made.shown(), "PEabcR.", "{python:?}");
        // nor has any other one
        let made = Made::unlinked(&python, "NER", &[]);
        assert_eq!(made.shown(), "NER.", "{python:?}");
    }
}

/// An eval loop that has called something has linked its frame: if the chain does not lead there, another one does.
#[test]
fn eval_loops_of_another_chain_are_marked() {
    for python in VERSIONS.map(|version| version()).into_iter().filter(has_runs) {
        // a sub-interpreter's, further in
        let made = Made::unlinked(&python, "NENER", &[&[1, 2]]);
        assert_eq!(made.shown(), "N<OtherChain>ENabR.", "{python:?}");
        // the one that runs it, further out; it is said once
        let made = Made::new(&python, "ENENER", &[&[1, 2]]);
        assert_eq!(made.shown(), "abN<OtherChain>ENER.", "{python:?}");
    }
}

/// What dies with a frame runs Python when the frame is unlinked already: the chain is at the shim of an eval loop without frames.
#[test]
fn an_eval_loop_at_its_shim_is_this_chains() {
    for python in [new(), v3_15()] {
        let made = Made::new(&python, "ENENER", &[&[1], &[], &[2]]);
        assert_eq!(made.shown(), "aNENbR.", "{python:?}");
    }
}

/// The chain leads to a shim before that is one.
#[test]
fn a_shim_that_is_not_filled_yet_ends_the_chain() {
    for python in [new(), v3_15()] {
        let mut made = Made::new(&python, "ENER", &[&[1], &[2]]);
        made.unmake_shim(0);
        assert_eq!(made.shown(), "<HalfPushed>ENER.", "{python:?}");
    }
}

/// Up to 3.10 nothing ties frames to eval loops but their number, and the place in the code.
#[test]
fn up_to_3_10_the_place_in_the_code_tells_which_eval_loop_has_no_frame() {
    let made = Made::unlinked(&old(), "ENENER", &[&[1], &[2]]);
    assert_eq!(made.shown(), "ENaNbR.");
    let made = Made::unlinked(&old(), "PER", &[]);
    assert_eq!(made.shown(), "PER.");
    // where it is not known which one has none, all are in doubt
    let mut made = Made::unlinked(&old(), "ENENER", &[&[1], &[2]]);
    made.moment = 0;
    assert_eq!(made.shown(), "aNbN<Unproven>ER.");
    let made = made.with_natives("ENENEX");
    assert_eq!(made.shown(), "aNbN<Unproven>EX~");
    // more frames than eval loops, or not all of them seen
    let made = Made::new(&old(), "ENER", &[&[1], &[2]]).with_natives("NER");
    assert_eq!(made.shown(), "NaR<Unproven>.");
    let made = Made::new(&old(), "ENEX", &[&[1], &[2]]);
    assert_eq!(made.shown(), "aNbX<Unproven>~");
    // what is not known for sure of no frame is no doubt
    let made = Made::new(&old(), "NEX", &[]);
    assert_eq!(made.shown(), "NEX~");
    // a fault on the way hides whether the innermost one has its own
    let mut made = Made::new(&old(), "ENENER", &[&[1], &[2], &[3]]);
    made.memory.remove(&(frame_at(2) + u64::from(made.entry.python.code)));
    assert_eq!(made.shown(), "aN<FrameUnreadable>ENER<Unproven>.");
}

/// Between two stores the code has the caller in a register, and the frame does not lead to it.
#[test]
fn a_frame_that_is_just_being_pushed_has_its_caller_in_a_register() {
    for python in VERSIONS.map(|version| version()).into_iter().filter(has_runs) {
        for left in [0, frame_at(1), frame_at(3), frame_at(40), 0x7000_0040, 5, u64::MAX] {
            let mut made = Made::new(&python, "PENER", &[&[1, 2], &[3]]);
            made.damage(1, python.back, Some(left));
            made.registers[14] = frame_at(2);
            made.moment = moment::CALLER | 14;
            let expected = if left == frame_at(1) { "<Loop>PENER." } else { "abNcR." };
            if left != frame_at(1) {
                assert_eq!(made.shown(), expected, "{left:#x} {python:?}");
            }
            // only if the frame leads nowhere
            made.moment = moment::CALLER_IF_NONE | 14;
            if left == 0 {
                assert_eq!(made.shown(), expected, "{python:?}");
            }
        }
        let mut made = Made::new(&python, "ENER", &[&[1, 2], &[3]]);
        (made.moment, made.registers[3]) = (moment::CALLER_IF_NONE | 3, frame_at(3));
        assert_eq!(made.shown(), "abNcR.", "what it leads to is its caller, {python:?}");
        // a register that does not hold a frame of this eval loop proves nothing
        for held in [0, 8, frame_at(30), u64::MAX - 7] {
            (made.moment, made.registers[3]) = (moment::CALLER | 3, held);
            let shown = made.shown();
            assert!(shown.starts_with('<') || shown.starts_with("EN"), "{held:#x} {shown} {python:?}");
        }
    }
}

#[test]
fn a_frame_whose_caller_is_not_known_cuts_its_eval_loop() {
    for (python, rest) in [(v3_11(), "cR."), (v3_12(), "cR."), (new(), "ER."), (v3_15(), "ER.")] {
        let mut made = Made::new(&python, "ENER", &[&[1, 2], &[3]]);
        made.moment = moment::NO_CALLER;
        assert_eq!(made.shown(), std::format!("<HalfPushed>EN{rest}"), "{python:?}");
    }
}

/// In 3.11 the flag that marks an eval loop's outermost frame is set late, and the `_PyCFrame`s tell all the same.
#[test]
fn runs_of_3_11_end_without_the_flag() {
    let python = v3_11();
    for flags in [[0, 0], [0, 1], [1, 0], [1, 1]] {
        let mut made = Made::new(&python, "NENER", &[&[1, 2], &[3]]);
        for (id, flag) in [1, 2].into_iter().zip(flags) {
            made.damage(id, python.owner & !7, Some(!(0xff << 32) | flag << 32));
        }
        assert_eq!(made.shown(), "NabNcR.", "{flags:?}");
    }
}

#[test]
fn a_stack_that_stops_keeps_what_was_proven() {
    for python in VERSIONS.map(|version| version()).into_iter().filter(has_runs) {
        let made = Made::new(&python, "NENEX", &[&[1, 2], &[3]]);
        assert_eq!(made.shown(), "NabNcX~", "{python:?}");
        // the caller of the eval loop is not known, and so neither is its extent
        let made = Made::new(&python, "NENER", &[&[1, 2], &[3]]).without_return_of(3);
        assert_eq!(made.shown(), "NabNE~", "{python:?}");
    }
}

/// What ties a run to its eval loop lies in the latter: one that was not seen shifts none.
#[test]
fn frames_that_are_left_at_the_root_are_not_shown() {
    for python in [v3_11(), v3_12(), new(), v3_15()] {
        let made = Made::new(&python, "ENENER", &[&[1, 2], &[3], &[4]]).with_natives("ENER");
        assert_eq!(made.shown(), "abNcR.", "{python:?}");
    }
}

#[test]
fn parts_and_the_frame_that_called_them_are_one_eval_loop() {
    for python in VERSIONS.map(|version| version()) {
        let made = Made::new(&python, "PENPPER", &[&[1], &[2]]);
        assert_eq!(made.shown(), "aNbR.", "{python:?}");
        let made = Made::new(&python, "NPNER", &[&[1]]);
        assert_eq!(made.shown(), "NPNaR.", "a part without its eval loop, {python:?}");
        let made = Made::new(&python, "NEPR", &[&[1]]);
        assert_eq!(made.shown(), "NaPR.", "{python:?}");
        let made = Made::new(&python, "NPX", &[]);
        assert_eq!(made.shown(), "NPX~", "{python:?}");
        let made = Made::new(&python, "PER", &[&[1]]).keeping_native();
        assert_eq!(made.shown(), "aPER.", "{python:?}");
        let made = Made::new(&python, "NPER", &[&[1]]).without_return_of(2);
        assert_eq!(made.shown(), "NPE~", "{python:?}");
    }
    let made = Made::unlinked(&new(), "PENPER", &[&[1, 2]]);
    assert_eq!(made.shown(), "PENabR.");
}

/// From 3.14 on a local variable of the eval loop may lie in a part's frame.
#[test]
fn the_frame_of_a_part_belongs_to_the_eval_loop() {
    let python = v3_15();
    let mut made = Made::new(&python, "PER", &[&[1]]);
    made.move_shim(0, made.extents[0].0 + 8);
    assert_eq!(made.shown(), "aR.");
    made.move_shim(0, made.extents[1].1);
    assert_eq!(made.shown(), "PER.", "that is its caller's frame");
}

#[test]
fn eval_loops_are_kept_if_they_are_wanted() {
    for python in VERSIONS.map(|version| version()) {
        let made = Made::new(&python, "ENER", &[&[1], &[2]]).keeping_native();
        assert_eq!(made.shown(), "aENbER.", "{python:?}");
    }
    let made = Made::unlinked(&new(), "ENER", &[&[1, 2]]).keeping_native();
    assert_eq!(made.shown(), "ENabER.");
    let made = Made::unlinked(&old(), "ENER", &[&[1]]).keeping_native();
    assert_eq!(made.shown(), "ENaER.");
}

#[test]
fn a_fault_is_said_once_and_the_rest_is_native() {
    for python in VERSIONS.map(|version| version()).into_iter().filter(has_runs) {
        let whole = Made::new(&python, "NENENER", &[&[1, 2], &[3, 4], &[5]]);
        assert_eq!(whole.shown(), "NabNcdNeR.");
        // the run that has the fault is not proven to be its eval loop's
        for (fault, id, offset, value) in [
            ("<FrameUnreadable>", 4, python.code, None),
            ("<FrameMisaligned>", 3, python.back, Some(frame_at(4) + 4)),
            ("<BadFrame>", 4, python.owner & !7, Some(u64::MAX)),
        ] {
            let mut made = whole.clone();
            made.damage(id, offset, value);
            assert_eq!(made.shown(), std::format!("NabN{fault}ENER."), "{python:?}");
        }
    }
}

/// 3.12 and 3.11 go on with the `_PyCFrame` before.
#[test]
fn the_first_frame_must_have_a_code_object() {
    for (python, fault) in [(old(), "<NotCode>"), (new(), "<NotCode>"), (v3_15(), "<NotCode>")] {
        let mut made = Made::new(&python, "NENER", &[&[1], &[2]]);
        made.memory.insert(made::code_at(1) + u64::from(python.object_type), TYPE + 8);
        assert_eq!(made.shown(), std::format!("N{fault}ENER."), "{python:?}");
    }
    for python in [v3_11(), v3_12()] {
        let mut made = Made::new(&python, "NENER", &[&[1], &[2]]);
        made.memory.insert(made::code_at(1) + u64::from(python.object_type), TYPE + 8);
        assert_eq!(made.shown(), "N<HalfPushed>ENbR.", "{python:?}");
        // that one's frame is none either
        made.memory.insert(made::code_at(2) + u64::from(python.object_type), TYPE + 8);
        assert_eq!(made.shown(), "N<HalfPushed>EN<NotCode>ER.", "{python:?}");
        made.memory.remove(&(made.cframe_of(0) + u64::from(python.cframe_current) + 8));
        assert_eq!(made.shown(), "N<StateUnreadable>ENER.", "{python:?}");
    }
}

/// What leads to the caller may be gone from a frame that is being unlinked.
#[test]
fn a_chain_that_ends_within_a_run_proves_nothing() {
    for python in [new(), v3_15()] {
        let mut made = Made::new(&python, "NENER", &[&[1, 2], &[3]]);
        made.damage(1, python.back, Some(0));
        assert_eq!(made.shown(), "N<BadFrame>ENER.", "{python:?}");
    }
    let python = v3_15();
    let mut made = Made::new(&python, "NENER", &[&[1, 2], &[3]]);
    made.damage(1, python.back, Some(BASE));
    assert_eq!(made.shown(), "N<BadFrame>ENER.");
    for python in [v3_11(), v3_12()] {
        let mut made = Made::new(&python, "NENER", &[&[1, 2], &[3]]);
        made.damage(1, python.back, Some(0));
        assert_eq!(made.shown(), "N<HalfPushed>ENcR.", "{python:?}");
    }
}

#[test]
fn a_circle_takes_as_many_frames_as_a_walk_may() {
    for python in [v3_12(), new(), v3_15()] {
        let mut made = Made::new(&python, "NENER", &[&[1, 2], &[3]]);
        made.damage(2, python.back, Some(frame_at(1)));
        let words = made.words();
        let is_frame = |word: &&u64| *word >> word::TAG_SHIFT == u64::from(word::kind::PYTHON);
        // the words in the middle were left out
        let expected = word::cut((1 + 2 * FRAMES as usize + 5 - WORDS) as u64);
        assert_eq!(words[HEAD], expected);
        assert!(words.iter().filter(is_frame).count() <= FRAMES as usize);
        assert_eq!(made::render(&words[words.len() - 5..]), "<TooMany>NER.");
    }
    // where each eval loop takes one frame, they are as many as eval loops
    let mut made = Made::new(&old(), "ENENER", &[&[1], &[2], &[3]]);
    made.damage(2, made.entry.python.back, Some(frame_at(1)));
    assert_eq!(made.shown(), "aNbNaR<Unproven>.");
}

#[test]
fn threads_without_python() {
    for python in VERSIONS.map(|version| version()) {
        let whole = Made::new(&python, "NENER", &[&[1], &[2]]);
        let slot = made::POINTER + 0x310;
        for (fault, address, value) in [
            ("<NoState>", slot, Some(0)),
            ("<SlotUnreadable>", slot, None),
            ("<OtherThread>", STATE + u64::from(python.thread_id), Some(made::POINTER + 8)),
            ("<StateUnreadable>", STATE + u64::from(python.current), None),
        ] {
            let mut made = whole.clone();
            made.set(address, value);
            assert_eq!(made.shown(), std::format!("N{fault}ENER."), "{python:?}");
            // one that meets no eval loop is not asked
            assert_eq!(made.with_natives("NNR").shown(), "NNR.");
        }
        let mut made = whole.clone();
        made.pointer = 0;
        assert_eq!(made.shown(), "N<SlotUnreadable>ENER.");
    }
}

#[test]
fn equal_stacks_have_equal_hashes_and_others_do_not() {
    for python in VERSIONS.map(|version| version()) {
        let made = Made::new(&python, "NENER", &[&[1], &[2]]);
        let hash = made.hash();
        assert_eq!(made.hash(), hash);
        let mut other = made.clone();
        let code = u64::from(python.code);
        let tag = u64::from(python.tags & 1);
        other.memory.insert(frame_at(2) + code, made::code_at(1) | tag);
        assert_ne!(other.hash(), hash, "another code object");
        let mut other = made.clone();
        *other.memory.get_mut(&(frame_at(1) + u64::from(python.lasti))).expect("there") += 2;
        assert_ne!(other.hash(), hash, "another instruction");
        let mut other = made.clone();
        *other.memory.get_mut(&(made::code_at(1) + made::CHECKED)).expect("there") += 1;
        assert_ne!(other.hash(), hash, "another code object at the address");
        let mut other = made.clone();
        *other.memory.get_mut(&(made::code_at(1) + made::CHECKED)).expect("there") ^= 1 << 40;
        assert_eq!(other.hash(), hash, "what may change does not count");
    }
    // frames that were given back leave nothing behind
    let python = new();
    let unlinked = Made::unlinked(&python, "ENER", &[&[1, 2]]);
    assert_eq!(unlinked.hash(), unlinked.words().iter().fold(0, |hash, word| crate::mix(hash, *word)));
}

#[test]
fn instructions_that_do_not_fit() {
    let python = new();
    let mut made = Made::new(&python, "ER", &[&[1]]);
    let lasti = frame_at(1) + u64::from(python.lasti);
    for (value, expected) in [
        (made::code_at(1), 0),
        (made::code_at(1) + 2, 1),
        (made::code_at(1) - 2, word::NO_INSTRUCTION),
        (made::code_at(1) + u64::from(word::NO_INSTRUCTION) * 2, word::NO_INSTRUCTION),
        (made::code_at(1) + u64::from(word::NO_INSTRUCTION - 1) * 2, word::NO_INSTRUCTION - 1),
        (0, word::NO_INSTRUCTION),
        (u64::MAX, word::NO_INSTRUCTION),
    ] {
        made.memory.insert(lasti, value);
        assert_eq!(made.words()[1] as u32 & word::NO_INSTRUCTION, expected, "{value:#x}");
    }
    let python = old();
    let mut made = Made::new(&python, "ER", &[&[1]]);
    let lasti = frame_at(1) + u64::from(python.lasti);
    for (value, expected) in [
        (0xffff_ffff, 0),
        (0xdead_0000_0000, 1),
        (6, 7),
        (u64::from(u32::MAX - 1), word::NO_INSTRUCTION),
        (i32::MAX as u64, word::NO_INSTRUCTION),
    ] {
        made.memory.insert(lasti, value);
        assert_eq!(made.words()[1] as u32 & word::NO_INSTRUCTION, expected, "{value:#x}");
    }
}

/// As many frames as a walk may take, which an eval loop that has none takes first and gives back.
#[test]
fn what_is_given_back_does_not_count() {
    let ids: Vec<u64> = (1..u64::from(FRAMES)).collect();
    for kernel in [0, 100] {
        let made = Made::unlinked(&new(), "ENER", &[&ids]).with_kernel(kernel);
        let words = made.words();
        let total = kernel + 2 + 2 * ids.len() + 2;
        let mut expected = made.kernel.clone();
        expected.extend([made.native(0), made.native(1)]);
        expected.extend(ids.iter().flat_map(|id| made.frame(*id)));
        expected.extend([made.native(3), made.root_end()]);
        assert_eq!(expected.len(), total);
        assert_eq!(words[..HEAD], expected[..HEAD]);
        if total > WORDS {
            assert_eq!(words[HEAD], word::cut((total - WORDS) as u64));
            assert_eq!(words[HEAD + 1..], expected[total - HEAD..]);
        } else {
            assert_eq!(words, expected);
        }
    }
}

/// The words that a run took the place of cannot be had back.
#[test]
fn what_cannot_be_given_back_ends_python() {
    let first: Vec<u64> = (1..=2500).collect();
    let second: Vec<u64> = (2501..u64::from(FRAMES)).collect();
    let mut made = Made::new(&new(), "ENENER", &[&first, &second, &[5000]]).with_kernel(100);
    made.damage(4095, 0, None);
    let words = made.words();
    assert_eq!(made::render(&words[words.len() - 6..]), "<TooMany>ENER.");
    let total = 100 + 5000 + 1 + 2 * (second.len() - 1) + 1 + 5;
    assert_eq!(words[HEAD], word::cut((total - WORDS) as u64));
    let mut expected = made.kernel.clone();
    expected.extend(first.iter().flat_map(|id| made.frame(*id)));
    assert_eq!(words[..HEAD], expected[..HEAD]);
}

#[test]
fn deep_stacks_keep_both_ends() {
    // a run longer than a walk may take
    let ids: Vec<u64> = (1..=5000).collect();
    let made = Made::new(&new(), "NNENER", &[&ids, &[6000]]);
    let words = made.words();
    let mut expected = vec![made.native(0), made.native(1)];
    expected.extend(ids.iter().flat_map(|id| made.frame(*id)));
    assert_eq!(words[..HEAD], expected[..HEAD]);
    assert_eq!(made::render(&words[words.len() - 5..]), "<TooMany>NER.");
    // eval loops that each have a frame, and are cut within one: its first word is kept, its second is not
    let natives = std::format!("N{}R", "EN".repeat(3000));
    let runs: Vec<[u64; 1]> = (1..=3000).map(|id| [id]).collect();
    let runs: Vec<&[u64]> = runs.iter().map(|run| &run[..]).collect();
    for python in VERSIONS.map(|version| version()) {
        for kernel in 0..3 {
            let made = Made::new(&python, &natives, &runs).with_kernel(kernel);
            let mut expected = made.kernel.clone();
            expected.push(made.native(0));
            for id in 1..=3000 {
                expected.extend(made.frame(id));
                expected.push(made.native(2 * id as usize));
            }
            expected.extend([made.native(6001), made.root_end()]);
            let words = made.words();
            assert_eq!(words[..HEAD], expected[..HEAD]);
            assert_eq!(words[HEAD], word::cut((expected.len() - WORDS) as u64));
            assert_eq!(words[HEAD + 1..], expected[expected.len() - HEAD..], "{python:?}");
        }
    }
}

/// A walk that has had all its turns shows no run that was not proven.
#[test]
fn a_walk_that_is_given_up_shows_what_was_proven() {
    for python in VERSIONS.map(|version| version()).into_iter().filter(has_runs) {
        let made = Made::new(&python, "NENER", &[&[1, 2], &[3, 4]]);
        let shown: Vec<_> = (1..=10).map(|turns| made::render(&made.words_after(turns))).collect();
        // N, E is held, a, b and the end of the run, N, E is held, ...
        assert!(shown.contains(&"NE~".into()) && shown.contains(&"NabN~".into()), "{shown:?}");
        for shown in shown {
            assert!(
                ["N~", "NE~", "Nab~", "NabN~", "NabNE~", "NabNcd~", "NabNcdR."].contains(&shown.as_str()),
                "{shown}"
            );
        }
    }
    let made = Made::new(&old(), "NENER", &[&[1], &[2]]);
    for turns in 1..=6 {
        let shown = made::render(&made.words_after(turns));
        let expected = ["N~", "NE~", "Na<Unproven>~", "NaN<Unproven>~", "NaNE<Unproven>~", "NaNb<Unproven>~"];
        assert_eq!(shown, expected[turns as usize - 1]);
    }
}
