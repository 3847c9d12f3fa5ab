//! The report as text.

use std::fmt::Write;

use super::report::{Interpreter, NativeStack, PythonStack, Report, Thread};
use crate::say::plain;

/// Lines without anything that a terminal would act on.
pub(crate) fn text(report: &Report) -> String {
    let mut out = Lines(String::new());
    let process = &report.process;
    out.line(
        0,
        format_args!("process {} ({}), user {}: {}", process.pid, process.name, process.uid, process.command_line),
    );
    if report.interpreters.is_empty() {
        out.line(0, format_args!("no interpreter: nothing that it maps is CPython"));
    }
    for (index, interpreter) in report.interpreters.iter().enumerate() {
        out.blank();
        write_interpreter(&mut out, index, interpreter);
    }
    for thread in &report.threads {
        out.blank();
        write_thread(&mut out, thread, report);
    }
    out.0
}

struct Lines(String);

impl Lines {
    fn line(&mut self, indent: usize, text: std::fmt::Arguments<'_>) {
        let text = plain(&text.to_string());
        // a String takes everything
        let _ = writeln!(self.0, "{:indent$}{text}", "");
    }

    fn blank(&mut self) {
        self.0.push('\n');
    }
}

fn title(interpreter: &Interpreter) -> String {
    match &interpreter.version {
        Some(version) => format!("{} {version}", interpreter.runtime),
        None => format!("{} of unknown version", interpreter.runtime),
    }
}

fn write_interpreter(out: &mut Lines, index: usize, interpreter: &Interpreter) {
    let verdict = match (&interpreter.refusal, &interpreter.not_recorded) {
        (Some(_), _) => "REFUSED",
        (None, Some(_)) => "proven, but its frames are not in recordings",
        (None, None) => "proven",
    };
    out.line(0, format_args!("[{}] {} in {}: {verdict}", index + 1, title(interpreter), interpreter.file));
    for step in &interpreter.steps {
        out.line(2, format_args!("{:<12} {}", step.name, step.result));
        step.evidence.iter().for_each(|evidence| out.line(15, format_args!("{evidence}")));
    }
    if let Some(refusal) = interpreter.refusal.as_ref().or(interpreter.not_recorded.as_ref()) {
        out.line(2, format_args!("{:<12} {} [{}]", refusal.step, refusal.cause, refusal.name));
        refusal.remedy.lines().for_each(|line| out.line(15, format_args!("{line}")));
    }
}

fn write_thread(out: &mut Lines, thread: &Thread, report: &Report) {
    match (&thread.not_held, thread.held_us) {
        (Some(reason), _) => out.line(0, format_args!("thread {} ({}): {reason}", thread.tid, thread.name)),
        (None, Some(held)) => {
            out.line(0, format_args!("thread {} ({}), held for {held:.0} us", thread.tid, thread.name));
        }
        (None, None) => out.line(0, format_args!("thread {} ({})", thread.tid, thread.name)),
    }
    thread.python.iter().for_each(|stack| write_python(out, stack, report));
    thread.native.iter().for_each(|stack| write_native(out, stack));
}

fn write_python(out: &mut Lines, stack: &PythonStack, report: &Report) {
    let title = report.interpreters.get(stack.interpreter).map(title).unwrap_or_default();
    out.line(2, format_args!("Python stack, {title}, thread state {:#x}", stack.thread_state));
    for frame in &stack.frames {
        match frame.line {
            Some(line) => out.line(4, format_args!("{} ({}:{line})", frame.name, frame.file)),
            None => out.line(4, format_args!("{} ({}, no line)", frame.name, frame.file)),
        }
    }
    if let Some(reason) = &stack.stopped {
        out.line(4, format_args!("[stopped: {reason}]"));
    }
}

fn write_native(out: &mut Lines, stack: &NativeStack) {
    out.line(2, format_args!("native stack"));
    for frame in &stack.frames {
        let inlined = if frame.inlined { " [inlined]" } else { "" };
        let module = frame.module.as_deref().map(|path| path.rsplit('/').next().unwrap_or(path));
        match module {
            Some(module) => out.line(4, format_args!("{}{inlined}  {module}+{:#x}", frame.name, frame.offset)),
            None => out.line(4, format_args!("{}{inlined}", frame.name)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::explain::report::{Process, Refusal, Step};

    fn said(steps: Vec<Step>, refusal: Option<Refusal>, not_recorded: Option<Refusal>) -> String {
        let process = Process { pid: 7, name: "app".to_owned(), command_line: "./app".to_owned(), uid: 0 };
        let (version, file) = (Some("3.12.1".to_owned()), "/app".to_owned());
        let interpreter =
            Interpreter { runtime: "CPython", version, file, build_id: None, steps, refusal, not_recorded };
        text(&Report { process, interpreters: vec![interpreter], threads: Vec::new() })
    }

    fn refusal(step: &'static str) -> Option<Refusal> {
        Some(Refusal { name: "a-name", step, cause: "a cause".to_owned(), remedy: "a remedy".to_owned() })
    }

    #[test]
    fn whether_it_is_walked_and_recorded() {
        let step = Step { name: "eval loop", result: "2 pieces".to_owned(), evidence: vec!["where".to_owned()] };
        let proven = said(vec![step], None, None);
        assert!(proven.contains("/app: proven\n  eval loop    2 pieces\n               where\n"), "{proven}");
        let not_recorded = said(Vec::new(), None, refusal("eval loop"));
        let expected = "not in recordings\n  eval loop    a cause [a-name]\n               a remedy\n";
        assert!(not_recorded.contains("/app: proven, ") && not_recorded.contains(expected), "{not_recorded}");
        let refused = said(Vec::new(), refusal("threads"), None);
        assert!(refused.contains("/app: REFUSED\n  threads      a cause [a-name]\n"), "{refused}");
    }
}
