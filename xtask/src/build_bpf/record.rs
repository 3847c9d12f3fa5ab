//! `bpf/prebuilt/TOOLCHAIN`: what the committed objects were made with.

use std::path::Path;

use anyhow::{Context, Result, bail};

const FILE: &str = "TOOLCHAIN";
const HEAD: &str = "# Written by `cargo xtask build-bpf`: what made the objects in this directory.\n";

/// The programs whose versions decide the bytes of an object, as they name themselves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// `rustc --version`.
    pub rustc: String,
    /// The LLVM of that compiler, which bpf-linker loads.
    pub llvm: String,
    /// `bpf-linker --version`.
    pub bpf_linker: String,
}

impl Record {
    /// The record in a directory; none where there is no file.
    pub fn read(directory: &Path) -> Result<Option<Record>> {
        let path = directory.join(FILE);
        match std::fs::read_to_string(&path) {
            Ok(text) => parse(&text).map(Some).with_context(|| format!("{} is damaged", path.display())),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error).with_context(|| format!("{} cannot be read", path.display())),
        }
    }

    /// Writes the record into a directory.
    pub fn write(&self, directory: &Path) -> Result<()> {
        let path = directory.join(FILE);
        std::fs::write(&path, self.text()).with_context(|| format!("{} cannot be written", path.display()))
    }

    /// The release of the compiler, as in `1.96.0`.
    pub fn rustc_release(&self) -> Option<&str> {
        self.rustc.split_whitespace().nth(1)
    }

    fn text(&self) -> String {
        format!("{HEAD}rustc: {}\nllvm: {}\nbpf-linker: {}\n", self.rustc, self.llvm, self.bpf_linker)
    }
}

fn parse(text: &str) -> Result<Record> {
    let mut record = Record { rustc: String::new(), llvm: String::new(), bpf_linker: String::new() };
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        match line.split_once(": ") {
            Some(("rustc", value)) => record.rustc = value.to_owned(),
            Some(("llvm", value)) => record.llvm = value.to_owned(),
            Some(("bpf-linker", value)) => record.bpf_linker = value.to_owned(),
            _ => bail!("unexpected line {line:?}"),
        }
    }
    let missing = [&record.rustc, &record.llvm, &record.bpf_linker].iter().any(|value| value.is_empty());
    if missing { bail!("it lacks one of rustc, llvm, bpf-linker") } else { Ok(record) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn example() -> Record {
        Record {
            rustc: "rustc 1.96.0 (ac68faa20 2026-05-25) (built from a source tarball)".to_owned(),
            llvm: "22.1.8".to_owned(),
            bpf_linker: "bpf-linker 0.10.3".to_owned(),
        }
    }

    #[test]
    fn what_is_written_is_read() {
        let directory = tempfile::tempdir().unwrap();
        assert_eq!(Record::read(directory.path()).unwrap(), None);
        example().write(directory.path()).unwrap();
        assert_eq!(Record::read(directory.path()).unwrap(), Some(example()));
        assert_eq!(example().rustc_release(), Some("1.96.0"));
    }

    #[test]
    fn damage_is_refused() {
        let text = example().text();
        assert!(parse(&text).is_ok());
        for (from, to) in [("llvm: 22.1.8\n", ""), ("llvm", "lvm"), (": 22.1.8", ": "), ("22.1.8\n", "22.1.8\n\n")] {
            assert!(parse(&text.replacen(from, to, 1)).is_err(), "{from:?} to {to:?}");
        }
    }
}
