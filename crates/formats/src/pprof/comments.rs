//! What is to be known of the recording, a comment each.

use profile::Meta;

/// The comments, without those that would say nothing.
pub(super) fn of(meta: &Meta) -> Vec<String> {
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
    let stops = meta.stops.iter().map(|stop| {
        let whole = if stop.whole { "whole" } else { "not whole" };
        format!("stacks: {} ended in {} ({whole})", stop.count, stop.reason)
    });
    known.chain(sampling).chain(losses).chain(stops).collect()
}
