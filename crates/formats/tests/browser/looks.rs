//! What is drawn.

use profile::{Builder, Kind};
use serde_json::Value;

use super::shown::{show, small};
use super::{colour, samples};

#[test]
fn draws_a_graph_without_network_or_complaints() {
    let mut builder = Builder::default();
    let process = builder.process(1, "process");
    let thread = builder.thread(process, 1, "thread");
    for (index, kind) in Kind::ALL.iter().enumerate() {
        let frame = samples::frame(&mut builder, kind.name(), *kind, false, 0);
        let stack = builder.stack([frame]);
        builder.add(thread, stack, 100 - index as u64);
    }
    let Some(mut shown) = show(&builder.finish()) else { return };
    for kind in Kind::ALL {
        let pixels_differ = *kind == Kind::Marker;
        let label = if *kind == Kind::Python { "python (sample.c)" } else { kind.name() };
        let (kind, (x, y, width)) = (kind.name(), shown.place(label));
        // a strip at the right of the box, where no text is
        let colours = shown.browser.evaluate(&format!(
            "(() => {{
                app.graph.draw();
                const canvas = app.graph.canvas.getBoundingClientRect();
                const copy = document.createElement('canvas').getContext('2d', {{ willReadFrequently: true }});
                copy.drawImage(app.graph.canvas, canvas.left - {}, canvas.top - {y} - 3);
                const strip = copy.getImageData(0, 0, 24, 12).data;
                const colours = new Set();
                for (let i = 0; i < strip.length; i += 4) colours.add([...strip.slice(i, i + 3)].join());
                const fill = shades('light', '{kind}')
                    .map(hex => [1, 3, 5].map(at => parseInt(hex.slice(at, at + 2), 16)).join());
                return [colours.size, fill.some(colour => colours.has(colour))];
            }})()",
            x + width - 30.0
        ));
        assert_eq!(colours[1], true, "{kind} has its colour");
        assert_eq!(colours[0].as_u64().unwrap() > 1, pixels_differ, "{kind}: only what is no function is hatched");
    }
    assert_eq!(shown.browser.evaluate("document.getElementById('data')"), Value::Null);
    shown.browser.assert_quiet();
}

#[test]
fn deep_stacks_scroll_within_a_small_canvas() {
    let names: Vec<String> = (0..8_000).map(|level| format!("level_{level}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let Some(mut shown) = show(&samples::plain_profile(&[(&names, 3)])) else { return };
    let sizes = shown.browser.evaluate("[app.graph.canvas.height, app.graph.pad.offsetHeight]");
    assert!(sizes[0].as_u64().unwrap() < 900 && sizes[1].as_u64().unwrap() > 8_000 * 20, "{sizes}");
    shown.browser.evaluate("app.graph.scroller.scrollTop = 1e9");
    shown.click("level_7999");
    assert_eq!(shown.selected(), "level_7999");
    let trail = shown.trail();
    assert!(trail.len() < 10 && trail.last().unwrap() == "level_7999", "{trail:?}");
    shown.browser.press("r");
    assert_eq!(shown.browser.evaluate("app.graph.rows.length"), 8_001);
    shown.browser.assert_quiet();
}

#[test]
fn narrow_siblings_become_one_hatched_box() {
    let mut builder = Builder::default();
    let process = builder.process(1, "process");
    let thread = builder.thread(process, 1, "thread");
    for index in 0..10_000 {
        let frame = samples::frame(&mut builder, &format!("leaf_{index}"), Kind::Native, false, 0);
        let stack = builder.stack([frame]);
        builder.add(thread, stack, if index < 5 { 1_000 } else { 1 });
    }
    let Some(mut shown) = show(&builder.finish()) else { return };
    let (_, _, whole) = shown.place("all");
    let widths = "app.graph.rows[1].width";
    assert_eq!(shown.browser.evaluate(&format!("{widths}.length")), 6);
    let sum = shown.browser.evaluate(&format!("{widths}.reduce((sum, width) => sum + width, 0)")).as_f64().unwrap();
    assert!((sum - whole).abs() < 0.01, "nothing is missing");
    shown.click("9,995 more");
    assert_eq!(shown.place("9,995 more").2, whole);
    assert_eq!(shown.browser.evaluate("app.graph.rows[2].boxes.length"), 20);
    shown.click("500 more");
    assert_eq!(shown.browser.evaluate("app.graph.rows[3].boxes.length"), 500);
    shown.click("leaf_5");
    assert_eq!(shown.trail(), ["all", "leaf_5"]);
    shown.browser.assert_quiet();
}

#[test]
fn narrow_windows_have_room_for_everything() {
    let Some(mut shown) = show(&samples::random_profile(8)) else { return };
    shown.browser.press("t");
    for width in [360, 800, 1400] {
        shown.browser.resize(width, 900);
        let sizes = shown.browser.evaluate(
            "new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done([
                document.documentElement.scrollWidth, app.graph.width, app.graph.height, app.graph.rows[0].width[0],
                app.table.section.getBoundingClientRect().height]))))",
        );
        let [page, graph, height, drawn, table] = std::array::from_fn(|index| sizes[index].as_f64().unwrap());
        assert!(page <= f64::from(width), "{width}: {sizes}");
        assert!(graph > 300.0 && height > 100.0 && table > 100.0, "{width}: {sizes}");
        assert_eq!(graph, drawn, "drawn anew for the new width");
    }
    shown.browser.assert_quiet();
}

#[test]
fn colours_can_be_read_and_told_apart() {
    let Some(mut shown) = show(&small()) else { return };
    let palette = shown.browser.evaluate("PALETTE");
    colour::check(&palette["light"], "#ffffff");
    colour::check(&palette["dark"], "#14171b");
}
