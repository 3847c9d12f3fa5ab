//! Labels.

use super::*;
use crate::Builder;

/// The label of one frame, without and with its line.
fn labels(name: &str, kind: Kind, file: Option<&str>, line: u32) -> [String; 2] {
    let mut builder = Builder::default();
    let name = builder.text(name);
    let file = file.map(|file| builder.text(file));
    let function = builder.function(FunctionKey { name, kind, file, start_line: 3, module: None });
    let frame = builder.frame(FrameKey { line, ..FrameKey::of(function) });
    let profile = builder.finish();
    [false, true].map(|with_lines| profile.label(frame, with_lines))
}

#[test]
fn a_python_function_has_its_file_behind_it() {
    for (name, file, line, plain, with_line) in [
        ("Pool.run", "/srv/app/pool.py", 12, "Pool.run (pool.py)", "Pool.run (pool.py:12)"),
        ("Pool.run", "/srv/app/pool.py", 0, "Pool.run (pool.py)", "Pool.run (pool.py)"),
        ("<module>", "run.py", 1, "<module> (run.py)", "<module> (run.py:1)"),
        ("f", "<string>", 7, "f (<string>)", "f (<string>:7)"),
        (
            "_find_and_load",
            "<frozen importlib._bootstrap>",
            1360,
            "_find_and_load (<frozen importlib._bootstrap>)",
            "_find_and_load (<frozen importlib._bootstrap>:1360)",
        ),
        ("f", "<a/b>", 2, "f (<a/b>)", "f (<a/b>:2)"),
        ("f", "/srv/<x>.py", 2, "f (<x>.py)", "f (<x>.py:2)"),
        ("f", "/srv/", 0, "f (/srv/)", "f (/srv/)"),
        ("f", "/", 0, "f (/)", "f (/)"),
        ("f", "", 0, "f", "f"),
        ("", "a.py", 0, " (a.py)", " (a.py)"),
    ] {
        assert_eq!(labels(name, Kind::Python, Some(file), line), [plain, with_line]);
    }
    assert_eq!(labels("f", Kind::Python, None, 9), ["f", "f"]);
}

#[test]
fn other_functions_have_it_with_their_line_only() {
    for kind in Kind::ALL.iter().filter(|kind| **kind != Kind::Python) {
        assert_eq!(labels("main", *kind, Some("/src/main.c"), 31), ["main", "main (main.c:31)"]);
        assert_eq!(labels("main", *kind, Some("/src/main.c"), 0), ["main", "main"]);
        assert_eq!(labels("main", *kind, None, 31), ["main", "main"]);
    }
}

#[test]
fn functions_are_told_apart_by_file_and_first_line() {
    let mut builder = Builder::default();
    let name = builder.text("<lambda>");
    let files = ["/a/x.py", "/b/x.py"].map(|file| builder.text(file));
    let mut ids = Vec::new();
    for (file, start_line) in [(files[0], 3), (files[0], 4), (files[1], 3), (files[0], 3)] {
        ids.push(builder.function(FunctionKey {
            name,
            kind: Kind::Python,
            file: Some(file),
            start_line,
            module: None,
        }));
    }
    assert_eq!(ids, [0, 1, 2, 0].map(FunctionId));
}

#[test]
fn every_kind_has_a_name_of_its_own() {
    let mut names: Vec<&str> = Kind::ALL.iter().map(|kind| kind.name()).collect();
    assert_eq!(names, ["kernel", "native", "jit", "python", "marker"]);
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), Kind::ALL.len());
}
