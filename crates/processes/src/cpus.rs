//! The CPUs that are online.

use std::io;

/// Why the CPUs could not be listed.
#[derive(Debug, thiserror::Error)]
pub enum CpuListError {
    /// The kernel's list could not be read.
    #[error("cannot read {ONLINE}")]
    Read(#[source] io::Error),
    /// It is not a list of CPUs.
    #[error("{ONLINE} holds no list of CPUs: {0:?}")]
    Syntax(String),
}

const ONLINE: &str = "/sys/devices/system/cpu/online";
/// More CPUs than any kernel supports (the largest `CONFIG_NR_CPUS` is 8,192).
const LIMIT: u32 = 1 << 16;

/// Numbers of the CPUs that are online, ascending.
///
/// # Errors
/// If /sys is not mounted or holds nonsense.
pub fn online_cpus() -> Result<Vec<u32>, CpuListError> {
    let text = std::fs::read_to_string(ONLINE).map_err(CpuListError::Read)?;
    parse(text.trim()).ok_or(CpuListError::Syntax(text))
}

/// A list such as `0-3,8,10-11`.
fn parse(list: &str) -> Option<Vec<u32>> {
    let mut cpus = Vec::new();
    for part in list.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last) = (first.parse::<u32>().ok()?, last.parse::<u32>().ok()?);
        if first > last || last >= LIMIT || cpus.last().is_some_and(|previous| *previous >= first) {
            return None;
        }
        cpus.extend(first..=last);
    }
    Some(cpus)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists() {
        assert_eq!(parse("0"), Some(vec![0]));
        assert_eq!(parse("0-3,8,10-11"), Some(vec![0, 1, 2, 3, 8, 10, 11]));
        for bad in ["", "x", "3-1", "0-", "0,0", "0-4294967295", "1,,2", "-1"] {
            assert_eq!(parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn agrees_with_libc() -> Result<(), CpuListError> {
        // SAFETY: sysconf only reads a number.
        let count = unsafe { libc::sysconf(libc::_SC_NPROCESSORS_ONLN) };
        assert_eq!(online_cpus()?.len() as i64, count);
        Ok(())
    }
}
