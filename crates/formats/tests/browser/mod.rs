//! Drives a headless Chromium over the DevTools protocol, through a pipe, without any library.

mod colour;
mod figures;
mod hostile;
mod interaction;
mod labels;
mod looks;
mod python;
mod samples;
mod shown;
mod svg;

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::{Value, json};
use tempfile::TempDir;

/// A browser with one page.
pub struct Browser {
    process: Child,
    commands: ChildStdin,
    answers: BufReader<ChildStdout>,
    last_id: u64,
    session: Value,
    address: String,
    /// What went wrong in the page: exceptions, messages of the console, violations of the page's policy.
    pub errors: Vec<String>,
    /// Addresses that the page asked for, its own first.
    pub requests: Vec<String>,
    _directory: TempDir,
}

/// The browser's program; `None`, and a line that says so, where there is none.
///
/// With `WHOLESTACK_REQUIRE_BROWSER=1` in the environment its absence is an error.
fn chromium() -> Option<PathBuf> {
    let names = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"];
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found =
        std::env::split_paths(&path).flat_map(|dir| names.map(|name| dir.join(name))).find(|file| file.is_file());
    if found.is_none() {
        let required = std::env::var_os("WHOLESTACK_REQUIRE_BROWSER").is_some_and(|value| value == "1");
        assert!(!required, "no Chromium in PATH, and WHOLESTACK_REQUIRE_BROWSER is 1");
        // not by eprintln!, which the test harness would swallow
        std::io::stderr()
            .write_all(b"SKIPPED: no Chromium in PATH, so neither the HTML page nor the SVG picture was tested\n")
            .unwrap();
    }
    found
}

impl Browser {
    /// Starts a browser; `None` where none is installed.
    pub fn start() -> Option<Browser> {
        let directory = tempfile::tempdir().unwrap();
        // the shell moves the pipes to where Chromium wants them
        let mut process = Command::new("sh")
            .arg("-c")
            .arg("exec \"$0\" \"$@\" 3<&0 4>&1 </dev/null >/dev/null 2>/dev/null")
            .arg(chromium()?)
            .args(["--headless=new", "--no-sandbox", "--disable-gpu", "--remote-debugging-pipe", "--no-first-run"])
            .args(["--disable-quic", "--disable-background-networking", "--disable-component-update", "--disable-sync"])
            .args(["--disable-dev-shm-usage", "--window-size=1400,900"])
            .arg(format!("--user-data-dir={}", directory.path().display()))
            .arg("about:blank")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let commands = process.stdin.take().unwrap();
        let answers = BufReader::new(process.stdout.take().unwrap());
        let mut browser = Browser {
            process,
            commands,
            answers,
            last_id: 0,
            session: Value::Null,
            address: String::new(),
            errors: Vec::new(),
            requests: Vec::new(),
            _directory: directory,
        };
        browser.attach();
        Some(browser)
    }

    fn attach(&mut self) {
        let target = self.call("Target.createTarget", json!({ "url": "about:blank" }))["targetId"].clone();
        let attached = self.call("Target.attachToTarget", json!({ "targetId": target, "flatten": true }));
        self.session = attached["sessionId"].clone();
        for domain in ["Page", "Runtime", "Log", "Network"] {
            self.call(&format!("{domain}.enable"), json!({}));
        }
        self.resize(1400, 900);
    }

    /// Sends a command and waits for its result; events on the way are noted.
    pub fn call(&mut self, method: &str, params: Value) -> Value {
        self.last_id += 1;
        let mut message = json!({ "id": self.last_id, "method": method, "params": params });
        if !self.session.is_null() {
            message["sessionId"] = self.session.clone();
        }
        self.commands.write_all(format!("{message}\0").as_bytes()).unwrap();
        loop {
            let answer = self.read();
            if answer["id"] == self.last_id {
                assert!(answer["error"].is_null(), "{method}: {}", answer["error"]);
                return answer["result"].clone();
            }
        }
    }

    fn read(&mut self) -> Value {
        let mut message = Vec::new();
        self.answers.read_until(0, &mut message).unwrap();
        assert_eq!(message.pop(), Some(0), "the browser has ended");
        let message: Value = serde_json::from_slice(&message).unwrap();
        let params = &message["params"];
        match message["method"].as_str() {
            Some("Runtime.exceptionThrown") => self.errors.push(params["exceptionDetails"].to_string()),
            Some("Runtime.consoleAPICalled") => self.errors.push(params["args"].to_string()),
            Some("Log.entryAdded") => self.errors.push(params["entry"].to_string()),
            Some("Network.requestWillBeSent") => {
                self.requests.push(params["request"]["url"].as_str().unwrap().to_owned());
            }
            _ => {}
        }
        message
    }

    /// Opens a page and waits until it has drawn its graph, has said why it cannot, or has no such script that runs.
    pub fn open(&mut self, page: &Path, hash: &str) {
        self.address = format!("file://{}", page.display());
        // another page first: to go to another hash only would not load the page
        self.call("Page.navigate", json!({ "url": "about:blank" }));
        self.call("Page.navigate", json!({ "url": format!("{}{hash}", self.address) }));
        while self.read()["method"] != "Page.loadEventFired" {}
        self.evaluate(
            "new Promise(done => {
                const check = () => typeof main === 'undefined' || document.documentElement.dataset.ready || problem.textContent
                    ? done() : setTimeout(check, 5);
                check();
            })",
        );
    }

    /// The value of an expression in the page.
    pub fn evaluate(&mut self, expression: &str) -> Value {
        let params = json!({ "expression": expression, "awaitPromise": true, "returnByValue": true });
        let answer = self.call("Runtime.evaluate", params);
        assert!(answer["exceptionDetails"].is_null(), "{expression}: {}", answer["exceptionDetails"]);
        answer["result"]["value"].clone()
    }

    /// The text of the element with an id.
    pub fn text(&mut self, id: &str) -> String {
        self.evaluate(&format!("document.getElementById('{id}').textContent")).as_str().unwrap().to_owned()
    }

    /// Presses a key: a letter, or a name such as `Escape`.
    pub fn press(&mut self, key: &str) {
        let code = match key {
            "Enter" => 13,
            "Escape" => 27,
            "ArrowLeft" => 37,
            "ArrowUp" => 38,
            "ArrowRight" => 39,
            "ArrowDown" => 40,
            "Backspace" => 8,
            _ => 0,
        };
        let mut down = json!({ "type": "keyDown", "key": key, "windowsVirtualKeyCode": code });
        if code == 0 {
            down["text"] = json!(key);
        }
        self.call("Input.dispatchKeyEvent", down);
        self.call("Input.dispatchKeyEvent", json!({ "type": "keyUp", "key": key, "windowsVirtualKeyCode": code }));
    }

    /// Clicks a place in the window.
    pub fn click(&mut self, x: f64, y: f64) {
        for event in ["mousePressed", "mouseReleased"] {
            let params = json!({ "type": event, "x": x, "y": y, "button": "left", "clickCount": 1 });
            self.call("Input.dispatchMouseEvent", params);
        }
    }

    /// Moves the mouse to a place in the window.
    pub fn point(&mut self, x: f64, y: f64) {
        self.call("Input.dispatchMouseEvent", json!({ "type": "mouseMoved", "x": x, "y": y }));
    }

    /// Changes the size of the window.
    pub fn resize(&mut self, width: u32, height: u32) {
        let params = json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": false });
        self.call("Emulation.setDeviceMetricsOverride", params);
    }

    /// Fails if the page asked for anything but itself, or complained.
    pub fn assert_quiet(&self) {
        let requests: Vec<_> = self
            .requests
            .iter()
            .filter(|url| !url.starts_with("data:") && !url.starts_with("about:") && !url.starts_with(&self.address))
            .collect();
        assert!(requests.is_empty(), "{requests:?}");
        assert!(self.errors.is_empty(), "{:#?}", self.errors);
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
