//! The pprof profile: decoded, and read by `go tool pprof`.

mod addresses;
mod tool;

use std::collections::BTreeMap;
use std::io::Read as _;

use crate::{expected, long, random, synthetic};
use flate2::read::GzDecoder;
use formats::pprof::messages;
use profile::Profile;
use proptest::prelude::*;
use prost::Message as _;

fn written(profile: &Profile) -> Vec<u8> {
    let mut out = Vec::new();
    formats::pprof::write(profile, &mut out).unwrap();
    out
}

/// A decoded profile.
struct Decoded(messages::Profile);

impl Decoded {
    fn of(profile: &Profile) -> Decoded {
        let mut raw = Vec::new();
        GzDecoder::new(written(profile).as_slice()).read_to_end(&mut raw).unwrap();
        Decoded(messages::Profile::decode(raw.as_slice()).unwrap())
    }

    fn string(&self, at: i64) -> &str {
        &self.0.string_table[usize::try_from(at).unwrap()]
    }

    fn location(&self, id: u64) -> &messages::Location {
        let location = &self.0.location[id as usize - 1];
        assert_eq!(location.id, id);
        location
    }

    fn function_name(&self, id: u64) -> &str {
        let function = &self.0.function[id as usize - 1];
        assert_eq!(function.id, id);
        self.string(function.name)
    }

    /// Names of the frames of a sample, outermost first.
    fn stack(&self, sample: &messages::Sample) -> Vec<String> {
        let locations = sample.location_id.iter().map(|id| self.location(*id));
        let lines = locations.flat_map(|location| &location.line);
        let mut names: Vec<String> = lines.map(|line| self.function_name(line.function_id).to_owned()).collect();
        names.reverse();
        names
    }

    fn text_label(&self, sample: &messages::Sample, key: &str) -> String {
        let label = sample.label.iter().find(|label| self.string(label.key) == key).unwrap();
        self.string(label.str).to_owned()
    }

    fn number_label(&self, sample: &messages::Sample, key: &str) -> i64 {
        sample.label.iter().find(|label| self.string(label.key) == key).unwrap().num
    }
}

/// What the documentation of escapes says, written once more.
fn visible(text: &str) -> String {
    let steers = |c: char| {
        c.is_control()
            || c.is_whitespace() && c != ' '
            || "\u{61c}\u{180e}\u{200b}\u{200e}\u{200f}\u{feff}".contains(c)
            || ('\u{202a}'..='\u{202e}').contains(&c)
            || ('\u{2060}'..='\u{2069}').contains(&c)
            || ('\u{fdd0}'..='\u{fdef}').contains(&c)
            || [0xfffe, 0xffff].contains(&(c as u32 & 0xffff))
    };
    text.chars().map(|c| if steers(c) { format!("\\u{{{:x}}}", c as u32) } else { c.to_string() }).collect()
}

fn check_stacks(profile: &Profile, decoded: &Decoded) {
    let mut got = expected::Stacks::new();
    for sample in &decoded.0.sample {
        let key = (decoded.text_label(sample, "process"), decoded.text_label(sample, "thread"), decoded.stack(sample));
        *got.entry(key).or_default() += u64::try_from(sample.value[0]).unwrap();
    }
    let mut wanted = expected::Stacks::new();
    let stacks = expected::stacks(profile, |frame| visible(&profile.label(frame, false)));
    for ((process, thread, frames), count) in stacks {
        *wanted.entry((visible(&process), visible(&thread), frames)).or_default() += count;
    }
    assert_eq!(got, wanted);
}

/// Counts by pid and tid.
fn check_threads(profile: &Profile, decoded: &Decoded) {
    let mut got = BTreeMap::new();
    for sample in &decoded.0.sample {
        let key = (decoded.number_label(sample, "pid"), decoded.number_label(sample, "tid"));
        *got.entry(key).or_insert(0) += sample.value[0] as u64;
    }
    let mut wanted = BTreeMap::new();
    for sample in &profile.samples {
        let thread = &profile.threads[sample.thread.index()];
        let pid = profile.processes[thread.process.index()].pid;
        *wanted.entry((i64::from(pid), i64::from(thread.tid))).or_insert(0) += sample.count;
    }
    assert_eq!(got, wanted);
}

/// Every location is where its mapping says, and the ranges of mappings do not overlap.
fn check_places(decoded: &Decoded) {
    for location in decoded.0.location.iter().filter(|location| location.mapping_id != 0 && location.address != 0) {
        let mapping = &decoded.0.mapping[location.mapping_id as usize - 1];
        assert_eq!(mapping.id, location.mapping_id);
        let inside = mapping.memory_start <= location.address
            && (location.address < mapping.memory_limit || mapping.memory_limit == u64::MAX);
        assert!(inside, "{location:?} {mapping:?}");
    }
    let is_file = |mapping: &&messages::Mapping| !decoded.string(mapping.filename).starts_with('[');
    let mut files: Vec<_> = decoded.0.mapping.iter().filter(is_file).collect();
    files.sort_by_key(|mapping| mapping.memory_start);
    for pair in files.windows(2) {
        assert!(pair[0].memory_limit <= pair[1].memory_start, "{pair:?}");
    }
}

#[test]
fn the_profile_says_what_the_model_says() {
    for profile in [synthetic::friendly(), synthetic::whole(), long::profile(), Profile::default()] {
        let decoded = Decoded::of(&profile);
        check_stacks(&profile, &decoded);
        check_threads(&profile, &decoded);
        check_places(&decoded);
        assert_eq!(decoded.string(0), "");
    }
}

#[test]
fn values_and_times() {
    let decoded = Decoded::of(&synthetic::friendly());
    let types: Vec<_> =
        decoded.0.sample_type.iter().map(|one| (decoded.string(one.r#type), decoded.string(one.unit))).collect();
    assert_eq!(types, [("samples", "count"), ("cpu", "nanoseconds")]);
    for sample in &decoded.0.sample {
        assert_eq!(sample.value[1], sample.value[0] * 10_000_000);
    }
    let period = decoded.0.period_type.unwrap();
    assert_eq!((decoded.string(period.r#type), decoded.string(period.unit)), ("cpu", "nanoseconds"));
    assert_eq!(decoded.0.period, 10_000_000);
    assert_eq!(decoded.0.time_nanos, 1_700_000_000_000_000_000);
    assert_eq!(decoded.0.duration_nanos, 10_020_000_000);
}

#[test]
fn comments_tell_of_the_recording() {
    let decoded = Decoded::of(&synthetic::friendly());
    let comments: Vec<&str> = decoded.0.comment.iter().map(|at| decoded.string(*at)).collect();
    assert_eq!(
        comments,
        [
            "command: wholestack record --duration 10 -o profile.html",
            "target: whole machine",
            "host: box",
            "kernel: 6.8.0 x86_64",
            "wholestack: 0.1.0",
            "sampling: 100 Hz, cpu-clock",
            "lost: 3 samples: ring buffer full",
            "stacks: 900 ended in root (whole)",
            "stacks: 40 ended in [no unwind row] (not whole)",
            &format!("# {}", synthetic::INTERPRETER),
            "# pid 5000 node: 240 samples, 240 ended in root (whole)",
        ]
    );
}

#[test]
fn inlined_functions_share_a_location() {
    let decoded = Decoded::of(&synthetic::friendly());
    let names = |location: &messages::Location| {
        location.line.iter().map(|line| (decoded.function_name(line.function_id), line.line)).collect::<Vec<_>>()
    };
    let location = decoded.0.location.iter().find(|location| location.line.len() == 3).unwrap();
    assert_eq!(
        names(location),
        [("http::peek", 13), ("http::skip_blanks(char const*)", 44), ("http::parse(std::string_view)", 17)]
    );
    let mapping = &decoded.0.mapping[location.mapping_id as usize - 1];
    assert_eq!(decoded.string(mapping.filename), "/usr/sbin/server");
    assert_eq!(decoded.string(mapping.build_id), "0123456789abcdef0123456789abcdef01234567");
    assert!(mapping.has_functions && mapping.has_filenames && mapping.has_line_numbers && mapping.has_inline_frames);
    assert_eq!(location.address - mapping.memory_start + mapping.file_offset, 0x1290);
    let kernel = decoded.0.mapping.iter().find(|one| decoded.string(one.filename) == "[kernel.kallsyms]").unwrap();
    assert!(kernel.has_functions && !kernel.has_filenames && !kernel.has_line_numbers && !kernel.has_inline_frames);
    assert_eq!((kernel.memory_start, kernel.memory_limit), (0xffff_ffff_8132_1000, 0xffff_ffff_81e0_1000));
}

#[test]
fn python_functions_have_file_and_lines_but_no_address() {
    let decoded = Decoded::of(&synthetic::friendly());
    let mut functions = Vec::new();
    for location in &decoded.0.location {
        let line = location.line[0];
        let function = decoded.0.function[line.function_id as usize - 1];
        let file = decoded.string(function.filename);
        if file.ends_with(".py") || file.starts_with('<') {
            assert_eq!((location.mapping_id, location.address, location.line.len()), (0, 0, 1));
            let names = [function.name, function.system_name].map(|name| decoded.string(name));
            functions.push((names, file, function.start_line, line.line, function.id));
        }
    }
    functions.sort_unstable();
    let shown: Vec<_> = functions.iter().map(|(names, file, first, line, _)| (*names, *file, *first, *line)).collect();
    assert_eq!(
        shown,
        [
            (["<lambda> (web.py)", ""], "/srv/app/web.py", 41, 41),
            (["<lambda> (web.py)", ""], "/srv/app/web.py", 57, 57),
            (["<module> (main.py)", ""], "/srv/app/main.py", 1, 40),
            (["Handler.handle (web.py)", ""], "/srv/app/web.py", 12, 30),
            (["Handler.handle (web.py)", ""], "/srv/app/web.py", 12, 31),
            (["_find_and_load (<frozen importlib._bootstrap>)", ""], "<frozen importlib._bootstrap>", 1349, 0),
            (["helper (other.py)", ""], "/srv/app/other.py", 3, 5),
            (["helper (util.py)", ""], "/srv/app/util.py", 3, 5),
        ]
    );
    // one function for each name, file and first line
    let ids: std::collections::BTreeSet<_> = functions.iter().map(|function| function.4).collect();
    assert_eq!(ids.len(), shown.len() - 1);
}

#[test]
fn no_frequency_no_time() {
    let mut profile = synthetic::friendly();
    profile.meta.frequency = 0;
    let decoded = Decoded::of(&profile);
    assert_eq!(decoded.0.sample_type.len(), 1);
    assert!(decoded.0.sample.iter().all(|sample| sample.value.len() == 1));
}

#[test]
fn huge_counts_are_cut() {
    let mut author = synthetic::Author::default();
    let thread = author.task(1, "p", "p");
    author.add(thread, &[], u64::MAX);
    author.builder.meta_mut().frequency = 1;
    assert_eq!(Decoded::of(&author.builder.finish()).0.sample[0].value, [i64::MAX, i64::MAX]);
}

proptest! {
    #[test]
    fn every_profile_comes_back(profile in random::profile()) {
        let decoded = Decoded::of(&profile);
        check_stacks(&profile, &decoded);
        check_threads(&profile, &decoded);
        check_places(&decoded);
        prop_assert!(decoded.0.string_table.iter().all(|text| !text.contains(char::is_control)));
    }
}
