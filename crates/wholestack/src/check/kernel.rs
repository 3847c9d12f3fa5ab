//! The kernel and BPF.

use std::path::Path;

use recorder::probe::Reach;
use recorder::{LoadError, StartError};

use crate::check::attempts::Attempts;
use crate::check::capabilities::{self, BPF, PERFMON};
use crate::check::facts::{Facts, setting};
use crate::check::item::Item;
use crate::exit::with_causes;

const BTF: &str = "/sys/kernel/btf/vmlinux";
const UNPRIVILEGED: &str = "/proc/sys/kernel/unprivileged_bpf_disabled";
const JIT: &str = "/proc/sys/net/core/bpf_jit_enable";
const LOCKDOWN: &str = "/sys/kernel/security/lockdown";
/// Has all that the sampler needs.
const NEW_ENOUGH: (u32, u32) = (5, 17);

pub(super) fn items(facts: &Facts, attempts: &Attempts) -> Vec<Item> {
    vec![
        kernel(facts, attempts),
        btf(attempts),
        bpf_call(facts, attempts),
        sampler(facts, attempts),
        unprivileged(),
        jit(),
        lockdown(),
    ]
}

fn kernel(facts: &Facts, attempts: &Attempts) -> Item {
    const NAME: &str = "kernel";
    let found = format!("Linux {} {}", facts.release, facts.machine);
    let built_for = std::env::consts::ARCH;
    if facts.machine != built_for {
        return Item::missing(
            NAME,
            found,
            format!("this wholestack is built for {built_for}, and not for this machine"),
        )
        .remedy(format!("take a wholestack for {}; x86_64 and aarch64 are supported", facts.machine));
    }
    if attempts.sampler.is_ok() {
        return Item::ok(NAME, found, "supported: it runs the sampler");
    }
    if !attempts.missing_features.is_empty() {
        let features = attempts.missing_features.join(", ");
        return Item::missing(NAME, found, format!("it does not have {features}, which the sampler needs"))
            .remedy("a kernel of Linux 5.17 or newer");
    }
    match facts.version() {
        Some(version) if version < NEW_ENOUGH => Item::missing(
            NAME,
            found,
            "older than Linux 5.17; the sampler needs what came with that, unless it was ported back",
        )
        .remedy("a kernel of Linux 5.17 or newer"),
        Some(_) => Item::ok(NAME, found, "new enough"),
        None => Item::ok(NAME, found, "its version is not one that says what it can do"),
    }
}

fn btf(attempts: &Attempts) -> Item {
    const NAME: &str = "BTF";
    const REMEDY: &str = "a kernel built with CONFIG_DEBUG_INFO_BTF=y, as those of the distributions are";
    if let Some(error) = attempts.btf_error() {
        return Item::missing(
            NAME,
            with_causes(error),
            "the sampler must know how this kernel lays out its structures",
        )
        .remedy(REMEDY);
    }
    match std::fs::File::open(BTF).and_then(|file| file.metadata()) {
        Ok(found) => {
            Item::ok(NAME, format!("{BTF}, {} KB", found.len() / 1024), "tells how this kernel lays out its structures")
        }
        Err(error) if Path::new("/sys/kernel").exists() => Item::missing(
            NAME,
            format!("{BTF}: {error}"),
            "the sampler must know how this kernel lays out its structures",
        )
        .remedy(REMEDY),
        Err(error) => Item::missing(NAME, format!("{BTF}: {error}"), "/sys is not mounted")
            .remedy("sudo mount -t sysfs sysfs /sys"),
    }
}

fn bpf_call(facts: &Facts, attempts: &Attempts) -> Item {
    const NAME: &str = "bpf system call";
    match attempts.bpf_call {
        Reach::Reached => Item::ok(NAME, "can be called", "no filter is in its way; what it allows depends on rights"),
        Reach::Refused if !BPF.is_held(facts) => {
            Item::missing(NAME, "refused", "for want of CAP_BPF, or by a seccomp filter or a security module")
                .remedies(capabilities::remedies(facts))
        }
        Reach::Refused => {
            Item::missing(NAME, "refused, although CAP_BPF is held", "a seccomp filter or a security module forbids it")
                .remedy(super::container::SECCOMP_REMEDY)
        }
        Reach::Absent if facts.status.seccomp == Some(2) => {
            Item::missing(NAME, "not there", "the kernel is built without it, or a seccomp filter hides it")
                .remedy(super::container::SECCOMP_REMEDY)
        }
        Reach::Absent => Item::missing(NAME, "not there", "the kernel is built without it")
            .remedy("a kernel built with CONFIG_BPF_SYSCALL=y, as those of the distributions are"),
    }
}

fn sampler(facts: &Facts, attempts: &Attempts) -> Item {
    const NAME: &str = "sampler";
    let error = match &attempts.sampler {
        Ok(report) => {
            let programs = report.programs.iter().map(|program| match program.instructions {
                Some(count) => format!("{} ({count} instructions verified)", program.name),
                None => program.name.clone(),
            });
            let found = format!("loaded and attached: {}", programs.collect::<Vec<_>>().join(", "));
            return Item::ok(
                NAME,
                found,
                "tried, and removed again: the ring buffer, bpf_loop and task_pt_regs are there",
            );
        }
        Err(error) => error,
    };
    let held = BPF.is_held(facts) && PERFMON.is_held(facts);
    let item = Item::missing(NAME, with_causes(error), "nothing can be recorded without it");
    match error {
        StartError::PidNamespace => item.remedy(super::container::PID_REMEDY),
        _ if attempts.btf_error().is_some() => item,
        _ if !held => item.remedies(capabilities::remedies(facts)),
        StartError::Load(LoadError::Program { .. } | LoadError::Bpf(_)) if attempts.missing_features.is_empty() => item
            .remedy("if this kernel is 5.17 or newer and not locked down, please report this together with `wholestack check --json`"),
        _ => item,
    }
}

fn unprivileged() -> Item {
    const NAME: &str = "unprivileged BPF";
    const MEANING: &str = "of no account: a sampler needs CAP_BPF and CAP_PERFMON whatever this is set to";
    match setting(UNPRIVILEGED) {
        Some(value) => Item::ok(NAME, format!("kernel.unprivileged_bpf_disabled = {value}"), MEANING),
        None => Item::ok(NAME, "the kernel has no such setting", MEANING),
    }
}

fn jit() -> Item {
    const NAME: &str = "BPF compiler";
    match setting(JIT) {
        Some(0) => Item::limited(
            NAME,
            "net.core.bpf_jit_enable = 0",
            "the sampler is interpreted: each sample costs several times as much",
        )
        .remedy("sudo sysctl -w net.core.bpf_jit_enable=1"),
        Some(value) => Item::ok(NAME, format!("net.core.bpf_jit_enable = {value}"), "the sampler runs as machine code"),
        None => Item::ok(
            NAME,
            "net.core.bpf_jit_enable cannot be read",
            "in a network namespace of its own it is not shown",
        ),
    }
}

fn lockdown() -> Item {
    const NAME: &str = "lockdown";
    let text = match std::fs::read_to_string(LOCKDOWN) {
        Ok(text) => text,
        Err(_) => {
            return Item::ok(
                NAME,
                "none, or securityfs is not mounted",
                "whether the sampler loads does not depend on knowing it",
            );
        }
    };
    match chosen(&text) {
        Some("confidentiality") => {
            Item::missing(NAME, "confidentiality", "BPF may not read the kernel's memory, which the sampler does")
                .remedy(
                    "start the kernel with lockdown=integrity, or without lockdown=; it cannot be lifted while it runs",
                )
        }
        Some(mode) => Item::ok(NAME, mode, "does not concern profiling"),
        None => Item::ok(NAME, text.trim(), "not a mode that wholestack knows"),
    }
}

/// The mode in brackets: `none [integrity] confidentiality`.
fn chosen(text: &str) -> Option<&str> {
    Some(text.split_once('[')?.1.split_once(']')?.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mode_is_in_brackets() {
        assert_eq!(chosen("none [integrity] confidentiality\n"), Some("integrity"));
        assert_eq!(chosen("none\n"), None);
    }
}
