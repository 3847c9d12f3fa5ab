//! What must be true of every file that a profile was written to. Sums are taken with wider numbers than the formats
//! have.

use std::io::Read;
use std::sync::LazyLock;

use formats::pprof::messages;
use profile::Profile;
use prost::Message as _;

/// The page around its data.
static EMPTY_PAGE: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let mut page = Vec::new();
    formats::html::write(&Profile::default(), &mut page).expect("a page");
    page
});

/// Nothing of a profile stands in the page but as base64 of a gzip stream.
pub fn html(page: &[u8]) {
    let begin = page.iter().zip(EMPTY_PAGE.iter()).take_while(|(a, b)| a == b).count();
    let end = page.iter().rev().zip(EMPTY_PAGE.iter().rev()).take_while(|(a, b)| a == b).count();
    // data of an empty profile may begin and end as this one does
    let begin = begin.min(EMPTY_PAGE.len() - end);
    let is_base64 = |byte: &u8| byte.is_ascii_alphanumeric() || b"+/=".contains(byte);
    assert!(page[begin..page.len() - end].iter().all(is_base64), "markup depends on the profile");
    let before = page[..begin].iter().rev().take_while(|byte| is_base64(byte)).count();
    let after = page[page.len() - end..].iter().take_while(|byte| is_base64(byte)).count();
    let data = decode_base64(&page[begin - before..page.len() - end + after]);
    let plain = gunzip(&data);
    let (length, header) = leb128(&plain);
    let header: serde_json::Value = serde_json::from_slice(&header[..length as usize]).expect("a header of JSON");
    assert!(header["kinds"].is_array());
}

/// Well-formed XML without characters that XML forbids, and no script but the one that is always there.
pub fn svg(picture: &[u8]) {
    let text = std::str::from_utf8(picture).expect("UTF-8");
    let options = roxmltree::ParsingOptions { allow_dtd: true, ..Default::default() };
    let document = roxmltree::Document::parse_with_options(text, options).expect("well-formed XML");
    let scripts = document.descendants().filter(|node| node.tag_name().name() == "script").count();
    assert!(scripts <= 1, "{scripts} scripts");
    for node in document.descendants().filter(roxmltree::Node::is_element) {
        let name = node.tag_name().name();
        let events = node.attributes().filter(|attribute| attribute.name().starts_with("on")).count();
        assert!(events == 0 || name == "svg", "an event handler in {name}");
    }
    for text in document.descendants().filter(|node| node.is_text()) {
        let is_script = text.parent().is_some_and(|parent| parent.tag_name().name() == "script");
        let shown = text.text().unwrap_or_default();
        assert!(
            is_script || !shown.contains(|c: char| c.is_control() && !matches!(c, '\n' | '\r' | '\t')),
            "{shown:?}"
        );
    }
}

/// Lines of a stack and one count, which add up.
pub fn folded(profile: &Profile, lines: &[u8]) {
    let text = std::str::from_utf8(lines).expect("UTF-8");
    let mut sum = 0u128;
    let mut stacks = std::collections::HashSet::new();
    for line in text.lines() {
        assert!(!line.contains(char::is_control), "{line:?}");
        let (stack, count) = line.rsplit_once(' ').expect("a count");
        assert!(count.bytes().all(|digit| digit.is_ascii_digit()), "{line:?}");
        let last_word = stack.rsplit_once(' ').map_or("x", |(_, word)| word);
        assert!(!last_word.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.'), "two counts: {line:?}");
        assert!(stack.split(';').all(|frame| !frame.is_empty()), "{line:?}");
        assert!(!line.starts_with("# ") && stacks.insert(stack), "{line:?}");
        sum += count.parse::<u128>().expect("a number");
    }
    assert_eq!(sum, total(profile));
}

/// Each frame that a stack refers to is there; weights are counts.
pub fn speedscope(profile: &Profile, json: &[u8]) {
    let file: serde_json::Value = serde_json::from_slice(json).expect("JSON");
    let frames = file["shared"]["frames"].as_array().expect("frames").len() as u64;
    let profiles = file["profiles"].as_array().expect("profiles");
    for sampled in profiles {
        let (samples, weights) = (&sampled["samples"], &sampled["weights"]);
        let (samples, weights) = (samples.as_array().expect("samples"), weights.as_array().expect("weights"));
        assert_eq!(samples.len(), weights.len());
        let indexes = samples.iter().flat_map(|stack| stack.as_array().expect("a stack"));
        assert!(indexes.into_iter().all(|index| index.as_u64().is_some_and(|index| index < frames)));
    }
    let weights = profiles[0]["weights"].as_array().expect("weights");
    let sum: u128 = weights.iter().map(|weight| u128::from(weight.as_u64().expect("a count"))).sum();
    assert_eq!(sum, total(profile));
}

/// Everything that is referred to is there, by ids that are unique.
pub fn pprof(profile: &Profile, packed: &[u8]) {
    let file = messages::Profile::decode(&*gunzip(packed)).expect("a message");
    let strings = file.string_table.len() as i64;
    assert_eq!(file.string_table.first().map(String::as_str), Some(""));
    assert!(!file.string_table.iter().any(|text| text.contains(char::is_control)));
    let is_string = |index: i64| (0..strings).contains(&index);
    let functions = ids(file.function.iter().map(|function| function.id));
    let mappings = ids(file.mapping.iter().map(|mapping| mapping.id));
    let locations = ids(file.location.iter().map(|location| location.id));
    for function in &file.function {
        assert!([function.name, function.system_name, function.filename].into_iter().all(is_string));
    }
    for mapping in &file.mapping {
        assert!(is_string(mapping.filename) && is_string(mapping.build_id));
        assert!(mapping.memory_start < mapping.memory_limit, "{mapping:?}");
    }
    for location in &file.location {
        assert!(location.mapping_id == 0 || mappings.contains(&location.mapping_id));
        assert!(location.line.iter().all(|line| functions.contains(&line.function_id)));
    }
    for sample in &file.sample {
        assert!(sample.location_id.iter().all(|id| locations.contains(id)));
        assert!(sample.label.iter().all(|label| is_string(label.key) && is_string(label.str)));
        assert!(sample.value.len() == file.sample_type.len() && sample.value.iter().all(|value| *value >= 0));
    }
    assert!(file.comment.iter().all(|comment| is_string(*comment)));
    assert_eq!(file.sample.len(), profile.samples.iter().filter(|sample| sample.count > 0).count());
}

fn ids(of: impl Iterator<Item = u64>) -> std::collections::HashSet<u64> {
    let mut ids = std::collections::HashSet::new();
    for id in of {
        assert!(id != 0 && ids.insert(id), "id {id} is there twice");
    }
    ids
}

fn total(profile: &Profile) -> u128 {
    profile.samples.iter().map(|sample| u128::from(sample.count)).sum()
}

fn gunzip(packed: &[u8]) -> Vec<u8> {
    let mut plain = Vec::new();
    flate2::read::GzDecoder::new(packed).read_to_end(&mut plain).expect("a gzip stream");
    plain
}

fn leb128(bytes: &[u8]) -> (u64, &[u8]) {
    let length = bytes.iter().position(|byte| byte & 0x80 == 0).expect("a number") + 1;
    let (number, rest) = bytes.split_at(length);
    (number.iter().rev().fold(0, |sum, byte| sum << 7 | u64::from(byte & 0x7f)), rest)
}

fn decode_base64(text: &[u8]) -> Vec<u8> {
    let value = |byte: u8| match byte {
        b'A'..=b'Z' => byte - b'A',
        b'a'..=b'z' => byte - b'a' + 26,
        b'0'..=b'9' => byte - b'0' + 52,
        b'+' => 62,
        _ => 63,
    };
    let digits: Vec<u8> = text.iter().filter(|byte| **byte != b'=').map(|byte| value(*byte)).collect();
    let mut bytes = Vec::with_capacity(digits.len() * 3 / 4);
    for group in digits.chunks(4) {
        let bits = group.iter().fold(0u32, |bits, digit| bits << 6 | u32::from(*digit)) << (6 * (4 - group.len()));
        bytes.extend_from_slice(&bits.to_be_bytes()[1..group.len()]);
    }
    bytes
}
