//! Speedscope's JSON, by the schema of speedscope and against the model.

use crate::{expected, long, random, schema, synthetic};
use profile::Profile;
use proptest::prelude::*;
use serde_json::{Value, json};

fn written(profile: &Profile) -> Value {
    let mut out = Vec::new();
    formats::speedscope::write(profile, &mut out).unwrap();
    serde_json::from_slice(&out).unwrap()
}

fn official_schema() -> Value {
    serde_json::from_str(include_str!("fixtures/speedscope-file-format-schema.json")).unwrap()
}

fn follows_schema(file: &Value) -> Result<(), String> {
    let schema = official_schema();
    schema::check(&schema, &schema, file)
}

/// The samples of one profile of a file as names, outermost first, with their weights.
fn samples<'a>(file: &'a Value, profile: &'a Value) -> Vec<(Vec<&'a str>, u64)> {
    let frames = file["shared"]["frames"].as_array().unwrap();
    let name = |index: &Value| frames[index.as_u64().unwrap() as usize]["name"].as_str().unwrap();
    let stacks = profile["samples"].as_array().unwrap();
    let weights = profile["weights"].as_array().unwrap();
    assert_eq!(stacks.len(), weights.len());
    stacks
        .iter()
        .zip(weights)
        .map(|(stack, weight)| (stack.as_array().unwrap().iter().map(name).collect(), weight.as_u64().unwrap()))
        .collect()
}

/// What the profile of all threads says is what the model says.
fn check_all(profile: &Profile, file: &Value) {
    let mut got = Vec::new();
    for (stack, weight) in samples(file, &file["profiles"][0]) {
        got.push((stack.into_iter().map(String::from).collect::<Vec<_>>(), weight));
    }
    let mut wanted = Vec::new();
    for sample in &profile.samples {
        let (process, thread) = expected::tasks(profile, sample);
        let mut stack: Vec<String> =
            profile.frames_of(sample.stack).map(|frame| expected::name(profile, frame)).collect();
        stack.extend((thread != process).then_some(thread));
        stack.push(process);
        stack.reverse();
        wanted.push((stack, sample.count));
    }
    got.sort();
    wanted.sort();
    assert_eq!(got, wanted);
}

/// The sums of all profiles: the first is the sum of the others.
fn check_sums(profile: &Profile, file: &Value) {
    let profiles = file["profiles"].as_array().unwrap();
    let mut sums = Vec::new();
    for one in profiles {
        let sum: u64 = samples(file, one).iter().map(|(_, weight)| weight).sum();
        assert_eq!((one["startValue"].as_u64(), one["endValue"].as_u64()), (Some(0), Some(sum)));
        sums.push(sum);
    }
    assert_eq!(sums[0], profile.total());
    assert_eq!(sums[1..].iter().sum::<u64>(), profile.total());
}

#[test]
fn the_file_says_what_the_model_says() {
    for profile in [synthetic::friendly(), synthetic::whole(), long::profile(), Profile::default()] {
        let file = written(&profile);
        follows_schema(&file).unwrap();
        check_all(&profile, &file);
        check_sums(&profile, &file);
    }
}

#[test]
fn the_checker_finds_what_is_wrong() {
    let good = written(&synthetic::friendly());
    follows_schema(&good).unwrap();
    let changes: [(&str, Value); 7] = [
        ("/$schema", json!("https://example.com")),
        ("/profiles/0/type", json!("other")),
        ("/profiles/0/unit", json!("hours")),
        ("/profiles/0/samples/0/0", json!("0")),
        ("/profiles/0/weights", json!(null)),
        ("/shared/frames/0/name", json!(1)),
        ("/shared/frames", json!({})),
    ];
    for (place, value) in changes {
        let mut bad = good.clone();
        *bad.pointer_mut(place).unwrap() = value;
        follows_schema(&bad).unwrap_err();
    }
    for (place, name) in [("/profiles/1", "weights"), ("/shared/frames/0", "name"), ("", "shared")] {
        let mut bad = good.clone();
        bad.pointer_mut(place).unwrap().as_object_mut().unwrap().remove(name).unwrap();
        follows_schema(&bad).unwrap_err();
    }
}

#[test]
fn frames_are_functions() {
    let mut profile = synthetic::friendly();
    let frame = |file: &Value, name: &str| {
        let frames = file["shared"]["frames"].as_array().unwrap();
        let mut found = frames.iter().filter(|frame| frame["name"] == name).cloned();
        let one = found.next().unwrap();
        assert_eq!(found.next(), None, "{name} occurs twice");
        one
    };
    let file = written(&profile);
    assert_eq!(frame(&file, "main"), json!({"name": "main", "file": "/src/server/main.c", "line": 20}));
    assert_eq!(frame(&file, "vfs_read"), json!({"name": "vfs_read", "file": "[kernel]"}));
    assert_eq!(frame(&file, "[no unwind row]"), json!({"name": "[no unwind row]"}));
    profile.meta.lines = true;
    assert_eq!(frame(&written(&profile), "main"), json!({"name": "main", "file": "/src/server/main.c", "line": 31}));
}

#[test]
fn python_functions_have_file_and_line() {
    let mut profile = synthetic::friendly();
    let frames = |profile: &Profile, name: &str| -> Vec<Value> {
        let file = written(profile);
        let all = file["shared"]["frames"].as_array().unwrap().clone();
        all.into_iter().filter(|frame| frame["name"] == name).collect()
    };
    let frame = |name: &str, file: &str, line: u32| json!({"name": name, "file": file, "line": line});
    let [util, other] = ["/srv/app/util.py", "/srv/app/other.py"].map(|file| move |line| frame("helper", file, line));
    let lambdas = [41, 57].map(|line| frame("<lambda>", "/srv/app/web.py", line));
    assert_eq!(frames(&profile, "helper"), [util(3), other(3)]);
    assert_eq!(frames(&profile, "<lambda>"), lambdas);
    assert_eq!(frames(&profile, "Handler.handle"), [frame("Handler.handle", "/srv/app/web.py", 12)]);
    profile.meta.lines = true;
    assert_eq!(frames(&profile, "helper"), [util(5), other(5)]);
    assert_eq!(frames(&profile, "<lambda>"), lambdas);
    let lines = [30, 31].map(|line| frame("Handler.handle", "/srv/app/web.py", line));
    assert_eq!(frames(&profile, "Handler.handle"), lines);
    let unknown = json!({"name": "_find_and_load", "file": "<frozen importlib._bootstrap>"});
    assert_eq!(frames(&profile, "_find_and_load"), [unknown]);
}

#[test]
fn comments_tell_of_the_recording() {
    let file = written(&synthetic::friendly());
    let comments = file["comments"].as_array().unwrap();
    for comment in [
        "command: wholestack record --duration 10 -o profile.html",
        "lost: 3 samples: ring buffer full",
        synthetic::INTERPRETER,
        "pid 5000 node: 240 samples, 240 ended in root (whole)",
    ] {
        assert!(comments.contains(&json!(comment)), "{comment}: {comments:?}");
    }
}

#[test]
fn threads_come_busiest_first() {
    let file = written(&synthetic::friendly());
    let names: Vec<&str> =
        file["profiles"].as_array().unwrap().iter().map(|one| one["name"].as_str().unwrap()).collect();
    assert_eq!(
        names,
        ["all threads", "server (4711)", "gunicorn (6000)", "node (5000)", "server (4711) / worker 1 (4712)"]
    );
    assert_eq!(file["exporter"], "wholestack 0.1.0");
    assert_eq!(file["name"], "whole machine");
}

#[test]
fn counts_beyond_64_bits_are_cut() {
    let mut author = synthetic::Author::default();
    for pid in [1, 2] {
        let thread = author.task(pid, "p", "p");
        author.add(thread, &[], u64::MAX);
    }
    let file = written(&author.builder.finish());
    follows_schema(&file).unwrap();
    assert_eq!(file["profiles"][0]["endValue"], u64::MAX);
}

proptest! {
    #[test]
    fn every_profile_follows_the_schema(profile in random::profile()) {
        let file = written(&profile);
        follows_schema(&file).map_err(TestCaseError::fail)?;
        check_all(&profile, &file);
        check_sums(&profile, &file);
    }
}
