//! The report as text and as JSON.

use std::fmt::Write;

use crate::check::item::{Item, Report, State};

/// Columns of the state.
const STATE: usize = 7;
/// Lines are not wider than this, even on wide terminals.
const WIDEST: usize = 120;
/// And not narrower.
const NARROWEST: usize = 60;

/// How text is set.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Style {
    colours: bool,
    width: usize,
}

impl Style {
    /// For standard output: colours and its width if it is a terminal and NO_COLOR is not set (<https://no-color.org>).
    pub(super) fn of_stdout(is_terminal: bool) -> Style {
        let no_color = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        let dumb = std::env::var_os("TERM").is_some_and(|value| value == "dumb");
        let columns = match is_terminal {
            true => rustix::termios::tcgetwinsize(std::io::stdout()).map_or(0, |size| usize::from(size.ws_col)),
            false => 0,
        };
        let width = if columns == 0 { WIDEST } else { columns.clamp(NARROWEST, WIDEST) };
        Style { colours: is_terminal && !no_color && !dumb, width }
    }

    fn paint(self, state: State, text: &str) -> String {
        let code = match state {
            State::Ok => 32,
            State::Limited => 33,
            State::Missing => 31,
        };
        if self.colours { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
    }
}

/// One JSON object and a newline.
pub(super) fn json(report: &Report) -> serde_json::Result<String> {
    Ok(serde_json::to_string_pretty(report)? + "\n")
}

/// A verdict, then the items.
pub(super) fn text(report: &Report, style: Style) -> String {
    let mut text = verdict(report, style) + "\n\n";
    let names = report.items.iter().map(|item| item.name.len()).max().unwrap_or(0);
    let mut told = Vec::new();
    for item in &report.items {
        add_item(&mut text, item, names, style, &mut told);
    }
    text
}

fn verdict(report: &Report, style: Style) -> String {
    let limited = report.items.iter().any(|item| item.state != State::Ok);
    match (report.possible, limited) {
        (true, false) => style.paint(State::Ok, "wholestack can record here: everything is as it should be."),
        (true, true) => {
            style.paint(State::Limited, "wholestack can record here, with limits: see what is marked below.")
        }
        (false, _) => {
            style.paint(State::Missing, "wholestack cannot record here as it was started: see what is missing below.")
        }
    }
}

/// `told` are the remedies that were shown before.
fn add_item(text: &mut String, item: &Item, names: usize, style: Style, told: &mut Vec<String>) {
    let state = match item.state {
        State::Ok => "ok",
        State::Limited => "limited",
        State::Missing => "missing",
    };
    let state = style.paint(item.state, &format!("{state:STATE$}"));
    let indent = STATE + names + 4;
    let body = wrap(&format!("{}; {}", item.found, item.meaning), style.width.saturating_sub(indent));
    for (number, line) in body.iter().enumerate() {
        // writing to a String does not fail
        let _ = match number {
            0 => writeln!(text, "{state}  {:names$}  {line}", item.name),
            _ => writeln!(text, "{:indent$}{line}", ""),
        };
    }
    let (old, new): (Vec<&String>, Vec<&String>) = item.remedies.iter().partition(|remedy| told.contains(remedy));
    for remedy in &new {
        // not broken into lines: they are there to be copied
        let _ = writeln!(text, "{:indent$}> {remedy}", "");
        told.push((*remedy).clone());
    }
    if new.is_empty() && !old.is_empty() {
        let _ = writeln!(text, "{:indent$}> as above", "");
    }
}

/// Breaks at blanks. A word that is longer than a line has a line of its own.
fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split_ascii_whitespace() {
        let line = lines.last().map_or(0, |line| line.chars().count());
        if line > 0 && line + 1 + word.chars().count() > width {
            lines.push(String::new());
        }
        if let Some(line) = lines.last_mut() {
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(word);
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: Style = Style { colours: false, width: 60 };

    fn report() -> Report {
        let items = vec![
            Item::ok("kernel", "Linux 6.1", "supported"),
            Item::missing(
                "CAP_BPF",
                "not held",
                "the sampler cannot be loaded, and this goes on for longer than one line",
            )
            .remedy("sudo setcap cap_bpf+ep /usr/bin/wholestack"),
            Item::missing("sampler", "refused", "nothing").remedy("sudo setcap cap_bpf+ep /usr/bin/wholestack"),
        ];
        Report { possible: false, items }
    }

    #[test]
    fn lines_are_aligned_and_remedies_told_once() {
        let expected = "\
wholestack cannot record here as it was started: see what is missing below.

ok       kernel   Linux 6.1; supported
missing  CAP_BPF  not held; the sampler cannot be loaded,
                  and this goes on for longer than one line
                  > sudo setcap cap_bpf+ep /usr/bin/wholestack
missing  sampler  refused; nothing
                  > as above
";
        assert_eq!(text(&report(), PLAIN), expected);
    }

    #[test]
    fn colours_change_nothing_else() {
        let coloured = text(&report(), Style { colours: true, ..PLAIN });
        let mut plain = coloured.clone();
        for code in ["\x1b[31m", "\x1b[32m", "\x1b[33m", "\x1b[0m"] {
            plain = plain.replace(code, "");
        }
        assert_eq!(plain, text(&report(), PLAIN));
        assert!(coloured.contains("\x1b[31m"));
        assert!(!Style::of_stdout(false).colours);
    }

    #[test]
    fn json_has_all() {
        let value: serde_json::Value = serde_json::from_str(&json(&report()).expect("JSON")).expect("JSON");
        assert_eq!(value["possible"], false);
        assert_eq!(value["items"][1]["state"], "missing");
        assert_eq!(value["items"][1]["remedies"][0], "sudo setcap cap_bpf+ep /usr/bin/wholestack");
    }
}
