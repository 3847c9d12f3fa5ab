//! Python functions among native and kernel code.

use profile::{Builder, Kind, Profile};
use serde_json::{Value, json};

use super::samples;
use super::shown::{Shown, show};

/// What is said of the interpreter.
const INTERPRETER: &str = "pid 4711 python 3.12.1 libpython3.12.so: key 0 at _PyRuntime+0x608 [code, table, live]; \
                           1,204 stacks, 0 refused";

/// A program with two functions of one name in two files, two nameless ones in one file, and two busy lines.
fn program() -> Profile {
    let mut builder = Builder::default();
    let process = builder.process(4711, "python3");
    let thread = builder.thread(process, 4711, "python3");
    let start = samples::frame(&mut builder, "Py_BytesMain", Kind::Native, false, 0);
    let [compress, receive] =
        ["deflate", "sock_recv"].map(|name| samples::frame(&mut builder, name, Kind::Native, false, 0));
    let entry = samples::frame(&mut builder, "entry_SYSCALL_64", Kind::Kernel, false, 0);
    let module = samples::python(&mut builder, "<module>", "/srv/main.py", 1, 40);
    let helpers = ["/srv/util.py", "/srv/other.py"].map(|file| samples::python(&mut builder, "helper", file, 3, 5));
    let lambdas = [41, 57].map(|line| samples::python(&mut builder, "<lambda>", "/srv/web.py", line, line));
    let lines = [30, 31].map(|line| samples::python(&mut builder, "Handler.handle", "/srv/web.py", 12, line));
    let import = samples::python(&mut builder, "_find_and_load", "<frozen importlib._bootstrap>", 1349, 0);
    for (above, count) in [
        (&[import][..], 5),
        (&[lines[0]], 30),
        (&[lines[1], compress], 70),
        (&[lines[0], receive, entry], 40),
        (&[helpers[0]], 20),
        (&[helpers[1]], 10),
        (&[lambdas[0]], 7),
        (&[lambdas[1]], 8),
    ] {
        let stack = builder.stack([start, module].into_iter().chain(above.iter().copied()));
        builder.add(thread, stack, count);
    }
    builder.meta_mut().interpreters.push(INTERPRETER.to_owned());
    builder.finish()
}

/// Labels and samples of the boxes below `<module>`, the widest first.
fn boxes(shown: &mut Shown) -> Value {
    shown.browser.evaluate(
        "(() => {
            const [tree] = app.trees;
            const [start] = tree.children(tree.root);
            const [module] = tree.children(start);
            return tree.children(module).map(box => [fullLabel(app, box), box.total]);
        })()",
    )
}

#[test]
fn functions_of_one_name_stay_apart() {
    let Some(mut shown) = show(&program()) else { return };
    let expected = json!([
        ["Handler.handle (web.py)", 140],
        ["helper (util.py)", 20],
        ["helper (other.py)", 10],
        ["<lambda> (web.py)", 8],
        ["<lambda> (web.py)", 7],
        ["_find_and_load (<frozen importlib._bootstrap>)", 5]
    ]);
    assert_eq!(boxes(&mut shown), expected);
    shown.browser.press("l");
    let expected = json!([
        ["Handler.handle (web.py:31)", 70],
        ["Handler.handle (web.py:30)", 70],
        ["helper (util.py:5)", 20],
        ["helper (other.py:5)", 10],
        ["<lambda> (web.py:57)", 8],
        ["<lambda> (web.py:41)", 7],
        ["_find_and_load (<frozen importlib._bootstrap>)", 5]
    ]);
    let mut got = boxes(&mut shown);
    // of two that are as wide, either may be first
    got.as_array_mut().unwrap()[..2].sort_by_key(|entry| std::cmp::Reverse(entry[0].to_string()));
    assert_eq!(got, expected);
    shown.browser.assert_quiet();
}

#[test]
fn the_table_tells_files() {
    let Some(mut shown) = show(&program()) else { return };
    shown.browser.press("t");
    let rows = shown.browser.evaluate(
        "[...document.querySelectorAll('#rows tr')].map(row => {
            const cell = row.lastElementChild;
            return [cell.querySelector('b').textContent, cell.querySelector('.module').textContent, cell.title.split('\\n')[1]];
        }).filter(([name]) => name.startsWith('helper') || name.startsWith('<') || name.startsWith('_'))",
    );
    assert_eq!(
        rows,
        json!([
            ["helper", "util.py:3", "/srv/util.py:3"],
            ["helper", "other.py:3", "/srv/other.py:3"],
            ["<lambda>", "web.py:57", "/srv/web.py:57"],
            ["<lambda>", "web.py:41", "/srv/web.py:41"],
            ["_find_and_load", "<frozen importlib._bootstrap>:1349", "<frozen importlib._bootstrap>:1349"],
            ["<module>", "main.py:1", "/srv/main.py:1"]
        ])
    );
    shown.browser.assert_quiet();
}

#[test]
fn search_finds_names_and_files() {
    let Some(mut shown) = show(&program()) else { return };
    for (query, samples) in [
        ("helper", 30),
        ("^helper$", 30),
        ("helper \\\\(util", 20),
        ("^helper \\\\(other\\\\.py\\\\)$", 10),
        ("web.py", 155),
        ("file:/srv/web", 155),
        ("file:frozen", 5),
        ("sample.c", 0),
    ] {
        shown.browser.evaluate(&format!("app.setQuery('{query}')"));
        assert_eq!(shown.browser.evaluate("app.found"), samples, "{query}");
    }
    shown.browser.assert_quiet();
}

#[test]
fn a_box_says_what_it_is() {
    let Some(mut shown) = show(&program()) else { return };
    let legend = shown.browser.evaluate(
        "[...document.querySelectorAll('#legend li')].map(entry => [entry.childNodes[1].textContent, entry.lastChild.textContent])",
    );
    // 40, 70 and 80 of 190
    assert_eq!(legend, json!([["kernel", "21.1 %"], ["native", "36.8 %"], ["python", "42.1 %"]]));
    let facts = "Object.fromEntries(boxFacts(app, app.graph.rows.flatMap(row => row.boxes)
        .find(box => fullLabel(app, box).startsWith('Handler.handle'))))";
    shown.click("Handler.handle (web.py)");
    let shown_facts = shown.browser.evaluate(facts);
    assert_eq!((&shown_facts["kind"], &shown_facts["source"]), (&json!("python"), &json!("/srv/web.py:12")));
    assert_eq!(shown_facts["module"], Value::Null);
    assert_eq!(shown.trail(), ["all", "Py_BytesMain", "<module> (main.py)", "Handler.handle (web.py)"]);
    assert_eq!(shown.browser.text("detail-name"), "Handler.handle (web.py)");
    shown.browser.press("h");
    let chip = shown.browser.evaluate("document.querySelector('#filters button').title");
    assert_eq!(chip, "Undo: hide Handler.handle (web.py)");
    shown.browser.assert_quiet();
}

#[test]
fn a_narrow_box_keeps_the_file_as_long_as_the_name_fits() {
    let Some(mut shown) = show(&program()) else { return };
    let mut fit = |text: &str, less: f64| {
        shown.browser.evaluate(&format!(
            "app.graph.fit(app.graph.rows.flatMap(row => row.boxes)
                .find(box => fullLabel(app, box) === 'Handler.handle (web.py)'), app.graph.measure({text:?}) - {less})"
        ))
    };
    assert_eq!(fit("Handler.handle (web.py)", 0.0), "Handler.handle (web.py)");
    assert_eq!(fit("Handler.handle", 0.0), "Handler.handle");
    assert_eq!(fit("Handler.handle (web.py)", 0.1), "Handler.handle");
    assert_eq!(fit("handle", 0.0), "handle");
    // a line that was asked for stays longer than the class
    shown.browser.press("l");
    let fitted = shown.browser.evaluate(
        "app.graph.fit(app.graph.rows.flatMap(row => row.boxes)
            .find(box => fullLabel(app, box) === 'Handler.handle (web.py:30)'), app.graph.measure('handle (web.py:30)'))",
    );
    assert_eq!(fitted, "handle (web.py:30)");
    shown.browser.assert_quiet();
}

#[test]
fn the_interpreter_is_told_of() {
    let Some(mut shown) = show(&program()) else { return };
    shown.press_button("about-button");
    let lines = shown.browser.evaluate(
        "[...document.querySelectorAll('#about-interpreters li')].map(item => [...item.children].map(part => part.textContent))",
    );
    let (which, evidence) = INTERPRETER.split_once(": ").unwrap();
    assert_eq!(lines, json!([[which, evidence]]));
    shown.browser.assert_quiet();
}
