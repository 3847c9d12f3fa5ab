//! The flame graph: parsed by Python's XML parser, and its boxes against the model.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::process::{Command, Stdio};

use crate::{long, random, synthetic};
use profile::{Kind, Profile};
use proptest::prelude::*;
use serde_json::Value;

fn written(profile: &Profile) -> Vec<u8> {
    let mut out = Vec::new();
    formats::svg::write(profile, &mut out).unwrap();
    out
}

/// Reads an SVG on standard input, writes what is in it as JSON.
const PARSER: &str = r#"
import json, sys, xml.etree.ElementTree as tree
svg = "{http://www.w3.org/2000/svg}"
fg = "{http://github.com/jonhoo/inferno}"
root = tree.fromstring(sys.stdin.buffer.read())
frames = root.find(svg + "svg")
boxes = [] if frames is None else [
    {"title": g.find(svg + "title").text, "text": g.find(svg + "text").text or "", "fill": r.get("fill"), "y": int(r.get("y")),
     "x": int(r.get(fg + "x")), "w": int(r.get(fg + "w"))}
    for g in frames for r in [g.find(svg + "rect")]]
json.dump({
    "total": None if frames is None else frames.get("total_samples"),
    "boxes": boxes,
    "texts": ["".join(e.itertext()) for e in root.findall(svg + "text")],
    "legend": {(e.tail or "").strip(): e.get("fill") for e in root.iter(svg + "tspan")},
    "script": "".join(e.text for e in root.iter(svg + "script")),
    "description": [e.text for e in root.findall(svg + "desc")],
    "elements": sorted({e.tag.replace(svg, "") for e in root.iter()}),
    "attributes": sorted({k for e in root.iter() for k in e.attrib}),
}, sys.stdout)
"#;

fn parsed(svg: &[u8]) -> Value {
    let mut python = Command::new("python3")
        .args(["-I", "-c", PARSER])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("python3 is needed for its XML parser");
    python.stdin.take().unwrap().write_all(svg).unwrap();
    let output = python.wait_with_output().unwrap();
    assert!(output.status.success(), "not well-formed: {}", String::from_utf8_lossy(svg));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Boxes by the name in their title.
fn boxes(file: &Value) -> BTreeMap<String, Vec<Value>> {
    let mut boxes: BTreeMap<String, Vec<Value>> = BTreeMap::new();
    for one in file["boxes"].as_array().unwrap() {
        // "name (12 samples, 3.45%)"
        let name = one["title"].as_str().unwrap().rsplit_once(" (").unwrap().0;
        boxes.entry(name.to_owned()).or_default().push(one.clone());
    }
    boxes
}

fn width(boxes: &BTreeMap<String, Vec<Value>>, name: &str) -> u64 {
    boxes
        .get(name)
        .unwrap_or_else(|| panic!("{name} is not in {:?}", boxes.keys()))
        .iter()
        .map(|one| one["w"].as_u64().unwrap())
        .sum()
}

#[test]
fn boxes_are_as_wide_as_their_samples() {
    let profile = synthetic::friendly();
    let file = parsed(&written(&profile));
    assert_eq!(file["total"], profile.total().to_string());
    let boxes = boxes(&file);
    for (name, samples) in [("all", 1202), ("server", 662), ("node", 240), ("worker 1", 92), ("main", 660)] {
        assert_eq!(width(&boxes, name), samples, "{name}");
    }
    assert_eq!(width(&boxes, "http::peek"), 210);
    assert_eq!(boxes["http::peek"][0]["title"], "http::peek (210 samples, 17.47%)");
    // callees are below their callers
    let y = |name: &str| boxes[name][0]["y"].as_u64().unwrap();
    assert!(y("all") < y("server") && y("server") < y("_start") && y("_start") < y("main") && y("main") < y("read"));
}

#[test]
fn title_and_subtitle_say_what_it_is() {
    let file = parsed(&written(&synthetic::friendly()));
    let texts = file["texts"].as_array().unwrap();
    assert_eq!(texts[0], "whole machine");
    let subtitle = texts[1].as_str().unwrap();
    for part in ["wholestack record --duration 10 -o profile.", "2023-11-1", ", 10.0 s, 100 Hz, 1202 samples, 3 lost"] {
        assert!(subtitle.contains(part), "{subtitle}");
    }
}

fn rgb(colour: &str) -> Vec<i32> {
    let inner = colour.strip_prefix("rgb(").unwrap().strip_suffix(')').unwrap();
    inner.split(',').map(|channel| channel.parse().unwrap()).collect()
}

/// The colour of a box is a shade of the one that the legend has for its kind and nearer to it than to any other.
#[test]
fn colours_are_those_of_the_legend() {
    let file = parsed(&written(&synthetic::friendly()));
    let boxes = boxes(&file);
    let legend = file["legend"].as_object().unwrap();
    for (name, kind) in [
        ("vfs_read", "kernel"),
        ("main", "native"),
        ("http::peek", "inlined"),
        ("LazyCompile:*handler /srv/app.js:10:3", "jit"),
        ("<module> (main.py)", "python"),
        ("helper (other.py)", "python"),
        ("_find_and_load (<frozen importlib._bootstrap>)", "python"),
        ("[no unwind row]", "marker"),
        ("worker 1", "process/thread"),
    ] {
        let fill = rgb(boxes[name][0]["fill"].as_str().unwrap());
        // shades of a colour differ by one factor
        let distance = |colour: &str| {
            let base = rgb(colour);
            let factor = f64::from(fill.iter().sum::<i32>()) / f64::from(base.iter().sum::<i32>());
            base.iter().zip(&fill).map(|(base, fill)| (f64::from(*base) * factor - f64::from(*fill)).abs()).sum::<f64>()
        };
        let nearest = legend
            .iter()
            .map(|(kind, colour)| (distance(colour.as_str().unwrap()), kind))
            .min_by(|a, b| a.0.total_cmp(&b.0));
        assert_eq!(nearest.unwrap().1, kind, "{name}");
    }
    assert_eq!(legend.len(), 7);
}

#[test]
fn the_description_has_a_line_for_each_process() {
    let file = parsed(&written(&synthetic::friendly()));
    let [description] = file["description"].as_array().unwrap().as_slice() else { panic!("one description") };
    let lines: Vec<&str> = description.as_str().unwrap().lines().collect();
    for line in ["host: box", synthetic::INTERPRETER, "pid 5000 node: 240 samples, 240 ended in root (whole)"] {
        assert!(lines.contains(&line), "{lines:?}");
    }
    let hostile = parsed(&written(&synthetic::whole()));
    let description = hostile["description"][0].as_str().unwrap();
    assert!(!description.contains(|c: char| c.is_control() && c != '\n'), "{description}");
    assert!(description.contains("\npid 9000 python 3.12.1 </title><script>alert(1)</script>: refused\n"));
}

/// Names are text and nothing else: the elements, attributes and scripts are those of a profile without them.
#[test]
fn hostile_names_stay_text() {
    let friendly = parsed(&written(&synthetic::friendly()));
    let hostile = parsed(&written(&synthetic::whole()));
    for part in ["elements", "attributes", "script"] {
        assert_eq!(hostile[part], friendly[part], "{part}");
    }
    let boxes = boxes(&hostile);
    for name in [
        "</title><script>alert(1)</script>",
        "]]><script>alert(2)</script>",
        "\" onload=\"alert(3)",
        "a;b;c",
        "a 12",
        " leading and trailing ",
        "# comment",
        "native_[k]",
        "[native in brackets]",
        "\\u{1b}[31mred\\u{1b}[0m\\u{7}\\u{0}",
        "\\u{9b}31m\\u{80}\\u{81}\\u{82}\\u{83}\\u{90}",
    ] {
        // one process and in it one frame of each kind but Python, which has its file behind the name
        let kinds = Kind::ALL.len();
        assert_eq!(boxes[name].len(), kinds, "{name}");
        assert_eq!(width(&boxes, name), kinds as u64 * 7, "{name}");
    }
    // a Python function without a name has no name of its file either
    assert_eq!(width(&boxes, "(no name)"), 6 * 7);
    for name in [
        "a;b;c (a;b;c)",
        " leading and trailing  ( leading and trailing )",
        "\\u{1b}[31mred\\u{1b}[0m\\u{7}\\u{0} (\\u{1b}[31mred\\u{1b}[0m\\u{7}\\u{0})",
        "]]><script>alert(2)</script> (script>)",
        "<frozen a;b\\u{a}/c> (<frozen a;b\\u{a}/c>)",
        "caf\\udce9 \u{fffd}\u{fffd}/\u{fffd}.py (\u{fffd}.py)",
    ] {
        assert_eq!(width(&boxes, name), 7, "{name}");
    }
}

#[test]
fn long_names_stay_whole() {
    let boxes = boxes(&parsed(&written(&long::profile())));
    let longest = boxes.keys().map(String::len).max();
    // that of Python, with a path of which nothing is left out
    assert!(longest > Some(2 * long::BYTES), "{longest:?}");
    assert_eq!(boxes.values().map(Vec::len).sum::<usize>(), 2 + Kind::ALL.len());
}

#[test]
fn a_picture_of_nothing() {
    for meta_of in [Profile::default(), synthetic::whole()] {
        let profile = Profile { meta: meta_of.meta, ..Profile::default() };
        let file = parsed(&written(&profile));
        assert_eq!(file["elements"], serde_json::json!(["desc", "rect", "svg", "text"]));
        assert!(file["texts"][1].as_str().unwrap().ends_with("no samples"));
    }
}

/// A box is not torn where the name of its sibling is between it and the `;` that follows it.
#[test]
fn siblings_do_not_tear_a_box() {
    let mut author = synthetic::Author::default();
    let thread = author.task(1, "p", "p");
    let [a, sibling, b] = ["a", "a!", "b"].map(|name| author.frame(name, Kind::Native, synthetic::At::default()));
    for stack in [[a].as_slice(), &[sibling, b], &[a, b]] {
        author.add(thread, stack, 1);
    }
    assert_eq!(boxes(&parsed(&written(&author.builder.finish())))["a"].len(), 1);
}

/// Counts that the script could not read exactly are drawn to scale and shown in full.
#[test]
fn huge_counts() {
    let mut author = synthetic::Author::default();
    for (name, count) in [("half", u64::MAX), ("quarter", u64::MAX / 2), ("rest", u64::MAX / 2), ("one", 1)] {
        let thread = author.task(1, name, name);
        author.add(thread, &[], count);
    }
    let file = parsed(&written(&author.builder.finish()));
    let total: u64 = file["total"].as_str().unwrap().parse().unwrap();
    assert!(total > 1 << 51 && total <= 1 << 53, "{total}");
    let boxes = boxes(&file);
    assert_eq!(width(&boxes, "quarter"), total / 4);
    assert!(boxes["half"][0]["title"].as_str().unwrap().ends_with(" samples, 50.00%)"));
    // what is too narrow is left out, its samples are not
    assert!(!boxes.contains_key("one"));
}

#[test]
fn boxes_below_a_ten_thousandth_are_left_out() {
    let mut author = synthetic::Author::default();
    let thread = author.task(1, "p", "p");
    let [narrow, narrower] =
        ["narrow", "narrower"].map(|name| author.frame(name, Kind::Native, synthetic::At::default()));
    author.add(thread, &[], 19_985);
    author.add(thread, &[narrow], 2);
    author.add(thread, &[narrower], 1);
    author.add(thread, &[narrow, narrower], 1);
    let lost = author.task(2, "q", "q");
    author.add(lost, &[], 1);
    let file = parsed(&written(&author.builder.finish()));
    assert_eq!(file["total"], "19990");
    let boxes = boxes(&file);
    assert_eq!((width(&boxes, "p"), width(&boxes, "narrow"), width(&boxes, "(too narrow to draw)")), (19_989, 3, 1));
    assert!(!boxes.contains_key("narrower") && !boxes.contains_key("q"));
}

proptest! {
    // each case starts Python
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn every_profile_is_well_formed(profile in random::profile()) {
        let file = parsed(&written(&profile));
        let total = profile.total();
        prop_assert_eq!(&file["total"], &if total == 0 { Value::Null } else { total.to_string().into() });
        for one in file["boxes"].as_array().unwrap() {
            prop_assert!(one["x"].as_u64().unwrap() + one["w"].as_u64().unwrap() <= total);
        }
    }
}
