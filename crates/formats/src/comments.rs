//! What is to be known of the recording, a line each, for formats that have a place for notes.
//!
//! The lines hold what targets chose; a format escapes them by its own rules.

use profile::{Meta, ProcessStatus, StopCount};

/// The recording as a whole, without what would say nothing.
pub(crate) fn of_recording(meta: &Meta) -> Vec<String> {
    let known = [
        ("command", &meta.command_line),
        ("target", &meta.target),
        ("host", &meta.host),
        ("kernel", &meta.kernel),
        ("wholestack", &meta.version),
    ];
    let known = known.into_iter().filter(|(_, text)| !text.is_empty()).map(|(name, text)| format!("{name}: {text}"));
    let sampling = (meta.frequency != 0).then(|| format!("sampling: {} Hz, {}", meta.frequency, meta.event));
    let losses = meta.losses.iter().map(|lost| format!("lost: {} samples: {}", lost.count, lost.cause));
    let stops = meta.stops.iter().map(|stop| format!("stacks: {}", ended(stop)));
    known.chain(sampling).chain(losses).chain(stops).collect()
}

/// Its interpreters, then its processes. There may be thousands.
pub(crate) fn of_processes(meta: &Meta) -> Vec<String> {
    meta.interpreters.iter().cloned().chain(meta.statuses.iter().map(process)).collect()
}

fn process(status: &ProcessStatus) -> String {
    let ProcessStatus { pid, name, samples, stops } = status;
    let stops: String = stops.iter().map(|stop| format!(", {}", ended(stop))).collect();
    format!("pid {pid} {name}: {samples} samples{stops}")
}

fn ended(stop: &StopCount) -> String {
    let whole = if stop.whole { "whole" } else { "not whole" };
    format!("{} ended in {} ({whole})", stop.count, stop.reason)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_for_each_interpreter_and_process() {
        let line = "pid 4711 python 3.12.1 libpython3.12.so: key 0 at _PyRuntime+0x608 [code, table, live]";
        let stop = |reason: &str, whole, count| StopCount { reason: reason.to_owned(), whole, count };
        let stops = vec![stop("root", true, 6), stop("no unwind info", false, 3)];
        let meta = Meta {
            interpreters: vec![line.to_owned()],
            statuses: vec![
                ProcessStatus { pid: 4711, name: "app".to_owned(), samples: 9, stops },
                ProcessStatus { pid: 2, name: "kthreadd".to_owned(), samples: 1, stops: Vec::new() },
            ],
            ..Meta::default()
        };
        assert_eq!(
            of_processes(&meta),
            [
                line,
                "pid 4711 app: 9 samples, 6 ended in root (whole), 3 ended in no unwind info (not whole)",
                "pid 2 kthreadd: 1 samples",
            ]
        );
    }
}
