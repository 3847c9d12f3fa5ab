//! Compares an object with the committed one.

use std::collections::BTreeSet;
use std::fmt::{Display, Formatter};

use anyhow::{Context, Result};
use object::{Object, ObjectSection, ObjectSymbol, SectionKind};

/// What the comparison of two objects found.
#[derive(Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The same bytes.
    Same,
    /// The code differs, and may, since compilers differ; programs, maps and constants are the same.
    Alike,
    /// They differ where they must not.
    Differs(String),
}

impl Display for Verdict {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> std::fmt::Result {
        match self {
            Verdict::Same => write!(formatter, "the same bytes"),
            Verdict::Alike => write!(
                formatter,
                "the same programs, maps and constants; the code could not be compared, for want of the toolchain"
            ),
            Verdict::Differs(how) => write!(formatter, "DIFFERS: {how}"),
        }
    }
}

/// Compares; objects of the same toolchain must be the same bytes.
pub fn compare(committed: &[u8], built: &[u8], same_toolchain: bool) -> Result<Verdict> {
    if committed == built {
        return Ok(Verdict::Same);
    }
    if same_toolchain {
        let place = committed.iter().zip(built).position(|(one, other)| one != other);
        let place = place.unwrap_or(committed.len().min(built.len()));
        let sizes = (committed.len(), built.len());
        return Ok(Verdict::Differs(format!("at byte {place}; committed {} bytes, built {}", sizes.0, sizes.1)));
    }
    let (before, after) = (surface(committed)?, surface(built)?);
    let gone = before.difference(&after).map(|item| format!("only committed: {item}"));
    let new = after.difference(&before).map(|item| format!("only built: {item}"));
    let differences: Vec<_> = gone.chain(new).collect();
    Ok(if differences.is_empty() { Verdict::Alike } else { Verdict::Differs(differences.join("; ")) })
}

/// What every compiler must make of the same sources: programs by name and section, maps, and the bytes of constants.
fn surface(bytes: &[u8]) -> Result<BTreeSet<String>> {
    let file = object::File::parse(bytes).context("the object cannot be read")?;
    let mut surface = BTreeSet::new();
    for section in file.sections().filter(|section| section.kind() == SectionKind::ReadOnlyData) {
        surface.insert(format!("{} {:?}", section.name()?, section.data()?));
    }
    for symbol in file.symbols().filter(|symbol| symbol.is_global() && symbol.is_definition()) {
        let section = symbol.section_index().context("a symbol without a section")?;
        let section = file.section_by_index(section)?;
        let size = if section.kind() == SectionKind::Text { 0 } else { symbol.size() };
        surface.insert(format!("{} {} {size}", section.name()?, symbol.name()?));
    }
    Ok(surface)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    fn committed() -> Vec<u8> {
        std::fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("../bpf/prebuilt/sampler-x86_64.o")).unwrap()
    }

    /// The object with the first occurrence of some bytes in a section replaced by others of the same length.
    fn changed(section: &str, change: impl Fn(&mut [u8])) -> Vec<u8> {
        let mut bytes = committed();
        let file = object::File::parse(bytes.as_slice()).unwrap();
        let (start, size) = file.section_by_name(section).unwrap().file_range().unwrap();
        change(&mut bytes[start as usize..][..size as usize]);
        bytes
    }

    #[test]
    fn one_toolchain_must_make_the_same_bytes() {
        let one = committed();
        assert_eq!(compare(&one, &one, true).unwrap(), Verdict::Same);
        let other = changed("perf_event", |code| code[8] ^= 1);
        assert!(matches!(compare(&one, &other, true).unwrap(), Verdict::Differs(_)));
        let shorter = &one[..one.len() - 1];
        let how = format!("at byte {0}; committed {1} bytes, built {0}", shorter.len(), one.len());
        assert_eq!(compare(&one, shorter, true).unwrap(), Verdict::Differs(how));
    }

    #[test]
    fn other_toolchains_may_make_other_code_but_the_same_surface() {
        let one = committed();
        let code = changed("perf_event", |code| code[8] ^= 1);
        assert_eq!(compare(&one, &code, false).unwrap(), Verdict::Alike);
        let hash = changed("wholestack.abi", |hash| hash[0] ^= 1);
        let Verdict::Differs(how) = compare(&one, &hash, false).unwrap() else { panic!("the ABI hash differs") };
        assert!(how.contains("only committed: wholestack.abi") && how.contains("only built: wholestack.abi"), "{how}");
        let map = changed(".strtab", |names| {
            let place = names.windows(9).position(|name| name == b"processes").unwrap();
            names[place] = b'P';
        });
        let Verdict::Differs(how) = compare(&one, &map, false).unwrap() else { panic!("a map has another name") };
        assert_eq!(how, "only committed: .maps processes 40; only built: .maps Processes 40");
        assert!(compare(&one, b"no object", false).is_err());
    }
}
