//! Takes the DWARF out of a linked BPF object; BTF and everything that a loader reads stays, byte for byte.
//!
//! LLVM emits DWARF whenever it emits BTF, and no option of bpf-linker separates the two. Stripping in here rather than
//! with an objcopy makes the result independent of the tools on the machine.

use anyhow::{Context, Result};
use object::build::elf::{Builder, SectionData};
use object::elf::{SHT_STRTAB, STT_FILE};

/// The object without `.debug_*` sections, their relocations, and the symbol that names the code generation unit.
pub fn strip(object: &[u8]) -> Result<Vec<u8>> {
    let mut builder = Builder::read(object).context("the linked BPF object cannot be read")?;
    let mut deleted = Vec::new();
    for section in &mut builder.sections {
        if section.name.starts_with(b".debug_") {
            section.delete = true;
            deleted.push(section.id());
        }
    }
    for section in &mut builder.sections {
        section.delete |= section.sh_info_section.is_some_and(|target| deleted.contains(&target));
    }
    for symbol in &mut builder.symbols {
        symbol.delete |= symbol.st_type() == STT_FILE;
    }
    // LLVM keeps the names of sections and symbols in one table, which the builder cannot write.
    if !builder.sections.iter().any(|section| matches!(section.data, SectionData::SectionString)) {
        let names = builder.sections.add();
        names.name = b".shstrtab"[..].into();
        names.sh_type = SHT_STRTAB;
        names.sh_addralign = 1;
        names.data = SectionData::SectionString;
    }
    let mut stripped = Vec::new();
    builder.write(&mut stripped).context("the stripped BPF object cannot be written")?;
    Ok(stripped)
}

#[cfg(test)]
mod tests {
    use super::*;
    use object::{Object, ObjectSection, ObjectSymbol};
    use std::collections::BTreeMap;
    use std::path::Path;
    use std::process::Command;

    /// A compiled C file with debug information, shaped as LLVM does it where that is installed.
    fn compiled() -> Vec<u8> {
        let directory = tempfile::tempdir().unwrap();
        let (source, object) = (directory.path().join("a.c"), directory.path().join("a.o"));
        std::fs::write(&source, "static int here = 3; int there(int); int f(int x) { return there(x + here++); }\n")
            .unwrap();
        let status = Command::new("cc").arg("-g").arg("-c").arg(&source).arg("-o").arg(&object).status().unwrap();
        assert!(status.success());
        std::fs::read(object).unwrap()
    }

    /// Contents by name, but for the tables that stripping rewrites.
    fn sections(bytes: &[u8]) -> BTreeMap<String, Vec<u8>> {
        let file = object::File::parse(bytes).unwrap();
        let sections =
            file.sections().map(|section| (section.name().unwrap().to_owned(), section.data().unwrap().to_vec()));
        sections.filter(|(name, _)| !name.ends_with("tab") && !name.starts_with(".rel")).collect()
    }

    /// What the relocations of a section mean: offset, symbol, addend.
    fn relocations(bytes: &[u8], name: &str) -> Vec<(u64, String, i64)> {
        let file = object::File::parse(bytes).unwrap();
        let section = file.section_by_name(name).unwrap();
        section
            .relocations()
            .map(|(offset, relocation)| {
                let object::RelocationTarget::Symbol(index) = relocation.target() else { panic!("{relocation:?}") };
                let symbol = file.symbol_by_index(index).unwrap();
                let section = symbol.section_index().map(|index| file.section_by_index(index).unwrap().name().unwrap());
                (offset, format!("{:?} {section:?}", symbol.name().unwrap()), relocation.addend())
            })
            .collect()
    }

    #[test]
    fn only_debug_information_goes() {
        let before = compiled();
        let after = strip(&before).unwrap();
        let mut expected = sections(&before);
        assert!(expected.keys().any(|name| name == ".debug_info"));
        expected.retain(|name, _| !name.starts_with(".debug_"));
        assert_eq!(sections(&after), expected);
        assert_eq!(relocations(&after, ".text"), relocations(&before, ".text"));
        assert!(relocations(&after, ".text").iter().any(|(_, symbol, _)| symbol.contains("there")));
        assert!(after.len() < before.len());
    }

    #[test]
    fn the_committed_objects_are_stripped_and_keep_their_btf() {
        for architecture in ["x86_64", "aarch64"] {
            let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../bpf/prebuilt/sampler-{architecture}.o"));
            let committed = std::fs::read(path).unwrap();
            let names: Vec<_> = sections(&committed).into_keys().collect();
            for name in [".BTF", ".BTF.ext", ".maps", "license"] {
                assert!(names.iter().any(|found| found == name), "{name} is not in {names:?}");
            }
            assert!(!names.iter().any(|name| name.starts_with(".debug_")), "{names:?}");
            assert!(strip(&committed).unwrap() == committed, "stripping {architecture} again changes it");
        }
    }

    #[test]
    fn what_is_no_object_is_refused() {
        let object = compiled();
        assert!(strip(b"").is_err());
        assert!(strip(b"\x7fELF, says it").is_err());
        assert!(strip(&object[..object.len() / 2]).is_err());
    }
}
