//! The committed BPF object of this architecture, and the proof that it was built from these sources.

use aya::include_bytes_aligned;

#[cfg(target_arch = "x86_64")]
const OBJECT: &[u8] = include_bytes_aligned!("../../../bpf/prebuilt/sampler-x86_64.o");
#[cfg(target_arch = "aarch64")]
const OBJECT: &[u8] = include_bytes_aligned!("../../../bpf/prebuilt/sampler-aarch64.o");
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
compile_error!("wholestack samples x86_64 and aarch64");

const _: () = assert!(
    contains(OBJECT, &abi::HASH.to_le_bytes()),
    "bpf/prebuilt was built from other sources of crates/abi: run `cargo xtask build-bpf`"
);

const fn contains(bytes: &[u8], wanted: &[u8; 8]) -> bool {
    let mut at = 0;
    while at + 8 <= bytes.len() {
        let mut same = 0;
        while same < 8 && bytes[at + same] == wanted[same] {
            same += 1;
        }
        if same == 8 {
            return true;
        }
        at += 1;
    }
    false
}

/// Why the object is refused.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum ObjectError {
    /// It is not a BPF object of this project.
    #[error("the BPF object has no section {0}")]
    NoSection(&'static str),
    /// It was built from other sources.
    #[error(
        "the BPF object was built from other sources (ABI {found:#x}, this program has {expected:#x}): rebuild both"
    )]
    Abi {
        /// What the object says.
        found: u64,
        /// What this program was built with.
        expected: u64,
    },
    /// It is for another architecture.
    #[error("the BPF object is for {found}, this machine is {expected}")]
    Architecture {
        /// What the object says.
        found: String,
        /// This machine.
        expected: &'static str,
    },
}

/// The object, checked.
pub fn object() -> Result<&'static [u8], ObjectError> {
    check(OBJECT)?;
    Ok(OBJECT)
}

fn check(object: &[u8]) -> Result<(), ObjectError> {
    let found = section(object, "wholestack.abi")?;
    let found = found.try_into().map(u64::from_le_bytes).map_err(|_| ObjectError::NoSection("wholestack.abi"))?;
    if found != abi::HASH {
        return Err(ObjectError::Abi { found, expected: abi::HASH });
    }
    let found = String::from_utf8_lossy(section(object, "wholestack.arch")?).into_owned();
    let expected = std::env::consts::ARCH;
    if found != expected {
        return Err(ObjectError::Architecture { found, expected });
    }
    Ok(())
}

fn section<'a>(object: &'a [u8], name: &'static str) -> Result<&'a [u8], ObjectError> {
    use object::{Object, ObjectSection};
    let file = object::File::parse(object).map_err(|_| ObjectError::NoSection(name))?;
    let section = file.section_by_name(name).ok_or(ObjectError::NoSection(name))?;
    section.data().map_err(|_| ObjectError::NoSection(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_committed_object_fits() {
        assert_eq!(check(OBJECT), Ok(()), "run `cargo xtask build-bpf`");
    }

    #[test]
    fn objects_of_other_sources_are_refused() {
        let at = OBJECT.windows(8).position(|bytes| bytes == abi::HASH.to_le_bytes()).expect("hash in the object");
        let mut other = OBJECT.to_vec();
        other[at] ^= 1;
        assert!(matches!(check(&other), Err(ObjectError::Abi { .. })));
    }

    #[test]
    fn objects_of_other_architectures_are_refused() {
        for name in ["sampler-x86_64.o", "sampler-aarch64.o"] {
            let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../bpf/prebuilt").join(name);
            let bytes = std::fs::read(&path).expect("both objects are committed");
            let own = name.contains(std::env::consts::ARCH);
            assert_eq!(check(&bytes).is_ok(), own, "{name}");
        }
    }
}
