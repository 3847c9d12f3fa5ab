//! Building workloads, recording them, and judging the result.

pub(crate) mod build;
pub(crate) mod folded;
pub(crate) mod judge;
pub(crate) mod record;
pub(crate) mod workload;

use std::path::Path;

/// Whether a test that needs these programs, and root, can run; says why not.
pub(crate) fn possible(tools: &[&str]) -> bool {
    match missing(tools) {
        None => true,
        Some(reason) => {
            println!("SKIPPED: {reason}");
            let required = std::env::var_os("WHOLESTACK_REQUIRE_LIVE").is_some_and(|value| value == "1");
            assert!(!required, "required, but {reason}");
            false
        }
    }
}

fn missing(tools: &[&str]) -> Option<String> {
    if !rustix::process::geteuid().is_root() {
        return Some("recording needs root".to_owned());
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = |tool: &str| std::env::split_paths(&path).any(|directory| directory.join(tool).is_file());
    let absent = tools.iter().find(|tool| !found(tool) && !Path::new(tool).is_file());
    absent.map(|tool| format!("{tool} is not installed"))
}

/// Leaves the calling test if it cannot run here.
macro_rules! needs {
    ($($tool:expr),* $(,)?) => {
        if !$crate::support::possible(&[$($tool),*]) {
            return;
        }
    };
}
pub(crate) use needs;
