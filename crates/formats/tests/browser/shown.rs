//! A browser that shows the page of a profile.

use std::collections::BTreeMap;
use std::path::PathBuf;

use profile::Profile;
use serde_json::Value;

use super::{Browser, samples};

/// A browser that shows a profile.
pub struct Shown {
    /// The browser.
    pub browser: Browser,
    page: PathBuf,
    _directory: tempfile::TempDir,
}

/// Opens a profile's page; `None` where there is no browser.
pub fn show(profile: &Profile) -> Option<Shown> {
    let browser = Browser::start()?;
    let directory = tempfile::tempdir().unwrap();
    let page = directory.path().join("page.html");
    formats::html::write(profile, &mut std::fs::File::create(&page).unwrap()).unwrap();
    let mut shown = Shown { browser, page, _directory: directory };
    shown.open("");
    assert_eq!(shown.browser.text("problem"), "");
    Some(shown)
}

/// Walks a whole tree of boxes, as the page would lay it out piece by piece.
const TREE: &str = "tree => {
    const totals = {};
    const open = [[tree.root, '']];
    while (open.length) {
        const [box, path] = open.pop();
        for (const child of tree.children(box)) {
            const inlined = child.frame >= 0 && app.profile.frames.inlined[child.frame] ? '~' : '';
            const name = path + fullLabel(app, child) + inlined;
            if (name in totals) throw new Error('two boxes of one path: ' + name);
            totals[name] = child.total;
            open.push([child, name + ' > ']);
        }
    }
    return totals;
}";

impl Shown {
    pub fn open(&mut self, hash: &str) {
        self.browser.open(&self.page.clone(), hash);
    }

    /// The boxes of the page's tree number `index`, by their paths.
    pub fn tree(&mut self, index: usize) -> BTreeMap<String, u64> {
        let value = self.browser.evaluate(&format!("({TREE})(app.trees[{index}])"));
        serde_json::from_value(value).unwrap()
    }

    /// Where the first box that is drawn with a name lies in the window: x, y, width.
    pub fn place(&mut self, name: &str) -> (f64, f64, f64) {
        let name = serde_json::to_string(name).unwrap();
        let value = self.browser.evaluate(&format!(
            "(() => {{
                const box = app.graph.rows.flatMap(row => row.boxes).find(box => fullLabel(app, box) === {name});
                const {{ x, y, width }} = app.graph.placeOf(box);
                const canvas = app.graph.canvas.getBoundingClientRect();
                return [canvas.left + x, canvas.top + y, width];
            }})()"
        ));
        serde_json::from_value(value).unwrap()
    }

    pub fn click(&mut self, name: &str) {
        let (x, y, width) = self.place(name);
        self.browser.click(x + width / 2.0, y + 10.0);
    }

    pub fn point(&mut self, name: &str) {
        let (x, y, width) = self.place(name);
        self.browser.point(x + width / 2.0, y + 10.0);
    }

    /// Clicks an element of the page.
    pub fn press_button(&mut self, id: &str) {
        self.browser.evaluate(&format!("document.getElementById('{id}').click()"));
    }

    pub fn choose(&mut self, id: &str, value: &str) {
        self.browser.evaluate(&format!(
            "(() => {{
                const select = document.getElementById('{id}');
                select.value = '{value}';
                select.dispatchEvent(new Event('change'));
            }})()"
        ));
    }

    pub fn type_query(&mut self, text: &str) {
        self.browser.press("/");
        self.browser.call("Input.insertText", serde_json::json!({ "text": text }));
    }

    /// Names in the trail, from the root to the zoomed box.
    pub fn trail(&mut self) -> Vec<String> {
        let value = self.browser.evaluate("[...document.querySelectorAll('#ancestors button')].map(b => b.title)");
        serde_json::from_value(value).unwrap()
    }

    /// Rows of the table of functions: name, self, total.
    pub fn table(&mut self) -> Vec<(String, u64, u64)> {
        let value = self.browser.evaluate(
            "[...document.querySelectorAll('#rows tr')].map(row => [
                row.querySelector('b').textContent,
                ...[...row.querySelectorAll('.count')].map(cell => Number(cell.textContent.replaceAll(',', ''))),
            ])",
        );
        serde_json::from_value(value).unwrap()
    }

    pub fn selected(&mut self) -> Value {
        self.browser.evaluate("app.graph.selected && fullLabel(app, app.graph.selected)")
    }
}

/// main calls work and idle; work calls inner; inner calls itself once.
pub fn small() -> Profile {
    samples::plain_profile(&[
        (&["main", "work", "inner", "inner"], 30),
        (&["main", "work", "inner"], 20),
        (&["main", "work"], 10),
        (&["main", "idle"], 35),
        (&["start"], 5),
    ])
}
