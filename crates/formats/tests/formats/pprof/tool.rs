//! What `go tool pprof` reads.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use super::written;
use crate::{expected, synthetic};
use profile::Profile;

/// Writes a profile and runs `go tool pprof` on it.
pub(super) fn pprof(profile: &Profile, arguments: &[&str]) -> String {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("profile.pb.gz");
    std::fs::write(&path, written(profile)).unwrap();
    run(&path, arguments)
}

fn run(path: &Path, arguments: &[&str]) -> String {
    let empty = tempfile::tempdir().unwrap();
    let output = Command::new("go")
        .args(["tool", "pprof"])
        .args(arguments)
        .arg(path)
        // no binaries but those at the paths in the profile
        .env("PPROF_BINARY_PATH", empty.path())
        .env("PPROF_TMPDIR", empty.path())
        .output()
        .expect("go is needed for its pprof");
    let (out, err) = (String::from_utf8(output.stdout).unwrap(), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{arguments:?}: {out}{err}");
    out
}

#[test]
fn raw_shows_every_sample() {
    let raw = pprof(&synthetic::friendly(), &["-raw"]);
    for part in [
        "PeriodType: cpu nanoseconds",
        "Period: 10000000",
        "Duration: 10.0",
        "samples/count cpu/nanoseconds",
        "Comment: lost: 3 samples: ring buffer full",
        "http::peek /src/server/http.h:13:0 s=12",
        "/usr/sbin/server 0123456789abcdef0123456789abcdef01234567 [FN][FL][LN][IN]",
        "pid:[4711] tid:[4712]",
        "process:[server]",
        "thread:[worker 1]",
    ] {
        assert!(raw.contains(part), "{part} is not in: {raw}");
    }
    let samples = raw.split_once("cpu/nanoseconds\n").unwrap().1.split_once("Locations\n").unwrap().0;
    let counts: u64 = samples
        .lines()
        .filter_map(|line| line.split_once(": "))
        .filter_map(|(values, _)| values.split_whitespace().next()?.parse::<u64>().ok())
        .sum();
    assert_eq!(counts, 1202);
}

/// Flat and cumulative counts by function, from the model.
fn counts(profile: &Profile) -> BTreeMap<String, (u64, u64)> {
    let mut counts: BTreeMap<String, (u64, u64)> = BTreeMap::new();
    for ((_, _, frames), count) in expected::stacks(profile, |frame| profile.label(frame, false)) {
        if let Some(innermost) = frames.last() {
            counts.entry(innermost.clone()).or_default().0 += count;
        }
        let each: std::collections::BTreeSet<&String> = frames.iter().collect();
        for name in each {
            counts.entry(name.clone()).or_default().1 += count;
        }
    }
    counts
}

#[test]
fn top_counts_what_the_model_counts() {
    let profile = synthetic::friendly();
    let top = pprof(&profile, &["-top", "-nodecount=1000", "-nodefraction=0", "-sample_index=samples"]);
    let rows = top.lines().skip_while(|line| !line.trim_start().starts_with("flat")).skip(1);
    let mut got = BTreeMap::new();
    for row in rows {
        let words: Vec<&str> = row.split_whitespace().collect();
        let name = words[5..].join(" ").replace(" (inline)", "");
        got.insert(name, (words[0].parse::<u64>().unwrap(), words[3].parse::<u64>().unwrap()));
    }
    // pprof leaves arguments out of names
    let short = |name: &str| match name.strip_suffix("(std::string_view)").or(name.strip_suffix("(char const*)")) {
        Some(short) => short.to_owned(),
        None => name.to_owned(),
    };
    let wanted: BTreeMap<_, _> = counts(&profile).into_iter().map(|(name, count)| (short(&name), count)).collect();
    assert_eq!(got, wanted, "{top}");
}

#[test]
fn traces_show_every_stack() {
    let profile = synthetic::friendly();
    let traces = pprof(&profile, &["-traces", "-sample_index=samples", "-symbolize=none"]);
    let stacks = expected::stacks(&profile, |frame| profile.label(frame, true));
    // pprof draws no empty stack; its samples are in the total
    for (_, count) in stacks.iter().filter(|((_, _, frames), _)| !frames.is_empty()) {
        assert!(traces.lines().any(|line| line.split_whitespace().next() == Some(&count.to_string())), "{traces}");
    }
    let stack = ["140   copy_page_to_iter", "vfs_read", "entry_SYSCALL_64", "read", "main", "_start"];
    let lines: Vec<&str> = traces.lines().map(str::trim).collect();
    assert!(lines.windows(stack.len()).any(|window| window == stack), "{traces}");
}

/// pprof itself tells them apart, and leaves names in angle brackets as they are.
#[test]
fn python_functions_are_functions() {
    let profile = synthetic::friendly();
    let all = ["-top", "-nodecount=1000", "-nodefraction=0", "-sample_index=samples"];
    let top = pprof(&profile, &all);
    let flat = |top: &str, name: &str| {
        let rows = top.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
        rows.filter(|words| words.len() > 5 && words[5..].join(" ") == name)
            .map(|words| words[0].to_owned())
            .collect::<Vec<_>>()
    };
    for (name, count) in [
        ("helper (util.py)", "60"),
        ("helper (other.py)", "25"),
        ("<lambda> (web.py)", "30"),
        ("<module> (main.py)", "0"),
        ("Handler.handle (web.py)", "55"),
        ("_find_and_load (<frozen importlib._bootstrap>)", "15"),
    ] {
        assert_eq!(flat(&top, name), [count], "{top}");
    }
    let lines = pprof(&profile, &[&all[..], &["-lines"]].concat());
    for (name, count) in [
        ("Handler.handle (web.py) /srv/app/web.py:30", "50"),
        ("Handler.handle (web.py) /srv/app/web.py:31", "5"),
        ("<lambda> (web.py) /srv/app/web.py:41", "10"),
        ("<lambda> (web.py) /srv/app/web.py:57", "20"),
    ] {
        assert_eq!(flat(&lines, name), [count], "{lines}");
    }
    // names stay whole where pprof is told to make them anew from those of the linker
    let forced = pprof(&profile, &[&all[..], &["-symbolize=demangle=force"]].concat());
    assert_eq!(flat(&forced, "<module> (main.py)"), ["0"], "{forced}");
    // what is said of single processes is for who asks
    assert!(top.contains("host: box") && !top.contains("python 3.12.1"), "{top}");
    assert!(pprof(&profile, &["-comments"]).contains(synthetic::INTERPRETER));
}

/// The lines of a function in its source, with the samples of each.
#[test]
fn python_source_is_listed_line_by_line() {
    let directory = tempfile::tempdir().unwrap();
    let source = directory.path().join("work.py");
    std::fs::write(&source, "import zlib\n\ndef work(data):\n    once(data)\n    twice(data)\n").unwrap();
    let mut author = synthetic::Author::default();
    let thread = author.task(1, "work", "work");
    for (line, count) in [(4, 10), (5, 30)] {
        let source = Some((source.to_str().unwrap(), 3, line));
        let frame = author.frame("work", profile::Kind::Python, synthetic::At { source, ..Default::default() });
        author.add(thread, &[frame], count);
    }
    let list = pprof(&author.builder.finish(), &["-list=^work ", "-sample_index=samples"]);
    for line in ["10         10      4:    once(data)", "30         30      5:    twice(data)"] {
        assert!(list.contains(line), "{line}: {list}");
    }
}

#[test]
fn tags_select_threads() {
    let profile = synthetic::friendly();
    for (focus, total) in [("pid=5000", 240), ("tid=4712", 90), ("process=server", 660), ("thread=worker", 90)] {
        let focus = format!("-tagfocus={focus}");
        let top = pprof(&profile, &["-top", "-sample_index=samples", &focus]);
        assert!(top.contains(&format!("Showing nodes accounting for {total}, ")), "{focus}: {top}");
    }
}

#[test]
fn hostile_names_do_not_reach_the_terminal() {
    for arguments in [&["-raw"][..], &["-top"], &["-traces"], &["-comments"], &["-tags"], &["-peek=."], &["-dot"]] {
        let out = pprof(&synthetic::whole(), arguments);
        let control = out.chars().find(|c| c.is_control() && !matches!(c, '\n' | '\t'));
        assert_eq!(control, None, "{arguments:?}");
        assert!(arguments == ["-dot"] || out.contains("\\u{1b}[31mred"), "{arguments:?}: {out}");
    }
}

#[test]
fn an_empty_profile_is_one() {
    assert!(pprof(&Profile::default(), &["-raw"]).contains("Samples:\nsamples/count\nLocations\nMappings\n"));
}
