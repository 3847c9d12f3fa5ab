//! perf events: what drives sampling, and what follows processes.

use recorder::probe::Reach;
use recorder::{Event, OpenError};

use crate::check::attempts::Attempts;
use crate::check::capabilities::{self, PERFMON};
use crate::check::facts::{Facts, setting};
use crate::check::item::Item;
use crate::exit::with_causes;

const PARANOID: &str = "/proc/sys/kernel/perf_event_paranoid";
const RATE: &str = "/proc/sys/kernel/perf_event_max_sample_rate";
const LOCKED: &str = "/proc/sys/kernel/perf_event_mlock_kb";
/// The default of `record -F`, in Hz.
const DEFAULT_RATE: i64 = 99;
/// The most that `record -F` takes, in Hz.
const HIGHEST_RATE: i64 = 10_000;

pub(super) fn items(facts: &Facts, attempts: &Attempts) -> Vec<Item> {
    vec![event(facts, attempts), sideband(facts, attempts), paranoid(facts), rate(), locked(attempts)]
}

fn event(facts: &Facts, attempts: &Attempts) -> Item {
    const NAME: &str = "sampling event";
    let error = match &attempts.event {
        Ok(Event::Cycles) => {
            return Item::ok(NAME, "cycles", "the hardware counts; code that runs with interrupts off is seen, too");
        }
        Ok(Event::CpuClock) => {
            return Item::ok(
                NAME,
                "cpu-clock",
                "a timer of the kernel's: there are no hardware counters, as in most virtual machines. Kernel code that \
                 runs with interrupts off is booked where they are turned on again",
            );
        }
        Err(error) => error,
    };
    let item = |meaning: &str| Item::missing(NAME, format!("refused: {error}"), meaning);
    match attempts.perf_call {
        Reach::Absent => item("the kernel is built without CONFIG_PERF_EVENTS, or a seccomp filter hides them")
            .remedy(super::container::SECCOMP_REMEDY),
        Reach::Refused => item("a seccomp filter or a security module forbids perf_event_open")
            .remedy(super::container::SECCOMP_REMEDY),
        Reach::Reached if !PERFMON.is_held(facts) => {
            item("sampling all CPUs needs CAP_PERFMON").remedies(capabilities::remedies(facts))
        }
        Reach::Reached => item("nothing can be sampled"),
    }
}

fn sideband(facts: &Facts, attempts: &Attempts) -> Item {
    const NAME: &str = "process events";
    match &attempts.sideband {
        Ok(()) => Item::ok(NAME, "opened on all CPUs", "new processes, mappings and names are followed as they come"),
        Err(error) => {
            let item = Item::missing(NAME, with_causes(error), "processes cannot be followed");
            match error {
                OpenError::NotPermitted { .. } if !PERFMON.is_held(facts) => {
                    item.remedies(capabilities::remedies(facts))
                }
                OpenError::LockedMemory { kilobytes, .. } => {
                    item.remedy(format!("sudo sysctl -w kernel.perf_event_mlock_kb={kilobytes}"))
                }
                _ => item,
            }
        }
    }
}

fn paranoid(facts: &Facts) -> Item {
    const NAME: &str = "perf_event_paranoid";
    let Some(value) = setting(PARANOID) else {
        return Item::ok(NAME, "cannot be read", "whether events can be opened is said above");
    };
    let found = format!("kernel.perf_event_paranoid = {value}");
    match PERFMON.is_held(facts) {
        true => Item::ok(NAME, found, "of no account to who holds CAP_PERFMON"),
        false => Item::ok(
            NAME,
            found,
            "lowering it is not enough: loading the sampler needs CAP_PERFMON whatever this is set to",
        ),
    }
}

fn rate() -> Item {
    const NAME: &str = "sampling rate";
    let Some(most) = setting(RATE) else {
        return Item::ok(
            NAME,
            "its limit cannot be read",
            "a rate that is too high is refused when a recording starts",
        );
    };
    let found = format!("kernel.perf_event_max_sample_rate = {most}");
    let higher = format!("sudo sysctl -w kernel.perf_event_max_sample_rate={HIGHEST_RATE}");
    let lowered = "the kernel lowers it by itself when samples take long";
    match most {
        ..DEFAULT_RATE => {
            Item::limited(NAME, found, format!("record needs -F {most} or less; {lowered}")).remedy(higher)
        }
        DEFAULT_RATE..1000 => Item::limited(NAME, found, format!("record -F {most} at most; {lowered}")).remedy(higher),
        _ => Item::ok(NAME, found, format!("record -F {} at most", most.min(HIGHEST_RATE))),
    }
}

fn locked(attempts: &Attempts) -> Item {
    const NAME: &str = "perf_event_mlock_kb";
    let found = match setting(LOCKED) {
        Some(value) => format!("kernel.perf_event_mlock_kb = {value}"),
        None => "cannot be read".to_owned(),
    };
    match &attempts.sideband {
        Err(OpenError::LockedMemory { kilobytes, .. }) => {
            Item::missing(NAME, found, format!("{kilobytes} KB are needed for each CPU, or CAP_IPC_LOCK"))
                .remedy(format!("sudo sysctl -w kernel.perf_event_mlock_kb={kilobytes}"))
        }
        Err(_) => {
            Item::ok(NAME, found, "how much memory a user may lock for perf buffers, for each CPU; not come to that")
        }
        Ok(()) => Item::ok(NAME, found, "the buffers for process events fit"),
    }
}
