//! Names that are no names, profiles that hold nothing, browsers that are too old.

use profile::{Builder, Kind, Profile};
use serde_json::Value;

use super::samples;
use super::shown::{show, small};

/// Names that try to be markup, to drive a terminal, to be another name, or to be too much.
pub(super) fn hostile_names() -> Vec<String> {
    let mut names = [
        "</script><script>window.owned = 1</script>",
        "<img src=x onerror='window.owned = 1'>",
        "<!-- <b> ]]> </style>",
        "\"' onload=\"window.owned = 1\" `${window.owned = 1}`",
        "\x1b[31mred\x1b]0;owned\x07",
        "two\nlines\r\n\0",
        "right\u{202e}to\u{2066}left\u{feff}",
        "__proto__",
        "constructor",
        "(((((",
        "operator<",
    ]
    .map(str::to_owned)
    .to_vec();
    names.push("<x::".repeat(15_000));
    names
}

#[test]
fn hostile_names_stay_text() {
    let build = |names: &[String]| {
        let mut builder = Builder::default();
        for (index, name) in names.iter().enumerate() {
            let process = builder.process(index as u32, name);
            builder.set_command_line(process, name);
            let thread = builder.thread(process, index as u32, name);
            let frame = samples::frame(&mut builder, name, Kind::Native, false, 0);
            let python = samples::python(&mut builder, name, name, 1, 2);
            let stack = builder.stack([frame, frame, python]);
            builder.add(thread, stack, 10);
        }
        let meta = builder.meta_mut();
        meta.target.clone_from(&names[0]);
        meta.command_line.clone_from(&names[1]);
        meta.host.clone_from(&names[2]);
        meta.losses.push(profile::Losses { cause: names[3].clone(), count: 1 });
        meta.interpreters.extend(names.iter().map(|name| format!("pid 1 python {name}: refused: {name}")));
        meta.stops.push(profile::StopCount { reason: names[0].clone(), whole: false, count: 1 });
        builder.finish()
    };
    let hostile = hostile_names();
    let harmless: Vec<_> = (0..hostile.len()).map(|index| format!("name_{index}")).collect();
    let mut counts = Vec::new();
    for names in [&hostile, &harmless] {
        let Some(mut shown) = show(&build(names)) else { return };
        shown.browser.press("t");
        shown.press_button("about-button");
        shown.browser.evaluate("document.getElementById('about').close()");
        shown.browser.evaluate(
            "for (const row of app.graph.rows) for (const box of row.boxes) {
                app.hover(box);
                showTip(app, box, 50, 50);
                app.zoomTo(box);
                app.select(box);
            }
            app.reset();
            showTip(app, null);
            for (const box of app.graph.rows[2].boxes.slice(0, 3)) app.addFilter('hide', box);",
        );
        assert_eq!(shown.browser.evaluate("window.owned"), Value::Null);
        // every element there is, by its name
        counts.push(shown.browser.evaluate(
            "(() => {
                const counts = {};
                for (const { tagName } of document.querySelectorAll('*')) counts[tagName] = (counts[tagName] ?? 0) + 1;
                return counts;
            })()",
        ));
        let text = shown.browser.evaluate("document.documentElement.textContent");
        let unseen =
            |c: char| (c.is_control() && c != '\n') || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
        assert!(!text.as_str().unwrap().contains(unseen));
        shown.browser.assert_quiet();
    }
    assert_eq!(counts[0], counts[1]);
}

#[test]
fn an_empty_profile_is_no_problem() {
    let Some(mut shown) = show(&Profile::default()) else { return };
    for key in ["t", "r", "g", "o", "ArrowDown", "Enter", "h", "Escape"] {
        shown.browser.press(key);
    }
    assert_eq!(shown.browser.text("ancestors"), "all — 0 samples, 0 %");
    assert_eq!(shown.browser.text("rows"), "No function matches.");
    shown.browser.assert_quiet();
}

#[test]
fn says_why_an_old_browser_cannot_show_it() {
    let Some(mut shown) = show(&small()) else { return };
    let params = serde_json::json!({ "source": "delete window.DecompressionStream" });
    shown.browser.call("Page.addScriptToEvaluateOnNewDocument", params);
    shown.open("");
    assert!(shown.browser.text("problem").contains("DecompressionStream"));
    shown.browser.assert_quiet();
}
