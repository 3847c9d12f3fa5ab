//! The HTML page in a real browser: what it draws, what it says, and that its figures are right.

mod browser;

use std::collections::BTreeMap;
use std::path::PathBuf;

use browser::{Browser, samples};
use profile::{Builder, Kind, Profile};
use serde_json::Value;

/// A browser that shows a profile.
struct Shown {
    browser: Browser,
    page: PathBuf,
    _directory: tempfile::TempDir,
}

/// Opens a profile's page; `None` where there is no browser.
fn show(profile: &Profile) -> Option<Shown> {
    let browser = Browser::start()?;
    let directory = tempfile::tempdir().unwrap();
    let page = directory.path().join("page.html");
    formats::html::write(profile, &mut std::fs::File::create(&page).unwrap()).unwrap();
    let mut shown = Shown { browser, page, _directory: directory };
    shown.open("");
    assert_eq!(shown.browser.text("problem"), "");
    Some(shown)
}

/// Walks a whole tree of boxes, as the page would lay it out piece by piece.
const TREE: &str = "tree => {
    const totals = {};
    const open = [[tree.root, '']];
    while (open.length) {
        const [box, path] = open.pop();
        for (const child of tree.children(box)) {
            const inlined = child.frame >= 0 && app.profile.frames.inlined[child.frame] ? '~' : '';
            const name = path + boxLabel(app.profile, child, app.state.lines).name + inlined;
            if (name in totals) throw new Error('two boxes of one path: ' + name);
            totals[name] = child.total;
            open.push([child, name + ' > ']);
        }
    }
    return totals;
}";

impl Shown {
    fn open(&mut self, hash: &str) {
        self.browser.open(&self.page.clone(), hash);
    }

    /// The boxes of the page's tree number `index`, by their paths.
    fn tree(&mut self, index: usize) -> BTreeMap<String, u64> {
        let value = self.browser.evaluate(&format!("({TREE})(app.trees[{index}])"));
        serde_json::from_value(value).unwrap()
    }

    /// Where the first box that is drawn with a name lies in the window: x, y, width.
    fn place(&mut self, name: &str) -> (f64, f64, f64) {
        let name = serde_json::to_string(name).unwrap();
        let value = self.browser.evaluate(&format!(
            "(() => {{
                const box = app.graph.rows.flatMap(row => row.boxes).find(box => fullLabel(app, box) === {name});
                const {{ x, y, width }} = app.graph.placeOf(box);
                const canvas = app.graph.canvas.getBoundingClientRect();
                return [canvas.left + x, canvas.top + y, width];
            }})()"
        ));
        serde_json::from_value(value).unwrap()
    }

    fn click(&mut self, name: &str) {
        let (x, y, width) = self.place(name);
        self.browser.click(x + width / 2.0, y + 10.0);
    }

    fn point(&mut self, name: &str) {
        let (x, y, width) = self.place(name);
        self.browser.point(x + width / 2.0, y + 10.0);
    }

    /// Clicks an element of the page.
    fn press_button(&mut self, id: &str) {
        self.browser.evaluate(&format!("document.getElementById('{id}').click()"));
    }

    fn choose(&mut self, id: &str, value: &str) {
        self.browser.evaluate(&format!(
            "(() => {{
                const select = document.getElementById('{id}');
                select.value = '{value}';
                select.dispatchEvent(new Event('change'));
            }})()"
        ));
    }

    fn type_query(&mut self, text: &str) {
        self.browser.press("/");
        self.browser.call("Input.insertText", serde_json::json!({ "text": text }));
    }

    /// Names in the trail, from the root to the zoomed box.
    fn trail(&mut self) -> Vec<String> {
        let value = self.browser.evaluate("[...document.querySelectorAll('#ancestors button')].map(b => b.title)");
        serde_json::from_value(value).unwrap()
    }

    /// Rows of the table of functions: name, self, total.
    fn table(&mut self) -> Vec<(String, u64, u64)> {
        let value = self.browser.evaluate(
            "[...document.querySelectorAll('#rows tr')].map(row => [
                row.querySelector('b').textContent,
                ...[...row.querySelectorAll('.count')].map(cell => Number(cell.textContent.replaceAll(',', ''))),
            ])",
        );
        serde_json::from_value(value).unwrap()
    }

    fn selected(&mut self) -> Value {
        self.browser.evaluate("app.graph.selected && fullLabel(app, app.graph.selected)")
    }
}

/// main calls work and idle; work calls inner; inner calls itself once.
fn small() -> Profile {
    samples::plain_profile(&[
        (&["main", "work", "inner", "inner"], 30),
        (&["main", "work", "inner"], 20),
        (&["main", "work"], 10),
        (&["main", "idle"], 35),
        (&["start"], 5),
    ])
}

#[test]
fn draws_a_graph_without_network_or_complaints() {
    let mut builder = Builder::default();
    let process = builder.process(1, "process");
    let thread = builder.thread(process, 1, "thread");
    for (index, kind) in Kind::ALL.iter().enumerate() {
        let frame = samples::frame(&mut builder, kind.name(), *kind, false, 0);
        let stack = builder.stack([frame]);
        builder.add(thread, stack, 100 - index as u64);
    }
    let Some(mut shown) = show(&builder.finish()) else { return };
    for (kind, pixels_differ) in [("kernel", false), ("native", false), ("jit", false), ("marker", true)] {
        let (x, y, width) = shown.place(kind);
        // a strip at the right of the box, where no text is
        let colours = shown.browser.evaluate(&format!(
            "(() => {{
                app.graph.draw();
                const canvas = app.graph.canvas.getBoundingClientRect();
                const copy = document.createElement('canvas').getContext('2d', {{ willReadFrequently: true }});
                copy.drawImage(app.graph.canvas, canvas.left - {}, canvas.top - {y} - 3);
                const strip = copy.getImageData(0, 0, 24, 12).data;
                const colours = new Set();
                for (let i = 0; i < strip.length; i += 4) colours.add([...strip.slice(i, i + 3)].join());
                const fill = shades('light', '{kind}')
                    .map(hex => [1, 3, 5].map(at => parseInt(hex.slice(at, at + 2), 16)).join());
                return [colours.size, fill.some(colour => colours.has(colour))];
            }})()",
            x + width - 30.0
        ));
        assert_eq!(colours[1], true, "{kind} has its colour");
        assert_eq!(colours[0].as_u64().unwrap() > 1, pixels_differ, "{kind}: only what is no function is hatched");
    }
    assert_eq!(shown.browser.evaluate("document.getElementById('data')"), Value::Null);
    shown.browser.assert_quiet();
}

#[test]
fn trees_hold_the_figures_of_the_profile() {
    for seed in [1, 2] {
        let profile = samples::random_profile(seed);
        let Some(mut shown) = show(&profile) else { return };
        shown.press_button("lines-button");
        shown.press_button("lines-button");
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
                [groups(sample, levels), samples::outermost_first(&profile, sample)].concat()
            };
            let callers = |sample: &profile::Sample| {
                [groups(sample, levels), samples::innermost_first(&profile, sample)].concat()
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
fn sandwich_holds_callers_and_callees() {
    let profile = samples::random_profile(3);
    let Some(mut shown) = show(&profile) else { return };
    shown.browser.evaluate("app.showSandwich(app.profile.functions.name.indexOf('function_5'))");
    let outermost = |path: &[String]| path.iter().position(|name| name.trim_end_matches('~') == "function_5");
    let below = |sample: &profile::Sample| {
        let path = samples::outermost_first(&profile, sample);
        outermost(&path).map_or(Vec::new(), |at| path[at + 1..].to_vec())
    };
    let above = |sample: &profile::Sample| {
        let mut path = samples::outermost_first(&profile, sample);
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
        let kernel = (0..20).filter(|function| function % 4 == 0).map(|function| format!("function_{function}"));
        let kernel: Vec<_> = kernel.collect();
        share(&|sample| kernel.iter().any(|name| samples::holds(&profile, sample, name)))
    });
    shown.browser.evaluate("app.setQuery('(')");
    assert_eq!(shown.browser.text("share"), "not valid");
    shown.browser.assert_quiet();
}

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

/// Names that try to be markup, to drive a terminal, to be another name, or to be too much.
fn hostile_names() -> Vec<String> {
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
            let stack = builder.stack([frame, frame]);
            builder.add(thread, stack, 10);
        }
        let meta = builder.meta_mut();
        meta.target.clone_from(&names[0]);
        meta.command_line.clone_from(&names[1]);
        meta.host.clone_from(&names[2]);
        meta.losses.push(profile::Losses { cause: names[3].clone(), count: 1 });
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
fn deep_stacks_scroll_within_a_small_canvas() {
    let names: Vec<String> = (0..8_000).map(|level| format!("level_{level}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let Some(mut shown) = show(&samples::plain_profile(&[(&names, 3)])) else { return };
    let sizes = shown.browser.evaluate("[app.graph.canvas.height, app.graph.pad.offsetHeight]");
    assert!(sizes[0].as_u64().unwrap() < 900 && sizes[1].as_u64().unwrap() > 8_000 * 20, "{sizes}");
    shown.browser.evaluate("app.graph.scroller.scrollTop = 1e9");
    shown.click("level_7999");
    assert_eq!(shown.selected(), "level_7999");
    let trail = shown.trail();
    assert!(trail.len() < 10 && trail.last().unwrap() == "level_7999", "{trail:?}");
    shown.browser.press("r");
    assert_eq!(shown.browser.evaluate("app.graph.rows.length"), 8_001);
    shown.browser.assert_quiet();
}

#[test]
fn narrow_siblings_become_one_hatched_box() {
    let mut builder = Builder::default();
    let process = builder.process(1, "process");
    let thread = builder.thread(process, 1, "thread");
    for index in 0..10_000 {
        let frame = samples::frame(&mut builder, &format!("leaf_{index}"), Kind::Native, false, 0);
        let stack = builder.stack([frame]);
        builder.add(thread, stack, if index < 5 { 1_000 } else { 1 });
    }
    let Some(mut shown) = show(&builder.finish()) else { return };
    let (_, _, whole) = shown.place("all");
    let widths = "app.graph.rows[1].width";
    assert_eq!(shown.browser.evaluate(&format!("{widths}.length")), 6);
    let sum = shown.browser.evaluate(&format!("{widths}.reduce((sum, width) => sum + width, 0)")).as_f64().unwrap();
    assert!((sum - whole).abs() < 0.01, "nothing is missing");
    shown.click("9,995 more");
    assert_eq!(shown.place("9,995 more").2, whole);
    assert_eq!(shown.browser.evaluate("app.graph.rows[2].boxes.length"), 20);
    shown.click("500 more");
    assert_eq!(shown.browser.evaluate("app.graph.rows[3].boxes.length"), 500);
    shown.click("leaf_5");
    assert_eq!(shown.trail(), ["all", "leaf_5"]);
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

#[test]
fn long_names_are_shortened_by_segments() {
    let Some(mut shown) = show(&small()) else { return };
    for (name, shortest) in [
        ("std::vector<int, std::allocator<int> >::push_back(int&&)", "push_back"),
        ("finish_task_switch.isra.0", "finish_task_switch"),
        ("std::function<void ()>::operator()() const", "operator()"),
        ("foo::operator<(a<b> const&, c)", "operator<"),
        ("v8::(anonymous namespace)::Invoke(v8::internal::Isolate*)", "Invoke"),
        ("<alloc::boxed::Box<F,A> as core::ops::function::FnOnce<Args>>::call_once", "call_once"),
        ("search::http::handle_query::{{closure}}", "handle_query::{{closure}}"),
        ("runtime.(*mcache).refill", "refill"),
        ("com.example.shop.Cart$Item.price", "price"),
        ("[/usr/lib/libfoo.so.3+0x1234]", "[libfoo.so.3+0x1234]"),
        ("[stopped: no unwind info]", "[stopped: no unwind info]"),
        ("unbalanced<(", "unbalanced<("),
    ] {
        assert_eq!(shown.browser.evaluate(&format!("shortForms({name:?}).at(-1)")), shortest);
    }
    shown.browser.assert_quiet();
}

#[test]
fn narrow_windows_have_room_for_everything() {
    let Some(mut shown) = show(&samples::random_profile(8)) else { return };
    shown.browser.press("t");
    for width in [360, 800, 1400] {
        shown.browser.resize(width, 900);
        let sizes = shown.browser.evaluate(
            "new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done([
                document.documentElement.scrollWidth, app.graph.width, app.graph.height, app.graph.rows[0].width[0],
                app.table.section.getBoundingClientRect().height]))))",
        );
        let [page, graph, height, drawn, table] = std::array::from_fn(|index| sizes[index].as_f64().unwrap());
        assert!(page <= f64::from(width), "{width}: {sizes}");
        assert!(graph > 300.0 && height > 100.0 && table > 100.0, "{width}: {sizes}");
        assert_eq!(graph, drawn, "drawn anew for the new width");
    }
    shown.browser.assert_quiet();
}

#[test]
fn colours_can_be_read_and_told_apart() {
    let Some(mut shown) = show(&small()) else { return };
    let palette = shown.browser.evaluate("PALETTE");
    browser::colour::check(&palette["light"], "#ffffff");
    browser::colour::check(&palette["dark"], "#14171b");
}
