//! The pieces of code that call frame information describes, against gimli's reading of the same section.

use gimli::{BaseAddresses, EhFrame as Oracle, LittleEndian, UnwindSection};
use object::{Object, ObjectSection};
use objects::{Architecture, EhFrame, Functions};

#[test]
fn functions_are_gimlis() {
    let program = std::fs::read(std::env::current_exe().expect("this program")).expect("its bytes");
    let file = object::File::parse(&*program).expect("an ELF file");
    let section = file.section_by_name(".eh_frame").expect("call frame information");
    let (bytes, address) = (section.data().expect("its bytes"), section.address());
    let architecture = match file.architecture() {
        object::Architecture::X86_64 => Architecture::X86_64,
        _ => Architecture::Aarch64,
    };
    let functions = Functions::read(EhFrame { architecture, bytes, address, exact: true }).expect("functions");
    let ours: Vec<(u64, u64)> = functions.all().iter().map(|function| (function.address, function.size)).collect();

    let oracle = Oracle::new(bytes, LittleEndian);
    let bases = BaseAddresses::default().set_eh_frame(address);
    let mut entries = oracle.entries(&bases);
    let mut theirs = Vec::new();
    while let Some(entry) = entries.next().expect("an entry") {
        if let gimli::CieOrFde::Fde(fde) = entry {
            let fde = fde.parse(Oracle::cie_from_offset).expect("an FDE");
            theirs.push((fde.initial_address(), fde.len()));
        }
    }
    theirs.sort_by_key(|(address, _)| *address);
    theirs.dedup_by_key(|(address, _)| *address);
    assert!(theirs.len() > 100);
    assert_eq!(ours, theirs);
    // compilers split parts off from few functions
    let called = functions.all().iter().filter(|function| functions.begins_as_called(function) == Some(true));
    assert!(called.count() * 10 > ours.len() * 9);

    let header = file.section_by_name(".eh_frame_hdr").expect("a header");
    assert_eq!(EhFrame::pointed_to(header.data().expect("its bytes"), header.address()), Some(address));
}
