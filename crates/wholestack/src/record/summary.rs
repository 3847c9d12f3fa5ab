//! What is said at the end: how much, how whole, what is missing and why.

use abi::counter::Counter;
use profile::{FoundBy, FrameId, ProcessStatus, Profile, StopCount};
use recorder::Finished;

use crate::say::say;

/// Processes that are listed at most.
const PROCESSES: usize = 10;
/// Ticks from which on starting, stopping and the coarse accounting of CPU time make no difference.
const TICKS_THAT_TELL: u64 = 500;
/// Reasons that are listed at most, for all and for each process.
const REASONS: usize = 5;

/// Prints the summary.
pub(super) fn print(finished: &Finished) {
    let profile = &finished.profile;
    let total = profile.total();
    say!(
        "{total} samples of {} processes and {} threads in {:.1} s ({}, {} Hz per CPU)",
        profile.processes.len(),
        profile.threads.len(),
        profile.meta.duration.as_secs_f64(),
        profile.meta.event,
        profile.meta.frequency,
    );
    if total == 0 {
        say!("  nothing of what was recorded ran on a CPU in this time; waiting is not sampled");
    }
    print_stops(&profile.meta.stops, total);
    print_frame_pointers(profile, total);
    print_processes(&profile.meta.statuses);
    print_interpreters(&profile.meta.interpreters);
    print_losses(finished);
    print_ticks(finished);
    print_unnamed(finished);
    for object in finished.no_tables.iter().take(REASONS) {
        say!("  no unwind table for {}: {}", object.path, object.reason);
    }
}

fn print_stops(stops: &[StopCount], total: u64) {
    let whole: u64 = stops.iter().filter(|stop| stop.whole).map(|stop| stop.count).sum();
    if total > 0 {
        say!("  {} of the stacks are whole", share(whole, total));
    }
    for stop in stops.iter().filter(|stop| !stop.whole).take(REASONS) {
        say!("  {} stopped: {}", share(stop.count, total), stop.reason);
    }
}

/// Frame pointers are believed where there is nothing better; they may leave out the caller of a function without a frame.
fn print_frame_pointers(profile: &Profile, total: u64) {
    let by_pointer = |frame: FrameId| profile.frames[frame.index()].found_by == FoundBy::FramePointer;
    let stacks = profile.samples.iter().filter(|sample| profile.frames_of(sample.stack).any(by_pointer));
    let samples: u64 = stacks.map(|sample| sample.count).sum();
    if samples > 0 {
        say!("  {} of the stacks have frames that only a frame pointer led to", share(samples, total));
    }
}

fn print_processes(statuses: &[ProcessStatus]) {
    for status in statuses.iter().take(PROCESSES) {
        let cut: Vec<String> = status
            .stops
            .iter()
            .filter(|stop| !stop.whole)
            .take(REASONS)
            .map(|stop| format!("{} {}", stop.count, stop.reason))
            .collect();
        let cut = if cut.is_empty() { "all whole".to_owned() } else { format!("stopped: {}", cut.join(", ")) };
        say!("  pid {} {}: {} samples, {cut}", status.pid, status.name, status.samples);
    }
    if statuses.len() > PROCESSES {
        say!("  and {} more processes", statuses.len() - PROCESSES);
    }
}

fn print_interpreters(lines: &[String]) {
    lines.iter().take(PROCESSES).for_each(|line| say!("  {line}"));
    if lines.len() > PROCESSES {
        say!("  and {} more processes with an interpreter", lines.len() - PROCESSES);
    }
}

fn print_losses(finished: &Finished) {
    for loss in &finished.profile.meta.losses {
        say!("  {}: {}", loss.cause, loss.count);
    }
    let troubles = &finished.troubles;
    if troubles.lost_events > 0 {
        say!("  {} process events lost by the kernel; /proc was read again", troubles.lost_events);
    }
    if troubles.bad_records > 0 {
        say!("  {} records of the sampler could not be read", troubles.bad_records);
    }
    for trouble in [&troubles.no_room, &troubles.counts_error, &troubles.perf_map].into_iter().flatten() {
        say!("  {trouble}");
    }
    let of =
        |wanted: Counter| finished.counters.iter().find(|(counter, _)| *counter == wanted).map_or(0, |found| found.1);
    let outcomes = [Counter::Idle, Counter::Filtered, Counter::Counted, Counter::Deferred];
    let seen: u64 = outcomes.iter().chain(Counter::LOSSES).map(|counter| of(*counter)).sum();
    if seen != of(Counter::Samples) {
        say!("  {} samples taken, {seen} accounted for: please report this", of(Counter::Samples));
    }
}

/// A tick that comes while the sampler still works on the last one never happens, and nothing counts it.
fn print_ticks(finished: &Finished) {
    let of =
        |wanted: Counter| finished.counters.iter().find(|(counter, _)| *counter == wanted).map_or(0, |found| found.1);
    let taken = of(Counter::Samples).saturating_sub(of(Counter::Idle));
    let Some(due) = finished.ticks.filter(|due| *due >= TICKS_THAT_TELL) else { return };
    let missing = due.saturating_sub(taken);
    if missing * 10 > due {
        say!("  {} of the ticks of busy CPUs never came: samples took longer than their period", share(missing, due));
    }
}

fn print_unnamed(finished: &Finished) {
    for unnamed in finished.unnamed.iter().take(REASONS) {
        say!("  no names for {} addresses of {}: {}", unnamed.frames, unnamed.of, unnamed.reason);
    }
}

fn share(part: u64, whole: u64) -> String {
    format!("{:.1} %", 100.0 * part as f64 / whole.max(1) as f64)
}
