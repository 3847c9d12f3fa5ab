//! What mouse, keyboard and address do.

use std::collections::BTreeMap;

use super::samples;
use super::shown::{Shown, show, small};

#[test]
fn jumps_from_match_to_match() {
    let Some(mut shown) = show(&small()) else { return };
    shown.type_query("inner|idle");
    assert_eq!(shown.browser.text("share"), "85.0 %");
    shown.browser.press("Enter");
    assert_eq!(shown.selected(), "inner");
    assert_eq!(shown.browser.text("share"), "85.0 % · 1/2", "a match within a match is no place of its own");
    shown.browser.evaluate("app.graph.canvas.focus()");
    for (key, name) in [("n", "idle"), ("n", "inner"), ("p", "idle")] {
        shown.browser.press(key);
        assert_eq!(shown.selected(), name);
    }
    shown.browser.press("Escape");
    assert_eq!(shown.browser.text("share"), "");
    shown.browser.assert_quiet();
}

#[test]
fn zooms_by_mouse_and_keyboard() {
    let Some(mut shown) = show(&small()) else { return };
    let (_, _, whole) = shown.place("all");
    let (_, _, before) = shown.place("work");
    assert!((before / whole - 0.6).abs() < 0.01);
    shown.point("work");
    let tip = shown.browser.text("tip");
    assert!(tip.contains("60 (60.0 %)") && tip.contains("10 (10.0 %)"), "{tip}");
    shown.click("work");
    assert_eq!(shown.trail(), ["all", "main", "work"]);
    assert_eq!(shown.place("work").2, whole);
    assert!((shown.place("inner").2 / whole - 50.0 / 60.0).abs() < 0.01);
    shown.browser.press("Escape");
    assert_eq!(shown.trail(), ["all", "main"]);
    shown.browser.press("0");
    assert_eq!(shown.trail(), ["all"]);

    shown.browser.evaluate("app.graph.canvas.focus()");
    for (key, name) in [
        ("ArrowDown", "all"),
        ("ArrowDown", "main"),
        ("ArrowRight", "start"),
        ("ArrowRight", "start"),
        ("ArrowLeft", "main"),
        ("ArrowDown", "work"),
        ("ArrowUp", "main"),
        ("ArrowDown", "work"),
    ] {
        shown.browser.press(key);
        assert_eq!(shown.selected(), name, "{key}");
    }
    let live = shown.browser.text("live");
    assert!(live.starts_with("work: samples 60 (60.0 %), self 10 (10.0 %)"), "{live}");
    shown.browser.evaluate("navigator.clipboard.writeText = async text => { window.copied = text }");
    shown.browser.press("c");
    assert_eq!(shown.browser.evaluate("window.copied"), "work");
    shown.browser.press("Enter");
    assert_eq!(shown.trail(), ["all", "main", "work"]);
    shown.browser.press("Backspace");
    assert_eq!(shown.trail(), ["all", "main"]);
    shown.browser.assert_quiet();
}

#[test]
fn keys_switch_the_view() {
    let Some(mut shown) = show(&small()) else { return };
    let first_row = "app.graph.rows.findIndex(row => row.boxes.some(box => !box.parent))";
    assert_eq!(shown.browser.evaluate(first_row), 0);
    shown.browser.press("o");
    assert_eq!(shown.browser.evaluate(first_row), 4, "the root is at the bottom");
    let (_, y, _) = shown.place("all");
    let bottom = shown.browser.evaluate("app.graph.scroller.getBoundingClientRect().bottom").as_f64().unwrap();
    assert_eq!(y + 20.0, bottom);
    shown.click("work");
    assert_eq!(shown.trail(), ["all", "main", "work"]);
    shown.browser.press("o");
    let theme = "document.documentElement.dataset.theme";
    assert_eq!(shown.browser.evaluate(theme), "light");
    shown.browser.press("d");
    assert_eq!(shown.browser.evaluate(theme), "dark");
    shown.browser.press("r");
    assert_eq!(shown.browser.evaluate("app.state.mode"), "callers");
    shown.browser.press("r");
    assert_eq!(shown.browser.evaluate("app.state.mode"), "flame");
    shown.click("inner");
    shown.browser.press("s");
    assert_eq!(shown.browser.evaluate("app.state.mode"), "sandwich");
    for (key, dialog) in [("?", "help"), ("i", "about")] {
        shown.browser.press(key);
        assert_eq!(shown.browser.evaluate(&format!("document.getElementById('{dialog}').open")), true);
        shown.browser.press("Escape");
        assert_eq!(shown.browser.evaluate(&format!("document.getElementById('{dialog}').open")), false);
    }
    assert_eq!(shown.browser.evaluate("app.state.mode"), "sandwich", "a dialog keeps its keys to itself");
    shown.browser.press("g");
    assert_eq!(shown.browser.evaluate("app.state.grouping"), "process");
    shown.browser.assert_quiet();
}

#[test]
fn hides_and_focuses_with_undo() {
    let profile = samples::random_profile(6);
    let Some(mut shown) = show(&profile) else { return };
    shown.browser.press("t");
    let figures = |shown: &mut Shown| -> BTreeMap<String, (u64, u64)> {
        shown.table().into_iter().map(|(name, own, total)| (name, (own, total))).collect()
    };
    let select = "box => app.setSelected(app.graph.rows.flatMap(row => row.boxes).find(box))";
    shown.browser.evaluate(&format!("({select})(box => fullLabel(app, box) === 'function_2')"));
    shown.browser.press("h");
    let without = samples::functions(&profile, |sample| !samples::holds(&profile, sample, "function_2"));
    assert_eq!(figures(&mut shown), without);
    shown.browser.evaluate(&format!("({select})(box => fullLabel(app, box) === 'process-200 (200)')"));
    shown.browser.press("f");
    let both = samples::functions(&profile, |sample| {
        !samples::holds(&profile, sample, "function_2") && samples::process_of(&profile, sample).index() == 1
    });
    assert_eq!(figures(&mut shown), both);
    assert_eq!(shown.browser.text("filters"), "without function_2  ✕only process-200 (200)  ✕");
    shown.browser.press("u");
    assert_eq!(figures(&mut shown), without);
    shown.browser.evaluate("document.querySelector('#filters button').click()");
    assert_eq!(figures(&mut shown), samples::functions(&profile, |_| true));
    shown.choose("thread", "3");
    let in_thread = samples::functions(&profile, |sample| sample.thread.index() == 3);
    assert_eq!(figures(&mut shown), in_thread);
    shown.browser.assert_quiet();
}

#[test]
fn address_brings_the_view_back() {
    let profile = samples::random_profile(7);
    let Some(mut shown) = show(&profile) else { return };
    shown.choose("grouping", "thread");
    let look = "JSON.stringify([app.state, app.table.visible, app.table.sort, app.graph.rows.map(row =>
        row.boxes.map((box, i) => [fullLabel(app, box), box.total, row.x[i]]))])";
    for mode in ["flame", "callers"] {
        shown.press_button(&format!("mode-{mode}"));
        let deep = "app.graph.rows.filter(row => row.boxes.length).at(-2).boxes[0]";
        shown.browser.evaluate(&format!("app.zoomTo({deep})"));
        shown.browser.evaluate("app.addFilter('hide', app.graph.rows.at(-1).boxes[0])");
        shown.browser.evaluate("app.setQuery(document.getElementById('query').value = 'function_1')");
        shown.browser.evaluate("toggleTheme(app); app.table.section.hidden || toggleTable(app); toggleTable(app);");
        assert!(shown.trail().len() > 2);
        let before = shown.browser.evaluate(look);
        let hash = shown.browser.evaluate("app.link.write(), location.hash").as_str().unwrap().to_owned();
        shown.open(&hash);
        assert_eq!(shown.browser.evaluate(look), before, "{hash}");
    }
    // what does not exist is ignored
    shown.open(
        "#view=sandwich&function=99999&thread=-4&filter=hide-function-99999,only-x-1&at=thread-77.123456.9&group=x",
    );
    assert_eq!(shown.browser.text("problem"), "");
    assert_eq!(
        shown.browser.evaluate("[app.state.mode, app.state.grouping, app.allFilters().length, app.selection.total]"),
        serde_json::json!(["flame", "process", 0, profile.total()])
    );
    shown.browser.assert_quiet();
}
