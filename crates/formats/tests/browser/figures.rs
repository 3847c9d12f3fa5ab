//! The page's figures are those of the profile.

use std::collections::BTreeMap;

use super::samples;
use super::shown::{show, small};

#[test]
fn trees_hold_the_figures_of_the_profile() {
    for seed in [1, 2] {
        let profile = samples::random_profile(seed);
        let Some(mut shown) = show(&profile) else { return };
        let groups = |sample: &profile::Sample, levels: usize| {
            let thread = &profile.threads[sample.thread.index()];
            let process = &profile.processes[thread.process.index()];
            let process = format!("{} ({})", profile.text(process.name), process.pid);
            [process, format!("{} ({})", profile.text(thread.name), thread.tid)]
                .into_iter()
                .take(levels)
                .collect::<Vec<_>>()
        };
        for (levels, grouping) in ["none", "process", "thread"].into_iter().enumerate() {
            shown.choose("grouping", grouping);
            let callees = |sample: &profile::Sample| {
                [groups(sample, levels), samples::outermost_first(&profile, sample, false)].concat()
            };
            let callers = |sample: &profile::Sample| {
                [groups(sample, levels), samples::innermost_first(&profile, sample, false)].concat()
            };
            shown.press_button("mode-flame");
            assert_eq!(shown.tree(0), samples::tree(&profile, callees), "{grouping}");
            shown.press_button("mode-callers");
            assert_eq!(shown.tree(0), samples::tree(&profile, callers), "{grouping}");
        }
        shown.browser.assert_quiet();
    }
}

#[test]
fn lines_tell_frames_apart() {
    let profile = samples::random_profile(9);
    let Some(mut shown) = show(&profile) else { return };
    shown.choose("grouping", "none");
    shown.browser.press("l");
    let path = |sample: &profile::Sample| samples::outermost_first(&profile, sample, true);
    assert_eq!(shown.tree(0), samples::tree(&profile, path));
    shown.browser.press("l");
    let path = |sample: &profile::Sample| samples::outermost_first(&profile, sample, false);
    assert_eq!(shown.tree(0), samples::tree(&profile, path));
    // where no line is known, there is no such switch
    let Some(mut shown) = show(&small()) else { return };
    assert_eq!(shown.browser.evaluate("document.getElementById('lines-button').hidden"), true);
    shown.browser.assert_quiet();
}

#[test]
fn sandwich_holds_callers_and_callees() {
    let profile = samples::random_profile(3);
    let Some(mut shown) = show(&profile) else { return };
    shown.browser.evaluate("app.showSandwich(app.profile.functions.name.indexOf('function_5'))");
    let outermost = |path: &[String]| path.iter().position(|name| name.trim_end_matches('~') == "function_5");
    let below = |sample: &profile::Sample| {
        let path = samples::outermost_first(&profile, sample, false);
        outermost(&path).map_or(Vec::new(), |at| path[at + 1..].to_vec())
    };
    let above = |sample: &profile::Sample| {
        let mut path = samples::outermost_first(&profile, sample, false);
        path.truncate(outermost(&path).unwrap_or(0));
        path.reverse();
        path
    };
    assert_eq!(shown.tree(0), samples::tree(&profile, below));
    assert_eq!(shown.tree(1), samples::tree(&profile, above));
    let total = samples::functions(&profile, |_| true)["function_5"].1;
    assert_eq!(shown.browser.evaluate("app.trees.map(tree => tree.root.total)"), serde_json::json!([total, total]));
    shown.browser.assert_quiet();
}

#[test]
fn table_has_self_and_total_of_each_function() {
    let profile = samples::random_profile(4);
    let Some(mut shown) = show(&profile) else { return };
    shown.browser.press("t");
    let expected = samples::functions(&profile, |_| true);
    let rows = shown.table();
    assert_eq!(
        rows.iter().cloned().map(|(name, own, total)| (name, (own, total))).collect::<BTreeMap<_, _>>(),
        expected
    );
    assert!(rows.is_sorted_by(|a, b| a.1 >= b.1), "by self at first");
    for (column, sorted) in
        [("total", rows_by(&rows, |row| u64::MAX - row.2)), ("name", rows_by(&rows, |row| row.0.clone()))]
    {
        shown.browser.evaluate(&format!("document.querySelector('th[data-sort={column}] button').click()"));
        let keys = |rows: &[(String, u64, u64)]| -> Vec<_> {
            rows.iter().map(|row| if column == "name" { row.0.clone() } else { row.2.to_string() }).collect()
        };
        assert_eq!(keys(&shown.table()), keys(&sorted), "{column}");
    }
    // the search filters it
    shown.browser.evaluate("app.graph.canvas.focus()");
    shown.type_query("_1$");
    assert_eq!(shown.table().into_iter().map(|row| row.0).collect::<Vec<_>>(), ["function_1"]);
    // a row opens the sandwich
    shown.browser.evaluate("document.querySelector('#rows tr').click()");
    assert_eq!(shown.trail(), ["function_1"]);
    shown.browser.assert_quiet();
}

fn rows_by<K: Ord>(rows: &[(String, u64, u64)], key: impl Fn(&(String, u64, u64)) -> K) -> Vec<(String, u64, u64)> {
    let mut sorted = rows.to_vec();
    sorted.sort_by_key(key);
    sorted
}

#[test]
fn search_counts_each_sample_once() {
    let profile = samples::random_profile(5);
    let Some(mut shown) = show(&profile) else { return };
    let share = |passes: &dyn Fn(&profile::Sample) -> bool| {
        let sum: u64 = profile.samples.iter().filter(|sample| passes(sample)).map(|sample| sample.count).sum();
        100.0 * sum as f64 / profile.total() as f64
    };
    let matches = |sample: &profile::Sample| {
        ["function_3", "function_7"].iter().any(|name| samples::holds(&profile, sample, name))
    };
    let mut shown_share = |query: &str| -> f64 {
        shown.browser.evaluate(&format!("app.setQuery({query:?})"));
        shown.browser.text("share").trim_end_matches(" %").parse().unwrap()
    };
    let close = |a: f64, b: f64| assert!((a - b).abs() < 0.06, "{a} and {b}");
    close(shown_share("_[37]$"), share(&matches));
    // small letters match capitals; a capital matches itself only
    close(shown_share("FUNCTION_3"), 0.0);
    // the groups that are shown have names, too
    let in_process = |sample: &profile::Sample| samples::process_of(&profile, sample).index() == 1;
    close(shown_share("process-200"), share(&in_process));
    close(shown_share("process-200|_[37]$"), share(&|sample| in_process(sample) || matches(sample)));
    // threads are not shown as boxes now
    close(shown_share("thread-201"), 0.0);
    close(shown_share("module:kernel"), {
        let kernel = (0..20)
            .filter(|function| function % profile::Kind::ALL.len() == 0)
            .map(|function| format!("function_{function}"));
        let kernel: Vec<_> = kernel.collect();
        share(&|sample| kernel.iter().any(|name| samples::holds(&profile, sample, name)))
    });
    shown.browser.evaluate("app.setQuery('(')");
    assert_eq!(shown.browser.text("share"), "not valid");
    shown.browser.assert_quiet();
}
