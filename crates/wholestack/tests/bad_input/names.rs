//! Names that processes give themselves.

use crate::common::recorder::run;
use crate::common::target::{Target, condition};
use crate::common::{compile, is_root, names_in, open_directory};

/// 15 bytes at most: ends a script, acts on a terminal, breaks a line.
const NAME: &str = "</script>\u{1b}[7m\n;";

#[test]
fn a_name_stays_a_name_in_every_output() {
    if !is_root() {
        return;
    }
    let directory = open_directory();
    let mut target = Target::start(&compile(directory.path(), "spin"), &[NAME]);
    target.line();
    let before = condition(target.pid());
    let pid = target.pid().to_string();
    let out = open_directory();
    let arguments = ["record", "-F", "499", "-d", "500ms", "-p", &pid];
    let outputs = ["out.html", "out.svg", "out.json", "out.folded"];
    let with_outputs: Vec<&str> =
        arguments.into_iter().chain(outputs.iter().flat_map(|output| ["-o", output])).collect();
    let ended = run(out.path(), &with_outputs).expect(0);
    assert!(ended.stderr.contains("</script>"), "the name is shown: {}", ended.stderr);
    assert!(!ended.stderr.contains('\u{1b}'), "{:?}", ended.stderr);
    target.assert_unharmed(&before);

    let read = |name: &str| std::fs::read_to_string(out.path().join(name)).expect("an output");
    for output in outputs {
        assert!(!read(output).contains('\u{1b}'), "{output}");
    }
    let (html, svg) = (read("out.html"), read("out.svg"));
    assert_eq!(html.matches("</script").count(), html.matches("<script").count());
    assert!(!svg.contains("</script>\u{1b}") && !svg.contains("</script>["), "{svg}");
    serde_json::from_str::<serde_json::Value>(&read("out.json")).expect("JSON");
    for line in read("out.folded").lines() {
        let count = line.rsplit(' ').next().and_then(|count| count.parse::<u64>().ok());
        assert!(count.is_some(), "a line of folded stacks ends in a number: {line:?}");
    }
}

/// The name of the output that is made up.
#[test]
fn a_name_becomes_no_path() {
    if !is_root() {
        return;
    }
    let directory = open_directory();
    let mut target = Target::start(&compile(directory.path(), "spin"), &["../../\u{1b}[1m\nx"]);
    target.line();
    let out = open_directory();
    let pid = target.pid().to_string();
    run(out.path(), &["record", "-d", "100ms", "-p", &pid]).expect(0);
    let names = names_in(out.path());
    assert_eq!(names.len(), 1, "{names:?}");
    assert!(names[0].starts_with("wholestack-.._.._") && names[0].ends_with(".html"), "{names:?}");
    assert!(names[0].chars().all(|c| c.is_ascii_graphic()), "{names:?}");
}
