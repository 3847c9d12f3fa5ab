//! Folded stacks, read back by the rules of their documentation.

use crate::{expected, long, random, synthetic};
use std::collections::BTreeMap;

use profile::{FrameId, Kind, Profile};
use proptest::prelude::*;

fn written(profile: &Profile) -> String {
    let mut out = Vec::new();
    formats::folded::write(profile, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

/// A frame of a line: its name, and the kind that its suffix says.
fn read(frame: &str) -> (String, &str) {
    let suffix = ["_[k]", "_[i]", "_[j]"].into_iter().find(|suffix| frame.ends_with(suffix)).unwrap_or_default();
    let mut rest = &frame[..frame.len() - suffix.len()];
    let mut name = String::new();
    while let Some(c) = rest.chars().next() {
        rest = &rest[c.len_utf8()..];
        if c != '\\' {
            name.push(c);
        } else if let Some(after) = rest.strip_prefix('\\') {
            name.push('\\');
            rest = after;
        } else {
            let (digits, after) = rest.strip_prefix("u{").unwrap().split_once('}').unwrap();
            if !digits.is_empty() {
                name.push(char::from_u32(u32::from_str_radix(digits, 16).unwrap()).unwrap());
            }
            rest = after;
        }
    }
    (name, suffix)
}

type Lines = BTreeMap<Vec<(String, String)>, u64>;

fn read_back(text: &str) -> Lines {
    let mut lines = Lines::new();
    for line in text.lines() {
        let (stack, count) = line.rsplit_once(' ').unwrap();
        let stack = stack.split(';').map(read).map(|(name, suffix)| (name, suffix.to_owned())).collect();
        assert!(lines.insert(stack, count.parse().unwrap()).is_none(), "twice: {line}");
    }
    lines
}

fn expected_lines(profile: &Profile) -> Lines {
    let with_suffix = |frame: FrameId| {
        let suffix = match (profile.function_of(frame).kind, profile.frames[frame.index()].inlined) {
            (Kind::Kernel, _) => "_[k]",
            (Kind::Marker, _) => "",
            (_, true) => "_[i]",
            (Kind::Jit, _) => "_[j]",
            (Kind::Native | Kind::Python, _) => "",
        };
        format!("{}\0{suffix}", profile.label(frame, profile.meta.lines))
    };
    let mut lines = Lines::new();
    for ((process, thread, frames), count) in expected::stacks(profile, with_suffix) {
        let mut stack = vec![(process.clone(), String::new())];
        if thread != process {
            stack.push((thread, String::new()));
        }
        stack.extend(frames.iter().map(|frame| {
            let (name, suffix) = frame.rsplit_once('\0').unwrap();
            (name.to_owned(), suffix.to_owned())
        }));
        *lines.entry(stack).or_default() += count;
    }
    lines
}

#[test]
fn friendly_names_stand_as_they_are() {
    let text = written(&synthetic::friendly());
    let lines: Vec<&str> = text.lines().collect();
    assert!(lines.contains(&"node;[no unwind row];LazyCompile:*render /srv/app.js:44:9_[j] 40"), "{text}");
    assert!(lines.contains(&"server;_start;main;read;entry_SYSCALL_64_[k];vfs_read_[k];copy_page_to_iter_[k] 140"));
    assert!(lines.contains(
        &"server;_start;main;http::parse(std::string_view);http::skip_blanks(char const*)_[i];http::peek_[i] 210"
    ));
    // the thread by its name; as the innermost frame that name must not look like a count
    assert!(lines.iter().any(|line| line.starts_with("server;worker 1;_start;")));
    assert!(lines.contains(&"server;worker\\u{20}1 2"));
    // a Python function with its file
    let front = "gunicorn;Py_BytesMain;<module> (main.py)";
    for rest in [
        "_find_and_load (<frozen importlib._bootstrap>) 15",
        "Handler.handle (web.py) 55",
        "Handler.handle (web.py);helper (util.py) 60",
        "Handler.handle (web.py);helper (other.py) 25",
        // two functions that read the same
        "Handler.handle (web.py);list_sort_impl;<lambda> (web.py) 30",
        "Handler.handle (web.py);sock_recv_guts;entry_SYSCALL_64_[k] 35",
    ] {
        assert!(lines.contains(&format!("{front};{rest}").as_str()), "{rest}: {text}");
    }
}

#[test]
fn lines_are_shown_where_they_are_asked_for() {
    let mut profile = synthetic::friendly();
    profile.meta.lines = true;
    let text = written(&profile);
    for line in [
        "server;_start;main (main.c:31) 40",
        "gunicorn;Py_BytesMain;<module> (main.py:40);_find_and_load (<frozen importlib._bootstrap>) 15",
        "gunicorn;Py_BytesMain;<module> (main.py:40);Handler.handle (web.py:31) 5",
        "gunicorn;Py_BytesMain;<module> (main.py:40);Handler.handle (web.py:30);list_sort_impl;<lambda> (web.py:57) 20",
    ] {
        assert!(text.lines().any(|written| written == line), "{line}: {text}");
    }
}

#[test]
fn hostile_names_come_back() {
    for profile in [synthetic::whole(), long::profile()] {
        assert_eq!(read_back(&written(&profile)), expected_lines(&profile));
    }
}

#[test]
fn nothing_gives_nothing() {
    assert_eq!(written(&Profile::default()), "");
}

/// Found by the fuzz target `formats`: alone in its line, the name and the blank before the count began a comment.
#[test]
fn a_process_that_is_called_like_a_comment_is_counted() {
    let mut author = synthetic::Author::default();
    let thread = author.task(1, "#", "#");
    author.add(thread, &[], 3);
    assert_eq!(written(&author.builder.finish()), "\\u{23} 3\n");
}

#[test]
fn counts_beyond_64_bits_add_up() {
    let mut author = synthetic::Author::default();
    let first = author.task(1, "p", "p");
    let second = author.task(2, "p", "p");
    author.add(first, &[], u64::MAX);
    author.add(second, &[], u64::MAX);
    assert_eq!(written(&author.builder.finish()), format!("p {}\n", u128::from(u64::MAX) * 2));
}

#[test]
fn the_order_of_samples_does_not_matter() {
    let mut profile = synthetic::whole();
    let before = written(&profile);
    profile.samples.reverse();
    assert_eq!(written(&profile), before);
}

#[test]
fn lines_are_in_the_order_of_their_frames() {
    let mut author = synthetic::Author::default();
    let thread = author.task(1, "p", "p");
    let [a, torn, b] = ["a", "a!", "b"].map(|name| author.frame(name, Kind::Native, synthetic::At::default()));
    for stack in [&[b][..], &[a, b], &[torn, b], &[a], &[a, a], &[]] {
        author.add(thread, stack, 1);
    }
    assert_eq!(written(&author.builder.finish()), "p 1\np;a 1\np;a;a 1\np;a;b 1\np;a!;b 1\np;b 1\n");
}

proptest! {
    #[test]
    fn every_profile_comes_back(profile in random::profile()) {
        let text = written(&profile);
        prop_assert_eq!(read_back(&text), expected_lines(&profile));
        prop_assert!(!text.contains(|c: char| c.is_control() && c != '\n'));
        // every line is what other readers take for one stack and one count
        for line in text.lines() {
            prop_assert!(line.trim() == line && !line.starts_with("# "), "{}", line);
            let stack = line.rsplit_once(' ').unwrap().0;
            if let Some((_, word)) = stack.rsplit_once(' ') {
                prop_assert!(!word.bytes().all(|b| b.is_ascii_digit() || b == b'.'), "{}", line);
            }
        }
    }
}
