//! Containers: namespaces and filters around this process.

use recorder::probe::Reach;

use crate::check::attempts::Attempts;
use crate::check::capabilities;
use crate::check::facts::Facts;
use crate::check::item::Item;

/// How the ids of the host are had.
pub(super) const PID_REMEDY: &str = "run it on the host, or with the host's process ids: docker run --pid=host, podman run --pid=host (as root), \
     Kubernetes: hostPID: true";
/// How a filter is had out of the way.
pub(super) const SECCOMP_REMEDY: &str = "in a container: docker run --security-opt seccomp=unconfined (Kubernetes: seccompProfile: {type: Unconfined}); \
     in a systemd service: add bpf and perf_event_open to SystemCallFilter=";

pub(super) fn items(facts: &Facts, attempts: &Attempts) -> Vec<Item> {
    vec![pid_namespace(facts), user_namespace(facts), seccomp(facts, attempts), cgroups(facts)]
}

fn pid_namespace(facts: &Facts) -> Item {
    const NAME: &str = "pid namespace";
    match facts.initial_pid_namespace {
        Some(true) => Item::ok(NAME, "the initial one", "process ids are those that the kernel samples under"),
        Some(false) => Item::missing(
            NAME,
            "a container's",
            "process ids here are not those that the kernel samples under, and the processes outside cannot be seen",
        )
        .remedy(PID_REMEDY),
        None => Item::missing(NAME, "not known: /proc/self/ns/pid cannot be read", "wholestack needs /proc")
            .remedy("sudo mount -t proc proc /proc"),
    }
}

fn user_namespace(facts: &Facts) -> Item {
    const NAME: &str = "user namespace";
    match facts.initial_user_namespace {
        Some(true) => Item::ok(NAME, "the initial one", "capabilities held here count"),
        Some(false) => Item::missing(
            NAME,
            "not the initial one (unshare -U, a rootless container)",
            "capabilities held here are not asked for by BPF and perf events, even those of its root",
        )
        .remedies(capabilities::remedies(facts)),
        None => Item::ok(NAME, "not known", "the kernel has none, or /proc does not say"),
    }
}

fn seccomp(facts: &Facts, attempts: &Attempts) -> Item {
    const NAME: &str = "seccomp";
    let reached = (attempts.bpf_call, attempts.perf_call) == (Reach::Reached, Reach::Reached);
    match facts.status.seccomp {
        Some(0) | None => Item::ok(NAME, "no filter", "no system call is filtered"),
        Some(_) if reached => Item::ok(NAME, "a filter", "it lets bpf and perf_event_open through"),
        Some(_) => {
            Item::missing(NAME, "a filter", "bpf or perf_event_open do not get through, perhaps for this filter")
                .remedy(SECCOMP_REMEDY)
        }
    }
}

fn cgroups(facts: &Facts) -> Item {
    let has = |kind: &str| facts.mounts.iter().any(|mount| mount.kind == kind);
    let found = match (has("cgroup"), has("cgroup2")) {
        (true, true) => "version 1 and version 2",
        (true, false) => "version 1",
        (false, true) => "version 2",
        (false, false) => "not mounted",
    };
    Item::ok("cgroups", found, "not needed: any will do")
}
