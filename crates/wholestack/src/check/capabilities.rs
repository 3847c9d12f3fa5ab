//! The capabilities that this process holds, and what each buys.

use crate::check::facts::Facts;
use crate::check::item::{Item, State};

/// A capability, its number as in include/uapi/linux/capability.h.
pub(super) struct Capability {
    pub(super) name: &'static str,
    number: u32,
    /// What it buys.
    buys: &'static str,
    /// What is missing without it.
    without: &'static str,
    /// How bad that is.
    absence: State,
    /// CAP_SYS_ADMIN includes it.
    in_sys_admin: bool,
}

pub(super) const BPF: Capability = Capability {
    name: "CAP_BPF",
    number: 39,
    buys: "load the sampler into the kernel",
    without: "the sampler cannot be loaded",
    absence: State::Missing,
    in_sys_admin: true,
};
pub(super) const PERFMON: Capability = Capability {
    name: "CAP_PERFMON",
    number: 38,
    buys: "sample all CPUs, follow processes, let the sampler read stacks",
    without: "nothing can be sampled",
    absence: State::Missing,
    in_sys_admin: true,
};
pub(super) const SYS_PTRACE: Capability = Capability {
    name: "CAP_SYS_PTRACE",
    number: 19,
    buys: "look into the processes of other users: their mappings, files and perf maps",
    without: "only your own processes are sure to be unwound and named",
    absence: State::Limited,
    in_sys_admin: false,
};
pub(super) const CHECKPOINT_RESTORE: Capability = Capability {
    name: "CAP_CHECKPOINT_RESTORE",
    number: 40,
    buys: "open the very file that a process maps, also if it was deleted, replaced, or lies in a container",
    without: "files are found by their path only: what was deleted or replaced since has no names and is not unwound",
    absence: State::Limited,
    in_sys_admin: true,
};
pub(super) const SYSLOG: Capability = Capability {
    name: "CAP_SYSLOG",
    number: 34,
    buys: "read the addresses of the kernel's functions, for their names",
    without: "names of kernel functions depend on settings: see \"kernel names\"",
    absence: State::Ok,
    in_sys_admin: false,
};
pub(super) const SYS_ADMIN: Capability = Capability {
    name: "CAP_SYS_ADMIN",
    number: 21,
    buys: "includes CAP_BPF, CAP_PERFMON and CAP_CHECKPOINT_RESTORE; wholestack does not need it beside them",
    without: "not needed: CAP_BPF, CAP_PERFMON and CAP_CHECKPOINT_RESTORE do",
    absence: State::Ok,
    in_sys_admin: false,
};
pub(super) const IPC_LOCK: Capability = Capability {
    name: "CAP_IPC_LOCK",
    number: 14,
    buys: "perf buffers of any size",
    without: "not needed as long as kernel.perf_event_mlock_kb is what it is by default",
    absence: State::Ok,
    in_sys_admin: false,
};

/// In the order in which they are shown.
const SHOWN: [&Capability; 7] = [&BPF, &PERFMON, &SYS_PTRACE, &CHECKPOINT_RESTORE, &SYSLOG, &SYS_ADMIN, &IPC_LOCK];
/// Those that a recording of all processes with all names takes.
const WANTED: [&Capability; 5] = [&BPF, &PERFMON, &SYS_PTRACE, &CHECKPOINT_RESTORE, &SYSLOG];

impl Capability {
    fn is_in(&self, set: u64) -> bool {
        set >> self.number & 1 == 1
    }

    /// Whether this process has it, or one that includes it, and it counts.
    pub(super) fn is_held(&self, facts: &Facts) -> bool {
        let Some(set) = facts.status.effective.filter(|_| facts.capabilities_count()) else { return false };
        self.is_in(set) || self.in_sys_admin && SYS_ADMIN.is_in(set)
    }

    fn item(&self, facts: &Facts) -> Item {
        let itself = facts.status.effective.is_some_and(|set| self.is_in(set));
        if self.is_held(facts) {
            return Item::ok(self.name, if itself { "held" } else { "held as part of CAP_SYS_ADMIN" }, self.buys);
        }
        let found = match facts.status.effective {
            None => "not known: /proc/self/status cannot be read",
            Some(_) if itself => "held in a user namespace only, where it does not count",
            Some(_) => "not held",
        };
        let item = Item::new(self.name, self.absence, found, self.without);
        if self.absence == State::Ok { item } else { item.remedies(remedies(facts)) }
    }
}

/// The items.
pub(super) fn items(facts: &Facts) -> Vec<Item> {
    SHOWN.iter().map(|capability| capability.item(facts)).collect()
}

/// How the capabilities that are wanted are had, the best way first.
pub(super) fn remedies(facts: &Facts) -> Vec<String> {
    if facts.initial_user_namespace == Some(false) {
        return vec![
            "leave the user namespace: on the host, or in a container that root starts (sudo podman run, not podman run)"
                .to_owned(),
        ];
    }
    let contained = facts.initial_pid_namespace == Some(false) || facts.container_image;
    let bounded = facts.status.bounding.is_some_and(|set| WANTED.iter().any(|wanted| !wanted.is_in(set)));
    let container = container_line();
    if bounded {
        // neither sudo nor file capabilities give what the bounding set does not have
        let service = "in a systemd service: remove CapabilityBoundingSet= or add what is missing to it".to_owned();
        return vec![container, service];
    }
    if facts.status.no_new_privileges {
        return vec![
            "start from where rights may be gained: this process has no_new_privs (systemd: NoNewPrivileges=no; \
             docker: without --security-opt no-new-privileges; Kubernetes: allowPrivilegeEscalation: true)"
                .to_owned(),
        ];
    }
    let mut remedies = match facts.uid {
        0 if contained => Vec::new(),
        0 => vec![
            "start it with all of root's capabilities (a setpriv, capsh or systemd setting took some away)".to_owned(),
        ],
        _ if facts.program_nosuid => vec![format!("sudo {}", facts.program.display())],
        _ => vec![setcap_line(facts), format!("or: sudo {}", facts.program.display())],
    };
    if contained {
        remedies.push(container);
    }
    remedies
}

fn setcap_line(facts: &Facts) -> String {
    let names: Vec<String> = WANTED.iter().map(|wanted| wanted.name.to_ascii_lowercase()).collect();
    format!("sudo setcap {}+ep {}", names.join(","), facts.program.display())
}

/// Options for container engines.
pub(super) fn container_line() -> String {
    let names = WANTED.map(|wanted| wanted.name.trim_start_matches("CAP_"));
    let added: Vec<String> = names.iter().map(|name| format!("--cap-add={name}")).collect();
    format!(
        "in a container: docker run --pid=host {} --security-opt apparmor=unconfined (podman: the same, as root; \
         Kubernetes: hostPID: true and securityContext.capabilities.add: [{}])",
        added.join(" "),
        names.join(", ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::facts::Status;

    fn facts(effective: u64) -> Facts {
        let status = Status { effective: Some(effective), bounding: Some(u64::MAX), ..Status::default() };
        Facts { status, uid: 1000, initial_user_namespace: Some(true), container_image: false, ..Facts::gather() }
    }

    #[test]
    fn sys_admin_includes_some() {
        let facts = facts(1 << 21);
        let held: Vec<bool> = SHOWN.iter().map(|capability| capability.is_held(&facts)).collect();
        assert_eq!(held, [true, true, false, true, false, true, false]);
    }

    #[test]
    fn of_another_user_namespace_they_are_void() {
        let facts = Facts { initial_user_namespace: Some(false), ..facts(u64::MAX) };
        assert!(SHOWN.iter().all(|capability| !capability.is_held(&facts)));
        assert!(remedies(&facts).iter().all(|remedy| !remedy.contains("setcap")));
    }

    #[test]
    fn remedies_are_those_that_can_help() {
        let plain = facts(0);
        assert!(remedies(&plain).iter().any(|remedy| remedy.starts_with("sudo setcap cap_bpf,cap_perfmon,")));
        let frozen = Facts { status: Status { no_new_privileges: true, ..plain.status }, ..plain.clone() };
        assert!(remedies(&frozen).iter().all(|remedy| !remedy.contains("sudo ")), "{:?}", remedies(&frozen));
        let nosuid = Facts { program_nosuid: true, ..plain.clone() };
        assert!(remedies(&nosuid).iter().all(|remedy| !remedy.contains("setcap")));
        let bounded = Facts { status: Status { bounding: Some(0), ..plain.status }, ..plain };
        assert!(remedies(&bounded).iter().all(|remedy| !remedy.contains("sudo ")));
    }

    /// capabilities(7) is the oracle by hand; the kernel's header is one by machine.
    #[test]
    fn numbers_are_the_kernels() {
        let header =
            std::fs::read_to_string("/usr/include/linux/capability.h").expect("kernel headers (linux-libc-dev)");
        for capability in SHOWN {
            let define = format!("#define {}", capability.name);
            let line = header
                .lines()
                .find(|line| line.starts_with(&format!("{define} ")) || line.starts_with(&format!("{define}\t")));
            let number = line.and_then(|line| line.split_ascii_whitespace().nth(2)).and_then(|text| text.parse().ok());
            assert_eq!(number, Some(capability.number), "{}", capability.name);
        }
    }
}
