//! The SVG picture: what is drawn, and what its script does.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::PathBuf;

use profile::{Builder, Kind, Profile, Sample};
use serde::Deserialize;
use serde_json::{Value, json};

use super::hostile::hostile_names;
use super::{Browser, colour, samples};

/// A box as it is on the screen, in pixels.
#[derive(Deserialize, Clone, Debug)]
struct Drawn {
    /// What it stands for: its title without the figures.
    name: String,
    /// What is written on it.
    text: String,
    fill: String,
    x: f64,
    y: f64,
    width: f64,
    height: f64,
}

/// A browser that shows a picture.
struct Picture {
    browser: Browser,
    page: PathBuf,
    _directory: tempfile::TempDir,
}

/// Opens a profile's picture; `None` where there is no browser.
fn show(profile: &Profile) -> Option<Picture> {
    let browser = Browser::start()?;
    let directory = tempfile::tempdir().unwrap();
    let page = directory.path().join("picture.svg");
    formats::svg::write(profile, &mut File::create(&page).unwrap()).unwrap();
    let mut picture = Picture { browser, page, _directory: directory };
    picture.open("");
    Some(picture)
}

impl Picture {
    fn open(&mut self, query: &str) {
        self.browser.open(&self.page.clone(), query);
        // the script puts the last of its set-up off with a timer of zero
        self.browser.evaluate("new Promise(done => setTimeout(done, 0))");
    }

    /// The boxes that can be seen.
    fn boxes(&mut self) -> Vec<Drawn> {
        let boxes = self.browser.evaluate(
            "[...document.getElementById('frames').children].map(group => {
                const rect = group.querySelector('rect');
                const { x, y, width, height } = rect.getBoundingClientRect();
                return { name: group.querySelector('title').textContent.replace(/ \\([\\d,]+ samples, [\\d.]+%\\)$/, ''),
                    text: group.querySelector('text').textContent, fill: rect.getAttribute('fill'), x, y, width, height };
            }).filter(({ width }) => width > 0)",
        );
        serde_json::from_value(boxes).unwrap()
    }

    fn click(&mut self, name: &str) {
        let boxes = self.boxes();
        let drawn = boxes.iter().find(|drawn| drawn.name == name).unwrap();
        self.browser.click(drawn.x + drawn.width / 2.0, drawn.y + drawn.height / 2.0);
    }

    fn click_button(&mut self, id: &str) {
        let place = self.browser.evaluate(&format!(
            "(() => {{
                const {{ x, y, width, height }} = document.getElementById('{id}').getBoundingClientRect();
                return [x + width / 2, y + height / 2];
            }})()"
        ));
        self.browser.click(place[0].as_f64().unwrap(), place[1].as_f64().unwrap());
    }

    /// Presses Ctrl-F.
    fn find(&mut self) {
        for event in ["keyDown", "keyUp"] {
            let params = json!({ "type": event, "key": "f", "windowsVirtualKeyCode": 70, "modifiers": 2 });
            self.browser.call("Input.dispatchKeyEvent", params);
        }
    }

    /// The share of samples that matched, in percent.
    fn matched(&mut self) -> f64 {
        let text = self.browser.text("matched");
        text.strip_prefix("Matched: ").unwrap().strip_suffix('%').unwrap().parse().unwrap()
    }
}

/// The path of each box through the boxes in which it hangs, and what all boxes of a path are wide together.
fn widths(boxes: &[Drawn]) -> BTreeMap<String, f64> {
    let mut sorted = boxes.to_vec();
    sorted.sort_by(|a, b| a.y.total_cmp(&b.y));
    let mut paths: Vec<String> = Vec::new();
    let mut widths = BTreeMap::new();
    for (index, drawn) in sorted.iter().enumerate() {
        let middle = drawn.x + drawn.width / 2.0;
        // the lowest of those that it is below
        let above = sorted[..index]
            .iter()
            .rposition(|above| above.y < drawn.y - 1.0 && (above.x..above.x + above.width).contains(&middle));
        let path = match above {
            None => drawn.name.clone(),
            Some(above) => {
                let gap = drawn.y - sorted[above].y - sorted[above].height;
                assert!((0.0..3.0).contains(&gap), "{drawn:?} does not hang on {:?}", sorted[above]);
                assert!(sorted[above].x < drawn.x + 0.01, "{drawn:?} begins before {:?}", sorted[above]);
                format!("{} > {}", paths[above], drawn.name)
            }
        };
        *widths.entry(path.clone()).or_default() += drawn.width;
        paths.push(path);
    }
    widths
}

/// How wide each path's boxes must be, if the whole is `width` wide.
fn expected(profile: &Profile, width: f64, passes: impl Fn(&Sample) -> bool) -> BTreeMap<String, f64> {
    let passing = Profile {
        samples: profile.samples.iter().copied().filter(|sample| passes(sample)).collect(),
        ..profile.clone()
    };
    let tree = samples::tree(&passing, |sample| {
        let thread = &profile.threads[sample.thread.index()];
        let process = &profile.processes[thread.process.index()];
        let tasks = [process.name, thread.name].map(|name| profile.text(name).to_owned());
        let mut path = [vec!["all".to_owned()], tasks.to_vec()].concat();
        path.extend(samples::outermost_first(profile, sample, false).iter().map(|name| name.replace('~', "")));
        path
    });
    let scale = width / passing.total() as f64;
    tree.into_iter().map(|(path, count)| (path, count as f64 * scale)).collect()
}

fn assert_close(drawn: &BTreeMap<String, f64>, expected: &BTreeMap<String, f64>) {
    let paths = |widths: &BTreeMap<String, f64>| widths.keys().cloned().collect::<Vec<_>>();
    assert_eq!(paths(drawn), paths(expected));
    for (path, width) in expected {
        assert!((drawn[path] - width).abs() < 0.1, "{path}: {} and {width}", drawn[path]);
    }
}

fn share(profile: &Profile, of: impl Fn(&Sample) -> bool, within: impl Fn(&Sample) -> bool) -> f64 {
    let sum = |passes: &dyn Fn(&Sample) -> bool| -> u64 {
        profile.samples.iter().filter(|sample| passes(sample)).map(|sample| sample.count).sum()
    };
    100.0 * sum(&|sample| of(sample) && within(sample)) as f64 / sum(&within) as f64
}

#[test]
fn boxes_hang_below_their_callers_and_zoom() {
    let profile = samples::random_profile(21);
    let Some(mut picture) = show(&profile) else { return };
    let before = picture.boxes();
    let all = before.iter().find(|drawn| drawn.name == "all").unwrap().clone();
    assert!((all.width - 1_380.0).abs() < 1.0, "it fills the window: {all:?}");
    assert!(all.y < 100.0 && before.iter().all(|drawn| drawn.y >= all.y), "the root is at the top");
    assert_close(&widths(&before), &expected(&profile, all.width, |_| true));
    // what has room has its name on it
    assert!(before.iter().filter(|drawn| drawn.width > 200.0).all(|drawn| drawn.text.trim() == drawn.name));

    let second = |sample: &Sample| samples::process_of(&profile, sample).index() == 1;
    picture.click("process-200");
    let zoomed = picture.boxes();
    assert_close(&widths(&zoomed), &expected(&profile, all.width, second));
    picture.click("thread-201");
    let thread = |sample: &Sample| profile.text(profile.threads[sample.thread.index()].name) == "thread-201";
    let zoomed = picture.boxes();
    assert_close(&widths(&zoomed), &expected(&profile, all.width, thread));

    picture.click_button("unzoom");
    assert_close(&widths(&picture.boxes()), &widths(&before));
    assert_eq!(picture.browser.evaluate("document.getElementById('unzoom').classList.contains('hide')"), true);
    // a wider window has a wider picture
    picture.browser.resize(1_800, 900);
    picture.browser.evaluate("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))");
    assert_close(&widths(&picture.boxes()), &expected(&profile, 1_780.0, |_| true));
    picture.browser.assert_quiet();
}

#[test]
fn search_marks_matches_and_tells_their_share() {
    let profile = samples::random_profile(22);
    let Some(mut picture) = show(&profile) else { return };
    let matches =
        |sample: &Sample| ["function_3", "function_7"].iter().any(|name| samples::holds(&profile, sample, name));
    let close = |a: f64, b: f64| assert!((a - b).abs() < 0.051, "{a} and {b}");
    let fills = |boxes: &[Drawn]| boxes.iter().map(|drawn| drawn.fill.clone()).collect::<Vec<_>>();
    let before = fills(&picture.boxes());

    picture.browser.evaluate("window.prompt = () => 'function_(3|7) '");
    picture.find();
    let whole = share(&profile, matches, |_| true);
    assert!((10.0..90.0).contains(&whole));
    close(picture.matched(), whole);
    for (drawn, before) in picture.boxes().iter().zip(&before) {
        // the one that is Python's has its file behind it
        let found = ["function_3 (sample.c)", "function_7"].contains(&&*drawn.name);
        assert_eq!(drawn.fill != *before, found, "{drawn:?}");
    }
    picture.find();
    assert_eq!(fills(&picture.boxes()), before);

    // within what is zoomed, only that counts
    picture.click("process-100");
    picture.click_button("search");
    close(picture.matched(), share(&profile, matches, |sample| samples::process_of(&profile, sample).index() == 0));

    // a link brings search and zoom back
    let address = picture.browser.evaluate("location.search").as_str().unwrap().to_owned();
    let look =
        |picture: &mut Picture| (widths(&picture.boxes()), fills(&picture.boxes()), picture.matched().to_string());
    let zoomed = look(&mut picture);
    picture.open(&address);
    assert_eq!(look(&mut picture), zoomed);
    picture.open("?s=function_%5B37%5D%20");
    close(picture.matched(), whole);
    picture.browser.assert_quiet();
}

/// As many kinds as there are, and the colour of a match.
#[test]
fn colours_can_be_told_apart() {
    let mut builder = Builder::default();
    let process = builder.process(1, "p");
    let thread = builder.thread(process, 1, "p");
    let mut frames: Vec<_> = Kind::ALL
        .iter()
        .map(|kind| samples::frame(&mut builder, &format!("[{}]", kind.name()), *kind, false, 0))
        .collect();
    frames.push(samples::frame(&mut builder, "inlined", Kind::Native, true, 0));
    let stack = builder.stack(frames);
    builder.add(thread, stack, 1);
    let Some(mut picture) = show(&builder.finish()) else { return };
    let legend = picture.browser.evaluate(
        "[...document.querySelectorAll('tspan')].map(square => [square.nextSibling.textContent.trim(), square.getAttribute('fill')])",
    );
    let mut colours: Vec<(String, String)> = serde_json::from_value(legend).unwrap();
    assert_eq!(colours.len(), Kind::ALL.len() + 2, "inlined functions, and processes: {colours:?}");
    colours.push(("match".to_owned(), "rgb(230,0,230)".to_owned()));
    for (_, colour) in &mut colours {
        let channels = colour.trim_start_matches("rgb(").trim_end_matches(')').split(',');
        let hex: String = channels.map(|channel| format!("{:02x}", channel.parse::<u8>().unwrap())).collect();
        *colour = format!("#{hex}");
    }
    for (at, (kind, colour)) in colours.iter().enumerate() {
        for (other, other_colour) in &colours[..at] {
            colour::check_pair((kind, colour), (other, other_colour));
        }
    }
}

#[test]
fn hostile_names_are_text() {
    let build = |names: &[String]| {
        let mut builder = Builder::default();
        for (index, name) in names.iter().enumerate() {
            let process = builder.process(index as u32, name);
            let thread = builder.thread(process, index as u32, &format!("{name} "));
            let frame = samples::frame(&mut builder, name, Kind::Native, false, 0);
            let python = samples::python(&mut builder, name, name, 1, 2);
            let stack = builder.stack([frame, frame, python]);
            builder.add(thread, stack, 10);
        }
        let meta = builder.meta_mut();
        meta.target.clone_from(&names[0]);
        meta.command_line.clone_from(&names[1]);
        builder.finish()
    };
    let hostile = hostile_names();
    let harmless: Vec<_> = (0..hostile.len()).map(|index| format!("name_{index}")).collect();
    let mut counts = Vec::new();
    for names in [&hostile, &harmless] {
        let Some(mut picture) = show(&build(names)) else { return };
        assert_eq!(picture.boxes().len(), 1 + 5 * names.len());
        for drawn in picture.boxes().iter().filter(|drawn| drawn.name != "all").step_by(3) {
            let (x, y) = (drawn.x + drawn.width / 2.0, drawn.y + drawn.height / 2.0);
            picture.browser.point(x, y);
            assert!(picture.browser.text("details").contains(&drawn.name));
            picture.browser.click(x, y);
            picture.click_button("unzoom");
        }
        picture.browser.evaluate("search('owned')");
        assert_eq!(picture.browser.evaluate("window.owned"), Value::Null);
        // every element there is, by its name
        counts.push(picture.browser.evaluate(
            "(() => {
                const counts = {};
                for (const { tagName } of document.querySelectorAll('*')) counts[tagName] = (counts[tagName] ?? 0) + 1;
                return counts;
            })()",
        ));
        picture.browser.assert_quiet();
    }
    assert_eq!(counts[0], counts[1]);
}
