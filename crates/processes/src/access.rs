//! Why the kernel does not let one process look into another, and what helps.

use std::fmt;

use crate::{Proc, namespaces};

/// Where the Yama security module says who may look into whom (Documentation/admin-guide/LSM/Yama.rst).
const PTRACE_SCOPE: &str = "/proc/sys/kernel/yama/ptrace_scope";

/// What stands between us and a process that belongs to somebody, as far as it can be told from /proc.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Access {
    /// Whose process it is: real user id. `None` if it has ended.
    pub owner: Option<u32>,
    /// The real user id of who asks.
    pub own_uid: u32,
    /// `kernel.yama.ptrace_scope`; `None` where there is no Yama.
    pub ptrace_scope: Option<u8>,
}

impl Access {
    /// What is known after the kernel has refused.
    pub fn denied(pid: u32) -> Access {
        Access {
            owner: namespaces::owner(&Proc::system(), pid).ok(),
            own_uid: rustix::process::getuid().as_raw(),
            ptrace_scope: std::fs::read_to_string(PTRACE_SCOPE).ok().and_then(|scope| scope.trim().parse().ok()),
        }
    }
}

impl fmt::Display for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let own_uid = self.own_uid;
        match (self.owner, self.ptrace_scope) {
            (Some(owner), _) if owner != own_uid => {
                write!(
                    f,
                    "it belongs to user {owner}, you are user {own_uid}; run as that user, or with CAP_SYS_PTRACE"
                )
            }
            (_, Some(3)) => write!(f, "{PTRACE_SCOPE} is 3: until the next boot no process may look into another"),
            (_, Some(2)) => write!(f, "{PTRACE_SCOPE} is 2: it needs CAP_SYS_PTRACE"),
            (_, Some(1)) => write!(
                f,
                "{PTRACE_SCOPE} is 1: it must be a program that you have started from here, or be run with \
                 CAP_SYS_PTRACE; or set it to 0"
            ),
            _ => write!(
                f,
                "it is not dumpable, has more rights than you, or a security module or seccomp profile forbids it; run \
                 with CAP_SYS_PTRACE"
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_cause_has_its_remedy() {
        let text = |owner, ptrace_scope| Access { owner, own_uid: 1000, ptrace_scope }.to_string();
        assert!(text(Some(0), Some(1)).starts_with("it belongs to user 0, you are user 1000"));
        assert!(text(Some(1000), Some(1)).contains("ptrace_scope is 1"));
        assert!(text(Some(1000), Some(2)).contains("ptrace_scope is 2"));
        assert!(text(Some(1000), Some(3)).contains("next boot"));
        assert!(text(Some(1000), Some(0)).contains("dumpable"));
        assert!(text(None, None).contains("CAP_SYS_PTRACE"));
    }

    #[test]
    fn what_is_known_of_a_process() {
        let access = Access::denied(std::process::id());
        assert_eq!(access.owner, Some(access.own_uid));
        assert_eq!(Access::denied(u32::MAX).owner, None);
    }
}
