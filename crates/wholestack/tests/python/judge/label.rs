//! What the frames of a folded stack are.

/// A frame of a folded stack.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Label {
    Kernel(String),
    /// Why user frames are missing.
    Stopped(String),
    /// Why Python frames are missing.
    PythonMarker(String),
    /// The interpreter's own loop, for which Python frames should stand.
    EvalLoop(String),
    Python(Python),
    Native(String),
}

/// A Python frame, as it is shown.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Python {
    pub(crate) name: String,
    /// The last part of the file's path; all of it where the first line is known, too.
    pub(crate) file: String,
    pub(crate) line: Option<u32>,
    pub(crate) first_line: Option<u32>,
}

/// Ends of the names of files of which native functions are.
const NATIVE: [&str; 12] = [".c", ".h", ".cc", ".cpp", ".cxx", ".hpp", ".inc", ".S", ".s", ".asm", ".rs", ".def"];

/// Functions that are nothing but the loop: one of them, and where each instruction is one.
fn is_eval_loop(name: &str) -> bool {
    let name = name.split([' ', '.', '@']).next().unwrap_or(name);
    name == "_PyEval_EvalFrameDefault" || name.starts_with("_TAIL_CALL_")
}

impl Label {
    pub(crate) fn parse(text: &str) -> Label {
        if text.ends_with("_[k]") {
            return Label::Kernel(text.to_owned());
        }
        if text.starts_with("[python: ") {
            return Label::PythonMarker(text.to_owned());
        }
        if text.starts_with("[stopped: ") {
            return Label::Stopped(text.to_owned());
        }
        if is_eval_loop(text) {
            return Label::EvalLoop(text.to_owned());
        }
        match python(&unescaped(text)) {
            Some(python) => Label::Python(python),
            None => Label::Native(text.to_owned()),
        }
    }
}

/// `name (file)` or `name (file:LINE)` of a file that is none of C's.
fn python(text: &str) -> Option<Python> {
    let (name, place) = text.strip_suffix(')')?.rsplit_once(" (")?;
    let (file, line) = match place.rsplit_once(':').and_then(|(file, line)| Some((file, line.parse().ok()?))) {
        Some((file, line)) => (file, Some(line)),
        None => (place, None),
    };
    let is_native = NATIVE.iter().any(|end| file.ends_with(end));
    (!is_native).then(|| Python { name: name.to_owned(), file: file.to_owned(), line, first_line: None })
}

/// Takes back what folded stacks escape: `\\`, and what [`visible`] does.
fn unescaped(text: &str) -> String {
    let parts: Vec<String> = text.split("\\\\").map(visible).collect();
    parts.join("\\")
}

/// Takes back what every format escapes: `\u{HEX}`, and `\u{}` for nothing at all.
pub(crate) fn visible(text: &str) -> String {
    let mut parts = text.split("\\u{");
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (digits, after) = part.split_once('}').unwrap_or_else(|| panic!("no escape: {text:?}"));
        out.extend(u32::from_str_radix(digits, 16).ok().and_then(char::from_u32));
        out.push_str(after);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds() {
        let python = |name: &str, file: &str, line| {
            Label::Python(Python { name: name.to_owned(), file: file.to_owned(), line, first_line: None })
        };
        assert_eq!(Label::parse("f.<locals>.<lambda> (a.py:12)"), python("f.<locals>.<lambda>", "a.py", Some(12)));
        assert_eq!(Label::parse("f (<string>)"), python("f", "<string>", None));
        assert_eq!(Label::parse("a b\\u{3b}c\\u{a}\\\\ (x:1) (<e>:3)"), python("a b;c\n\\ (x:1)", "<e>", Some(3)));
        assert_eq!(Label::parse("f\\\\\\u{0}\\\\u{3} (a:1)"), python("f\\\0\\u{3}", "a", Some(1)));
        assert_eq!(Label::parse("f (:1)"), python("f", "", Some(1)));
        for native in ["list_sort (listobject.c:12)", "deflate", "[libz.so.1+0x123]", "operator new(unsigned long)"] {
            assert_eq!(Label::parse(native), Label::Native(native.to_owned()));
        }
        for eval in
            ["_PyEval_EvalFrameDefault", "_PyEval_EvalFrameDefault.cold", "_PyEval_EvalFrameDefault (ceval.c:1)"]
        {
            assert_eq!(Label::parse(eval), Label::EvalLoop(eval.to_owned()));
        }
        assert_eq!(Label::parse("_TAIL_CALL_CALL_PY"), Label::EvalLoop("_TAIL_CALL_CALL_PY".to_owned()));
        assert_eq!(Label::parse("do_syscall_64_[k]"), Label::Kernel("do_syscall_64_[k]".to_owned()));
        let marker = "[python: code object gone]";
        assert_eq!(Label::parse(marker), Label::PythonMarker(marker.to_owned()));
        let stopped = "[stopped: no unwind information]";
        assert_eq!(Label::parse(stopped), Label::Stopped(stopped.to_owned()));
    }
}
