//! The judge itself: what is right passes, and each way to be wrong is caught.

use super::truth::Told;
use super::{Verdict, Wanted};
use crate::support::folded;

const TOLD: &str = r#"
{"version": "3.12.1"}
{"tails": {"turn": [[["acquire", "/w/spin.py", [5, 6], 5]],
                    [["acquire", "/w/spin.py", [6], 5], ["leaf", "/w/spin.py", [9], 8]]],
           "spend": [[["spend", "/w/spin.py", [4], 5], null]]}}
{"thread": "c1", "case": "one", "tails": "turn",
 "chain": [["run", "/lib/threading.py", [3], 1], ["down", "/w/a;b.py", [7], 2], ["down", "/w/a;b.py", [8], 2]]}
{"thread": "c3", "case": "three", "tails": "spend", "chain": [["run", "/lib/threading.py", [3], 1]]}
{"thread": "main", "case": "main", "chain": [["<module>", "/w/spin.py", [90], 1]]}
{"functions": [["run", "t.py", [2, 3], 1], ["a", "q.py", [5, 6], 4], ["a_leaf", "q.py", [0, 8, 9], 7], ["b", "q.py", [11], 10],
               ["b_leaf", "q.py", [12, 13], 12], ["same", "q.py", [15], 14], ["same", "q.py", [17], 16]],
 "calls": [[-1, 0, 0], [0, 3, 1], [1, 6, 2], [0, 3, 3], [3, 11, 4], [1, 5, 5], [5, 15, 6], [6, 17, 2]], "makers": [[1, 4]]}
{"through_c": [["acquire", "leaf"]], "direct": [["a", "a_leaf"]]}
{"cpu": {"c1": 1.0, "w0": 1.0}}
"#;

fn told() -> Told {
    let mut told = Told::default();
    for line in TOLD.replace("\n ", " ").lines().filter(|line| !line.is_empty()) {
        told.hear(line);
    }
    told
}

fn judged(text: &str, lines: bool) -> Verdict {
    let wanted = Wanted { warm_up: true, ..Wanted::with_lines(lines) };
    Verdict::over(&folded::parse(text), &told(), wanted)
}

#[track_caller]
fn right(text: &str) {
    let verdict = judged(text, true);
    assert!(verdict.wrong.is_empty(), "{verdict:?}");
    assert_eq!(verdict.right, 1, "{verdict:?}");
}

#[track_caller]
fn wrong(text: &str, reason: &str) {
    let verdict = judged(text, true);
    assert_eq!(verdict.wrong.len(), 1, "{verdict:?}");
    assert!(verdict.wrong[0].0.contains(reason), "{}", verdict.wrong[0].0);
    assert_eq!(verdict.problems(Wanted::with_lines(true)).len(), 1, "{verdict:?}");
}

const C1: &str = "p;c1;clone3;run (threading.py:3);_Py_call;down (a\\u{3b}b.py:7);down (a\\u{3b}b.py:8)";

#[test]
fn chains_that_are_right() {
    right(&format!("{C1};acquire (spin.py:5) 1"));
    right(&format!("{C1};acquire (spin.py:6);list_sort (listobject.c:3);leaf (spin.py:9) 1"));
    right(&format!("{C1};acquire (spin.py:6);_PyEval_EvalFrameDefault 1"));
    right(&format!("{C1};acquire (spin.py:6);lock;asm_exc_page_fault_[k];do_fault_[k] 1"));
    right("p;c3;run (threading.py:3);spend (spin.py:4);json (json.py:3);json (json.py:4) 1");
    right("p;c3;run (threading.py:3);spend (spin.py:4) 1");
    right("main;_start;<module> (spin.py:90);json (json.py:3) 1");
}

#[test]
fn chains_that_are_wrong() {
    // shorter, longer, doubled, restarted
    wrong(&format!("{C1} 1"), "frame 3 is nothing");
    wrong(&format!("{C1};acquire (spin.py:5);sort;leaf (spin.py:9) 1"), "not a tail");
    wrong(&format!("{C1};acquire (spin.py:6);sort;leaf (spin.py:9);leaf (spin.py:9) 1"), "not a tail");
    wrong(&format!("{C1};down (a\\u{{3b}}b.py:8);acquire (spin.py:6) 1"), "not a tail");
    wrong("p;c1;clone3;run (threading.py:3);down (a\\u{3b}b.py:8);acquire (spin.py:5) 1", "frame 1 is");
    wrong("p;c1;clone3;lock 1", "frame 0 is nothing");
    wrong("p;c3;run (threading.py:3);json (json.py:3) 1", "not a tail");
    wrong("p;c3;run (threading.py:3);spend (spin.py:5);json (json.py:3) 1", "not a tail");
    wrong("p;c3;run (threading.py:3) 1", "frame 1 is nothing");
    // another line, name or file
    wrong(&format!("{C1};acquire (spin.py:7) 1"), "not a tail");
    wrong(&format!("{C1};acquire (spin.py) 1"), "not a tail");
    wrong(&format!("{C1};release (spin.py:5) 1"), "not a tail");
    wrong(&format!("{C1};acquire (spun.py:5) 1"), "not a tail");
    wrong("main;_start;<module> (spin.py:91) 1", "frame 0 is");
    // order
    wrong(&format!("{C1};_PyEval_EvalFrameDefault;acquire (spin.py:5) 1"), "eval loop");
    wrong(&format!("{C1};acquire (spin.py:5);_PyEval_EvalFrameDefault;_PyEval_EvalFrameDefault 1"), "eval loop");
    wrong("p;c1;do_syscall_64_[k];run (threading.py:3) 1", "below kernel");
    wrong("p;c2;clone3 1", "not known");
}

#[test]
fn what_is_between() {
    wrong(&format!("{C1};acquire (spin.py:6);leaf (spin.py:9) 1"), "C is missing between acquire and leaf");
    wrong("p;w0;clone3;run (t.py:3);a (q.py:6);call;a_leaf (q.py:9) 1", "nothing is between a and a_leaf");
    right("p;w0;clone3;run (t.py:3);call;a (q.py:6);a_leaf (q.py:9) 1");
}

#[test]
fn calls_that_are_right() {
    right("p;w0;clone3;run (t.py:2) 1");
    right("p;w0;clone3;run (t.py:3);a (q.py:5) 1");
    right("p;w0;clone3;run (t.py:3);a (q.py:6);a_leaf (q.py:9);_PyEval_EvalFrameDefault 1");
    right("p;w0;clone3;run (t.py:3);b (q.py:11);call;b_leaf (q.py:13);take_gil;futex_[k] 1");
    right("p;w0;clone3;run (t.py:3);a (q.py:6);a_leaf (q.py) 1");
    // a generator that is being made
    right("p;w0;clone3;run (t.py:3);a (q.py:5);b_leaf (q.py:12) 1");
    // two of one name: the one that fits
    right("p;w0;clone3;run (t.py:3);a (q.py:5);same (q.py:15);same (q.py:17);a_leaf (q.py:8) 1");
}

#[test]
fn calls_that_are_wrong() {
    wrong("p;w0;clone3;run (t.py:3);a (q.py:6);b_leaf (q.py:13) 1", "is not called by");
    wrong("p;w0;clone3;run (t.py:2);a (q.py:6) 1", "is not called by");
    wrong("p;w0;clone3;run (t.py:3);a (q.py:5);a_leaf (q.py:9) 1", "is not called by");
    wrong("p;w0;clone3;run (t.py:3);a_leaf (q.py:9) 1", "is not called by");
    wrong("p;w0;clone3;a (q.py:6);a_leaf (q.py:9) 1", "is not called by");
    wrong("p;w0;clone3;run (t.py:3);a (q.py:6);a_leaf (q.py:10) 1", "in a line of another");
    wrong("p;w0;clone3;run (t.py:3);a (q.py:5);same (q.py:17) 1", "in a line of another");
    wrong("p;w0;clone3;run (t.py:3);a (q.py:5);same (q.py:15);same (q.py:15) 1", "in a line of another");
    wrong("p;w0;clone3;run (t.py:3);a (q.py:5);same (q.py:15);a_leaf (q.py:8) 1", "is not called by");
    wrong("p;w0;clone3;lock 1", "no Python frames");
}

#[test]
fn what_is_cut_says_so_and_is_counted() {
    let marker = "[python: frame half pushed]";
    for stack in [
        format!("{C1};{marker} 2"),
        format!("p;c1;clone3;{marker};down (a\\u{{3b}}b.py:8);acquire (spin.py:5) 2"),
        format!("p;w0;clone3;run (t.py:3);{marker};a_leaf (q.py:9) 2"),
    ] {
        let verdict = judged(&stack, true);
        assert!(verdict.wrong.is_empty(), "{verdict:?}");
        assert_eq!(verdict.cut[marker], 2);
    }
    let stopped = "[stopped: no rule]";
    let verdict = judged(&format!("p;c1;{stopped};down (a\\u{{3b}}b.py:8);acquire (spin.py:5) 3"), true);
    assert_eq!((verdict.stopped[stopped], verdict.wrong.len()), (3, 0));
    // what there is of it must be right
    for stack in [
        format!("p;c1;clone3;{marker};down (a\\u{{3b}}b.py:8);down (a\\u{{3b}}b.py:7) 1"),
        format!("p;c1;clone3;{marker};other (q.py:3) 1"),
        format!("p;w0;clone3;run (t.py:3);{marker};a (q.py:6);b_leaf (q.py:13) 1"),
        format!("p;c3;{marker};spend (spin.py:4);run (threading.py:3) 1"),
        format!("p;w0;clone3;a (q.py:6);{marker} 1"),
    ] {
        assert_eq!(judged(&stack, true).wrong.len(), 1, "{stack}");
    }
}

#[test]
fn so_much_may_be_cut() {
    let text = |cut: u64| format!("p;w0;clone3;run (t.py:3) 10000\np;w0;clone3;run (t.py:3);[python: gone] {cut}\n");
    assert!(judged(&text(20), true).problems(Wanted::with_lines(true)).is_empty());
    let problems = judged(&text(40), true).problems(Wanted::with_lines(true));
    assert!(problems.len() == 1 && problems[0].contains("40 of 10040 stacks are cut"), "{problems:?}");
    assert_eq!(judged("", true).problems(Wanted::with_lines(true)), ["no samples"]);
}

#[test]
fn without_lines() {
    let stacks = "p;w0;clone3;run (t.py);a (q.py);a_leaf (q.py) 1\np;c1;run (threading.py);down (a\\u{3b}b.py);\
                  down (a\\u{3b}b.py);acquire (spin.py) 1";
    let verdict = judged(stacks, false);
    assert!(verdict.wrong.is_empty() && verdict.right == 2, "{verdict:?}");
    for stack in
        ["p;w0;clone3;run (t.py);b (q.py);a_leaf (q.py) 1", "p;w0;clone3;run (t.py:3) 1", "p;c1;run (threading.py) 1"]
    {
        assert_eq!(judged(stack, false).wrong.len(), 1, "{stack}");
    }
    assert_eq!(judged(stacks, true).wrong.len(), 2);
}
