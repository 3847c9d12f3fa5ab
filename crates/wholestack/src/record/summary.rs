//! What is said at the end: how much, how whole, what is missing and why.

use abi::counter::Counter;
use profile::{ProcessStatus, StopCount};
use recorder::Finished;

/// Processes that are listed at most.
const PROCESSES: usize = 10;
/// Reasons that are listed at most, for all and for each process.
const REASONS: usize = 5;

/// Prints the summary.
pub(super) fn print(finished: &Finished) {
    let profile = &finished.profile;
    let total = profile.total();
    eprintln!(
        "{total} samples of {} processes and {} threads in {:.1} s ({}, {} Hz per CPU)",
        profile.processes.len(),
        profile.threads.len(),
        profile.meta.duration.as_secs_f64(),
        profile.meta.event,
        profile.meta.frequency,
    );
    print_stops(&profile.meta.stops, total);
    print_processes(&profile.meta.statuses);
    print_losses(finished);
    print_unnamed(finished);
}

fn print_stops(stops: &[StopCount], total: u64) {
    let whole: u64 = stops.iter().filter(|stop| stop.whole).map(|stop| stop.count).sum();
    if total > 0 {
        eprintln!("  {} of the stacks are whole", share(whole, total));
    }
    for stop in stops.iter().filter(|stop| !stop.whole).take(REASONS) {
        eprintln!("  {} stopped: {}", share(stop.count, total), plain(&stop.reason));
    }
}

fn print_processes(statuses: &[ProcessStatus]) {
    for status in statuses.iter().take(PROCESSES) {
        let cut: Vec<String> = status
            .stops
            .iter()
            .filter(|stop| !stop.whole)
            .take(REASONS)
            .map(|stop| format!("{} {}", stop.count, plain(&stop.reason)))
            .collect();
        let cut = if cut.is_empty() { "all whole".to_owned() } else { format!("stopped: {}", cut.join(", ")) };
        eprintln!("  pid {} {}: {} samples, {cut}", status.pid, plain(&status.name), status.samples);
    }
    if statuses.len() > PROCESSES {
        eprintln!("  and {} more processes", statuses.len() - PROCESSES);
    }
}

fn print_losses(finished: &Finished) {
    for loss in &finished.profile.meta.losses {
        eprintln!("  {}: {}", loss.cause, loss.count);
    }
    let troubles = &finished.troubles;
    if troubles.lost_events > 0 {
        eprintln!("  {} process events lost by the kernel; /proc was read again", troubles.lost_events);
    }
    if troubles.bad_records > 0 {
        eprintln!("  {} records of the sampler could not be read", troubles.bad_records);
    }
    for trouble in [&troubles.no_room, &troubles.counts_error].into_iter().flatten() {
        eprintln!("  {trouble}");
    }
    let of =
        |wanted: Counter| finished.counters.iter().find(|(counter, _)| *counter == wanted).map_or(0, |found| found.1);
    let outcomes = [Counter::Idle, Counter::Filtered, Counter::Counted, Counter::Deferred];
    let seen: u64 = outcomes.iter().chain(Counter::LOSSES).map(|counter| of(*counter)).sum();
    if seen != of(Counter::Samples) {
        eprintln!("  {} samples taken, {seen} accounted for: please report this", of(Counter::Samples));
    }
}

fn print_unnamed(finished: &Finished) {
    for unnamed in finished.unnamed.iter().take(REASONS) {
        eprintln!("  no names for {} addresses of {}: {}", unnamed.frames, plain(&unnamed.of), unnamed.reason);
    }
}

fn share(part: u64, whole: u64) -> String {
    format!("{:.1} %", 100.0 * part as f64 / whole.max(1) as f64)
}

/// A target's text without anything that a terminal would act on.
fn plain(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect()
}
